"""The PyTorch twin of `brisk bench classify` and of a classifier's fine-tuning: Hugging Face's models in a loop with best practice.

  python bench/peers/classify_torch.py --model distilbert --data train.tsv.gz --vocabulary vocab.txt --max-length 128 --json
  python bench/peers/classify_torch.py --checkpoint MINILM --data train.tsv.gz --validation dev.tsv --rate 5e-5 --json
  python bench/peers/classify_torch.py --model bert --vocabulary vocab.txt --data train.tsv --validation dev.tsv --epochs 4 --padding dynamic --rate 1e-4

The first form measures speed with random weights; with --validation it trains for --epochs, from a checkpoint or from scratch, and prints loss
and accuracy on that table. The recipe is that of a classifier's job: AdamW, a tenth of the steps warms up, then the rate falls linearly to 0,
decay 0.01 of matrices, gradients clipped at 1, dropout 0.1. A table is a .tsv (or .tsv.gz) with a
header; its columns are named text or sentence, and label. --padding: max (everything to --max-length, as the original notes did),
dynamic (to the longest of a batch of random rows), grouped (batches of rows of similar length, in random order). Needs torch,
transformers and tokenizers.
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
from tokenizers import BertWordPieceTokenizer
from transformers import (AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification, DistilBertConfig,
                          DistilBertForSequenceClassification)


def read_table(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    head = rows.pop(0)
    text, label = head.index("text" if "text" in head else "sentence"), head.index("label")
    return [row[text] for row in rows], [int(row[label]) for row in rows]


def encode(tokenizer, texts, length):
    separator = tokenizer.token_to_id("[SEP]")
    return [e.ids if len(e.ids) <= length else e.ids[:length - 1] + [separator] for e in tokenizer.encode_batch(texts)]


def make_model(options):
    if options.checkpoint:
        return AutoModelForSequenceClassification.from_pretrained(options.checkpoint, num_labels=options.classes)
    minilm = dict(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    bert = dict(hidden_size=options.width, num_hidden_layers=options.layers, num_attention_heads=options.width // 64,
                intermediate_size=4 * options.width)
    return {"bert": lambda: BertForSequenceClassification(BertConfig(num_labels=options.classes, **bert)),
            "minilm": lambda: BertForSequenceClassification(BertConfig(num_labels=options.classes, **minilm)),
            "distilbert": lambda: DistilBertForSequenceClassification(DistilBertConfig(num_labels=options.classes)),
            }[options.model]()


def batches_of(ids, options, shuffled=True):
    order = list(range(len(ids)))
    random.shuffle(order)
    if options.padding == "grouped":
        order.sort(key=lambda i: len(ids[i]))
    batches = [order[i:i + options.batch] for i in range(0, len(order), options.batch)]
    if shuffled:
        random.shuffle(batches)
    return batches


def padded(batch, ids, labels, options):
    length = options.max_length if options.padding == "max" else max(len(ids[i]) for i in batch)
    tokens, mask = torch.zeros(len(batch), length, dtype=torch.long), torch.zeros(len(batch), length, dtype=torch.long)
    for row, i in enumerate(batch):
        tokens[row, :len(ids[i])] = torch.tensor(ids[i])
        mask[row, :len(ids[i])] = 1
    return [tensor.to(options.device) for tensor in (tokens, mask, torch.tensor([labels[i] for i in batch]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="distilbert", choices=["distilbert", "bert", "minilm"])
    parser.add_argument("--width", type=int, default=768, help="of --model bert, with heads of 64")
    parser.add_argument("--layers", type=int, default=12, help="of --model bert")
    parser.add_argument("--checkpoint", help="a Hugging Face folder with vocab.txt to fine-tune, instead of random weights")
    parser.add_argument("--data", required=True)
    parser.add_argument("--validation", help="train on --data, then evaluate on this table")
    parser.add_argument("--epochs", type=int, default=1, help="with --validation: over --data, in another order each")
    parser.add_argument("--vocabulary", help="vocab.txt or its folder; the checkpoint's unless given")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--padding", default="grouped", choices=["max", "dynamic", "grouped"])
    parser.add_argument("--mode", default="eager", choices=["eager", "compile"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rows", type=int, default=0, help="use so many rows, chosen at random; 0: all")
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cuda: the same fine-tuning on a gpu, for its accuracy")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=25, help="of a speed measurement, in rounds of 24 batches")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random.seed(options.seed)

    vocabulary = options.vocabulary or options.checkpoint
    if os.path.isdir(vocabulary):
        vocabulary = os.path.join(vocabulary, "vocab.txt")
    tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
    texts, labels = read_table(options.data)
    chosen = random.sample(range(len(texts)), min(options.rows or len(texts), len(texts)))
    ids, labels = encode(tokenizer, [texts[i] for i in chosen], options.max_length), [labels[i] for i in chosen]
    options.classes = max(labels) + 1
    model = make_model(options).float().to(options.device).train()
    run = torch.compile(model, dynamic=True) if options.mode == "compile" else model
    decays = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], options.rate,
                                  fused=True)

    def step(batch, inputs=None):
        tokens, mask, targets = inputs or padded(batch, ids, labels, options)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = run(input_ids=tokens, attention_mask=mask, labels=targets).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    result = {"model": options.checkpoint or options.model, "padding": options.padding, "mode": options.mode,
              "precision": options.precision, "mean_length": statistics.mean(map(len, ids))}
    on_gpu = options.device == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    batches = batches_of(ids, options)
    start = time.time()
    if options.validation:
        steps = options.epochs * len(batches)
        warm = max(1, round(steps / 10))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda s: min((s + 1) / warm, max(0.0, (steps - s) / max(1, steps - warm))))
        for _ in range(options.epochs):
            for batch in batches_of(ids, options):
                step(batch)
                schedule.step()
        wait()
        result.update(epochs=options.epochs, steps=steps, train_seconds=time.time() - start)
        result["rows_per_second"] = options.epochs * len(ids) / result["train_seconds"]
        model.eval()
        texts, labels = read_table(options.validation)
        ids = encode(tokenizer, texts, options.max_length)
        loss = correct = 0
        with torch.no_grad(), torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            for batch in batches_of(ids, options, shuffled=False):
                tokens, mask, targets = padded(batch, ids, labels, options)
                logits = model(input_ids=tokens, attention_mask=mask).logits.float()
                loss += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum"))
                correct += int((logits.argmax(-1) == targets).sum())
        result.update(validation_loss=loss / len(ids), accuracy=correct / len(ids))
    else:
        # Batches grouped by length differ by a factor of ten: whole rounds over some that are evenly spaced by length.
        batches.sort(key=lambda batch: sum(len(ids[i]) for i in batch))
        batches = [batches[(2 * i + 1) * len(batches) // 48] for i in range(24)] if len(batches) >= 24 else batches
        random.shuffle(batches)
        # A GPU finds its batches in its memory, and meets every length before its time counts: libraries plan each anew.
        inputs = [padded(batch, ids, labels, options) if on_gpu else None for batch in batches]
        for batch, given in list(zip(batches, inputs))[:None if on_gpu else 2]:
            step(batch, given)
        rows = tokens = done = 0
        wait()
        start = time.time()
        while time.time() - start < options.seconds:
            for batch, given in zip(batches, inputs):
                step(batch, given)
                rows, tokens, done = rows + len(batch), tokens + sum(len(ids[i]) for i in batch), done + 1
            wait()
        seconds = time.time() - start
        result.update(rows_per_second=rows / seconds, tokens_per_second=tokens / seconds, batches=done)
    result["peak_memory_bytes"] = torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(result) if options.json else result)


main()
