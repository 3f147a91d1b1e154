#!/usr/bin/env python3
"""Golden values from PyTorch for tests/models/dimtda_test.cpp: a tiny DIMTDA (bench/peers/dimtda_torch.py, of transformers'
Swin, BEiT and BERT), its logits, every gradient and ten AdamW steps. The file is committed; run this again only when a shape
or a parameter's name changes:

    python3 scripts/make_dimtda_golden.py            # writes tests/golden/dimtda.safetensors
    python3 scripts/make_dimtda_golden.py --check    # compares with the committed file instead of writing it

It needs torch, transformers and numpy, nothing of brisk. Everything is computed in float64 from parameters that are float32
numbers, one image at a time, and stored as float32.

The file holds, in safetensors:
    parameters/NAME, gradients/NAME   under brisk's names: before the first step, and on its batch (before clipping); those
                                      that nothing reads have no gradient
    pages, layouts [steps, 3 images of height x width x 3]     pixels as an image file has them
    tokens, targets [steps, N]; lengths [steps, 3]
    logits [N, V]                     of the first batch
    losses, gradient_norms, rates [steps]
"""

import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench" / "peers"))
from dimtda_torch import Dimtda, DimtdaShape
from golden_file import write_or_check

OPTIMIZER = {"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-8, "weight_decay": 0.01, "max_grad_norm": 1.0}
STEPS, LENGTHS, FIRST_TOKEN = 10, [5, 1, 4], 5
SHAPE = DimtdaShape(page_size=(16, 8), page_patch=2, page_width=4, page_depths=(2, 1), page_heads=(1, 2), page_window=2,
                    layout_size=8, layout_patch=4, layout_width=8, layout_layers=1, layout_heads=2, layout_ffn=12, queries=3,
                    query_width=8, query_heads=2, query_ffn=12, width=12, layers=1, heads=3, ffn=20, vocabulary=23, context=6,
                    dropout=0.0)


def names_of(shape):
    """brisk's names, and the names of PyTorch's that each is the stack of."""
    names = {}

    def matrix(ours, *theirs, bias=True):
        names[ours + ".weight"] = [one + ".weight" for one in theirs]
        if bias:
            names[ours + ".bias"] = [one + ".bias" for one in theirs]

    def norm(ours, theirs):
        names[ours + ".gain"], names[ours + ".bias"] = [theirs + ".weight"], [theirs + ".bias"]

    names["page_encoder.patches.weight"] = ["page.embeddings.patch_embeddings.projection.weight"]
    names["page_encoder.patches.bias"] = ["page.embeddings.patch_embeddings.projection.bias"]
    norm("page_encoder.embedding_norm", "page.embeddings.norm")
    for stage, depth in enumerate(shape.page_depths):
        for layer in range(depth):
            ours, theirs = f"page_encoder.stages.{stage}.layers.{layer}.", f"page.encoder.layers.{stage}.blocks.{layer}."
            norm(ours + "attention_norm", theirs + "layernorm_before")
            matrix(ours + "qkv", *(f"{theirs}attention.self.{part}" for part in ("query", "key", "value")))
            names[ours + "relative.weight"] = [theirs + "attention.self.relative_position_bias_table"]
            matrix(ours + "attention_out", theirs + "attention.output.dense")
            norm(ours + "feed_forward_norm", theirs + "layernorm_after")
            matrix(ours + "up", theirs + "intermediate.dense")
            matrix(ours + "down", theirs + "output.dense")
        if stage + 1 < len(shape.page_depths):
            norm(f"page_encoder.stages.{stage}.merge_norm", f"page.encoder.layers.{stage}.downsample.norm")
            matrix(f"page_encoder.stages.{stage}.merge", f"page.encoder.layers.{stage}.downsample.reduction", bias=False)
    names["layout_encoder.patches.weight"] = ["layout.embeddings.patch_embeddings.projection.weight"]
    names["layout_encoder.patches.table"] = ["layout.embeddings.patch_embeddings.projection.bias",
                                             "layout.embeddings.cls_token"]
    names["layout_encoder.positions.weight"] = ["layout.embeddings.position_embeddings"]
    names["layout_unread.mask_token"] = ["layout.embeddings.mask_token"]
    names["layout_unread.pooler_norm.gain"] = ["layout.pooler.layernorm.weight"]
    names["layout_unread.pooler_norm.bias"] = ["layout.pooler.layernorm.bias"]
    for layer in range(shape.layout_layers):
        ours, theirs = f"layout_encoder.layers.{layer}.", f"layout.layers.{layer}."
        norm(ours + "attention_norm", theirs + "layernorm_before")
        matrix(ours + "qkv", *(f"{theirs}attention.{part}_proj" for part in "qkv"), bias=False)
        names[ours + "query.bias"] = [theirs + "attention.q_proj.bias"]
        names[ours + "value.bias"] = [theirs + "attention.v_proj.bias"]
        matrix(ours + "attention_out", theirs + "attention.o_proj")
        names[ours + "attention_scale"] = [theirs + "lambda_1"]
        norm(ours + "feed_forward_norm", theirs + "layernorm_after")
        matrix(ours + "up", theirs + "mlp.fc1")
        matrix(ours + "down", theirs + "mlp.fc2")
        names[ours + "feed_forward_scale"] = [theirs + "lambda_2"]
    matrix("layout_projection", "layout_projection")
    for part in ("page_queries", "layout_queries"):
        names[part + ".queries.weight"] = [part + ".queries"]
        norm(part + ".embedding_norm", part + ".embedding_norm")
        layer = part + ".layers.0."
        matrix(layer + "qkv", *(f"{part}.attention.{one}" for one in ("query", "key", "value")))
        matrix(layer + "attention_out", part + ".attention.out")
        norm(layer + "attention_norm", part + ".attention.norm")
        matrix(layer + "cross_q", part + ".cross.query")
        matrix(layer + "cross_kv", part + ".cross.key", part + ".cross.value")
        matrix(layer + "cross_out", part + ".cross.out")
        norm(layer + "cross_norm", part + ".cross.norm")
        matrix(layer + "up", part + ".up")
        matrix(layer + "down", part + ".down")
        norm(layer + "feed_forward_norm", part + ".norm")
    for part in ("gate", "fusion", "bridge"):
        matrix(part, part)
    bert = "decoder.bert."
    names["target_embedding.weight"] = [bert + "embeddings.word_embeddings.weight"]
    names["decoder.positions.weight"] = [bert + "embeddings.position_embeddings.weight"]
    names["decoder.types.weight"] = [bert + "embeddings.token_type_embeddings.weight"]
    norm("decoder.embedding_norm", bert + "embeddings.LayerNorm")
    for layer in range(shape.layers):
        ours, theirs = f"decoder.layers.{layer}.", f"{bert}encoder.layer.{layer}."
        matrix(ours + "qkv", *(f"{theirs}attention.self.{part}" for part in ("query", "key", "value")))
        matrix(ours + "attention_out", theirs + "attention.output.dense")
        norm(ours + "attention_norm", theirs + "attention.output.LayerNorm")
        matrix(ours + "cross_q", theirs + "crossattention.self.query")
        matrix(ours + "cross_kv", theirs + "crossattention.self.key", theirs + "crossattention.self.value")
        matrix(ours + "cross_out", theirs + "crossattention.output.dense")
        norm(ours + "cross_norm", theirs + "crossattention.output.LayerNorm")
        matrix(ours + "up", theirs + "intermediate.dense")
        matrix(ours + "down", theirs + "output.dense")
        norm(ours + "feed_forward_norm", theirs + "output.LayerNorm")
    matrix("head_dense", "decoder.cls.predictions.transform.dense")
    norm("head_norm", "decoder.cls.predictions.transform.LayerNorm")
    names["head.bias"] = ["decoder.cls.predictions.bias"]
    return names


def is_table(ours):
    return ours.endswith((".weight", ".table"))


def stacked(tensors, ours, theirs):
    """[rows, columns]: of tables and matrices a row for each, of the rest one row."""
    parts = [tensors[one] for one in theirs]
    if not is_table(ours):
        return torch.cat([part.flatten() for part in parts])[None]
    rows = [part.flatten(1) if part.dim() == 4 else part.reshape(-1, part.shape[-1]) for part in parts]
    return torch.cat(rows)


def fill(tensors, names, generator):
    """Large enough values that every gradient matters."""
    for ours, theirs in names.items():
        for one in theirs:
            part = tensors[one]
            value = torch.randn(part.shape, generator=generator)
            if ours.endswith((".gain", "_scale")):
                value = 1 + 0.1 * value
            elif not is_table(ours):
                value = 0.1 * value
            elif ours.endswith(("embedding.weight", "positions.weight", "types.weight", "relative.weight", ".table")):
                value = 0.3 * value
            elif not ours.endswith("queries.weight"):
                value = value / math.sqrt(part[0].numel())
            part.data.copy_(value.float().to(part.dtype))


def make_batch(generator, step):
    turn = step % len(LENGTHS)
    batch = {"lengths": LENGTHS[turn:] + LENGTHS[:turn], "tokens": [], "targets": []}
    height, width = SHAPE.page_size
    batch["pages"] = torch.randint(0, 256, (len(LENGTHS), height, width, 3), generator=generator)
    batch["layouts"] = torch.randint(0, 256, (len(LENGTHS), SHAPE.layout_size, SHAPE.layout_size, 3), generator=generator)
    for page, length in zip(batch["pages"], batch["lengths"]):
        words = [FIRST_TOKEN + int(page[i, 0, 0]) % (SHAPE.vocabulary - FIRST_TOKEN) for i in range(length - 1)]
        batch["tokens"] += [2] + words
        batch["targets"] += words + [3]
    return batch


def pixels_of(image, dtype):
    return ((image.permute(2, 0, 1).to(dtype) / 255 - 0.5) / 0.5)[None]


def logits_of(model, batch, dtype):
    """[N, V]: image by image."""
    rows, at = [], 0
    for page, layout, length in zip(batch["pages"], batch["layouts"], batch["lengths"]):
        tokens = torch.tensor([batch["tokens"][at:at + length]])
        rows.append(model(pixels_of(page, dtype), pixels_of(layout, dtype), tokens)[0])
        at += length
    return torch.cat(rows)


def make_file(seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    model = Dimtda(SHAPE, attention="eager").to(dtype).eval()
    names = names_of(SHAPE)
    parameters = dict(model.named_parameters())
    known = {one for theirs in names.values() for one in theirs}
    assert known == set(parameters), known ^ set(parameters)
    fill(parameters, names, generator)
    batches = [make_batch(generator, step) for step in range(STEPS)]
    read = {ours: theirs for ours, theirs in names.items() if not ours.startswith("layout_unread.")}
    decays = {one for ours, theirs in read.items() for one in theirs
              if ours.endswith(".weight") and not ours.endswith("relative.weight")}
    others = {one for theirs in read.values() for one in theirs} - decays
    optimizer = torch.optim.AdamW(
        [{"params": [parameters[one] for one in sorted(decays)], "weight_decay": OPTIMIZER["weight_decay"]},
         {"params": [parameters[one] for one in sorted(others)], "weight_decay": 0.0}],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])
    arrays, losses, norms = {}, [], []
    rates = [0.004 * (step + 1) / STEPS for step in range(STEPS)]
    for ours, theirs in names.items():
        arrays["parameters/" + ours] = stacked(parameters, ours, theirs).detach().clone()
    for step, batch in enumerate(batches):
        logits = logits_of(model, batch, dtype)
        loss = F.cross_entropy(logits, torch.tensor(batch["targets"]))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            arrays["logits"] = logits.detach()
            gradients = {one: value.grad for one, value in parameters.items()}
            for ours, theirs in read.items():
                arrays["gradients/" + ours] = stacked(gradients, ours, theirs).clone()
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["max_grad_norm"]).detach()))
        losses.append(float(loss.detach()))
        optimizer.step()
    arrays["losses"], arrays["gradient_norms"], arrays["rates"] = map(torch.tensor, (losses, norms, rates))
    arrays = {key: value.numpy().astype(numpy.float32) for key, value in arrays.items()}
    for key in ("tokens", "targets", "lengths"):
        arrays[key] = numpy.array([batch[key] for batch in batches], dtype=numpy.int32)
    for key in ("pages", "layouts"):  # four pixels' numbers in one
        arrays[key] = numpy.stack([batch[key].numpy().astype(numpy.uint8).reshape(-1).view(numpy.int32) for batch in batches])
    metadata = {key: str(value) for key, value in OPTIMIZER.items()}
    metadata["transformers"] = transformers.__version__
    return arrays, metadata


if __name__ == "__main__":
    # Seed 1 has gradients in which large numbers cancel: PyTorch's own float32 has 4e-5 of error there, with seed 2 2e-6.
    write_or_check(__doc__, {"dimtda": lambda seed, dtype: make_file(seed + 1, dtype)})
