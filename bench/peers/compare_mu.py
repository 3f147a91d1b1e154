#!/usr/bin/env python3
"""brisk's MU and its two PyTorch twins side by side: the runs alternate, medians and spreads are printed, and the ratios.

  bench/peers/compare_mu.py --python VENV/bin/python [--layers 6] [--rounds 5] [--seconds 6] [--modes brisk-fp32,modern-compile-fp32,...]

Modes: brisk-fp32, brisk-bf16, modern-eager-fp32, modern-head-fp32 (the loss alone is compiled), modern-compile-fp32, modern-compile-bf16,
original-eager-fp32; on a GPU (--device
cuda) also modern-graphs-bf16 and original-eager-fp16, which is how the first program ran. All time complete optimizer steps of the
same batch. With --reference all have the first program's attentions, without a causal mask; otherwise brisk's causal default.
A mode that fails is reported and left out.
"""
from interleaved import HERE, common_options, interleaved, median, memory, print_utilisation, spread


def main():
    parser = common_options(__doc__, "torch", 3, 6, "brisk-fp32,modern-head-fp32,modern-compile-fp32,original-eager-fp32")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--vocabulary", type=int, default=50000)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8, help="sequences of a micro-batch of the twins")
    parser.add_argument("--accumulation", type=int, default=4, help="micro-batches of an optimizer step")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    def command_of(mode):
        tool, *rest = mode.split("-")
        shared = ["--dropout", options.dropout, "--layers", options.layers, "--vocabulary", options.vocabulary, "--max-length", options.max_length, "--seconds", options.seconds,
                  "--threads", options.threads, "--device", options.device, "--json"] + (["--reference"] if options.reference else [])
        if tool == "brisk":
            command = [options.brisk, "bench", "mu", "--precision", rest[0], "--batch", options.batch * options.accumulation] + shared
        else:
            command = [options.python, f"{HERE}/mu_torch.py", "--style", tool, "--mode", rest[0], "--precision", rest[1],
                       "--batch", options.batch, "--accumulation", options.accumulation] + shared
        return [str(word) for word in command]

    results = interleaved(options.modes.split(","), options.rounds, command_of)
    brisk = max((median(runs, "tokens_per_second") for mode, runs in results.items() if mode.startswith("brisk")), default=0)
    print(f"MU, {options.layers} layers, {options.vocabulary} tokens, {options.batch * options.accumulation} sequences of {options.max_length}, "
          f"{'reference' if options.reference else 'causal'}, dropout {options.dropout:g}; {options.device}, {options.threads} threads, "
          f"{options.rounds} interleaved rounds of {options.seconds} s")
    print("| mode | tokens/s (median) | spread | ms a step | peak memory | brisk's best is |")
    print("|---|---|---|---|---|---|")
    for mode, runs in results.items():
        speed = median(runs, "tokens_per_second")
        print(f"| {mode} | {speed:.0f} | {spread(runs, 'tokens_per_second', 0)} | {median(runs, 'step_ms'):.1f} | {memory(runs)} | "
              f"{f'{brisk / speed:.2f}x' if brisk else '-'} |")
    for style in ("modern", "original"):
        twins = [median(runs, "tokens_per_second") for mode, runs in results.items() if mode.startswith(style)]
        if brisk and twins:
            print(f"brisk's best is {brisk / max(twins):.2f}x the {style} twin's best")
    print_utilisation(results)


main()
