#!/usr/bin/env python3
"""Jobs that are made slow on purpose: brisk doctor must find what was planted first, and keep its fix where there is one.

    scripts/check_doctor.py [--brisk build/brisk] [--budget 25s] [CASE...]

Prints a line for each: the finding, predicted and measured gain. What is wrong with several processes is planted in a run by two of them
that the job's output folder then has, and must be found, first or not. Exit status 1 where one is missed. Takes about half a
minute each; what is measured means little on a machine that is busy with something else. Python's standard library alone.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile


def words(count, rng):
    """Zipf's law: few common words, many rare ones."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rng.choice(letters) for _ in range(rng.randint(2, 9))) for _ in range(5000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    return rng.choices(vocabulary, weights, k=count)


def write_data(folder):
    rng = random.Random(7)
    all_words = words(400_000, rng)

    def lines(path, lengths):
        at = 0
        with open(path, "w") as file:
            while at < len(all_words):
                length = lengths()
                file.write(" ".join(all_words[at:at + length]) + ".\n")
                at += length

    lines(f"{folder}/even.txt", lambda: 400)
    lines(f"{folder}/short.txt", lambda: rng.randint(4, 20))
    lines(f"{folder}/outliers.txt", lambda: 400 if rng.random() < 0.004 else rng.randint(6, 20))
    with open(f"{folder}/table.csv", "w") as file:
        file.write("text,label\n")
        for i in range(6000):
            text = " ".join(rng.sample(all_words[:20000], rng.randint(8, 30)))
            file.write(f"{text} {'good' if i % 2 else 'bad'},{i % 2}\n")


def base(folder, **training):
    settings = {"max_length": 128, "batch_size": 32, "max_steps": 20000}
    settings.update(training)
    return {"name": "planted", "model": {"d_model": 128, "num_layers": 2, "vocab_size": 2000},
            "training": settings, "data": {"train": [f"{folder}/even.txt"], "document": "line"},
            "output": f"{folder}/runs/planted"}


def lines_job(folder, text, **training):
    job = base(folder, **training)
    job["data"]["train"] = [f"{folder}/{text}"]
    return job


def classifier(folder, **training):
    settings = {"max_length": 64, "batch_size": 32, "num_epochs": 20}
    settings.update(training)
    return {"name": "planted", "task": "classify",
            "model": {"type": "bert", "d_model": 128, "num_layers": 4, "num_heads": 2, "vocab_size": 2000},
            "training": settings, "data": {"train": [f"{folder}/table.csv"]}, "output": f"{folder}/runs/planted"}


def with_model(job, **model):
    job["model"].update(model)
    return job


def from_source(job, folder):
    job["model"] = {"from": f"{folder}/source"}
    return job


def one_document(job):
    job["data"]["document"] = "file"
    return job


# name: (job, finding that comes first, whether its fix is kept, more arguments)
def cases(folder):
    best = {"precision": "auto"}
    return {
        "healthy": (base(folder, **best), None, False, []),
        "padding": (lines_job(folder, "short.txt", padding="max_length"), "padding", True, []),
        "micro_batch": (with_model(base(folder, micro_batch_tokens=128), d_model=256), "batch_size", True, []),
        "batch": (base(folder, batch_size=1), ("batch_size", "optimizer_cost"), False, []),
        "precision": (with_model(base(folder, precision="fp32"), d_model=384), "precision", True, []),
        "threads": (base(folder, threads=1), "too_few_threads", True, []),
        "oversubscribed": (base(folder, threads=16), "oversubscribed", True, []),
        "evaluation": (base(folder, eval_steps=1), "evaluation_cost", True, []),
        "saving": (base(folder, save_steps=1), "saving_cost", True, []),
        "histograms": (base(folder, logging_steps=1, histogram_steps=1), "logging_cost", True, []),
        "checkpointing": (base(folder, gradient_checkpointing=1), "activation_checkpointing", True, []),
        "frozen": (from_source(classifier(folder, freeze=3, cache_frozen=False), folder), "frozen_recomputed", True, []),
        "head": (with_model(base(folder), d_model=64, vocab_size=16000), "head_cost", False, []),
        "attention": (with_model(one_document(base(folder, max_length=2048, batch_size=4)), d_model=64),
                      "attention_length", False, []),
        "outliers": (lines_job(folder, "outliers.txt", padding="max_length", max_length=512), "padding", True, []),
    }


# name: (job, finding that a run by two processes leads to, whether something else runs on the second one's core meanwhile)
def cases_of_ranks(folder):
    rest = {"max_steps": 150, "precision": "auto"}
    narrow = with_model(base(folder, **dict(rest, batch_size=2, max_length=16)), d_model=256, vocab_size=8000)
    return {
        "exposed": (narrow, "exposed_communication", False),
        "slow_rank": (base(folder, **rest), "slow_rank", True),
        "uneven": (base(folder, **dict(rest, batch_size=3)), "small_part", False),
    }


def train_on_two(brisk, path, is_disturbed):
    cores = sorted(os.sched_getaffinity(0))[:2]
    other = None
    if is_disturbed:
        other = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{cores[-1]}])\nwhile True: pass"])
    try:
        subprocess.run([brisk, "launch", "-n", "2", "--threads-per-rank", "1", "train", path], check=True, capture_output=True)
    finally:
        if other:
            other.kill()
            other.wait()


def check_ranks(brisk, folder, budget, chosen):
    missed = 0
    for name, (job, expected, is_disturbed) in cases_of_ranks(folder).items():
        if chosen and name not in chosen:
            continue
        path = f"{folder}/{name}.json"
        with open(path, "w") as file:
            json.dump({**job, "output": f"{folder}/runs/{name}"}, file)
        train_on_two(brisk, path, is_disturbed)
        done = subprocess.run([brisk, "doctor", path, "--budget", budget, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{name:<16} exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
            missed += 1
            continue
        findings = json.loads(done.stdout)["findings"]
        found = [f for f in findings if f["id"] == expected]
        missed += 0 if found else 1
        print(f"{name:<16} {expected if found else 'nothing of the kind':<24} "
              f"{found[0]['predicted_gain'] if found else 0:>8.2f}x {'not measured':>22}  no    "
              f"{found[0]['cause'] if found else 'WRONG, found ' + ', '.join(f['id'] for f in findings)}", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brisk", default="build/brisk")
    parser.add_argument("--budget", default="25s")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    brisk = os.path.abspath(options.brisk)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        write_data(folder)
        # Layers are frozen in a model that was trained before.
        source = f"{folder}/source.json"
        with open(source, "w") as file:
            json.dump({**classifier(folder, max_steps=20), "output": f"{folder}/source"}, file)
        subprocess.run([brisk, "train", source], check=True, capture_output=True)
        print(f"{'planted':<16} {'found first':<24} {'predicted':>9} {'measured':>22}  kept  verdict")
        for name, (job, expected, kept, arguments) in cases(folder).items():
            if options.cases and name not in options.cases:
                continue
            path = f"{folder}/{name}.json"
            with open(path, "w") as file:
                json.dump(job, file)
            done = subprocess.run([brisk, "doctor", path, "--budget", options.budget, "--json", *arguments],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name:<16} exit code {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
                missed += 1
                continue
            diagnosis = json.loads(done.stdout)
            # What other programs do to the machine meanwhile is true, and not planted.
            findings = [f for f in diagnosis["findings"] if f["id"] != "busy_machine"]
            first = findings[0]["id"] if findings else None
            rungs = [r for r in diagnosis["ladder"] if r.get("finding") == first] if first else []
            rung = rungs[0] if rungs else None
            wanted = expected if isinstance(expected, tuple) else (expected,)
            right = first in wanted and (not kept or (rung is not None and rung["kept"]))
            missed += 0 if right else 1
            predicted = f"{findings[0]['predicted_gain']:.2f}x" if findings else ""
            gain = f"{rung['gain']:.2f} [{rung['gain_low']:.2f}, {rung['gain_high']:.2f}]" if rung else ""
            others = ", ".join(f["id"] for f in findings[1:])
            print(f"{name:<16} {str(first):<24} {predicted:>9} {gain:>22}  {'yes' if rung and rung['kept'] else 'no':<4}  "
                  f"{'right' if right else 'WRONG, expected ' + str(expected)}{'; also ' + others if others else ''}",
                  flush=True)
        if len(os.sched_getaffinity(0)) > 1:
            missed += check_ranks(brisk, folder, options.budget, options.cases)
    print(f"{missed} missed" if missed else "all found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
