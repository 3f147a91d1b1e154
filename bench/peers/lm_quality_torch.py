"""Trains the PyTorch twin on the tokens brisk trained on and prints, as one JSON line, its validation loss, its course and its speed.

  brisk tokenizer encode --tokenizer tokenizer.json < train.txt > train.ids     (a text of one line: one line of ids)
  python bench/peers/lm_quality_torch.py --train train.ids --validation valid.ids --vocabulary 10000 --mode compile
  python bench/peers/lm_quality_torch.py ... --device cuda --mode eager         (losses only, quickly)
  python bench/peers/lm_quality_torch.py ... --speed-steps 20                   (tokens/s only)
  python bench/peers/lm_quality_torch.py ... --recipe muon --rate 4e-3 --muon-rate 0.01 --fraction 0.3   (brisk's recipe, in PyTorch)

bench/peers/wikitext.sh runs brisk and this one after the other; bench/quality/run.py measures time to quality with it.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn as nn

import lm_torch


def windows(path, end_of_document, length):
    """Token and target windows of a text, as brisk cuts one document; the last, shorter one apart."""
    ids = [end_of_document] + [int(word) for line in open(path) for word in line.split()] + [end_of_document]
    rows = len(ids) - 1
    count = rows // length
    stream = torch.tensor(ids)
    whole = stream[: count * length].view(count, length), stream[1: count * length + 1].view(count, length)
    rest = (stream[count * length: rows][None], stream[count * length + 1: rows + 1][None]) if rows > count * length else None
    return whole, rest


class Muon:
    """brisk's Muon for the matrices of the blocks; Q, K and V are three."""

    def __init__(self, model, rate, momentum, decay):
        self.rate, self.momentum, self.decay = rate, momentum, decay
        self.matrices = [p for block in model.blocks for p in block.parameters() if p.dim() > 1]
        self.qkv = {id(block.qkv.weight) for block in model.blocks}
        self.state = [torch.zeros_like(p) for p in self.matrices]

    @staticmethod
    def orthogonal(x):
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        x = (x / (x.norm() + 1e-30)).bfloat16() if x.is_cuda else x / (x.norm() + 1e-30)
        for _ in range(5):
            gram = x @ x.T
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        x = x.float()
        return x.T if tall else x

    @torch.no_grad()
    def step(self, share):
        for p, m in zip(self.matrices, self.state):
            m.lerp_(p.grad, 1 - self.momentum)
            look_ahead = p.grad.lerp(m, self.momentum)
            for part, update in zip(p.chunk(3) if id(p) in self.qkv else [p], look_ahead.chunk(3) if id(p) in self.qkv else [look_ahead]):
                part.mul_(1 - share * self.rate * self.decay)
                part.add_(self.orthogonal(update), alpha=-share * self.rate * max(1, part.shape[0] / part.shape[1]) ** 0.5)


def rate_share(step, steps, warm_up, options):
    if step <= warm_up:
        return step / warm_up
    if options.schedule == "wsd":
        falling = max(1, min(steps - warm_up, round(options.decay_ratio * steps)))
        return 1 - max(0, (step - 1 - (steps - falling)) / falling)
    done = (step - warm_up - 1) / max(1, steps - warm_up)
    return 0.5 * (1 + math.cos(math.pi * done))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--validation", required=True)
    parser.add_argument("--vocabulary", type=int, required=True)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--mode", choices=["eager", "compile"], default="compile")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fraction", type=float, default=1.0, help="of an epoch")
    parser.add_argument("--evaluations", type=int, default=0, help="during training, evenly spread; not counted in its time")
    parser.add_argument("--speed-steps", type=int, default=0, help="time so many steps and stop")
    parser.add_argument("--recipe", choices=["adamw", "muon"], default="adamw")
    parser.add_argument("--schedule", choices=["cosine", "wsd"], help="default: cosine with adamw, wsd with muon")
    parser.add_argument("--muon-rate", type=float, default=0.01)
    parser.add_argument("--decay-ratio", type=float, default=0.5)
    parser.add_argument("--warmup-ratio", type=float, default=0.05)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    options = parser.parse_args()
    options.schedule = options.schedule or ("cosine" if options.recipe == "adamw" else "wsd")
    return options


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    device = torch.device(options.device)
    (tokens, targets), _ = windows(options.train, options.vocabulary - 1, options.length)
    held, held_rest = windows(options.validation, options.vocabulary - 1, options.length)
    tokens, targets = tokens.to(device), targets.to(device)
    held, held_rest = [t.to(device) for t in held], held_rest and [t.to(device) for t in held_rest]
    model = lm_torch.Decoder(options.vocabulary, options.width, options.layers, options.width // 64, options.length)
    for name, parameter in model.named_parameters():  # brisk's initialisation
        if name.endswith(("attention_out.weight", "down.weight")):
            nn.init.normal_(parameter, 0, 0.02 / math.sqrt(2 * options.layers))
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    model.to(device)
    run = torch.compile(model, dynamic=False) if options.mode == "compile" else model

    def loss_of(network, x, y):
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            return network(x, y)

    muon = Muon(model, options.muon_rate, 0.95, options.weight_decay) if options.recipe == "muon" else None
    adamw = [p for p in model.parameters() if muon is None or all(p is not m for m in muon.matrices)]
    optimizer = torch.optim.AdamW([{"params": [p for p in adamw if p.dim() > 1], "weight_decay": options.weight_decay},
                                   {"params": [p for p in adamw if p.dim() == 1], "weight_decay": 0.0}],
                                  options.rate, betas=(0.9, 0.95), fused=True)
    steps = round(options.fraction * (len(tokens) // options.batch))
    warm_up = max(1, round(options.warmup_ratio * steps))
    order = torch.randperm(len(tokens)).to(device)

    def train_step(step):
        share = rate_share(step, steps, warm_up, options)
        for group in optimizer.param_groups:
            group["lr"] = options.rate * share
        start = ((step - 1) * options.batch) % (len(tokens) - options.batch + 1)
        pick = order[start: start + options.batch]
        loss = loss_of(run, tokens[pick], targets[pick])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if muon:
            muon.step(share)
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    @torch.no_grad()
    def validation_loss():
        """Over all windows of brisk's evaluation: the mean loss of a token. Eager, so that nothing is compiled for other shapes."""
        total, count = 0.0, 0
        parts = [[t[i: i + options.batch] for t in held] for i in range(0, len(held[0]), options.batch)]
        for x, y in parts + ([held_rest] if held_rest else []):
            total += loss_of(model, x, y).item() * x.numel()
            count += x.numel()
        return total / count

    loss_of(run, tokens[: options.batch], targets[: options.batch]).backward()  # compilation is not counted
    optimizer.zero_grad(set_to_none=True)
    result = {"device": options.device, "mode": options.mode, "precision": options.precision, "torch": torch.__version__,
              "seed": options.seed, "batch": options.batch, "rate": options.rate, "recipe": options.recipe,
              "threads": options.threads}
    if options.speed_steps:
        times = []
        for step in range(1, options.speed_steps + 4):
            start = time.time()
            train_step(step)
            times.append(time.time() - start)
        seconds = statistics.median(times[3:])
        print(json.dumps({**result, "tokens_per_second": options.batch * options.length / seconds, "step_seconds": times[3:]}))
        return
    course, seconds = [], 0.0
    marks = {round(steps * i / options.evaluations) for i in range(1, options.evaluations)} if options.evaluations else set()
    for step in range(1, steps + 1):
        start = time.time()
        train_step(step)
        seconds += time.time() - start
        if step in marks or (step == 1 and marks):
            course.append({"tokens": step * options.batch * options.length, "seconds": seconds, "validation_loss": validation_loss()})
    held_loss = validation_loss()
    seen = steps * options.batch * options.length
    course.append({"tokens": seen, "seconds": seconds, "validation_loss": held_loss})
    print(json.dumps({**result, "validation_loss": held_loss, "validation_perplexity": math.exp(held_loss), "train_seconds": seconds,
                      "tokens": seen, "tokens_per_second": seen / seconds, "course": course}))


main()
