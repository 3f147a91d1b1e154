#!/usr/bin/env python3
"""Golden values from transformers for tests/models/image_encoder_golden_test.cpp: tiny random classifiers of images of every
kind, their logits, every gradient and ten AdamW steps. The files are committed; run this again only when a shape or a
parameter's name changes:

    python3 scripts/make_image_encoder_golden.py            # writes tests/golden/images/*.safetensors
    python3 scripts/make_image_encoder_golden.py --check    # compares with the committed files instead of writing them

It needs torch, transformers and numpy, nothing of brisk. The models are transformers' ViTForImageClassification,
BeitForImageClassification and SwinForImageClassification. Everything is computed in float64 from parameters that are
float32 numbers, and stored as float32: a file is the exact answer, and what the test measures is brisk's error alone.

A file holds, in safetensors:
    parameters/NAME, gradients/NAME   under brisk's names: before the first step, and on its batch (before clipping)
    pixels [images, bytes / 4]        8-bit pixels of each image, colour by colour, four in a number
    images, labels [steps, S]         a batch a step
    logits [S, C]                     of the first batch
    losses, gradient_norms, rates [steps]
The model's shape, how many parameters transformers counts and the optimizer's numbers are in the metadata.
"""

import functools
import math

import numpy
import torch
import torch.nn.functional as F
import transformers

from golden_file import write_or_check

OPTIMIZER = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "weight_decay": 0.01, "max_grad_norm": 1.0}
STEPS, IMAGES, BATCH, LABELS = 10, 4, 3, 3
MEAN, STD = [0.5, 0.4, 0.6], [0.5, 0.25, 0.3]

SHAPES = {
    "vit": dict(kind="vit", height=8, width=12, patch=4, positions="learned", layer_scale=0, final_norm=1, pooling="class"),
    "dit": dict(kind="beit", height=12, width=12, patch=4, positions="learned", layer_scale=1, final_norm=0, pooling="mean"),
    "beit": dict(kind="beit", height=12, width=12, patch=4, positions="relative", layer_scale=1, final_norm=0,
                 pooling="mean"),
    "beit_shared": dict(kind="beit", height=12, width=12, patch=4, positions="shared_relative", layer_scale=0, final_norm=1,
                        pooling="class"),
    "swin": dict(kind="swin", height=24, width=36, patch=2, positions="none", layer_scale=0, final_norm=1, pooling="mean"),
}
SIZES = dict(d_model=12, num_layers=2, num_heads=2, d_ff=20, depths=[2, 2], stage_heads=[1, 2], window=3)


def make_model(shape):
    common = dict(image_size=[shape["height"], shape["width"]], patch_size=shape["patch"], num_labels=LABELS,
                  attn_implementation="eager", drop_path_rate=0.0)
    if shape["kind"] == "swin":
        return transformers.SwinForImageClassification(transformers.SwinConfig(
            embed_dim=8, depths=SIZES["depths"], num_heads=SIZES["stage_heads"], window_size=SIZES["window"], mlp_ratio=2.0,
            **common))
    common.update(hidden_size=SIZES["d_model"], num_hidden_layers=SIZES["num_layers"],
                  num_attention_heads=SIZES["num_heads"], intermediate_size=SIZES["d_ff"])
    if shape["kind"] == "vit":
        return transformers.ViTForImageClassification(transformers.ViTConfig(**common))
    positions = shape["positions"]
    return transformers.BeitForImageClassification(transformers.BeitConfig(
        use_absolute_position_embeddings=positions == "learned", use_relative_position_bias=positions == "relative",
        use_shared_relative_position_bias=positions == "shared_relative", use_mean_pooling=shape["pooling"] == "mean",
        layer_scale_init_value=0.1 * shape["layer_scale"], **common))


def names_of(shape):
    """brisk's names, and what each is the stack of."""
    kind, names = shape["kind"], {}

    def pair(ours, *theirs, norm=False):
        names[f"{ours}.{'gain' if norm else 'weight'}"] = [f"{one}.weight" for one in theirs]
        names[f"{ours}.bias"] = [f"{one}.bias" for one in theirs]

    def layer(ours, theirs):
        pair(ours + "attention_norm", theirs + "layernorm_before", norm=True)
        pair(ours + "qkv", *(f"{theirs}attention.{part}_proj" for part in "qkv"))
        if kind == "beit":
            del names[ours + "qkv.bias"]
            names[ours + "query.bias"] = [theirs + "attention.q_proj.bias"]
            names[ours + "value.bias"] = [theirs + "attention.v_proj.bias"]
        if kind == "swin":
            names[ours + "relative.weight"] = [theirs + "attention.relative_position_bias.relative_position_bias_table"]
        elif shape["positions"] == "relative":
            names[ours + "relative.weight"] = [theirs + "relative_position_bias.relative_position_bias_table"]
        pair(ours + "attention_out", theirs + "attention.o_proj")
        pair(ours + "feed_forward_norm", theirs + "layernorm_after", norm=True)
        pair(ours + "up", theirs + "mlp.fc1")
        pair(ours + "down", theirs + "mlp.fc2")
        if shape["layer_scale"]:
            names[ours + "attention_scale"] = [theirs + "lambda_1"]
            names[ours + "feed_forward_scale"] = [theirs + "lambda_2"]

    base = kind + "."
    projection = base + "embeddings.patch_embeddings.projection"
    names["patches.weight"] = [projection + ".weight"]
    if kind == "swin":
        names["patches.bias"] = [projection + ".bias"]
        pair("embedding_norm", base + "embeddings.norm", norm=True)
        for stage, depth in enumerate(SIZES["depths"]):
            for block in range(depth):
                layer(f"stages.{stage}.layers.{block}.", f"{base}encoder.layers.{stage}.blocks.{block}.")
            if stage + 1 < len(SIZES["depths"]):
                pair(f"stages.{stage}.merge_norm", f"{base}encoder.layers.{stage}.downsample.norm", norm=True)
                names[f"stages.{stage}.merge.weight"] = [f"{base}encoder.layers.{stage}.downsample.reduction.weight"]
    else:
        names["patches.table"] = [projection + ".bias", base + "embeddings.cls_token"]
        if shape["positions"] == "learned":
            names["positions.weight"] = [base + "embeddings.position_embeddings"]
        if shape["positions"] == "shared_relative":
            names["relative.weight"] = [base + "shared_position_bias.relative_position_bias_table"]
        for number in range(SIZES["num_layers"]):
            layer(f"layers.{number}.", f"{base}layers.{number}.")
    if shape["final_norm"]:
        pair("final_norm", base + "layernorm", norm=True)
    elif shape["pooling"] == "mean":
        pair("pooled_norm", base + "pooler.layernorm", norm=True)
    pair("classifier", "classifier")
    return names


def stacked(tensors, ours, theirs):
    parts = [tensors[one] for one in theirs]
    if ours == "patches.weight":
        return parts[0].flatten(1)
    if ours == "patches.table":
        return torch.stack([part.flatten() for part in parts])
    if ours == "positions.weight":
        return parts[0][0]
    whole = torch.cat(parts)
    return whole[None] if whole.dim() == 1 else whole


def fill(parameters, names, generator):
    """Large enough values that every gradient matters."""
    for ours, theirs in names.items():
        for one in theirs:
            part = parameters[one]
            value = torch.randn(part.shape, generator=generator)
            if ours.endswith(".gain"):
                value = 1 + 0.1 * value
            elif ours.endswith("_scale"):
                value = 0.5 + 0.1 * value
            elif ours.endswith(".bias"):
                value = 0.1 * value
            elif ours.endswith((".table", "positions.weight", "relative.weight")):
                value = 0.3 * value
            else:
                value = value / math.sqrt(value[0].numel())
            part.data.copy_(value.float().to(part.dtype))


def make_file(shape, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    model = make_model(shape).to(dtype).eval()
    names, parameters = names_of(shape), dict(model.named_parameters())
    known = {one for theirs in names.values() for one in theirs}
    assert known == set(parameters), known ^ set(parameters)
    fill(parameters, names, generator)
    pixels = torch.randint(0, 256, (IMAGES, 3, shape["height"], shape["width"]), generator=generator)
    mean, std = (torch.tensor(numbers, dtype=torch.float32).to(dtype)[:, None, None] for numbers in (MEAN, STD))
    values = (pixels.to(dtype) / 255 - mean) / std
    decays = {one for ours, theirs in names.items() for one in theirs
              if ours.endswith(".weight") and not ours.endswith("relative.weight")}
    optimizer = torch.optim.AdamW(
        [{"params": [parameters[one] for one in sorted(decays)], "weight_decay": OPTIMIZER["weight_decay"]},
         {"params": [value for one, value in parameters.items() if one not in decays], "weight_decay": 0.0}],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])
    arrays, losses, norms = {}, [], []
    rates = [0.004 * (step + 1) / STEPS for step in range(STEPS)]
    images = [[(step + i) % IMAGES for i in range(BATCH)] for step in range(STEPS)]
    labels = [[image % LABELS for image in batch] for batch in images]
    for ours, theirs in names.items():
        arrays["parameters/" + ours] = stacked(parameters, ours, theirs).detach().clone()
    for step in range(STEPS):
        logits = model(pixel_values=values[images[step]]).logits
        loss = F.cross_entropy(logits, torch.tensor(labels[step]))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            arrays["logits"] = logits.detach()
            gradients = {one: value.grad for one, value in parameters.items()}
            for ours, theirs in names.items():
                arrays["gradients/" + ours] = stacked(gradients, ours, theirs).clone()
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["max_grad_norm"]).detach()))
        losses.append(float(loss.detach()))
        optimizer.step()
    arrays["losses"], arrays["gradient_norms"], arrays["rates"] = map(torch.tensor, (losses, norms, rates))
    arrays = {key: value.numpy().astype(numpy.float32) for key, value in arrays.items()}
    arrays["pixels"] = pixels.reshape(IMAGES, -1).numpy().astype(numpy.uint8).view(numpy.int32)
    arrays["images"], arrays["labels"] = (numpy.array(rows, dtype=numpy.int32) for rows in (images, labels))
    metadata = {key: str(value) for key, value in {**shape, **OPTIMIZER, "counted": model.num_parameters()}.items()}
    metadata["transformers"] = transformers.__version__
    return arrays, metadata


if __name__ == "__main__":
    write_or_check(__doc__, {f"images/{name}": functools.partial(make_file, shape) for name, shape in SHAPES.items()})
