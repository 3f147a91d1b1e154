#!/usr/bin/env python3
"""Causal MU against the plain decoder on WikiText-2: equal parameters, equal tokens and equal time, three seeds each (docs/mu.md).

  bench/mu/study.py --data FOLDER --output RESULTS [--tokens 1.2M] [--seeds 1,2,3] [--threads 2] [--device cuda --precision bf16]

FOLDER holds train.txt and valid.txt (or .txt.gz). Both models train with AdamW, a cosine over their whole run, the same batches of
the same 4,096-entry byte-level BPE, and no dropout (less than an epoch is seen). The decoder's width is the one that comes nearest to
MU's number of parameters, of which 16 V a layer are MU's affinity tables. The stages, each run skipped where its result lies in
RESULTS already:

  rates    each model at each rate, a third of the tokens, the first seed; the best rate is the one that all later runs have
  tokens   for each seed in turn: MU, then the decoder for as many tokens
  recipe   for each seed, for as many tokens: the decoder with brisk's default recipe (Muon and AdamW, rates of their own), no dropout;
           MU with Muon for its matrices, its best rate for the rest, and the best of the rates of Muon
  time     for each seed: the decoder for as many seconds of training as MU took, by the speed of its runs so far
  report   results.json, mu.svg, and the tables

It tells how long it will take before it begins and after each stage. With the defaults that is about 12 minutes on two cores.
"""
import argparse
import gzip
import math
import os
import statistics

import plot
from runs import Runs, text_file, write_json

HERE = os.path.dirname(os.path.abspath(__file__))
LENGTH, SEQUENCES, VOCABULARY, MU_LAYERS, DECODER_LAYERS = 128, 16, 4096, 6, 4
VALIDATION_BYTES = 300_000  # of valid.txt: evaluations of all of it would take as long as the training
EVALUATIONS = 6


def mu_parameters():
    return MU_LAYERS * (52_384 + 16 * VOCABULARY) + 129 * VOCABULARY + 64 * LENGTH + 128


def decoder_parameters(width):
    """GPT-2's shape, the output projection tied."""
    layer = 12 * width * width + 13 * width
    return (VOCABULARY + LENGTH) * width + DECODER_LAYERS * layer + 2 * width


def decoder_width():
    """A multiple of 4 heads."""
    return min(range(16, 1024, 4), key=lambda width: abs(decoder_parameters(width) - mu_parameters()))


class Study:
    def __init__(self, options):
        self.options = options
        self.runs = Runs(options.brisk, options.output)
        self.train_text = text_file(options.data, "train")
        self.validation_text = self.runs.path("validation.txt")
        if not os.path.exists(self.validation_text):
            whole = text_file(options.data, "valid")
            read = gzip.open if whole.endswith(".gz") else open
            with read(whole, "rt", encoding="utf-8") as source:
                text = source.read(VALIDATION_BYTES)
            with open(self.validation_text, "w", encoding="utf-8") as file:
                file.write(text[:text.rindex("\n") + 1])

    def train(self, model, stage, tokens, rate, seed, muon_rate=None):
        steps = max(2, round(tokens / LENGTH / SEQUENCES))
        shape = ({"type": "mu", "num_layers": MU_LAYERS} if model == "mu" else
                 {"d_model": decoder_width(), "num_layers": DECODER_LAYERS, "num_heads": 4})
        job = {"device": self.options.device,
               "model": {**shape, "vocab_size": VOCABULARY, "dropout": 0.0},
               "training": {"max_length": LENGTH, "batch_size": SEQUENCES, "gradient_accumulation_steps": 1, "max_steps": steps,
                            "optimizer": "adamw", "learning_rate": rate, "lr_scheduler": "cosine", "warmup_steps": max(1, steps // 20),
                            "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "seed": seed, "threads": self.options.threads,
                            "precision": self.options.precision, "eval_steps": max(1, math.ceil(steps / EVALUATIONS)), "logging_steps": 10,
                            "save_steps": "end", "save_minutes": 2, "load_best_model_at_end": False, "tensorboard": False},
               "data": {"train": [self.train_text], "validation": [self.validation_text], "document": "file",
                        "cache_dir": self.runs.path("cache")}}
        if muon_rate is not None:
            job["training"].update(optimizer="muon", muon_learning_rate=muon_rate)
            del job["training"]["lr_scheduler"]  # that of brisk's recipe
        if rate is None:  # brisk's recipe
            for setting in ("optimizer", "learning_rate", "lr_scheduler", "warmup_steps", "beta1", "beta2", "weight_decay"):
                del job["training"][setting]
        rates = [f"rate-{rate:g}-"] if rate is not None else []
        rates += [f"muon-{muon_rate:g}-"] if muon_rate is not None else []
        name = f"{model}-{stage}-{''.join(rates)}seed-{seed}"
        result = self.runs.train(name, job)
        print(f"{name}: validation loss {result['validation_loss']:.4f} after {result['tokens']:,} tokens in {result['train_seconds']:.1f} s, "
              f"{result['tokens_per_second']:.0f} tokens/s, {result['parameters']:,} parameters", flush=True)
        return result

    def speed(self, model, results):
        return statistics.median(result["tokens_per_second"] for result in results[model])

    def tell_time(self, results, left):
        """`left`: tokens still to train, for each model."""
        seconds = sum(tokens / self.speed(model, results) for model, tokens in left.items())
        print(f"about {1.15 * seconds / 60:.0f} minutes are left", flush=True)

    def run(self):
        tokens, seeds = self.options.tokens, self.options.seeds
        tried = {"mu": [], "decoder": []}
        rates = {"mu": self.options.mu_rates, "decoder": self.options.decoder_rates}
        sweeps = [(model, rate) for index in range(max(map(len, rates.values()))) for model in rates for rate in rates[model][index:index + 1]]
        for number, (model, rate) in enumerate(sweeps):
            tried[model].append({**self.train(model, "rates", tokens / 3, rate, seeds[0]), "rate": rate})
            if number == 1:
                sweep = {model: tokens / 3 * (len(rates[model]) - 1) for model in rates}
                self.tell_time(tried, {model: sweep[model] + len(seeds) * tokens * (1 if model == "mu" else 2) for model in rates})
        best = {model: min(results, key=lambda result: result["validation_loss"])["rate"] for model, results in tried.items()}
        for model, rate in best.items():
            if len(rates[model]) > 1 and rate in (min(rates[model]), max(rates[model])):
                print(f"{model}: its best rate, {rate:g}, is the last one tried; add one beyond it (--{model}-rates)", flush=True)
        equal = {"mu": [], "decoder": []}
        for seed in seeds:
            for model in equal:
                equal[model].append({**self.train(model, "tokens", tokens, best[model], seed), "seed": seed})
        seconds = statistics.median(result["train_seconds"] for result in equal["mu"])
        in_time = seconds * self.speed("decoder", equal)
        self.tell_time(equal, {"decoder": len(seeds) * in_time})
        recipe = {"decoder": [{**self.train("decoder", "recipe", tokens, None, seed), "seed": seed} for seed in seeds]}
        of_muon = {rate: self.train("mu", "recipe-rates", tokens / 3, best["mu"], seeds[0], rate)["validation_loss"]
                   for rate in self.options.muon_rates}
        best["muon of MU"] = min(of_muon, key=of_muon.get)
        recipe["mu"] = [{**self.train("mu", "recipe", tokens, best["mu"], seed, best["muon of MU"]), "seed": seed} for seed in seeds]
        timed = [{**self.train("decoder", "time", in_time, best["decoder"], seed), "seed": seed} for seed in seeds]
        losses = {model: {f"{r['rate']:g}": r["validation_loss"] for r in results} for model, results in tried.items()}
        return {"rates": {**losses, "muon of MU": {f"{rate:g}": loss for rate, loss in of_muon.items()}},
                "best_rates": best, "tokens": equal, "recipe": recipe, "time": timed, "seconds": seconds}

    def report(self, results):
        write_json(self.runs.path("results.json"), results)
        with open(self.runs.path("mu.svg"), "w") as file:
            file.write(plot.draw(results))
        for model, losses in results["rates"].items():
            print(f"{model}: rate {results['best_rates'][model]:g}, of " + ", ".join(f"{rate}: {loss:.4f}" for rate, loss in losses.items()))
        print("| model | parameters | tokens | seconds | tokens/s | validation loss | seeds | perplexity |\n|---|---|---|---|---|---|---|---|")
        rows = [("MU", results["tokens"]["mu"]), ("decoder, as many tokens", results["tokens"]["decoder"]),
                ("MU with Muon", results["recipe"]["mu"]), ("decoder, as many tokens, default recipe", results["recipe"]["decoder"]),
                ("decoder, as many seconds", results["time"])]
        for name, runs in rows:
            losses = [run["validation_loss"] for run in runs]
            seconds = statistics.median(run["train_seconds"] for run in runs)
            print(f"| {name} | {runs[0]['parameters']:,} | {runs[0]['tokens']:,} | {seconds:.1f} | "
                  f"{statistics.median(run['tokens_per_second'] for run in runs):.0f} | {statistics.mean(losses):.4f} | "
                  f"{min(losses):.4f}-{max(losses):.4f} | {math.exp(statistics.mean(losses)):.1f} |")
        print(f"{self.runs.path('results.json')}, {self.runs.path('mu.svg')}")


def count(text):
    return float(text[:-1]) * {"K": 1e3, "M": 1e6}[text[-1].upper()] if text[-1].isalpha() else float(text)


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="the folder of train.txt and valid.txt, or .txt.gz")
    parser.add_argument("--output", required=True, help="folder of all results; a second run goes on from what it holds")
    parser.add_argument("--brisk", default=os.path.join(HERE, "..", "..", "build", "brisk"))
    parser.add_argument("--tokens", type=count, default=1.2e6, help="of each run of the stage tokens")
    parser.add_argument("--seeds", type=numbers(int), default=[1, 2, 3])
    parser.add_argument("--mu-rates", type=numbers(float), default=[1.2e-2, 2.4e-2, 4.8e-2, 9.6e-2])
    parser.add_argument("--muon-rates", type=numbers(float), default=[5e-3, 1e-2, 2e-2, 4e-2], help="of MU's matrices, with Muon")
    parser.add_argument("--decoder-rates", type=numbers(float), default=[1e-3, 2e-3, 4e-3, 8e-3])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    study = Study(options)
    print(f"MU {mu_parameters():,} parameters, the decoder {decoder_parameters(decoder_width()):,} ({decoder_width()} wide)", flush=True)
    study.report(study.run())


if __name__ == "__main__":
    main()
