#!/usr/bin/env python3
"""brisk and its PyTorch twin side by side: the runs alternate, medians and spreads are printed, and the ratio.

  bench/peers/compare.py --python VENV/bin/python [--shape small] [--rounds 5] [--seconds 6] [--modes brisk-fp32,torch-eager-fp32,...]

Modes: brisk-fp32, brisk-bf16, torch-eager-fp32, torch-compile-fp32, torch-eager-bf16, torch-compile-bf16; on a GPU (--device
cuda) also torch-graphs-bf16. A mode that fails (a
PyTorch build may use instructions that the machine refuses) is reported and left out.
"""
from interleaved import HERE, common_options, interleaved, median, memory, print_utilisation, spread


def main():
    parser = common_options(__doc__, "torch", 5, 6, "brisk-fp32,torch-compile-fp32,torch-eager-fp32,brisk-bf16,torch-compile-bf16")
    parser.add_argument("--shape", default="small")
    parser.add_argument("--batch", type=int, help="sequences; the shape's unless given")
    parser.add_argument("--max-length", type=int, help="tokens of a sequence; the shape's unless given")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    def command_of(mode):
        tool, *rest = mode.split("-")
        shared = ["--shape", options.shape, "--seconds", str(options.seconds), "--threads", str(options.threads), "--device", options.device, "--json"]
        for name in ["batch", "max_length"]:
            if getattr(options, name):
                shared += ["--" + name.replace("_", "-"), str(getattr(options, name))]
        if tool == "brisk":
            return [options.brisk, "bench", "lm", "--precision", rest[0]] + shared
        return [options.python, f"{HERE}/lm_torch.py", "--mode", rest[0], "--precision", rest[1]] + shared

    results = interleaved(options.modes.split(","), options.rounds, command_of)
    best_torch = max((median(runs, "tokens_per_second") for mode, runs in results.items() if mode.startswith("torch")), default=0)
    print(f"{options.shape}, {options.device}, {options.threads} threads, {options.rounds} interleaved rounds of {options.seconds} s")
    print("| mode | tokens/s (median) | spread | GFLOP/s | peak memory | against PyTorch's best |")
    print("|---|---|---|---|---|---|")
    for mode, runs in results.items():
        speed = median(runs, "tokens_per_second")
        ratio = f"{speed / best_torch:.2f}x" if best_torch else "-"
        print(f"| {mode} | {speed:.0f} | {spread(runs, 'tokens_per_second', 0)} | {median(runs, 'gflops'):.1f} | {memory(runs)} | {ratio} |")
    print_utilisation(results)


main()
