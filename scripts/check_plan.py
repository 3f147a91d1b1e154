#!/usr/bin/env python3
"""What brisk plan predicts against what a training then takes: every kind of prediction, checked by a run here.

    scripts/check_plan.py [--brisk build/brisk] [--only models|machine|shapes] [CASE...]

Cases: small (a decoder), vocabulary (a wider one with a larger vocabulary), classifier. Prints a line for each figure: predicted, measured,
their ratio. Exit status 1 where one is off by more than 15 %. About two minutes a case; what is measured means little on
a machine that is busy with something else. Python's standard library alone.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

ALLOWED = 0.15


def words(count, rng):
    """Zipf's law: few common words, many rare ones."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choice(letters) for _ in range(rng.randint(2, 9))) for _ in range(30000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    return rng.choices(vocabulary, weights, k=count)


def write_text(path, count, seed):
    rng = random.Random(seed)
    all_words = words(count, rng)
    with open(path, "w") as file:
        at = 0
        while at < len(all_words):
            length = rng.randint(20, 400)
            file.write(" ".join(all_words[at:at + length]) + ".\n")
            at += length


def write_table(path, rows, seed):
    rng = random.Random(seed)
    all_words = words(50_000, rng)
    with open(path, "w") as file:
        file.write("text,label\n")
        for i in range(rows):
            text = " ".join(rng.sample(all_words, rng.randint(8, 60)))
            file.write(f"{text} {'good' if i % 2 else 'bad'},{i % 2}\n")


def language_model(folder, model, **training):
    settings = {"max_length": 128, "batch_size": 16, "num_epochs": 1}
    settings.update(training)
    return {"name": "planned", "model": model, "training": settings,
            "data": {"train": [f"{folder}/text.txt"], "document": "line", "cache_dir": f"{folder}/cache"},
            "output": f"{folder}/run"}


def classifier(folder):
    return {"name": "planned", "task": "classify",
            "model": {"type": "bert", "d_model": 256, "num_layers": 4, "vocab_size": 4000},
            "training": {"max_length": 64, "batch_size": 32, "num_epochs": 1},
            "data": {"train": [f"{folder}/table.csv"], "cache_dir": f"{folder}/cache"}, "output": f"{folder}/run"}


class Case:
    def __init__(self, brisk, folder, name):
        self.brisk, self.folder, self.name, self.off = brisk, folder, name, 0
        self.path = f"{folder}/job.json"

    def run(self, *arguments, one_core=False):
        command = (["taskset", "-c", "0"] if one_core else []) + [self.brisk, *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def plan(self, *arguments):
        return json.loads(self.run("plan", self.path, "--json", *arguments))

    def train(self, *settings, one_core=False):
        """Figures of a run, which is removed."""
        shutil.rmtree(f"{self.folder}/run", ignore_errors=True)
        more = [word for setting in settings for word in ("--set", setting)]
        self.run("train", self.path, *more, one_core=one_core)
        with open(f"{self.folder}/run/summary.json") as file:
            summary = json.load(file)
        disk = subprocess.run(["du", "-sb", f"{self.folder}/run/checkpoints"], capture_output=True, text=True).stdout
        steps, wall = summary["step"], summary["wall_seconds"]
        started = summary["ledger"]["start_up"]
        started = started["seconds"] if isinstance(started, dict) else started
        return {"epoch": wall - started, "speed": summary["run_tokens_per_second"],
                "step": summary["tokens"] / steps / summary["run_tokens_per_second"],
                "memory": summary["peak_memory_bytes"], "checkpoints": int(disk.split()[0])}

    def check(self, what, predicted, measured, unit=""):
        ratio = predicted / measured
        right = abs(ratio - 1) <= ALLOWED
        self.off += 0 if right else 1
        print(f"{self.name:<11} {what:<44} {predicted:>12.4g} {measured:>12.4g} {unit:<6} {ratio:6.3f}  "
              f"{'' if right else 'OFF'}", flush=True)

    def check_all(self, job, doubled, only):
        with open(self.path, "w") as file:
            json.dump(job, file)
        plan = self.plan()
        print(f"{self.name:<11} planned in {plan['seconds']:.1f} s", flush=True)
        own = self.train()
        if only:
            {"models": lambda: self.check_models(plan), "machine": self.check_other_machine,
             "shapes": lambda: self.check_shapes(plan)}[only]()
            return
        self.check("tokens/s", plan["tokens_per_second"], own["speed"])
        self.check("epoch", plan["epoch_seconds"], own["epoch"], "s")
        self.check("memory", plan["memory_bytes"], own["memory"], "bytes")
        self.check("checkpoints on the disk", plan["disk"]["checkpoint_bytes"] * plan["disk"]["checkpoints"],
                   own["checkpoints"], "bytes")
        cached = sum(entry.stat().st_size for entry in os.scandir(f"{self.folder}/cache") if entry.name.endswith(".tokens"))
        self.check("tokens in the cache", plan["disk"]["cache_bytes"], cached, "bytes")
        for row in plan["what_if"]:
            if row["id"] == "data":
                continue
            measured = self.train(*row["settings"])
            what = f"{row['id']} ({', '.join(row['settings'])})"
            if row["id"] == "machines":
                self.check(f"{what}: part", row["part_seconds"], measured["step"], "s")
            else:
                self.check(f"{what}: epoch", row["epoch_seconds"], measured["epoch"], "s")
                self.check(f"{row['id']}: memory", row["memory_bytes"], measured["memory"], "bytes")
        self.check_shapes(plan)
        self.check_models(plan)
        self.check_other_machine()
        again = self.train()["speed"] / own["speed"]
        if abs(again - 1) > 0.5 * ALLOWED:
            print(f"{self.name:<11} the same training was {again:.2f} times as fast at the end: the machine was busy with "
                  "something else, and these figures mean little")
        twice = next(row for row in plan["what_if"] if row["id"] == "data")
        self.check("twice the data: epoch", twice["epoch_seconds"],
                   self.train(f'data.train=["{doubled}"]')["epoch"], "s")

    def check_shapes(self, plan):
        for shape in plan["shapes"][:1]:
            measured = self.train(f"model.d_model={shape['width']}", f"model.num_layers={shape['layers']}",
                                  "training.max_steps=60")
            self.check(f"{shape['layers']} x {shape['width']}: tokens/s", shape["tokens_per_second"], measured["speed"])

    def check_models(self, plan):
        """The same pieces of words in a vocabulary as large as BERT's."""
        if not plan["models"]:
            return
        with open(f"{self.folder}/run/vocab.txt") as file:
            pieces = file.read().splitlines()
        os.makedirs(f"{self.folder}/pieces", exist_ok=True)
        with open(f"{self.folder}/pieces/vocab.txt", "w") as file:
            file.write("\n".join(pieces + [f"[unused{i}]" for i in range(30522 - len(pieces))]) + "\n")
        tokenizer = f"data.tokenizer={self.folder}/pieces/vocab.txt"
        for name, heads in (("BERT-mini", 4), ("MiniLM-L6-H384", 12)):
            more = [f"model.num_heads={heads}", tokenizer]
            for model in (m for m in plan["models"] if m["name"] == name):
                measured = self.train(f"model.d_model={model['width']}", f"model.num_layers={model['layers']}", *more)
                self.check(f"{name}: epoch", model["epoch_seconds"], measured["epoch"], "s")

    def check_other_machine(self):
        """One core of this machine stands for another one."""
        if shutil.which("taskset") is None or (os.cpu_count() or 1) < 2:
            print(f"{self.name:<11} no other machine: taskset and a second core are needed")
            return
        path = f"{self.folder}/machine.json"
        with open(path, "w") as file:
            file.write(self.run("machine", "--json", one_core=True))
        there = self.plan("--machine", path)
        measured = self.train(one_core=True)
        self.check("a machine of one core: tokens/s", there["tokens_per_second"], measured["speed"])
        self.check("a machine of one core: epoch", there["epoch_seconds"], measured["epoch"], "s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brisk", default="build/brisk")
    parser.add_argument("--only", choices=["models", "machine", "shapes"])
    parser.add_argument("cases", nargs="*", default=["small", "vocabulary", "classifier"])
    options = parser.parse_args()
    brisk = os.path.abspath(options.brisk)
    off = 0
    print(f"{'case':<11} {'':<44} {'predicted':>12} {'measured':>12} {'':<6} {'ratio':>6}")
    for name in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            case = Case(brisk, folder, name)
            if name == "classifier":
                write_table(f"{folder}/table.csv", 4000, 7)
                write_table(f"{folder}/twice.csv", 8000, 7)
                case.check_all(classifier(folder), f"{folder}/twice.csv", options.only)
            else:
                model = ({"d_model": 128, "num_layers": 2, "vocab_size": 2000} if name == "small"
                         else {"d_model": 256, "num_layers": 4, "vocab_size": 8000})
                count = 60_000 if name == "small" else 30_000
                write_text(f"{folder}/text.txt", count, 7)
                write_text(f"{folder}/twice.txt", 2 * count, 7)
                case.check_all(language_model(folder, model), f"{folder}/twice.txt", options.only)
            off += case.off
    print(f"{off} off by more than {100 * ALLOWED:.0f} %" if off else f"all within {100 * ALLOWED:.0f} %")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
