#!/usr/bin/env python3
"""What brisk plan predicts of several ranks against what a training by them then takes.

    scripts/check_scaling.py [--brisk build/brisk] [--ranks 2,4] [--transports launch,openmpi,mpich] [--rounds 1] [CASE...]

Cases: small, small-bf16, large (decoders), classifier. For each transport and number of ranks the machine is measured between ranks,
the job planned for it, then trained by them. Prints tokens/s: predicted, measured, their ratio, and what of a step is exposed
communication. A transport whose launcher is not installed is left out. Exit status 1 where a prediction is off by more than 15 %.
What is measured means little on a machine that is busy with something else. Python's standard library alone.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from check_plan import ALLOWED, language_model, write_table, write_text

ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def starters(brisk, names):
    """How each transport starts ranks; those that are installed."""
    known = {"launch": (brisk, lambda ranks: [brisk, "launch", "-n", str(ranks)]),
             "openmpi": ("mpirun.openmpi", lambda ranks: ["mpirun.openmpi", "-np", str(ranks), "--bind-to", "core", brisk]),
             "mpich": ("mpiexec.mpich", lambda ranks: ["mpiexec.mpich", "-n", str(ranks), "-bind-to", "core", brisk])}
    for name in names:
        if name not in known:
            sys.exit(f"--transports {name}: expected {', '.join(known)}")
    return {name: known[name][1] for name in names if shutil.which(known[name][0])}


def job_of(case, folder):
    if case == "classifier":
        model = {"type": "bert", "d_model": 256, "num_layers": 4, "vocab_size": 4000}
        return {"name": "planned", "task": "classify", "model": model,
                "training": {"max_length": 64, "batch_size": 64, "max_steps": 120, "precision": "fp32"},
                "data": {"train": [f"{folder}/table.csv"], "cache_dir": f"{folder}/cache"}, "output": f"{folder}/run"}
    precision = "bf16" if case == "small-bf16" else "fp32"
    if case == "large":
        return language_model(folder, {"d_model": 512, "num_layers": 6, "num_heads": 8, "vocab_size": 16000}, batch_size=16,
                              max_steps=14, precision=precision)
    return language_model(folder, {"d_model": 256, "num_layers": 2, "num_heads": 4, "vocab_size": 10000}, batch_size=32,
                          max_steps=60, precision=precision)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def train(command, folder):
    shutil.rmtree(f"{folder}/run", ignore_errors=True)
    run(command + ["train", f"{folder}/job.json"])
    with open(f"{folder}/run/summary.json") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brisk", default="build/brisk")
    parser.add_argument("--ranks", default="2" if (os.cpu_count() or 1) < 4 else "2,4")
    parser.add_argument("--transports", default="launch,openmpi,mpich")
    parser.add_argument("--rounds", type=int, default=1, help="trainings of each; the median counts")
    parser.add_argument("cases", nargs="*", default=["small", "small-bf16", "large", "classifier"])
    options = parser.parse_args()
    brisk, off, points = os.path.abspath(options.brisk), 0, 0
    starts = starters(brisk, options.transports.split(","))
    print("| case | ranks | by | predicted tokens/s | measured | ratio | exposed, predicted | exposed, measured | of one process |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            if case == "classifier":
                write_table(f"{folder}/table.csv", 8000, 7)
            else:
                write_text(f"{folder}/text.txt", 120_000, 7)
            with open(f"{folder}/job.json", "w") as file:
                json.dump(job_of(case, folder), file)
            alone = statistics.median(train([brisk], folder)["run_tokens_per_second"] for _ in range(options.rounds))
            for ranks in (int(count) for count in options.ranks.split(",")):
                for name, start in starts.items():
                    with open(f"{folder}/ranks.json", "w") as file:
                        file.write(run(start(ranks) + ["machine", "--json"]))
                    plan = json.loads(run([brisk, "plan", f"{folder}/job.json", "--machine", f"{folder}/ranks.json", "--json"]))
                    runs = [train(start(ranks), folder) for _ in range(options.rounds)]
                    measured = statistics.median(each["run_tokens_per_second"] for each in runs)
                    steps = sum(phase["seconds"] if isinstance(phase, dict) else phase for name_of, phase in runs[-1]["ledger"].items()
                                if name_of not in ("start_up", "evaluation", "checkpoint"))
                    exposed = min(rank["communication_seconds"] for rank in runs[-1]["ranks"]) / steps
                    ratio = plan["tokens_per_second"] / measured
                    points += 1
                    off += abs(ratio - 1) > ALLOWED
                    print(f"| {case} | {ranks} | {name} | {plan['tokens_per_second']:.0f} | {measured:.0f} | {ratio:.3f}"
                          f"{' OFF' if abs(ratio - 1) > ALLOWED else ''} | "
                          f"{100 * plan['exposed_communication_seconds'] / plan['step_seconds']:.1f} % | {100 * exposed:.1f} % | "
                          f"{measured / alone:.2f}x |", flush=True)
    print(f"{off} of {points} off by more than {100 * ALLOWED:.0f} %" if off else f"all {points} within {100 * ALLOWED:.0f} %")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
