#!/usr/bin/env python3
"""Writes docs/speed-guide.md: what the doctor measured of the jobs behind five notes about slow training, and what became of
each of their claims on this machine.

    scripts/make_speed_guide.py --wikitext wikitext-2/train.txt.gz --imdb imdb/train.tsv.gz [--brisk build/brisk]
                                [--budget 3m] [--keep FOLDER] [JOB...]

--keep leaves the diagnoses (JSON) in a folder, and takes those that are there instead of measuring again. Takes about 25
minutes on a machine that nothing else uses. Python's standard library alone.
"""
import argparse
import datetime
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

PAGE = "docs/speed-guide.md"


# ---- the jobs of the notes -------------------------------------------------------------------------------------------------


def decoder(wikitext, width, layers, vocabulary, batch):
    return {"model": {"d_model": width, "num_layers": layers, "vocab_size": vocabulary},
            "training": {"max_length": 128, "batch_size": batch, "max_steps": 20000, "precision": "fp32"},
            "data": {"train": [wikitext]}}


def encoder(table, layers, max_length, batch, **more):
    training = {"max_length": max_length, "batch_size": batch, "num_epochs": 2, "precision": "fp32"}
    training.update(more)
    return {"task": "classify",
            "model": {"type": "bert", "d_model": 768, "num_layers": layers, "num_heads": 12, "vocab_size": 30000},
            "training": training, "data": {"train": [table], "text_field": "text", "label_field": "label"}}


def jobs(wikitext, imdb):
    """name: (title, job, what is tried of the job as written; a ladder from the plainest training as well)"""
    return {
        "small": ("System 1, small: 256 wide, 2 layers, 10,000 tokens of vocabulary, WikiText-2", decoder(wikitext, 256, 2, 10000, 32),
                  ["training.micro_batch_tokens=128", "training.max_length=64", "training.gradient_checkpointing=1",
                   "training.precision=bf16"], True),
        "large": ("System 1, large: 512 wide, 6 layers, 50,000 tokens of vocabulary, WikiText-2", decoder(wikitext, 512, 6, 50000, 16),
                  ["model.vocab_size=16000", "model.vocab_size=10000", "training.max_length=64", "training.precision=bf16",
                   "training.gradient_checkpointing=1", "training.micro_batch_tokens=128"], False),
        "bert": ("System 2: a classifier of BERT-base's shape on IMDB, 512 tokens, batch 8", encoder(imdb, 12, 512, 8),
                 ["training.max_length=128", "training.batch_size=4", "training.micro_batch_tokens=512"], False),
        "distilbert": ("System 2: a classifier of DistilBERT's shape on IMDB, 128 tokens, batch 8",
                       encoder(imdb, 6, 128, 8, gradient_accumulation_steps=2),
                       ["training.gradient_accumulation_steps=1", "training.gradient_accumulation_steps=8",
                        "training.eval_steps=50"], False),
        "mu": ("System 4: MU, 6 layers, 50,000 tokens of vocabulary, WikiText-2, 8 x 4 sequences of 128",
               {"model": {"type": "mu", "num_layers": 6, "vocab_size": 50000, "context": 256},
                "training": {"max_length": 128, "batch_size": 8, "gradient_accumulation_steps": 4, "max_steps": 20000, "precision": "fp32"},
                "data": {"train": [wikitext]}},
               ["model.num_layers=24", "training.max_length=256", "model.vocab_size=10000", "training.precision=bf16"], True),
        "lyrics": ("System 3: BERT-base's shape at 256 tokens, batch 12 (reviews of IMDB stand for lyrics)", encoder(imdb, 12, 256, 12),
                   ["training.padding=max_length", "training.batch_size=24", "training.precision=bf16"], True),
    }


# ---- the claims ------------------------------------------------------------------------------------------------------------


class Measured:
    """A ratio with its interval."""

    def __init__(self, ratio, low=None, high=None, note=""):
        self.ratio, self.low, self.high, self.note = ratio, ratio if low is None else low, ratio if high is None else high, note

    def text(self):
        if self.low == self.high:
            return f"{self.ratio:.2f}x"
        return f"{self.ratio:.2f}x [{self.low:.2f}, {self.high:.2f}]"


def inverse(measured, note=""):
    return Measured(1 / measured.ratio, 1 / measured.high, 1 / measured.low, note)


class Diagnoses:
    def __init__(self, by_name):
        self.by_name = by_name

    def tried(self, job, key, value):
        """The gain per token of what was tried; None where it was not measured."""
        for rung in self.by_name[job, "tries"]["ladder"]:
            if rung["finding"] == "asked_for" and rung["key"] == key and rung["value"] == value and rung["gain"] is not None:
                return rung
        return None

    def gain(self, job, key, value, per_row=False):
        rung = self.tried(job, key, value)
        if rung is None:
            return None
        if not per_row:
            return Measured(rung["gain"], rung["gain_low"], rung["gain_high"])
        base = self.first(job)
        scale = (rung["rows_per_second"] / base["rows_per_second"]) / rung["gain"]
        return Measured(scale * rung["gain"], scale * rung["gain_low"], scale * rung["gain_high"], "per text")

    def first(self, job, kind="tries"):
        return self.by_name[job, kind]["ladder"][0]

    def share(self, job, *parts):
        """Share of the steps' time in phases whose names contain one of the parts."""
        phases = self.by_name[job, "tries"]["ledger"]["before"]["phases"]
        return sum(each["share"] for each in phases if any(part in each["phase"] for part in parts)) / 100

    def ladder_gain(self, job, key):
        for rung in self.by_name[job, "naive"]["ladder"]:
            if rung["key"] == key and rung["gain"] is not None:
                return Measured(rung["gain"], rung["gain_low"], rung["gain_high"])
        return None

    def processes(self, job):
        """Of the job by several processes that share the cores, over one; what the curve says where no rung measured it."""
        for rung in self.by_name[job, "tries"]["ladder"]:
            if rung.get("processes") and rung["gain"] is not None:
                return Measured(rung["gain"], rung["gain_low"], rung["gain_high"])
        curve = self.by_name[job, "tries"].get("process_curve") or []
        if len(curve) < 2:
            return None
        return Measured(max(point["tokens_per_second"] for point in curve[1:]) / curve[0]["tokens_per_second"])

    def cumulative(self, job):
        rungs = [rung for rung in self.by_name[job, "naive"]["ladder"] if rung["kept"]]
        return Measured(rungs[-1]["cumulative"])

    def ratio_of_jobs(self, fast, slow, unit="tokens_per_second"):
        return Measured(self.first(fast)[unit] / self.first(slow)[unit])


def claims(d):
    """(system, claim, low and high of the factor that was claimed, measured or None, how it was measured)"""
    forward = d.share("small", "forward")
    attention = d.share("large", "attention")
    wait = d.share("lyrics", "data")
    return [
        ("1", "one forward pass too many was removed: 15x", 15, 15, Measured(1 + forward),
         "the most that a second forward pass can cost: its share of a step of small, once more"),
        ("1", "the large model is 10 x 3 x 2 = 60x slower than the small one", 60, 60, d.ratio_of_jobs("small", "large"),
         "tokens/s of the two jobs as written"),
        ("1", "a vocabulary of 16,000 instead of 50,000: 3x to 5x", 3, 5, d.gain("large", "model.vocab_size", 16000), "large"),
        ("1", "a vocabulary of 10,000 instead of 50,000: 5x", 5, 5, d.gain("large", "model.vocab_size", 10000), "large"),
        ("1", "sequences of 64 instead of 128 tokens: 4x", 4, 4, d.gain("large", "training.max_length", 64), "large, per token"),
        ("1", "true batches instead of one sequence at a time: 10x to 30x", 10, 30,
         inverse(d.gain("small", "training.micro_batch_tokens", 128)) if d.gain("small", "training.micro_batch_tokens", 128) else None,
         "small, micro-batches of one sequence and of brisk's size"),
        ("1", "the same of the large model: 10x to 30x", 10, 30,
         inverse(d.gain("large", "training.micro_batch_tokens", 128)) if d.gain("large", "training.micro_batch_tokens", 128) else None,
         "large, likewise"),
        ("1", "mixed precision: 2x", 2, 2, d.gain("large", "training.precision", "bf16"), "large, bf16"),
        ("1", "flash attention: 2x to 4x", 2, 4, Measured(1 / (1 - attention)),
         "large at 128 tokens: what attention that costs nothing would gain"),
        ("1", "gradient checkpointing is faster overall", 1.01, None, d.gain("large", "training.gradient_checkpointing", 1),
         "large, every layer"),
        ("1", "more processes are faster than more threads on the same cores", 1.01, None, d.processes("small"),
         "small, `brisk launch` ([distributed.md](distributed.md))"),
        ("2", "reviews cut at 128 instead of 512 tokens: 16x", 16, 16, d.gain("bert", "training.max_length", 128, per_row=True),
         "BERT's shape, per review"),
        ("2", "DistilBERT instead of BERT, with it: 25x to 30x", 25, 30, d.ratio_of_jobs("distilbert", "bert", "rows_per_second"),
         "reviews/s of the two jobs as written"),
        ("2", "a batch of 4 instead of 8 fits the cache better: 2x", 2, 2, d.gain("bert", "training.batch_size", 4), "BERT's shape"),
        ("2", "accumulating gradients (8 batches instead of 1) is faster", 1.05, None,
         over(d.gain("distilbert", "training.gradient_accumulation_steps", 8), d.gain("distilbert", "training.gradient_accumulation_steps", 1)),
         "DistilBERT's shape; the batch grows with it, so the optimizer comes less often"),
        ("3", "a batch of twice the size: 2x", 2, 2, d.gain("lyrics", "training.batch_size", 24), "12 and 24 texts"),
        ("3", "automatic mixed precision: 1.5x to 2x", 1.5, 2, d.gain("lyrics", "training.precision", "bf16"), "bf16"),
        ("3", "batches padded to their longest instead of to the maximum: 1.2x to 1.5x", 1.2, 1.5,
         inverse(d.gain("lyrics", "training.padding", "max_length")) if d.gain("lyrics", "training.padding", "max_length") else None,
         "no padding against padding to 256"),
        ("3", "faster loading: 1.5x", 1.5, 1.5, Measured(1 / (1 - wait)), "what loading that costs nothing would gain in brisk"),
        ("3", "all of it together: 7 x 2 x 1.5 x 1.2 = 25x (7x of them by eight GPUs, so 3.6x without)", 3.6, 3.6, d.cumulative("lyrics"),
         "the ladder from one sequence at a time, padded, in fp32"),
        ("4", "6 layers instead of 24: 4x", 4, 4, inverse(d.gain("mu", "model.num_layers", 24)) if d.gain("mu", "model.num_layers", 24) else None,
         "MU, per token"),
        ("4", "sequences of 128 instead of 256 tokens: 4x", 4, 4,
         inverse(d.gain("mu", "training.max_length", 256)) if d.gain("mu", "training.max_length", 256) else None, "MU, per token"),
        ("4", "half precision: 2x", 2, 2, d.gain("mu", "training.precision", "bf16"), "MU, bf16"),
        ("5", "evaluating and saving more often, listed as an optimisation", 1.01, None,
         d.gain("distilbert", "training.eval_steps", 50), "DistilBERT's shape, an evaluation every 50 steps"),
    ]


def over(above, below):
    if above is None or below is None:
        return None
    return Measured(above.ratio / below.ratio, above.low / below.high, above.high / below.low)


def verdict(low, high, measured):
    """confirmed, smaller, larger or false here; a claim without a number is that it is faster at all."""
    if measured is None:
        return "not measured"
    noise = 1.02
    if high is None:
        return "confirmed" if measured.low >= low else "false here"
    if measured.high >= 0.9 * low and measured.low <= 1.1 * high:
        return "confirmed"
    if measured.low > high:
        return "larger"
    return "smaller" if measured.ratio > noise else "false here"


# ---- the page --------------------------------------------------------------------------------------------------------------


def seconds_text(seconds):
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def ladder_table(diagnosis):
    lines = ["| rung | tokens/s | texts/s | gain | cumulative | epoch | utilisation | result | kept |", "|---|---|---|---|---|---|---|---|---|"]
    for number, rung in enumerate(diagnosis["ladder"]):
        gain = "" if number == 0 else f"{rung['gain']:.2f} [{rung['gain_low']:.2f}, {rung['gain_high']:.2f}]" if rung["gain"] else "–"
        predicted = "" if number == 0 or rung["finding"] == "asked_for" else f" (predicted {rung['predicted_gain']:.2f})"
        speed = f"{rung['tokens_per_second']:,.0f}" if rung["tokens_per_second"] else "–"
        rows = f"{rung['rows_per_second']:,.1f}" if rung["rows_per_second"] else "–"
        cumulative = f"{rung['cumulative']:.2f}x" if rung["kept"] and rung["cumulative"] else ""
        used = f"{100 * rung['utilisation']:.0f} %" if rung["utilisation"] else "–"
        same = "" if number == 0 else rung["same_maths"]
        lines.append(f"| {rung['step']} | {speed} | {rows} | {gain}{predicted} | {cumulative} | {seconds_text(rung['epoch_seconds'])} | "
                     f"{used} | {same} | {'yes' if rung['kept'] else 'no'} |")
    return lines


def page(diagnoses, catalogue, budget):
    machine = next(iter(diagnoses.by_name.values()))["machine"]
    cores = machine["cores"]
    out = ["# Speed guide: five notes about slow training, measured", "",
           "<!-- Generated by scripts/make_speed_guide.py. -->", "",
           "Five people wrote down why they thought their training was slow, and what would help. Most of their factors were guessed and then",
           f"multiplied. Here `brisk doctor` measured them: {cores} cores of \"{machine['cpu_model']}\" ({machine['isa']}), "
           f"{datetime.date.today().isoformat()}, `--budget {budget}`", "for each table. Two runs take turns; the gain is the median of the pairs' "
           "ratios, with its 95 % interval. The machine is shared, and other machines", "give other figures: `brisk doctor` on your own job says "
           "what holds for you.", "",
           "## Claim by claim", "",
           "*Confirmed*: the claimed factor and the measured interval meet within 10 %. *Smaller*, *larger*: it is a gain, of another size. *False here*: no "
           "gain,", "or a loss. What needs several GPUs, and the systems that brisk does not train yet, are not in the table.", "",
           "| system | the claim | measured | verdict | how |", "|---|---|---|---|---|"]
    for system, claim, low, high, measured, how in claims(diagnoses):
        text = measured.text() if measured else "–"
        out.append(f"| {system} | {claim} | {text} | **{verdict(low, high, measured)}** | {how} |")
    out += ["", "Factors of different rows overlap, and must not be multiplied: the ladders below are cumulative.", ""]
    for name, (title, job, tries, ladder) in catalogue.items():
        if (name, "tries") not in diagnoses.by_name:
            continue
        out += [f"## {title}", ""]
        first = diagnoses.first(name)
        share = (diagnoses.by_name[name, "tries"]["roofline"] or {}).get("before")
        attainable = f", {100 * share['share']:.0f} % of what is attainable here" if share else ""
        out += [f"As written: {first['tokens_per_second']:,.0f} tokens/s, {first['rows_per_second']:,.1f} sequences/s, an epoch in "
                f"{seconds_text(first['epoch_seconds'])}{attainable}.", ""]
        if ladder and (name, "naive") in diagnoses.by_name:
            out += ["From one sequence at a time, padded, in fp32 (`--baseline naive`):", ""]
            out += ladder_table(diagnoses.by_name[name, "naive"]) + [""]
        out += ["What was tried of the job as written (`--try`; none is kept):", ""]
        out += ladder_table(diagnoses.by_name[name, "tries"]) + [""]
    return "\n".join(out)


# ---- measuring -------------------------------------------------------------------------------------------------------------


def unpacked(path, folder):
    """Compressed data is unpacked once: reading it again for each job would be measured as well."""
    if not path.endswith(".gz"):
        return os.path.abspath(path)
    target = f"{folder}/{os.path.basename(path)[:-3]}"
    if not os.path.exists(target):
        with gzip.open(path, "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
    return target


def diagnose(options, folder, name, kind, job, arguments):
    path = f"{options.keep}/{name}-{kind}.json"
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    job_path = f"{folder}/{name}.json"
    with open(job_path, "w") as file:
        json.dump({"name": name, "output": f"{folder}/runs/{name}", **job}, file)
    command = [os.path.abspath(options.brisk), "doctor", job_path, "--budget", options.budget, "--json", *arguments]
    print(f"{name}, {kind}", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}")
    with open(path, "w") as file:
        file.write(done.stdout)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wikitext", required=True, help="WikiText-2, training text; may be .gz")
    parser.add_argument("--imdb", required=True, help="IMDB as a table with the columns text and label; may be .gz")
    parser.add_argument("--brisk", default="build/brisk")
    parser.add_argument("--budget", default="3m", help="of each diagnosis")
    parser.add_argument("--keep", help="folder for the diagnoses; those that are there are not measured again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.keep = os.path.abspath(options.keep or folder + "/diagnoses")
        os.makedirs(options.keep, exist_ok=True)
        catalogue = jobs(unpacked(options.wikitext, folder), unpacked(options.imdb, folder))
        by_name = {}
        for name, (_, job, tries, ladder) in catalogue.items():
            tried = [word for setting in tries for word in ("--try", setting)]
            by_name[name, "tries"] = diagnose(options, folder, name, "tries", job, tried)
            if ladder:
                by_name[name, "naive"] = diagnose(options, folder, name, "naive", job, ["--baseline", "naive"])
        with open(PAGE, "w") as file:
            file.write(page(Diagnoses(by_name), catalogue, options.budget))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
