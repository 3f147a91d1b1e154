#!/usr/bin/env python3
"""`brisk bench classify` and Hugging Face side by side: the runs alternate, medians and spreads are printed, and the ratios.

  bench/peers/compare_classify.py --python VENV/bin/python --data train.tsv.gz --vocabulary vocab.txt \\
      [--model distilbert] [--max-length 128] [--batch 16] [--rounds 3] [--seconds 15] [--modes brisk-fp32,torch-grouped,...]

Modes: brisk-fp32, brisk-bf16, torch-grouped, torch-dynamic, torch-max, torch-compiled (grouped, compiled); with -bf16 behind a
torch mode, that in bf16. A mode that fails is reported and left out.
"""
from interleaved import HERE, common_options, interleaved, median, memory, print_utilisation, spread


def main():
    parser = common_options(__doc__, "torch, transformers and tokenizers", 3, 15,
                            "brisk-fp32,torch-grouped,torch-dynamic,torch-max,brisk-bf16")
    parser.add_argument("--model", default="distilbert")
    parser.add_argument("--data", required=True)
    parser.add_argument("--vocabulary", required=True, help="vocab.txt, or its folder")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    def command_of(mode):
        tool, kind, *precision = mode.split("-")
        shared = ["--model", options.model, "--data", options.data, "--max-length", str(options.max_length), "--batch",
                  str(options.batch), "--seconds", str(options.seconds), "--threads", str(options.threads), "--device",
                  options.device, "--json"]
        if tool == "brisk":
            return [options.brisk, "bench", "classify", "--precision", kind, "--tokenizer", options.vocabulary] + shared
        return [options.python, f"{HERE}/classify_torch.py", "--vocabulary", options.vocabulary, "--padding",
                "grouped" if kind == "compiled" else kind, "--mode", "compile" if kind == "compiled" else "eager", "--precision", *(precision or ["fp32"])] + shared

    results = interleaved(options.modes.split(","), options.rounds, command_of, "rows_per_second")
    grouped = results.get("torch-grouped", results.get("torch-grouped-bf16", []))
    print("| mode | rows/s | spread | real tokens/s | peak memory | rows/s (tokens/s) against grouped |\n|---|---|---|---|---|---|")
    for mode, runs in results.items():
        rows, tokens = median(runs, "rows_per_second"), median(runs, "tokens_per_second")
        ratio = (f"{rows / median(grouped, 'rows_per_second'):.2f}x ({tokens / median(grouped, 'tokens_per_second'):.2f}x)"
                 if grouped else "-")
        print(f"| {mode} | {rows:.2f} | {spread(runs, 'rows_per_second', 2)} | {tokens:.0f} | {memory(runs)} | {ratio} |")
    print_utilisation(results)


main()
