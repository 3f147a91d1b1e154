#!/usr/bin/env python3
"""`brisk bench translate` and Hugging Face side by side: the runs alternate, medians and spreads are printed, and the ratios.

  bench/peers/compare_translate.py --python VENV/bin/python --source train.en --target train.de --tokenizer tokenizer.json \\
      [--width 512] [--layers 6] [--batch 64] [--rounds 3] [--seconds 20] [--modes brisk-fp32,torch-grouped,torch-compiled]

Modes: brisk-fp32, brisk-bf16, torch-grouped, torch-dynamic, torch-max, torch-compiled (grouped, compiled); with -bf16 behind a
torch mode, that in bf16. Both read the same tokens: `translate_torch.py --keep tokenizer.json` trains a vocabulary. A mode that
fails is reported and left out.
"""
from interleaved import HERE, common_options, interleaved, median, memory, print_utilisation, spread


def main():
    parser = common_options(__doc__, "torch, transformers and tokenizers", 3, 20, "brisk-fp32,torch-grouped,torch-compiled")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    def command_of(mode):
        tool, kind, *precision = mode.split("-")
        shared = ["--source", options.source, "--target", options.target, "--tokenizer", options.tokenizer, "--width",
                  str(options.width), "--layers", str(options.layers), "--batch", str(options.batch), "--max-length",
                  str(options.max_length), "--seconds", str(options.seconds), "--threads", str(options.threads), "--device",
                  options.device, "--json"]
        if tool == "brisk":
            return [options.brisk, "bench", "translate", "--precision", kind] + shared
        return [options.python, f"{HERE}/translate_torch.py", "--padding", "grouped" if kind == "compiled" else kind, "--mode",
                "compile" if kind == "compiled" else "eager", "--precision", *(precision or ["fp32"])] + shared

    results = interleaved(options.modes.split(","), options.rounds, command_of)
    grouped = results.get("torch-grouped", results.get("torch-grouped-bf16", []))
    print("| mode | pairs/s | real tokens/s | spread | peak memory | tokens/s against grouped |\n|---|---|---|---|---|---|")
    for mode, runs in results.items():
        tokens = median(runs, "tokens_per_second")
        ratio = f"{tokens / median(grouped, 'tokens_per_second'):.2f}x" if grouped else "-"
        print(f"| {mode} | {median(runs, 'pairs_per_second'):.1f} | {tokens:.0f} | {spread(runs, 'tokens_per_second', 0)} | "
              f"{memory(runs)} | {ratio} |")
    print_utilisation(results)


main()
