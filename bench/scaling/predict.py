#!/usr/bin/env python3
"""What brisk plan predicts of machines that nobody here has: 8 A16s, 8 H100s, 64 nodes (the .json files beside this script).

    bench/scaling/predict.py [--brisk build/brisk] [--overlap 0,0.9] [MACHINE...]

A classifier of BERT-base's shape (rows of up to 256 tokens, 96 a step) and a decoder of GPT-2's (1,024 tokens, 512 sequences a step), both
bf16, timed here and scaled by the rates in the file. --overlap: shares of the gradient's sum that the backward pass hides. These are
predictions: nothing of it was measured on such machines. Python's standard library alone.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../scripts")
from check_plan import words, write_text  # noqa: E402


def write_songs(path, rows):
    """A label and 120 to 260 words a row, about as long as lyrics."""
    rng = random.Random(7)
    vocabulary = words(50_000, rng)
    with open(path, "w") as file:
        file.write("text,label\n")
        for i in range(rows):
            file.write(f"{' '.join(rng.choices(vocabulary, k=rng.randint(120, 260)))},{i % 2}\n")


def jobs(folder):
    common = {"cache_dir": f"{folder}/cache"}
    return {
        "BERT-base, a classifier": {
            "name": "bert", "task": "classify", "model": {"type": "bert", "d_model": 768, "num_layers": 12, "vocab_size": 30522},
            "training": {"max_length": 256, "batch_size": 96, "num_epochs": 2, "precision": "bf16"},
            "data": dict(common, train=[f"{folder}/table.csv"]), "output": f"{folder}/bert"},
        "GPT-2 124M": {
            "name": "gpt2", "model": {"d_model": 768, "num_layers": 12, "num_heads": 12, "vocab_size": 16000},
            "training": {"max_length": 1024, "batch_size": 512, "num_epochs": 1, "precision": "bf16", "optimizer": "adamw"},
            "data": dict(common, train=[f"{folder}/text.txt"], document="file"), "output": f"{folder}/gpt2"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brisk", default=f"{HERE}/../../build/brisk")
    parser.add_argument("--overlap", default="0,0.9")
    parser.add_argument("--jobs", default="bert,gpt2")
    parser.add_argument("machines", nargs="*", default=["8-a16", "8-h100", "64-nodes"])
    options = parser.parse_args()
    print("| predicted: job | machine | overlap | tokens/s of all | a step | exposed communication | of the step, computing |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_songs(f"{folder}/table.csv", 1000)
        write_text(f"{folder}/text.txt", 700_000, 7)
        for name, job in jobs(folder).items():
            if job["name"] not in options.jobs.split(","):
                continue
            with open(f"{folder}/job.json", "w") as file:
                json.dump(job, file)
            for machine in options.machines:
                with open(f"{HERE}/{machine}.json") as file:
                    described = json.load(file)
                ranks = described.pop("ranks")
                for overlap in (float(share) for share in options.overlap.split(",")):
                    with open(f"{folder}/machine.json", "w") as file:
                        json.dump(dict(described, ranks=dict(ranks, sum_overlap=overlap)), file)
                    done = subprocess.run([options.brisk, "plan", f"{folder}/job.json", "--machine", f"{folder}/machine.json", "--json"],
                                          capture_output=True, text=True)
                    if done.returncode != 0:
                        sys.exit(done.stderr)
                    plan = json.loads(done.stdout)
                    step, exposed = plan["step_seconds"], plan["exposed_communication_seconds"]
                    print(f"| {name} | {machine} | {overlap:g} | {plan['tokens_per_second']:,.0f} | {1e3 * step:.1f} ms | "
                          f"{1e3 * exposed:.1f} ms | {100 * (1 - exposed / step):.0f} % |", flush=True)


if __name__ == "__main__":
    main()
