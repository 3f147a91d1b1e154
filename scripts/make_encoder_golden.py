#!/usr/bin/env python3
"""Golden values from Hugging Face's transformers for tests/models/encoder_golden_test.cpp: tiny random BERT, DistilBERT and
RoBERTa classifiers and a BERT of masked words; their logits, every gradient and five AdamW steps. The files are
committed; run this again only when a shape or a parameter's name changes:

    python3 scripts/make_encoder_golden.py            # writes tests/golden/{bert,distilbert,roberta,bert_mlm}.safetensors
    python3 scripts/make_encoder_golden.py --check    # compares with the committed files instead of writing them

It needs torch, transformers and numpy, nothing of brisk. Everything is computed in float64 from parameters that are
float32 numbers, one sequence at a time (no padding), and stored as float32: a file is the exact answer, and what the test
measures is brisk's error alone.

A file holds, in safetensors:
    parameters/NAME, gradients/NAME   under brisk's names: before the first step, and on its batch (before clipping)
    tokens, types [steps, N]; lengths [steps, S]      a ragged batch a step
    source, targets, weights [steps, P]               the rows whose outputs matter, their labels and weights
    logits [P, C]                     of the first batch
    losses, gradient_norms, rates [steps]   sum of weight * loss / sum of weights, and norm before clipping
The model's sizes (EncoderConfig, src/models/encoder.h) and the optimizer's numbers are in the metadata.
"""

import functools
import math

import numpy
import torch
import torch.nn.functional as F
import transformers

from golden_file import write_or_check

OPTIMIZER = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01, "max_grad_norm": 1.0}
STEPS = 5
LENGTHS = [7, 1, 14, 9, 3]
CLASSES, CLASS_WEIGHTS = 3, [1.0, 0.5, 2.0]

SIZES = dict(vocab_size=37, d_model=16, num_layers=2, num_heads=2, d_ff=32, max_length=14)
SHAPES = {
    "bert": dict(SIZES, head="pooler_tanh", types=2, position_offset=0, norm_epsilon=1e-12),
    "distilbert": dict(SIZES, head="relu", types=0, position_offset=0, norm_epsilon=1e-12),
    "roberta": dict(SIZES, head="roberta", types=1, position_offset=2, norm_epsilon=1e-5),
    "bert_mlm": dict(SIZES, head="mlm", types=2, position_offset=0, norm_epsilon=1e-12),
}


def make_model(name, shape):
    rows = shape["max_length"] + shape["position_offset"]
    if name == "distilbert":
        return transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(
            vocab_size=shape["vocab_size"], dim=shape["d_model"], n_layers=shape["num_layers"],
            n_heads=shape["num_heads"], hidden_dim=shape["d_ff"], max_position_embeddings=rows, dropout=0.0,
            attention_dropout=0.0, seq_classif_dropout=0.0, num_labels=CLASSES, attn_implementation="eager"))
    kind = transformers.RobertaConfig if name == "roberta" else transformers.BertConfig
    config = kind(
        vocab_size=shape["vocab_size"], hidden_size=shape["d_model"], num_hidden_layers=shape["num_layers"],
        num_attention_heads=shape["num_heads"], intermediate_size=shape["d_ff"], max_position_embeddings=rows,
        type_vocab_size=shape["types"], layer_norm_eps=shape["norm_epsilon"], hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, num_labels=CLASSES, attn_implementation="eager")
    if name == "roberta":
        return transformers.RobertaForSequenceClassification(config)
    if name == "bert_mlm":
        return transformers.BertForMaskedLM(config)
    return transformers.BertForSequenceClassification(config)


def names_of(name, shape):
    """brisk's names and the names in transformers that each is the stack of."""
    names = {}

    def pair(ours, *theirs, norm=False):
        names[f"{ours}.{'gain' if norm else 'weight'}"] = [f"{one}.weight" for one in theirs]
        names[f"{ours}.bias"] = [f"{one}.bias" for one in theirs]

    distil = name == "distilbert"
    base = {"distilbert": "distilbert", "roberta": "roberta"}.get(name, "bert")
    tables = f"{base}.embeddings."
    names["embedding.weight"] = [tables + "word_embeddings.weight"]
    names["positions.weight"] = [tables + "position_embeddings.weight"]
    if shape["types"] > 0:
        names["types.weight"] = [tables + "token_type_embeddings.weight"]
    pair("embedding_norm", tables + "LayerNorm", norm=True)
    for layer in range(shape["num_layers"]):
        ours = f"layers.{layer}."
        if distil:
            theirs = f"distilbert.transformer.layer.{layer}."
            pair(ours + "qkv", *(f"{theirs}attention.{part}_lin" for part in "qkv"))
            pair(ours + "attention_out", theirs + "attention.out_lin")
            pair(ours + "attention_norm", theirs + "sa_layer_norm", norm=True)
            pair(ours + "up", theirs + "ffn.lin1")
            pair(ours + "down", theirs + "ffn.lin2")
            pair(ours + "feed_forward_norm", theirs + "output_layer_norm", norm=True)
        else:
            theirs = f"{base}.encoder.layer.{layer}."
            pair(ours + "qkv", *(f"{theirs}attention.self.{part}" for part in ("query", "key", "value")))
            pair(ours + "attention_out", theirs + "attention.output.dense")
            pair(ours + "attention_norm", theirs + "attention.output.LayerNorm", norm=True)
            pair(ours + "up", theirs + "intermediate.dense")
            pair(ours + "down", theirs + "output.dense")
            pair(ours + "feed_forward_norm", theirs + "output.LayerNorm", norm=True)
    if name == "bert_mlm":
        pair("mlm_dense", "cls.predictions.transform.dense")
        pair("mlm_norm", "cls.predictions.transform.LayerNorm", norm=True)
        names["mlm.bias"] = ["cls.predictions.bias"]
    else:
        pair("pooler", {"distilbert": "pre_classifier", "roberta": "classifier.dense"}.get(name, "bert.pooler.dense"))
        pair("classifier", "classifier.out_proj" if name == "roberta" else "classifier")
    return names


def fill(model, names, generator):
    """Large enough values that every gradient matters: at 0.02 attention would be nearly uniform."""
    parameters = dict(model.named_parameters())
    known = {one for theirs in names.values() for one in theirs}
    assert known == set(parameters), known ^ set(parameters)
    for ours, theirs in names.items():
        for one in theirs:
            value = torch.randn(parameters[one].shape, generator=generator)
            if ours.endswith(".gain"):
                value = 1 + 0.1 * value
            elif ours.endswith(".bias"):
                value = 0.1 * value
            elif ours in ("embedding.weight", "positions.weight", "types.weight"):
                value = 0.3 * value
            else:
                value = value / math.sqrt(value.shape[1])
            parameters[one].data = value.float().to(parameters[one].dtype)


def stacked(tensors, ours, theirs):
    whole = torch.cat([tensors[one] for one in theirs])
    return whole[None] if whole.dim() == 1 else whole


def make_batch(name, shape, generator, step):
    """Ragged sequences whose label is a rule of their tokens. Token 1 is RoBERTa's padding: it stands nowhere."""
    lengths = LENGTHS[step % len(LENGTHS):] + LENGTHS[:step % len(LENGTHS)]
    batch = {key: [] for key in ("tokens", "types", "source", "targets", "weights")}
    start = 0
    for number, length in enumerate(lengths):
        tokens = torch.randint(3, shape["vocab_size"], (length,), generator=generator).tolist()
        batch["types"] += [int(shape["types"] > 1 and place > length // 2) for place in range(length)]
        if name == "bert_mlm":  # every third token, and none of one sequence
            for place in range(0 if number != 2 else length, length, 3):
                batch["source"].append(start + place)
                batch["targets"].append(tokens[place])
                batch["weights"].append(1.0)
                tokens[place] = 2
        else:
            label = sum(tokens) % CLASSES
            batch["source"].append(start)
            batch["targets"].append(label)
            batch["weights"].append(CLASS_WEIGHTS[label] if name == "roberta" else 1.0)
        batch["tokens"] += tokens
        start += length
    return {**batch, "lengths": lengths}


def picked_logits(name, model, batch):
    """[P, C]: sequence by sequence."""
    rows, start = [], 0
    for length in batch["lengths"]:
        span = slice(start, start + length)
        inputs = {"input_ids": torch.tensor([batch["tokens"][span]])}
        if name.startswith("bert"):
            inputs["token_type_ids"] = torch.tensor([batch["types"][span]])
        logits = model(**inputs).logits
        if name == "bert_mlm":
            rows += [logits[0, source - start] for source in batch["source"] if start <= source < start + length]
        else:
            rows.append(logits[0])
        start += length
    return torch.stack(rows)


def make_file(name, shape, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    model = make_model(name, shape).to(dtype).eval()
    names = names_of(name, shape)
    fill(model, names, generator)
    batches = [make_batch(name, shape, generator, step) for step in range(STEPS)]
    parameters = dict(model.named_parameters())
    ours_of = {one: ours for ours, theirs in names.items() for one in theirs}
    matrices = [value for one, value in parameters.items() if ours_of[one].endswith(".weight")]
    others = [value for one, value in parameters.items() if not ours_of[one].endswith(".weight")]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": OPTIMIZER["weight_decay"]}, {"params": others, "weight_decay": 0.0}],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])

    tensors, losses, norms = {}, [], []
    rates = [0.004 * (step + 1) / STEPS for step in range(STEPS)]
    for ours, theirs in names.items():
        tensors["parameters/" + ours] = stacked({one: parameters[one].detach().clone() for one in theirs}, ours, theirs)
    for step, batch in enumerate(batches):
        logits = picked_logits(name, model, batch)
        weights = torch.tensor(batch["weights"], dtype=dtype)
        each = F.cross_entropy(logits, torch.tensor(batch["targets"]), reduction="none")
        loss = (weights * each).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach()
            for ours, theirs in names.items():
                gradients = {one: torch.zeros_like(parameters[one]) if parameters[one].grad is None else
                             parameters[one].grad.clone() for one in theirs}
                tensors["gradients/" + ours] = stacked(gradients, ours, theirs)
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["max_grad_norm"]).detach()))
        losses.append(float(loss.detach()))
        optimizer.step()
    tensors["losses"], tensors["gradient_norms"], tensors["rates"] = map(torch.tensor, (losses, norms, rates))
    arrays = {key: value.numpy().astype(numpy.float32) for key, value in tensors.items()}
    # Numbers of picked rows differ from step to step: -1 fills up.
    most = max(len(batch["source"]) for batch in batches)
    for key in ("tokens", "types", "lengths", "source", "targets"):
        arrays[key] = numpy.array([batch[key] + [-1] * ((most if key in ("source", "targets") else 0) - len(batch[key]))
                                   for batch in batches], dtype=numpy.int32)
    arrays["weights"] = numpy.array([batch["weights"] + [0.0] * (most - len(batch["weights"])) for batch in batches],
                                    dtype=numpy.float32)
    metadata = {key: str(value) for key, value in {**shape, **OPTIMIZER, "num_labels": CLASSES}.items()}
    metadata["transformers"] = transformers.__version__
    return arrays, metadata


if __name__ == "__main__":
    write_or_check(__doc__, {name: functools.partial(make_file, name, shape) for name, shape in SHAPES.items()})
