"""The PyTorch twin of `brisk bench translate`: Hugging Face's PegasusForConditionalGeneration, which is the same network (norms
before each block, sinusoids, one table of embeddings), in a loop with best practice.

  python bench/peers/translate_torch.py --source train.en --target train.de --tokenizer tokenizer.json --json
  python bench/peers/translate_torch.py ... --mode compile --precision bf16 --device cuda

AdamW (fused), label smoothing 0.1, dropout 0.1, gradients clipped at 1. --padding: max (everything to --max-length), dynamic (to
the longest of a batch of random pairs), grouped (batches of pairs of similar length, in random order). Without --tokenizer a
byte-level BPE of --vocabulary entries is trained on both texts (and kept with --keep FILE). Needs torch, transformers and
tokenizers.
"""
import argparse
import gzip
import json
import os
import random
import resource
import statistics
import time

import torch
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from transformers import PegasusConfig, PegasusForConditionalGeneration

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
START, PAD, END = 0, 1, 2


def read_lines(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf8") as file:
        return [line.rstrip("\n") for line in file]


def tokenizer_of(options, texts):
    if options.tokenizer:
        return Tokenizer.from_file(options.tokenizer)
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocab_size=options.vocabulary, min_frequency=2, special_tokens=SPECIALS,
                                  show_progress=False)
    if options.keep:
        tokenizer.save(options.keep)
    return tokenizer


def batches_of(pairs, options):
    order = list(range(len(pairs)))
    random.shuffle(order)
    if options.padding == "grouped":
        order.sort(key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    batches = [order[i:i + options.batch] for i in range(0, len(order), options.batch)]
    random.shuffle(batches)
    return batches


def padded(batch, pairs, options):
    def matrix(rows, filler):
        longest = options.max_length if options.padding == "max" else max(map(len, rows))
        return torch.tensor([row + [filler] * (longest - len(row)) for row in rows]).to(options.device)

    sources, targets = [pairs[i][0] for i in batch], [pairs[i][1] for i in batch]
    tokens = matrix(sources, PAD)
    return tokens, (tokens != PAD).long(), matrix([[START] + t[:-1] for t in targets], PAD), matrix(targets, -100)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--tokenizer", help="a tokenizer.json")
    parser.add_argument("--vocabulary", type=int, default=10000)
    parser.add_argument("--keep", help="where to write the tokenizer that is trained")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--d-ff", type=int, default=0)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--padding", default="grouped", choices=["max", "dynamic", "grouped"])
    parser.add_argument("--mode", default="eager", choices=["eager", "compile"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=25, help="in rounds of 24 batches")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random.seed(options.seed)

    sources, targets = read_lines(options.source), read_lines(options.target)
    tokenizer = tokenizer_of(options, sources + targets)
    encode = lambda texts: [e.ids + [END] for e in tokenizer.encode_batch(texts, add_special_tokens=False)]
    pairs = [pair for pair in zip(encode(sources), encode(targets)) if max(map(len, pair)) <= options.max_length]
    heads = options.width // 64
    model = PegasusForConditionalGeneration(PegasusConfig(
        vocab_size=tokenizer.get_vocab_size(), d_model=options.width, encoder_layers=options.layers,
        decoder_layers=options.layers, encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=options.d_ff or 4 * options.width, decoder_ffn_dim=options.d_ff or 4 * options.width,
        max_position_embeddings=options.max_length, activation_function="relu", scale_embedding=True,
        dropout=options.dropout, attention_dropout=options.dropout, pad_token_id=PAD, eos_token_id=END,
        decoder_start_token_id=START, use_cache=False))
    model = model.to(options.device).train()
    run = torch.compile(model, dynamic=True) if options.mode == "compile" else model
    decays = [p for p in model.parameters() if p.requires_grad and p.dim() > 1]
    others = [p for p in model.parameters() if p.requires_grad and p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}],
                                  3e-4, fused=True)

    def step(inputs):
        tokens, mask, read, wanted = inputs
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            logits = run(input_ids=tokens, attention_mask=mask, decoder_input_ids=read).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten(), label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    on_gpu = options.device == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    # Batches grouped by length differ by a factor of ten: whole rounds over some that are evenly spaced by length.
    batches = batches_of(pairs, options)
    count = lambda batch: sum(len(pairs[i][0]) + len(pairs[i][1]) for i in batch)
    batches.sort(key=count)
    batches = [batches[(2 * i + 1) * len(batches) // 48] for i in range(24)] if len(batches) >= 24 else batches
    random.shuffle(batches)
    # A GPU finds its batches in its memory, and meets every length before its time counts: libraries plan each anew.
    inputs = [padded(batch, pairs, options) if on_gpu else None for batch in batches]
    warm = list(zip(batches, inputs))[:None if on_gpu or options.mode == "compile" else 2]
    for batch, given in warm:
        step(given or padded(batch, pairs, options))
    rows = tokens = done = 0
    wait()
    start = time.time()
    while time.time() - start < options.seconds:
        for batch, given in zip(batches, inputs):
            step(given or padded(batch, pairs, options))
            rows, tokens, done = rows + len(batch), tokens + count(batch), done + 1
        wait()
    seconds = time.time() - start
    result = {"padding": options.padding, "mode": options.mode, "precision": options.precision,
              "parameters": model.num_parameters(), "mean_source": statistics.mean(len(s) for s, _ in pairs),
              "mean_target": statistics.mean(len(t) for _, t in pairs), "pairs_per_second": rows / seconds,
              "tokens_per_second": tokens / seconds, "batches": done,
              "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu
              else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    print(json.dumps(result) if options.json else result)


main()
