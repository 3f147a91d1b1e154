#!/usr/bin/env python3
"""`brisk bench image` and PyTorch side by side: the runs alternate, medians and spreads are printed, and the ratios.

  bench/peers/compare_image.py --python VENV/bin/python [--shape vit-base] [--batch 32] [--rounds 3] [--seconds 20]
      [--device cuda] [--checkpointing] [--modes brisk-fp32,torch-eager,torch-compiled]

Shapes: vit-tiny, vit-small, vit-base, vit-large (classification of 224 x 224), dimtda, dimtda-official, dimtda-small (pages to text).
Modes: brisk-fp32, brisk-bf16, torch-eager, torch-compiled; with -bf16 behind a torch mode, that in bf16. Both make up the same
images and lengths of text in memory. A mode that fails is reported and left out.
"""
from interleaved import HERE, common_options, interleaved, median, memory, print_utilisation, spread


def text_speed(runs):
    return f"{median(runs, 'text_tokens_per_second'):.0f}" if "text_tokens_per_second" in runs[0] else "-"


def main():
    parser = common_options(__doc__, "torch and transformers", 3, 20, "brisk-fp32,torch-eager,torch-compiled")
    parser.add_argument("--shape", default="vit-base")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--image-size", help="HEIGHTxWIDTH in place of the shape's")
    parser.add_argument("--length", type=int, default=512, help="tokens of a page's text, on average")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--frozen", action="store_true", help="encoders are not trained")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    def command_of(mode):
        tool, kind, *precision = mode.split("-")
        shared = ["--shape", options.shape, "--batch", str(options.batch), "--length", str(options.length), "--dropout", str(options.dropout),
                  "--seconds", str(options.seconds), "--threads", str(options.threads), "--device", options.device, "--json"]
        shared += ["--image-size", options.image_size] if options.image_size else []
        shared += [f"--{name}" for name in ("frozen", "checkpointing") if getattr(options, name)]
        if tool == "brisk":
            return [options.brisk, "bench", "image", "--precision", kind] + shared
        return [options.python, f"{HERE}/image_torch.py", "--mode", "compile" if kind == "compiled" else "eager", "--precision",
                *(precision or ["fp32"])] + shared

    results = interleaved(options.modes.split(","), options.rounds, command_of, speed="rows_per_second")
    twins = [runs for mode, runs in results.items() if mode.startswith("torch")]
    best = max((median(runs, "rows_per_second") for runs in twins), default=0)
    print("| mode | images/s | spread | text tokens/s | ms/step | peak memory | images/s against the fastest twin |\n|---|---|---|---|---|---|---|")
    for mode, runs in results.items():
        speed = median(runs, "rows_per_second")
        ratio = f"{speed / best:.2f}x" if best > 0 else "-"
        print(f"| {mode} | {speed:.2f} | {spread(runs, 'rows_per_second', 2)} | {text_speed(runs)} | "
              f"{median(runs, 'step_ms'):.0f} | {memory(runs)} | {ratio} |")
    print_utilisation(results)


main()
