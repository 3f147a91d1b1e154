#!/usr/bin/env python3
"""The recipe of MU's first note, run here, beside what the note reported (docs/mu.md): `"reference": true` with every defect, 6 layers,
3 epochs of WikiText-2, its tokenizer, and the causal default for comparison.

  bench/mu/note.py --data FOLDER --output RESULTS [--device cuda] [--layers 12 --epochs 10 --length 256] [--causal]

FOLDER holds train.txt and valid.txt (or .txt.gz). A run that was interrupted goes on; one that ended is not made again. About
three quarters of the time of a run are the head's: 50,000 x 64 for every token.
"""
import argparse
import math
import os

from runs import Runs, text_file

HERE = os.path.dirname(os.path.abspath(__file__))
NOTE = {"loss": [8.24, 6.52, 6.02], "accuracy": [6.5, 14.5, 17.5], "perplexity": [1151, 641, 500], "minutes": [14, 14, 14]}
PROMPTS = ["The quick brown", "Once upon a time", "In the beginning"]


def job_of(options, reference):
    return {"device": options.device,
            "model": {"type": "mu", "num_layers": options.layers, "vocab_size": 50000, "reference": reference},
            "training": {"max_length": options.length, "num_epochs": options.epochs, "eval_steps": "epoch", "save_steps": "epoch",
                         "best_by": "perplexity", "sample_prompts": PROMPTS, "sample_tokens": 30, "sample_temperature": 0.8,
                         "sample_top_k": 50, "sample_top_p": 0.9, "sample_repetition_penalty": 1.2},
            "data": {"train": [text_file(options.data, "train")], "validation": [text_file(options.data, "valid")],
                     "document": "file", "tokenizer_kind": "word-bpe", "cache_dir": os.path.abspath(os.path.join(options.output, "cache"))}}


def print_epochs(name, result, beside_note):
    print(f"\n{name}: {result['parameters']:,} parameters, {result['tokens_per_second']:.0f} tokens/s on {result['device']}, "
          f"{result['precision']}, {result['threads']} threads")
    print("| epoch | training loss | accuracy | validation loss | accuracy | perplexity |" + (" the note: loss | accuracy | perplexity |" if beside_note else ""))
    print("|" + "---|" * (9 if beside_note else 6))
    by_step = {point["step"]: point for point in result["course"]}
    for epoch in result["epochs"]:
        point = by_step.get(epoch["step"])
        cells = [f"{epoch['epoch']}", f"{epoch['training_loss']:.4f}", f"{100 * epoch['training_accuracy']:.2f} %"]
        cells += [f"{point['validation_loss']:.4f}", f"{100 * point['validation_accuracy']:.2f} %",
                  f"{math.exp(point['validation_loss']):.1f}"] if point else ["-"] * 3
        at = epoch["epoch"] - 1
        if beside_note:
            cells += [f"{NOTE['loss'][at]}", f"{NOTE['accuracy'][at]} %", f"{NOTE['perplexity'][at]}"] if at < 3 else ["-"] * 3
        print("| " + " | ".join(cells) + " |")
    minutes = result["wall_seconds"] / 60 / max(1, len(result["epochs"]))
    print(f"{minutes:.1f} minutes an epoch here" + (", 14 in the note (a data-centre GPU)" if beside_note else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="the folder of train.txt and valid.txt, or .txt.gz")
    parser.add_argument("--output", required=True, help="folder of all results; a second run goes on from what it holds")
    parser.add_argument("--brisk", default=os.path.join(HERE, "..", "..", "build", "brisk"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--causal", action="store_true", help="also the causal default, whose perplexity is a language model's")
    options = parser.parse_args()
    runs = Runs(options.brisk, options.output)
    shape = f"{options.layers}-layers-{options.length}-tokens"
    result = runs.train(f"reference-{shape}", job_of(options, True))
    print_epochs(f"reference, {options.layers} layers (it sees the next token: its perplexity is not a language model's)", result,
                 options.layers == 6)
    if options.causal:
        print_epochs(f"causal, {options.layers} layers", runs.train(f"causal-{shape}", job_of(options, False)), False)


main()
