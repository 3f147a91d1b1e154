"""Programs measured in turns, so that what else the machine does hits all of them alike.

    results = interleaved(["brisk-fp32", "torch-eager-fp32"], rounds=5, command_of=lambda mode: [...])
    print(median(results["brisk-fp32"], "tokens_per_second"))

A command prints a JSON object as its last line. A mode whose command fails is reported and left out.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def common_options(description, needs, rounds, seconds, modes):
    """What the comparisons have in common; each adds its own."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help=f"a python that has {needs}")
    parser.add_argument("--brisk", default=f"{HERE}/../../build/brisk")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--modes", default=modes)
    return parser


def measure(mode, command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        print(f"{mode}: failed with {done.returncode}: {lines[-1] if lines else ''}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def interleaved(modes, rounds, command_of, speed="tokens_per_second"):
    """`speed`: which of a result's numbers is told while the others still run."""
    results = {mode: [] for mode in modes}
    for _ in range(rounds):
        for mode in list(results):
            result = measure(mode, command_of(mode))
            if result is None:
                del results[mode]
            else:
                print(f"{mode}: {result[speed]:.2f} {speed.replace('_', ' ')}", file=sys.stderr)
                results[mode].append(result)
    if not results:
        sys.exit("no mode ran")
    return results


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def spread(runs, key, digits):
    return f"{min(run[key] for run in runs):.{digits}f}-{max(run[key] for run in runs):.{digits}f}"


def memory(runs):
    # Of a GPU: what the program itself allocated, as PyTorch counts; CUDA's context comes on top for both.
    return f"{max(run.get('peak_allocated_bytes', run['peak_memory_bytes']) for run in runs) / 2**20:.0f} MiB"


def print_utilisation(results):
    for mode, runs in results.items():
        if mode.startswith("brisk"):
            print(f"{mode}: utilisation {100 * median(runs, 'utilisation'):.1f} % of {median(runs, 'peak_gflops'):.0f} GFLOP/s "
                  f"({runs[0]['isa']})")
