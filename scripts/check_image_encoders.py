#!/usr/bin/env python3
"""Whether brisk and transformers make the same of image encoders in Hugging Face folders, both ways.

    python3 scripts/check_image_encoders.py build/brisk            # tiny random models of every kind
    python3 scripts/check_image_encoders.py build/brisk FOLDER     # and that of a folder

For each model: transformers writes it, brisk predicts the classes of images (`brisk predict`, fp32), `brisk export` writes
it again, and transformers opens that: no weight missing, left over or of another shape. The probabilities of all three are
within 1e-4. It needs torch, transformers, numpy and pillow; it fails (exit code 1) where any differs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from PIL import Image

LABELS = {0: "cat", 1: "dog", 2: "page"}
COMMON = dict(num_labels=3, id2label=LABELS, label2id={word: number for number, word in LABELS.items()})
SMALL = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, patch_size=4, **COMMON)


def tiny_models():
    t = transformers
    yield "vit", t.ViTForImageClassification(t.ViTConfig(image_size=[16, 24], **SMALL)), (16, 24)
    for name, options in {
            "dit": dict(use_absolute_position_embeddings=True),
            "beit": dict(use_relative_position_bias=True),
            "beit_shared": dict(use_shared_relative_position_bias=True, use_mean_pooling=False, layer_scale_init_value=0.0)}.items():
        yield name, t.BeitForImageClassification(t.BeitConfig(image_size=20, **options, **SMALL)), (20, 20)
    yield "swin", t.SwinForImageClassification(t.SwinConfig(
        image_size=[24, 48], patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=3, **COMMON)), (24, 48)


def write(model, size, folder):
    """With parameters large enough that images are told apart."""
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(folder)
    processor = transformers.ViTImageProcessor(size={"height": size[0], "width": size[1]}, image_mean=[0.5, 0.4, 0.6],
                                               image_std=[0.5, 0.25, 0.3])
    text = json.loads(processor.to_json_string())
    text["image_processor_type"] = "ViTImageProcessor"
    (folder / "preprocessor_config.json").write_text(json.dumps(text))


def write_images(folder):
    generator = numpy.random.default_rng(5)
    for number in range(4):
        pixels = generator.integers(0, 256, (60 + number, 81 - number, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return sorted(folder.glob("*.png"))


def probabilities(folder, images, exact=False):
    model, info = transformers.AutoModelForImageClassification.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True)
    wrong = {key: value for key, value in info.items() if value and key != "error_msgs"}
    if exact and wrong:
        raise SystemExit(f"FAIL {folder}: {wrong}")
    config = json.loads((pathlib.Path(folder) / "preprocessor_config.json").read_text())
    rows = []
    for path in images:
        size = config["size"]
        resized = Image.open(path).convert("RGB").resize((size["width"], size["height"]), config.get("resample", 2))
        pixels = torch.tensor(numpy.asarray(resized)).permute(2, 0, 1).double() / 255
        mean, std = (torch.tensor(config[key]).double()[:, None, None] for key in ("image_mean", "image_std"))
        with torch.no_grad():
            rows.append(model.eval()(pixel_values=((pixels - mean) / std).float()[None]).logits.softmax(-1)[0])
    return torch.stack(rows), model.config.id2label


def run(*command):
    result = subprocess.run([str(one) for one in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"FAIL {' '.join(map(str, command))}:\n{result.stdout}{result.stderr}")
    return result.stdout


def of_brisk(brisk, folder, images, labels):
    rows = []
    for line in run(brisk, "predict", folder, "--images", images[0].parent, "--fp32").splitlines():
        named = json.loads(line)["probabilities"]
        rows.append([named[labels[number]] for number in range(len(labels))])
    return torch.tensor(rows)


def check(name, folder, images, brisk):
    theirs, labels = probabilities(folder, images)
    ours = of_brisk(brisk, folder, images, labels)
    export = folder.parent / f"{name}_export"
    run(brisk, "export", folder, "--format", "huggingface", "--output", export)
    back, _ = probabilities(export, images, exact=True)
    gaps = float((ours - theirs).abs().max()), float((back - theirs).abs().max())
    spread = float((theirs[0] - theirs[1]).abs().max())
    holds = max(gaps) < 1e-4
    print(f"{'ok  ' if holds else 'FAIL'} {name}: brisk differs by {gaps[0]:.1e}, its export by {gaps[1]:.1e} "
          f"(images differ by {spread:.2f})")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("brisk")
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    holds = True
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "images").mkdir()
        images = write_images(scratch / "images")
        for name, model, size in tiny_models():
            folder = scratch / name
            folder.mkdir()
            write(model, size, folder)
            holds = check(name, folder, images, arguments.brisk) and holds
        for number, folder in enumerate(arguments.folders):
            link = scratch / f"given_{number}"
            link.symlink_to(folder.resolve())
            holds = check(f"given_{number}", link, images, arguments.brisk) and holds
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
