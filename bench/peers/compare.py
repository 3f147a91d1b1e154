#!/usr/bin/env python3
"""brisk and its PyTorch twin side by side: the runs alternate, medians and spreads are printed, and the ratio.

  bench/peers/compare.py --python VENV/bin/python [--shape small] [--rounds 5] [--seconds 6] [--modes brisk-fp32,torch-eager-fp32,...]

Modes: brisk-fp32, brisk-bf16, torch-eager-fp32, torch-compile-fp32, torch-eager-bf16, torch-compile-bf16. A mode that fails (a
PyTorch build may use instructions that the machine refuses) is reported and left out.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def run(mode, options):
    tool, *rest = mode.split("-")
    if tool == "brisk":
        command = [options.brisk, "bench", "lm", "--shape", options.shape, "--precision", rest[0], "--seconds",
                   str(options.seconds), "--threads", str(options.threads), "--json"]
    else:
        command = [options.python, f"{HERE}/lm_torch.py", "--shape", options.shape, "--mode", rest[0], "--precision", rest[1],
                   "--seconds", str(options.seconds), "--threads", str(options.threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        print(f"{mode}: failed with {done.returncode}: {lines[-1] if lines else ''}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a python that has torch")
    parser.add_argument("--brisk", default=f"{HERE}/../../build/brisk")
    parser.add_argument("--shape", default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--modes", default="brisk-fp32,torch-compile-fp32,torch-eager-fp32,brisk-bf16,torch-compile-bf16")
    options = parser.parse_args()
    results = {mode: [] for mode in options.modes.split(",")}
    for _ in range(options.rounds):
        for mode in list(results):
            result = run(mode, options)
            if result is None:
                del results[mode]
            else:
                results[mode].append(result)
    if not results:
        sys.exit("no mode ran")
    best_torch = max((statistics.median(r["tokens_per_second"] for r in rs) for mode, rs in results.items() if mode.startswith("torch")),
                     default=0)
    print(f"{options.shape}, {options.threads} threads, {options.rounds} interleaved rounds of {options.seconds} s")
    print("| mode | tokens/s (median) | spread | GFLOP/s | peak memory | against PyTorch's best |")
    print("|---|---|---|---|---|---|")
    for mode, rs in results.items():
        speeds = [r["tokens_per_second"] for r in rs]
        median = statistics.median(speeds)
        memory = max(r["peak_memory_bytes"] for r in rs) / 2**20
        ratio = f"{median / best_torch:.2f}x" if best_torch else "-"
        print(f"| {mode} | {median:.0f} | {min(speeds):.0f}-{max(speeds):.0f} | {statistics.median(r['gflops'] for r in rs):.1f} "
              f"| {memory:.0f} MiB | {ratio} |")
    for mode, rs in results.items():
        if mode.startswith("brisk"):
            print(f"{mode}: utilisation {100 * statistics.median(r['utilisation'] for r in rs):.1f} % of "
                  f"{statistics.median(r['peak_gflops'] for r in rs):.0f} GFLOP/s ({rs[0]['isa']})")


main()
