#!/usr/bin/env python3
"""`brisk bench classify` and Hugging Face side by side: the runs alternate, medians and spreads are printed, and the ratios.

  bench/peers/compare_classify.py --python VENV/bin/python --data train.tsv.gz --vocabulary vocab.txt \\
      [--model distilbert] [--max-length 128] [--batch 16] [--rounds 3] [--seconds 15] [--modes brisk-fp32,torch-grouped,...]

Modes: brisk-fp32, brisk-bf16, torch-grouped, torch-dynamic, torch-max, torch-compiled (grouped, compiled). A mode that fails is
reported and left out.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run(mode, options):
    tool, kind = mode.split("-")
    shared = ["--model", options.model, "--data", options.data, "--max-length", str(options.max_length), "--batch", str(options.batch),
              "--seconds", str(options.seconds), "--threads", str(options.threads), "--json"]
    if tool == "brisk":
        command = [options.brisk, "bench", "classify", "--precision", kind, "--tokenizer", options.vocabulary] + shared
    else:
        command = [options.python, f"{HERE}/classify_torch.py", "--vocabulary", options.vocabulary, "--padding",
                   "grouped" if kind == "compiled" else kind, "--mode", "compile" if kind == "compiled" else "eager"] + shared
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        print(f"{mode}: failed with {done.returncode}: {lines[-1] if lines else ''}", file=sys.stderr)
        return None
    result = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{mode}: {result['rows_per_second']:.2f} rows/s", file=sys.stderr)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a python that has torch, transformers and tokenizers")
    parser.add_argument("--brisk", default=f"{HERE}/../../build/brisk")
    parser.add_argument("--model", default="distilbert")
    parser.add_argument("--data", required=True)
    parser.add_argument("--vocabulary", required=True, help="vocab.txt, or its folder")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--modes", default="brisk-fp32,torch-grouped,torch-dynamic,torch-max,brisk-bf16")
    options = parser.parse_args()
    results = {mode: [] for mode in options.modes.split(",")}
    for _ in range(options.rounds):
        for mode in list(results):
            result = run(mode, options)
            if result is None:
                del results[mode]
            else:
                results[mode].append(result)
    grouped = results.get("torch-grouped", [])
    print("| mode | rows/s | spread | real tokens/s | peak memory | rows/s (tokens/s) against grouped |\n|---|---|---|---|---|---|")
    for mode, runs in results.items():
        speeds = [r["rows_per_second"] for r in runs]
        median = statistics.median(speeds)
        tokens = statistics.median(r["tokens_per_second"] for r in runs)
        ratio = (f"{median / statistics.median(r['rows_per_second'] for r in grouped):.2f}x "
                 f"({tokens / statistics.median(r['tokens_per_second'] for r in grouped):.2f}x)" if grouped else "-")
        print(f"| {mode} | {median:.2f} | {min(speeds):.2f}-{max(speeds):.2f} | "
              f"{tokens:.0f} | {max(r['peak_memory_bytes'] for r in runs) / 2**20:.0f} MiB "
              f"| {ratio} |")
    for mode, runs in results.items():
        if mode.startswith("brisk"):
            print(f"{mode}: utilisation {100 * statistics.median(r['utilisation'] for r in runs):.1f} % of "
                  f"{statistics.median(r['peak_gflops'] for r in runs):.0f} GFLOP/s ({runs[0]['isa']})")


main()
