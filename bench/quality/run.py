#!/usr/bin/env python3
"""Wall time to the validation loss that the compiled PyTorch twin has after one epoch of a text (WikiText-2).

  bench/quality/run.py --data FOLDER --output RESULTS --python VENV/bin/python [--twin-device cuda] [--threads 16]

FOLDER holds train.txt and valid.txt (or .txt.gz). The same model (256 wide, 4 layers, 256 tokens), the same 10,000-entry
byte-level BPE, the same training tokens and validation windows for both. The twin runs AdamW with a cosine, at the best of
several rates; brisk runs its default recipe for fractions of the epoch, each with its whole schedule. Neither start-up,
compilation nor evaluation counts.

The stages, each skipped where its result lies in RESULTS already, so that a run goes on where it stopped:
  tokens      the vocabulary, and both texts as token ids
  twin-loss   the twin for an epoch at each rate, then at the best rate with every seed; --twin-device cuda makes it quick
  race        for each seed in turn: the twin's compiled steps timed on the CPU, then brisk for each fraction
  report      results.json, quality.svg, and the verdict

With --twin-device cuda the losses come from the GPU and the twin's seconds are its tokens over the tokens/s that its compiled
steps reach on this machine's CPU, the better of fp32 and bf16. Only the python with torch needs a package.
"""
import argparse
import gzip
import json
import math
import os
import statistics
import subprocess
import sys

import plot

HERE = os.path.dirname(os.path.abspath(__file__))
TWIN = os.path.join(HERE, "..", "peers", "lm_quality_torch.py")
WIDTH, LAYERS, LENGTH, VOCABULARY = 256, 4, 256, 10000


def say(*words):
    print(*words, flush=True)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def write_json(path, value):
    with open(path + ".partial", "w") as file:
        json.dump(value, file, indent=1)
    os.replace(path + ".partial", path)


def run(command, log):
    """Runs a command; its standard error goes to `log`, its last line of output is returned."""
    with open(log, "w") as file:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=file, text=True)
    if done.returncode != 0:
        tail = open(log).read().strip().splitlines()[-5:]
        raise RuntimeError("\n".join([" ".join(command), f"failed with {done.returncode}:"] + tail))
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else ""


class Quality:
    def __init__(self, options):
        self.options = options
        self.folder = options.output
        os.makedirs(self.folder, exist_ok=True)
        self.tokenizer = self.path("tokenizer.json")

    def path(self, name):
        return os.path.join(self.folder, name)

    def tokens(self):
        for part in ("train", "valid"):
            if os.path.exists(self.path(part + ".txt")):
                continue
            plain, zipped = (os.path.join(self.options.data, part + suffix) for suffix in (".txt", ".txt.gz"))
            if not os.path.exists(plain) and not os.path.exists(zipped):
                sys.exit(f"{plain}: there is none, nor {part}.txt.gz; --data names the folder of train.txt and valid.txt")
            text = (gzip.open(zipped, "rt", encoding="utf-8") if not os.path.exists(plain) else open(plain, encoding="utf-8")).read()
            # One line, so that brisk's one document and the line of ids are the same tokens.
            with open(self.path(part + ".txt.partial"), "w", encoding="utf-8") as file:
                file.write(text.replace("\n", " "))
            os.replace(self.path(part + ".txt.partial"), self.path(part + ".txt"))
        if not os.path.exists(self.tokenizer):
            say("training the vocabulary")
            run([self.options.brisk, "tokenizer", "train", "--vocab-size", str(VOCABULARY), "--output", self.tokenizer,
                 self.path("train.txt")], self.path("tokenizer.log"))
        for part in ("train", "valid"):
            if os.path.exists(self.path(part + ".ids")):
                continue
            with open(self.path(part + ".txt")) as text, open(self.path(part + ".ids.partial"), "w") as ids:
                subprocess.run([self.options.brisk, "tokenizer", "encode", "--tokenizer", self.tokenizer], stdin=text, stdout=ids,
                               check=True)
            os.replace(self.path(part + ".ids.partial"), self.path(part + ".ids"))

    def training_rows(self):
        """Tokens to predict in an epoch: every token, and the end of the document."""
        name = self.path("rows.json")
        if not os.path.exists(name):
            write_json(name, sum(len(line.split()) for line in open(self.path("train.ids"))) + 1)
        return read_json(name)

    def twin(self, name, *more):
        """One run of the twin, or its result where it ran before."""
        result = self.path(f"twin-{name}.json")
        if not os.path.exists(result):
            say(f"twin {name}")
            line = run([self.options.python, TWIN, "--train", self.path("train.ids"), "--validation", self.path("valid.ids"),
                        "--vocabulary", str(VOCABULARY), "--width", str(WIDTH), "--layers", str(LAYERS), "--length", str(LENGTH),
                        "--batch", str(self.options.twin_batch), "--threads", str(self.options.threads), *more],
                       self.path(f"twin-{name}.log"))
            write_json(result, json.loads(line))
        return read_json(result)

    def twin_loss(self, rate, seed):
        device = self.options.twin_device
        result = self.twin(f"loss-{rate:g}-seed-{seed}", "--rate", f"{rate:g}", "--seed", str(seed), "--device", device,
                           "--mode", "eager" if device == "cuda" else "compile", "--precision", self.options.twin_precision,
                           "--evaluations", str(self.options.evaluations), "--fraction", f"{self.options.twin_fraction:g}")
        say(f"twin, rate {rate:g}, seed {seed}: validation loss {result['validation_loss']:.4f} after {result['tokens']} tokens")
        return result

    def twin_losses(self):
        first = self.options.seeds[0]
        tried = {rate: self.twin_loss(rate, first) for rate in self.options.twin_rates}
        best = min(tried, key=lambda rate: tried[rate]["validation_loss"])
        return {"rates": {f"{rate:g}": result["validation_loss"] for rate, result in tried.items()}, "rate": best,
                "runs": [self.twin_loss(best, seed) for seed in self.options.seeds]}

    def twin_speed(self, number):
        """Compiled steps on the CPU, fp32 and bf16; what fails (no bf16 instructions) is left out."""
        results = {}
        for precision in self.options.speed_precisions:
            try:
                results[precision] = self.twin(f"speed-{precision}-{number}", "--mode", "compile", "--precision", precision,
                                               "--speed-steps", str(self.options.speed_steps))["tokens_per_second"]
                say(f"twin, compiled, {precision}: {results[precision]:.0f} tokens/s")
            except RuntimeError as error:
                say(f"twin, compiled, {precision}: left out: {error}")
        if not results:
            sys.exit("the compiled twin does not run here; see the logs in " + self.folder)
        return results

    def brisk(self, fraction, seed, settings=(), label="brisk"):
        """One run of brisk with its default recipe, or its result where it ran before."""
        name = f"{label}-{fraction:g}-seed-{seed}"
        result = self.path(name + ".json")
        if not os.path.exists(result):
            say(f"{label}, {fraction:g} of an epoch, seed {seed}")
            write_json(self.path("job.json"),
                       {"model": {"d_model": WIDTH, "num_layers": LAYERS, "vocab_size": VOCABULARY},
                        "training": {"max_length": LENGTH, "seed": seed, "threads": self.options.threads,
                                     "precision": self.options.precision, "save_steps": 10**9, "save_minutes": 0, "load_best_model_at_end": False},
                        "data": {"train": [self.path("train.txt")], "validation": [self.path("valid.txt")], "document": "file",
                                 "tokenizer": self.tokenizer, "cache_dir": self.path("cache")}})
            batch = self.default_batch(settings)
            steps = max(1, round(fraction * self.training_rows() / LENGTH / batch))
            subprocess.run(["rm", "-rf", self.path(name)], check=True)
            more = [word for setting in settings for word in ("--set", setting)]
            run([self.options.brisk, "train", self.path("job.json"), "--output", self.path(name), *more, "--set",
                 f"training.max_steps={steps}", "--set", f"training.eval_steps={max(1, steps // self.options.evaluations)}"], self.path(name + ".log"))
            write_json(result, self.read_run(name, fraction, seed))
            subprocess.run(["rm", "-rf", self.path(name + "/checkpoints")], check=True)
        outcome = read_json(result)
        say(f"{label}, {fraction:g} of an epoch, seed {seed}: validation loss {outcome['validation_loss']:.4f} in "
            f"{outcome['train_seconds']:.1f} s, {outcome['tokens_per_second']:.0f} tokens/s ({outcome['precision']})")
        return outcome

    def default_batch(self, settings):
        for setting in settings:
            if setting.startswith("training.batch_size="):
                return int(setting.split("=")[1])
        schema = json.loads(subprocess.run([self.options.brisk, "job", "schema"], stdout=subprocess.PIPE, check=True).stdout)
        if "training.optimizer=adamw" in settings:
            return 32
        return schema["properties"]["training"]["properties"]["batch_size"]["default"]

    def read_run(self, name, fraction, seed):
        summary = read_json(self.path(name + "/summary.json"))
        ledger = summary["ledger"]
        aside = sum(ledger[phase] for phase in ("start_up", "evaluation", "checkpoint"))
        course, seconds, last = [], 0.0, 0
        tokens = 0
        for line in map(json.loads, open(self.path(name + "/metrics.jsonl"))):
            if "loss" in line:
                seconds += (line["step"] - last) * line["step_ms"] / 1e3
                last, tokens = line["step"], line["tokens"]
            elif "validation_loss" in line:
                course.append({"tokens": tokens, "seconds": seconds, "validation_loss": line["validation_loss"]})
        train_seconds = summary["wall_seconds"] - aside
        return {"fraction": fraction, "seed": seed, "validation_loss": summary["validation_loss"], "tokens": summary["tokens"],
                "steps": summary["step"], "train_seconds": train_seconds, "wall_seconds": summary["wall_seconds"],
                "tokens_per_second": summary["tokens"] / train_seconds, "precision": summary["precision"], "isa": summary["isa"],
                "threads": summary["threads"], "utilisation": summary["utilisation"],
                "optimizer_share": ledger.get("optimizer", 0) / train_seconds, "course": course}

    def race(self):
        speeds, runs = [], []
        for number, seed in enumerate(self.options.seeds):
            speeds.append(self.twin_speed(number))
            runs += [self.brisk(fraction, seed) for fraction in self.options.fractions]
        checks = []
        if self.options.check_adamw:
            checks.append(self.brisk(1.0, self.options.seeds[0], ("training.optimizer=adamw", f"training.batch_size={self.options.twin_batch}"),
                                     "adamw"))
        return speeds, runs, checks

    def report(self, twin, speeds, runs, checks):
        mean = statistics.mean
        twin_loss = mean(run["validation_loss"] for run in twin["runs"])
        by_precision = {p: statistics.median(s[p] for s in speeds if p in s) for p in self.options.speed_precisions
                        if any(p in s for s in speeds)}
        twin_precision = max(by_precision, key=by_precision.get)
        twin_speed = by_precision[twin_precision]
        twin_seconds = twin["runs"][0]["tokens"] / twin_speed
        rows = []
        for fraction in self.options.fractions:
            mine = [run for run in runs if run["fraction"] == fraction]
            losses = [run["validation_loss"] for run in mine]
            rows.append({"fraction": fraction, "validation_loss": mean(losses), "lowest": min(losses), "highest": max(losses),
                         "tokens": mine[0]["tokens"], "train_seconds": statistics.median(run["train_seconds"] for run in mine),
                         "tokens_per_second": statistics.median(run["tokens_per_second"] for run in mine)})
        rows.sort(key=lambda row: row["fraction"])
        reached = next((row for row in rows if row["validation_loss"] <= twin_loss), None)
        results = {"twin": {"validation_loss": twin_loss, "losses": [run["validation_loss"] for run in twin["runs"]],
                            "rate": twin["rate"], "loss_of_rates": twin["rates"], "batch": self.options.twin_batch,
                            "tokens": twin["runs"][0]["tokens"], "tokens_per_second": twin_speed, "precision": twin_precision,
                            "speeds": speeds, "train_seconds": twin_seconds, "torch": twin["runs"][0]["torch"],
                            "course": [{**point, "seconds": point["tokens"] / twin_speed} for point in twin["runs"][0]["course"]]},
                   "brisk": {"rows": rows, "runs": runs}, "seeds": self.options.seeds, "threads": self.options.threads}
        if reached:
            tokens = reached["tokens"] / twin["runs"][0]["tokens"]
            speed = reached["tokens_per_second"] / twin_speed
            results["reached"] = {**reached, "time_ratio": reached["train_seconds"] / twin_seconds, "token_ratio": tokens,
                                  "speed_ratio": speed, "recipe_share": math.log(1 / tokens) / math.log(speed / tokens)
                                  if speed > 1 and tokens < 1 else None}
        if checks:
            results["adamw_in_brisk"] = checks
        write_json(self.path("results.json"), results)
        with open(self.path("quality.svg"), "w") as file:
            file.write(plot.draw(results))
        self.print_verdict(results)

    def print_verdict(self, results):
        twin = results["twin"]
        say(f"\nPyTorch {twin['torch']}, AdamW, cosine, rate {twin['rate']:g} (best of {', '.join(twin['loss_of_rates'])}), batch "
            f"{twin['batch']}, one epoch:\n  validation loss {twin['validation_loss']:.4f} "
            f"({', '.join(f'{loss:.4f}' for loss in twin['losses'])}) in {twin['train_seconds']:.1f} s, {twin['tokens_per_second']:.0f} "
            f"tokens/s (compiled, {twin['precision']}, {results['threads']} threads)\n")
        say("| epoch | validation loss | seeds | seconds | of the twin's | tokens/s |\n|---|---|---|---|---|---|")
        for row in results["brisk"]["rows"]:
            say(f"| {row['fraction']:g} | {row['validation_loss']:.4f} | {row['lowest']:.4f}-{row['highest']:.4f} | "
                f"{row['train_seconds']:.1f} | {row['train_seconds'] / twin['train_seconds']:.3f}x | {row['tokens_per_second']:.0f} |")
        for check in results.get("adamw_in_brisk", []):
            say(f"brisk with the twin's recipe, one epoch: {check['validation_loss']:.4f} in {check['train_seconds']:.1f} s")
        reached = results.get("reached")
        if reached is None:
            say("\nbrisk did not reach the twin's loss in these fractions; add larger ones with --fractions")
            return
        say(f"\nThe twin's loss in {reached['time_ratio']:.3f}x its time: {reached['token_ratio']:.3f}x of the tokens (recipe), each "
            f"{reached['speed_ratio']:.2f}x as fast (speed)." +
            (f" In factors, the recipe is {100 * reached['recipe_share']:.0f} % of the gain." if reached["recipe_share"] else ""))
        say(f"{self.path('results.json')}, {self.path('quality.svg')}")


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="the folder of train.txt and valid.txt, or .txt.gz")
    parser.add_argument("--output", required=True, help="folder of all results; a second run goes on from what it holds")
    parser.add_argument("--python", default=sys.executable, help="a python that has torch")
    parser.add_argument("--brisk", default=os.path.join(HERE, "..", "..", "build", "brisk"))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seeds", type=numbers(int), default=[1, 2, 3])
    parser.add_argument("--fractions", type=numbers(float), default=[0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 1.0], help="of an epoch")
    parser.add_argument("--precision", default="auto", help="brisk's: auto, fp32 or bf16")
    parser.add_argument("--twin-device", choices=["cpu", "cuda"], default="cpu", help="where the twin's losses are computed")
    parser.add_argument("--twin-precision", choices=["fp32", "bf16"], default="fp32", help="of the twin's losses")
    parser.add_argument("--twin-rates", type=numbers(float), default=[5e-4, 1e-3, 2e-3])
    parser.add_argument("--twin-batch", type=int, default=16)
    parser.add_argument("--speed-steps", type=int, default=20, help="compiled steps of the twin that are timed, for each seed")
    parser.add_argument("--speed-precisions", type=lambda text: text.split(","), default=["fp32", "bf16"])
    parser.add_argument("--evaluations", type=int, default=12, help="points of each course in the plot; their time is not counted")
    parser.add_argument("--check-adamw", action="store_true", help="also one epoch of brisk with the twin's own recipe")
    parser.add_argument("--stages", type=lambda text: text.split(","), default=["tokens", "twin-loss", "race", "report"])
    parser.add_argument("--smoke", action="store_true", help="the whole path in few steps, to see that it runs; its figures mean nothing")
    options = parser.parse_args()
    options.twin_fraction = 1.0
    if options.smoke:
        options.twin_fraction, options.twin_rates, options.seeds = 0.004, [1e-3], [1]
        options.evaluations = 1
        options.fractions, options.speed_steps, options.speed_precisions = [0.002, 0.004], 2, ["fp32"]
    quality = Quality(options)
    if "tokens" in options.stages:
        quality.tokens()
    twin = quality.twin_losses() if {"twin-loss", "report"} & set(options.stages) else None
    race = quality.race() if {"race", "report"} & set(options.stages) else None
    if "report" in options.stages:
        quality.report(twin, *race)


main()
