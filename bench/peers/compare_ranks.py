#!/usr/bin/env python3
"""brisk and PyTorch DDP (gloo) with the same processes and threads, side by side: the runs alternate, medians and spreads are printed.

  bench/peers/compare_ranks.py --python VENV/bin/python [--shapes small,large] [--counts 1x2,2x1] [--rounds 5] [--seconds 5]
  bench/peers/compare_ranks.py --python VENV/bin/python --counts 1x16,2x8,4x4,8x2 --start "mpirun -np {n} --bind-to none"

A count is PROCESSESxTHREADS: threads of each process. The batch is that of the whole step, whatever the number of processes. --modes:
brisk, torch-eager, torch-compile. brisk's processes are started by `brisk launch -n {n} --threads-per-rank {t}` unless --start says
otherwise, DDP's by torch.distributed.run. A mode that fails is reported and left out.
"""
import shlex

from interleaved import HERE, common_options, interleaved, median, memory, spread


def main():
    parser = common_options(__doc__, "torch", 5, 5, "brisk,torch-eager,torch-compile")
    parser.add_argument("--shapes", default="small,large")
    parser.add_argument("--counts", default="1x2,2x1", help="PROCESSESxTHREADS, separated by commas")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--batch", type=int, help="sequences of a step; the shape's unless given")
    parser.add_argument("--max-length", type=int, help="tokens of a sequence; the shape's unless given")
    parser.add_argument("--start", help="how brisk's processes are started: {n} of them, {t} threads each")
    options = parser.parse_args()
    counts = [tuple(int(number) for number in count.split("x")) for count in options.counts.split(",")]

    def command_of(shape, mode):
        tool, count = mode.split(" ")
        processes, threads = (int(number) for number in count.split("x"))
        shared = ["--shape", shape, "--precision", options.precision, "--seconds", str(options.seconds), "--json"]
        for name in ["batch", "max_length"]:
            if getattr(options, name):
                shared += ["--" + name.replace("_", "-"), str(getattr(options, name))]
        if tool == "brisk":
            start = shlex.split((options.start or "").format(n=processes, t=threads)) if processes > 1 else []
            launched = [options.brisk] + ([] if options.start or processes == 1 else
                                          ["launch", "-n", str(processes), "--threads-per-rank", str(threads)])
            return start + launched + ["bench", "lm", "--device", "cpu", "--threads", str(threads)] + shared
        script = [f"{HERE}/lm_torch.py", "--mode", tool.removeprefix("torch-"), "--threads", str(threads)] + shared
        if processes == 1:
            return [options.python] + script
        return [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] + script

    for shape in options.shapes.split(","):
        modes = [f"{tool} {processes}x{threads}" for processes, threads in counts for tool in options.modes.split(",")]
        results = interleaved(modes, options.rounds, lambda mode: command_of(shape, mode))
        speeds = {mode: median(runs, "tokens_per_second") for mode, runs in results.items()}
        first = speeds.get(f"brisk {counts[0][0]}x{counts[0][1]}")
        print(f"{shape}, {options.precision}, {options.rounds} interleaved rounds of {options.seconds} s; processes x threads")
        print("| mode | tokens/s (median) | spread | peak memory of a process | brisk is | against brisk's first count | exposed communication |")
        print("|---|---|---|---|---|---|---|")
        for mode, runs in results.items():
            tool, count = mode.split(" ")
            brisk = speeds.get(f"brisk {count}")
            exposed = [max(rank["exposed_communication_seconds"] / rank["seconds"] for rank in run["ranks"]) for run in runs if run.get("ranks")]
            print(f"| {mode} | {speeds[mode]:.0f} | {spread(runs, 'tokens_per_second', 0)} | {memory(runs)} | "
                  f"{f'{brisk / speeds[mode]:.2f}x' if brisk and tool != 'brisk' else '-'} | "
                  f"{f'{speeds[mode] / first:.2f}x' if first and tool == 'brisk' else '-'} | "
                  f"{f'{100 * sorted(exposed)[len(exposed) // 2]:.1f} %' if exposed else '-'} |")
        print()


main()
