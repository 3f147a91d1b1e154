"""Trains the PyTorch twin on the tokens brisk trained on, with brisk's default recipe, and prints its validation loss and time.

  brisk tokenizer encode --tokenizer RUN/tokenizer.json < train.txt > train.ids     (a text of one line: one line of ids)
  python bench/peers/lm_quality_torch.py --train train.ids --validation valid.ids --vocabulary 10000 --mode compile

bench/peers/wikitext.sh runs both, one after the other.
"""
import argparse
import json
import math
import time

import torch
import torch.nn as nn

import lm_torch


def chunks(path, end_of_document, length):
    ids = [end_of_document] + [int(word) for line in open(path) for word in line.split()] + [end_of_document]
    count = (len(ids) - 1) // length
    stream = torch.tensor(ids)
    return stream[: count * length].view(count, length), stream[1: count * length + 1].view(count, length)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--validation", required=True)
    parser.add_argument("--vocabulary", type=int, required=True)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--mode", choices=["eager", "compile"], default="compile")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    tokens, targets = chunks(options.train, options.vocabulary - 1, options.length)
    held_tokens, held_targets = chunks(options.validation, options.vocabulary - 1, options.length)
    model = lm_torch.Decoder(options.vocabulary, options.width, options.layers, options.width // 64, options.length)
    for name, parameter in model.named_parameters():  # brisk's initialisation
        if name.endswith(("attention_out.weight", "down.weight")):
            nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * options.layers))
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    run = torch.compile(model, dynamic=False) if options.mode == "compile" else model
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  options.rate, betas=(0.9, 0.95), fused=True)
    steps = len(tokens) // options.batch
    warm_up = max(1, round(0.05 * steps))
    run(tokens[: options.batch], targets[: options.batch]).backward()  # compilation is not counted
    optimizer.zero_grad(set_to_none=True)
    order = torch.randperm(len(tokens))
    start = time.time()
    for step in range(1, steps + 1):
        done = (step - warm_up - 1) / max(1, steps - warm_up)
        rate = step / warm_up if step <= warm_up else 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = options.rate * rate
        pick = order[(step - 1) * options.batch: step * options.batch]
        loss = run(tokens[pick], targets[pick])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
    seconds = time.time() - start
    with torch.no_grad():
        parts = [(run(held_tokens[i: i + options.batch], held_targets[i: i + options.batch]).item(), 1)
                 for i in range(0, len(held_tokens) - options.batch + 1, options.batch)]
    held = sum(p[0] for p in parts) / len(parts)
    print(json.dumps({"validation_loss": held, "validation_perplexity": math.exp(held), "train_seconds": seconds,
                      "tokens": steps * options.batch * options.length,
                      "tokens_per_second": steps * options.batch * options.length / seconds, "mode": options.mode}))


main()
