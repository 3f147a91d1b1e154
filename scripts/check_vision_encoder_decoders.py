#!/usr/bin/env python3
"""Whether transformers makes the same of the VisionEncoderDecoderModels that brisk writes.

    python3 scripts/check_vision_encoder_decoders.py build/brisk            # those of tests/golden/vision
    python3 scripts/check_vision_encoder_decoders.py build/brisk FOLDER     # and that of a folder

For each folder: `brisk import`, `brisk export --format huggingface`, and transformers opens both: no weight of the second is
missing, left over or of another shape (but a pooler's, which nobody reads, and tables of distances, which are computed), and its logits of a random image are within 1e-4
of the first's. It needs torch and transformers; it fails (exit code 1) where any differs.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "vision"


def open_folder(folder):
    model, info = transformers.VisionEncoderDecoderModel.from_pretrained(folder, dtype=torch.float32,
                                                                         output_loading_info=True)
    problems = {key: [one for one in value if "pooler" not in str(one) and "position_index" not in str(one)]
                for key, value in info.items()}
    return model.eval(), {key: value for key, value in problems.items() if value}


def logits_of(model):
    encoder = model.config.encoder
    size = encoder.image_size if isinstance(encoder.image_size, (list, tuple)) else [encoder.image_size] * 2
    generator = torch.Generator().manual_seed(5)
    pixels = 2 * torch.rand(2, 3, *size, generator=generator) - 1
    tokens = torch.randint(0, model.config.decoder.vocab_size, (2, 6), generator=generator)
    with torch.no_grad():
        return model(pixel_values=pixels, decoder_input_ids=tokens).logits


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("brisk")
    arguments.add_argument("folders", nargs="*")
    given = arguments.parse_args()
    failed = False
    for folder in sorted(GOLDEN.iterdir()) + [pathlib.Path(one) for one in given.folders]:
        with tempfile.TemporaryDirectory() as scratch:
            run, written = scratch + "/run", scratch + "/written"
            subprocess.run([given.brisk, "import", str(folder), "--output", run], check=True, capture_output=True)
            subprocess.run([given.brisk, "export", run, "--format", "huggingface", "--output", written], check=True,
                           capture_output=True)
            (theirs, _), (ours, problems) = open_folder(folder), open_folder(written)
            gap = (logits_of(theirs) - logits_of(ours)).abs().max().item()
        good = gap < 1e-4 and not problems
        failed = failed or not good
        print(f"{'ok  ' if good else 'FAIL'} {folder.name}: logits within {gap:.1e}{'' if not problems else f', {problems}'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
