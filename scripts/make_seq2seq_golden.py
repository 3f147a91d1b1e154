#!/usr/bin/env python3
"""Golden values from PyTorch and transformers for tests/models/encoder_decoder_golden_test.cpp: tiny random encoder-decoders
of every shape, their logits, every gradient and ten AdamW steps with label smoothing. The files are committed; run this again
only when a shape or a parameter's name changes:

    python3 scripts/make_seq2seq_golden.py            # writes tests/golden/seq2seq/*.safetensors
    python3 scripts/make_seq2seq_golden.py --check    # compares with the committed files instead of writing them

It needs torch, transformers and numpy, nothing of brisk. `vanilla` and `post` are PyTorch's own layers with norms before and
after each block; the others are transformers' MarianMTModel, PegasusForConditionalGeneration, BartForConditionalGeneration,
MBartForConditionalGeneration, T5ForConditionalGeneration and EncoderDecoderModel of two BERTs. Everything is computed in float64 from parameters that are float32 numbers, one pair of
texts at a time (no padding), and stored as float32: a file is the exact answer, and what the test measures is brisk's error
alone.

A file holds, in safetensors:
    parameters/NAME, gradients/NAME   under brisk's names: before the first step, and on its batch (before clipping); those
                                      that are not trained have no gradient
    source_tokens, tokens, targets [steps, N]; source_lengths, lengths [steps, S]     a ragged batch a step
    logits [N, V]                     of the first batch
    losses, gradient_norms, rates [steps]
The model's shape (tests/models/encoder_decoder_golden_test.cpp reads it), how many parameters transformers counts
(num_parameters()) and the optimizer's numbers are in the metadata.
"""

import functools
import math

import numpy
import torch
import torch.nn.functional as F
import transformers

from golden_file import write_or_check

OPTIMIZER = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "weight_decay": 0.01, "max_grad_norm": 1.0}
STEPS, SMOOTHING = 10, 0.1
SOURCE_LENGTHS, TARGET_LENGTHS = [7, 1, 12, 9, 3], [5, 8, 1, 12, 4]
D, HEADS, FFN, LONGEST, VOCABULARY = 16, 2, 24, 12, 29
FIRST_TOKEN = 4  # smaller ones are padding, starts and ends


def sinusoids(rows, width):
    """The original transformer's: sines and cosines in turns."""
    angles = torch.arange(rows)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(rows, width).float().double()


class Plain(torch.nn.Module):
    """PyTorch's layers with one table of embeddings, sinusoids and label-smoothed outputs."""

    def __init__(self, pre):
        super().__init__()
        nn = torch.nn
        self.embedding = nn.Embedding(VOCABULARY, D)
        sizes = dict(d_model=D, nhead=HEADS, dim_feedforward=FFN, dropout=0.0, batch_first=True, norm_first=pre,
                     activation="relu")
        norms = (lambda: nn.LayerNorm(D)) if pre else (lambda: None)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**sizes), 2, norms(), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**sizes), 2, norms())
        self.positions = sinusoids(LONGEST, D)

    def embed(self, tokens):
        return math.sqrt(D) * self.embedding(tokens) + self.positions.to(self.embedding.weight.dtype)[:tokens.shape[1]]

    def forward(self, source, target):
        mask = torch.triu(torch.full((target.shape[1],) * 2, -math.inf, dtype=self.embedding.weight.dtype), 1)
        h = self.decoder(self.embed(target), self.encoder(self.embed(source)), tgt_mask=mask)
        return F.linear(h, self.embedding.weight)


class Theirs(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source, target):
        return self.model(input_ids=source, decoder_input_ids=target, use_cache=False).logits


SIZES = dict(source_vocab_size=VOCABULARY, target_vocab_size=VOCABULARY, d_model=D, num_heads=HEADS, head_width=8, d_ff=FFN,
             num_layers=2, encoder_d_model=D, encoder_heads=HEADS, encoder_d_ff=FFN, encoder_layers=1, types=0,
             norm_position="post", norm="layer", norm_epsilon=1e-5, embedding_norm=0, activation="relu",
             positions="sinusoidal", position_offset=0, relative_buckets=0, relative_distance=0, scale_embeddings=1,
             scale_attention=1, scale_head=0, bias=1, share_embeddings=1, tie_head=1, head_bias="none", head_transform=0)
SHAPES = {
    "vanilla": dict(SIZES, norm_position="pre", positions="interleaved_sinusoidal", encoder_layers=2),
    "post": dict(SIZES, positions="interleaved_sinusoidal", encoder_layers=2),
    "marian": dict(SIZES, activation="swish", head_bias="fixed"),
    "marian_two": dict(SIZES, activation="relu", head_bias="fixed", share_embeddings=0, target_vocab_size=23),
    "bart": dict(SIZES, activation="gelu_erf", positions="learned", position_offset=2, embedding_norm=1, scale_embeddings=0,
                 head_bias="fixed"),
    "pegasus": dict(SIZES, norm_position="pre", head_bias="fixed"),
    "mbart": dict(SIZES, norm_position="pre", activation="gelu", positions="learned", position_offset=2, embedding_norm=1,
                  head_bias="fixed"),
    "t5": dict(SIZES, norm_position="pre", norm="rms", norm_epsilon=1e-6, positions="relative", relative_buckets=8,
               relative_distance=10, scale_embeddings=0, scale_attention=0, scale_head=1, bias=0, head_width=6),
    "t5_gated": dict(SIZES, norm_position="pre", norm="rms", norm_epsilon=1e-6, positions="relative", relative_buckets=6,
                     relative_distance=7, scale_embeddings=0, scale_attention=0, bias=0, activation="geglu"),
    "bert2bert": dict(SIZES, activation="gelu_erf", norm_epsilon=1e-12, positions="learned", embedding_norm=1,
                      scale_embeddings=0, types=2, share_embeddings=0, head_bias="trained", head_transform=1,
                      encoder_d_model=12, encoder_heads=3, encoder_d_ff=20, head_width=0, source_vocab_size=37),
}


# Of the same names.
BARTS = {"bart": (transformers.BartForConditionalGeneration, transformers.BartConfig),
         "pegasus": (transformers.PegasusForConditionalGeneration, transformers.PegasusConfig),
         "mbart": (transformers.MBartForConditionalGeneration, transformers.MBartConfig)}


def make_model(name, shape):
    if name in ("vanilla", "post"):
        return Plain(name == "vanilla")
    common = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, attn_implementation="eager")
    if name.startswith("marian") or name in BARTS:
        sizes = dict(common, d_model=D, encoder_layers=shape["encoder_layers"], decoder_layers=shape["num_layers"],
                     encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=FFN, decoder_ffn_dim=FFN,
                     max_position_embeddings=LONGEST, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
                     vocab_size=shape["source_vocab_size"], scale_embedding=bool(shape["scale_embeddings"]),
                     activation_function={"gelu_erf": "gelu", "gelu": "gelu_new"}.get(shape["activation"], shape["activation"]),
                     forced_eos_token_id=None)
        if name in BARTS:
            model, config = BARTS[name]
            return Theirs(model(config(**sizes)))
        return Theirs(transformers.MarianMTModel(transformers.MarianConfig(
            **sizes, decoder_vocab_size=shape["target_vocab_size"],
            share_encoder_decoder_embeddings=bool(shape["share_embeddings"]))))
    if name.startswith("t5"):
        return Theirs(transformers.T5ForConditionalGeneration(transformers.T5Config(
            **common, vocab_size=VOCABULARY, d_model=D, d_kv=shape["head_width"], d_ff=FFN,
            num_layers=shape["encoder_layers"], num_decoder_layers=shape["num_layers"], num_heads=HEADS,
            relative_attention_num_buckets=shape["relative_buckets"],
            relative_attention_max_distance=shape["relative_distance"], dropout_rate=0.0,
            feed_forward_proj="gated-gelu" if name == "t5_gated" else "relu",
            tie_word_embeddings=name != "t5_gated")))
    bert = functools.partial(
        transformers.BertConfig, max_position_embeddings=LONGEST, type_vocab_size=2, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, layer_norm_eps=1e-12, pad_token_id=0, attn_implementation="eager")
    encoder = bert(vocab_size=shape["source_vocab_size"], hidden_size=shape["encoder_d_model"],
                   num_hidden_layers=shape["encoder_layers"], num_attention_heads=shape["encoder_heads"],
                   intermediate_size=shape["encoder_d_ff"])
    decoder = bert(vocab_size=shape["target_vocab_size"], hidden_size=D, num_hidden_layers=shape["num_layers"],
                   num_attention_heads=HEADS, intermediate_size=FFN, is_decoder=True, add_cross_attention=True)
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    return Theirs(transformers.EncoderDecoderModel(config=config))


def names_of(name, shape):
    """brisk's names, and what each is the stack of: names of theirs, or (name, first row, rows) of a part of one."""
    names = {}

    def pair(ours, *theirs, norm=False, bias=None):
        names[f"{ours}.{'gain' if norm else 'weight'}"] = [f"{one}.weight" for one in theirs]
        if shape["bias"] if bias is None else bias:
            names[f"{ours}.bias"] = [f"{one}.bias" for one in theirs]

    def joined(ours, theirs, first, rows):  # of PyTorch's MultiheadAttention
        names[ours + ".weight"] = [(theirs + "in_proj_weight", first, rows)]
        names[ours + ".bias"] = [(theirs + "in_proj_bias", first, rows)]

    stacks = {"encoder": shape["encoder_layers"], "decoder": shape["num_layers"]}
    layers = [(f"{stack}.layers.{layer}.", stack, layer) for stack, count in stacks.items() for layer in range(count)]
    if name in ("vanilla", "post"):
        names["embedding.weight"] = ["embedding.weight"]
        for ours, stack, layer in layers:
            last = 3 if stack == "decoder" else 2
            joined(ours + "qkv", ours + "self_attn.", 0, 3 * D)
            pair(ours + "attention_out", ours + "self_attn.out_proj")
            pair(ours + "attention_norm", ours + "norm1", norm=True)
            if stack == "decoder":
                joined(ours + "cross_q", ours + "multihead_attn.", 0, D)
                joined(ours + "cross_kv", ours + "multihead_attn.", D, 2 * D)
                pair(ours + "cross_out", ours + "multihead_attn.out_proj")
                pair(ours + "cross_norm", ours + "norm2", norm=True)
            pair(ours + "up", ours + "linear1")
            pair(ours + "down", ours + "linear2")
            pair(ours + "feed_forward_norm", f"{ours}norm{last}", norm=True)
        if name == "vanilla":
            for stack in stacks:
                pair(f"{stack}.final_norm", f"{stack}.norm", norm=True)
    elif name.startswith("marian") or name in BARTS:
        if shape["share_embeddings"]:
            names["embedding.weight"] = ["model.shared.weight"]
        else:
            names["source_embedding.weight"] = ["model.encoder.embed_tokens.weight"]
            names["target_embedding.weight"] = ["model.decoder.embed_tokens.weight"]
        for stack in stacks:
            names[f"{stack}.positions.weight"] = [f"model.{stack}.embed_positions.weight"]
            if shape["norm_position"] == "pre":
                pair(f"{stack}.final_norm", f"model.{stack}.layer_norm", norm=True)
            if shape["embedding_norm"]:
                pair(f"{stack}.embedding_norm", f"model.{stack}.layernorm_embedding", norm=True)
        for ours, stack, layer in layers:
            theirs = "model." + ours
            pair(ours + "qkv", *(f"{theirs}self_attn.{part}_proj" for part in "qkv"))
            pair(ours + "attention_out", theirs + "self_attn.out_proj")
            pair(ours + "attention_norm", theirs + "self_attn_layer_norm", norm=True)
            if stack == "decoder":
                pair(ours + "cross_q", theirs + "encoder_attn.q_proj")
                pair(ours + "cross_kv", theirs + "encoder_attn.k_proj", theirs + "encoder_attn.v_proj")
                pair(ours + "cross_out", theirs + "encoder_attn.out_proj")
                pair(ours + "cross_norm", theirs + "encoder_attn_layer_norm", norm=True)
            pair(ours + "up", theirs + "fc1")
            pair(ours + "down", theirs + "fc2")
            pair(ours + "feed_forward_norm", theirs + "final_layer_norm", norm=True)
        names["head.bias"] = ["final_logits_bias"]
    elif name.startswith("t5"):
        names["embedding.weight"] = ["shared.weight"]
        for stack in stacks:
            names[f"{stack}.relative.weight"] = [f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
            pair(f"{stack}.final_norm", f"{stack}.final_layer_norm", norm=True)
        for ours, stack, layer in layers:
            theirs = f"{stack}.block.{layer}.layer."
            pair(ours + "qkv", *(f"{theirs}0.SelfAttention.{part}" for part in "qkv"))
            pair(ours + "attention_out", theirs + "0.SelfAttention.o")
            pair(ours + "attention_norm", theirs + "0.layer_norm", norm=True)
            last = 1
            if stack == "decoder":
                last = 2
                pair(ours + "cross_q", theirs + "1.EncDecAttention.q")
                pair(ours + "cross_kv", theirs + "1.EncDecAttention.k", theirs + "1.EncDecAttention.v")
                pair(ours + "cross_out", theirs + "1.EncDecAttention.o")
                pair(ours + "cross_norm", theirs + "1.layer_norm", norm=True)
            dense = f"{theirs}{last}.DenseReluDense."
            pair(ours + "up", *([dense + "wi_0", dense + "wi_1"] if name == "t5_gated" else [dense + "wi"]))
            pair(ours + "down", dense + "wo")
            pair(ours + "feed_forward_norm", f"{theirs}{last}.layer_norm", norm=True)
    else:
        base = {"encoder": "encoder.", "decoder": "decoder.bert."}
        names["source_embedding.weight"] = ["encoder.embeddings.word_embeddings.weight"]
        names["target_embedding.weight"] = ["decoder.bert.embeddings.word_embeddings.weight"]
        for stack in stacks:
            names[f"{stack}.positions.weight"] = [base[stack] + "embeddings.position_embeddings.weight"]
            names[f"{stack}.types.weight"] = [base[stack] + "embeddings.token_type_embeddings.weight"]
            pair(f"{stack}.embedding_norm", base[stack] + "embeddings.LayerNorm", norm=True)
        for ours, stack, layer in layers:
            theirs = f"{base[stack]}encoder.layer.{layer}."
            pair(ours + "qkv", *(f"{theirs}attention.self.{part}" for part in ("query", "key", "value")))
            pair(ours + "attention_out", theirs + "attention.output.dense")
            pair(ours + "attention_norm", theirs + "attention.output.LayerNorm", norm=True)
            if stack == "decoder":
                pair(ours + "cross_q", theirs + "crossattention.self.query")
                pair(ours + "cross_kv", theirs + "crossattention.self.key", theirs + "crossattention.self.value")
                pair(ours + "cross_out", theirs + "crossattention.output.dense")
                pair(ours + "cross_norm", theirs + "crossattention.output.LayerNorm", norm=True)
            pair(ours + "up", theirs + "intermediate.dense")
            pair(ours + "down", theirs + "output.dense")
            pair(ours + "feed_forward_norm", theirs + "output.LayerNorm", norm=True)
        pair("bridge", "enc_to_dec_proj")
        pair("head_dense", "decoder.cls.predictions.transform.dense")
        pair("head_norm", "decoder.cls.predictions.transform.LayerNorm", norm=True)
        names["head.bias"] = ["decoder.cls.predictions.bias"]
    return names


def part_of(tensors, one):
    return tensors[one] if isinstance(one, str) else tensors[one[0]][one[1]:one[1] + one[2]]


def stacked(tensors, theirs):
    whole = torch.cat([part_of(tensors, one) for one in theirs])
    return whole[None] if whole.dim() == 1 else whole


def fill(tensors, names, generator):
    """Large enough values that every gradient matters: at 0.02 attention would be nearly uniform."""
    for ours, theirs in names.items():
        for one in theirs:
            part = part_of(tensors, one)
            if ours.endswith("positions.weight") and not part.requires_grad:
                continue
            value = torch.randn(part.shape, generator=generator)
            if ours.endswith(".gain"):
                value = 1 + 0.1 * value
            elif ours.endswith(".bias"):
                value = 0.1 * value
            elif "embedding.weight" in ours or ours.endswith(("positions.weight", "types.weight", "relative.weight")):
                value = 0.3 * value
            else:
                value = value / math.sqrt(value.shape[1])
            part.data.copy_(value.float().to(part.dtype))


def make_batch(shape, generator, step):
    turn = step % len(SOURCE_LENGTHS)
    batch = {"source_lengths": SOURCE_LENGTHS[turn:] + SOURCE_LENGTHS[:turn],
             "lengths": TARGET_LENGTHS[turn:] + TARGET_LENGTHS[:turn], "source_tokens": [], "tokens": [], "targets": []}
    for source, target in zip(batch["source_lengths"], batch["lengths"]):
        tokens = torch.randint(FIRST_TOKEN, shape["source_vocab_size"], (source,), generator=generator).tolist()
        words = [FIRST_TOKEN + (tokens[-1 - i % source] + i) % (shape["target_vocab_size"] - FIRST_TOKEN)
                 for i in range(target - 1)]
        batch["source_tokens"] += tokens
        batch["tokens"] += [3] + words
        batch["targets"] += words + [2]
    return batch


def logits_of(model, batch):
    """[N, V]: pair by pair."""
    rows, source, target = [], 0, 0
    for source_length, length in zip(batch["source_lengths"], batch["lengths"]):
        rows.append(model(torch.tensor([batch["source_tokens"][source:source + source_length]]),
                          torch.tensor([batch["tokens"][target:target + length]]))[0])
        source += source_length
        target += length
    return torch.cat(rows)


def make_file(name, shape, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    model = make_model(name, shape).to(dtype).eval()
    inner = getattr(model, "model", model)
    names = names_of(name, shape)
    parameters = dict(inner.named_parameters())
    known = {one if isinstance(one, str) else one[0] for theirs in names.values() for one in theirs}
    unread = {one for one in parameters if ".pooler." in one}
    assert known - {"final_logits_bias"} == set(parameters) - unread, known ^ set(parameters)
    tensors = {**parameters, **dict(inner.named_buffers())}
    fill(tensors, names, generator)
    batches = [make_batch(shape, generator, step) for step in range(STEPS)]
    trained = {ours: theirs for ours, theirs in names.items()
               if all(part_of(tensors, one).requires_grad for one in theirs)}
    decays = {one if isinstance(one, str) else one[0] for ours, theirs in trained.items() for one in theirs
              if ours.endswith(".weight") and not ours.endswith("relative.weight")}
    optimizer = torch.optim.AdamW(
        [{"params": [parameters[one] for one in sorted(decays)], "weight_decay": OPTIMIZER["weight_decay"]},
         {"params": [value for one, value in parameters.items() if one not in decays and value.requires_grad],
          "weight_decay": 0.0}],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])

    arrays, losses, norms = {}, [], []
    rates = [0.004 * (step + 1) / STEPS for step in range(STEPS)]
    for ours, theirs in names.items():
        arrays["parameters/" + ours] = stacked(tensors, theirs).detach().clone()
    if name in ("vanilla", "post"):
        for stack in ("encoder", "decoder"):
            arrays[f"parameters/{stack}.positions.weight"] = model.positions
    for step, batch in enumerate(batches):
        logits = logits_of(model, batch)
        loss = F.cross_entropy(logits, torch.tensor(batch["targets"]), label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            arrays["logits"] = logits.detach()
            gradients = {one: value.grad for one, value in parameters.items()}
            for ours, theirs in trained.items():
                arrays["gradients/" + ours] = stacked(gradients, theirs).clone()
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["max_grad_norm"]).detach()))
        losses.append(float(loss.detach()))
        optimizer.step()
    arrays["losses"], arrays["gradient_norms"], arrays["rates"] = map(torch.tensor, (losses, norms, rates))
    arrays = {key: value.numpy().astype(numpy.float32) for key, value in arrays.items()}
    for key in ("source_tokens", "tokens", "targets", "source_lengths", "lengths"):
        arrays[key] = numpy.array([batch[key] for batch in batches], dtype=numpy.int32)
    counted = inner.num_parameters() if hasattr(inner, "num_parameters") else sum(p.numel() for p in inner.parameters())
    counted -= sum(parameters[one].numel() for one in unread)
    metadata = {key: str(value) for key, value in {**shape, **OPTIMIZER, "max_length": LONGEST, "counted": counted,
                                                   "label_smoothing": SMOOTHING}.items()}
    metadata["transformers"] = transformers.__version__
    return arrays, metadata


if __name__ == "__main__":
    write_or_check(__doc__, {f"seq2seq/{name}": functools.partial(make_file, name, shape) for name, shape in SHAPES.items()})
