#!/usr/bin/env python3
"""Golden values from PyTorch for tests/models/mu_golden_test.cpp: MU as it was first written (reference) and as brisk has it by
default (causal), their logits, every gradient and ten optimizer steps. The files are committed; run this again only when the
network or a parameter's name changes:

    python3 scripts/make_mu_golden.py              # writes tests/golden/mu_reference.safetensors and tests/golden/mu_causal.safetensors
    python3 scripts/make_mu_golden.py --check      # compares with the committed files instead of writing them

The network is the original-style twin of bench/peers/mu_torch.py: sixteen attentions a layer, one after the other. Only the
arrangement of its parameters changes here, to brisk's. A file holds what scripts/make_golden.py says.
"""

import functools
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

from golden_file import write_or_check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench" / "peers"))
from mu_torch import BLOCKS, MU, WIDTH  # noqa: E402

OPTIMIZER = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.01, "max_grad_norm": 1.0}
SHAPE = {"vocab_size": 64, "num_layers": 2, "max_length": 12, "norm_epsilon": 1e-5}
STEPS = 10
LENGTHS = [12, 5, 12, 9]


def by_parts(blocks, name):
    """Of sixteen attentions, the rows of queries of all blocks, then those of keys, then those of values."""
    stacked = torch.stack([getattr(block, name) for block in blocks])  # [16, 12, 4] or [16, 12]
    return stacked.unflatten(1, (3, 4)).transpose(0, 1).flatten(0, 2)


def as_brisk(model, of):
    """brisk's parameters (src/models/mu.h) by name; `of`: what is taken of a parameter, itself or its gradient."""
    row = lambda value: of(value).reshape(1, -1)  # noqa: E731
    named = {"embedding.weight": of(model.embedding.weight), "positions.weight": of(model.positions.weight),
             "final_norm.gain": row(model.norm.weight), "final_norm.bias": row(model.norm.bias),
             "head.weight": of(model.head.weight), "head.bias": row(model.head.bias)}
    for number, layer in enumerate(model.layers):
        blocks = [type("Block", (), {"weight": of(block.in_proj_weight), "bias": of(block.in_proj_bias)}) for block in layer.blocks]
        outs = [block.out_proj for block in layer.blocks]
        parameters = {
            "blocks.qkv.weight": by_parts(blocks, "weight"), "blocks.qkv.bias": by_parts(blocks, "bias").reshape(1, -1),
            "blocks.out.weight": torch.cat([of(out.weight) for out in outs]),
            "blocks.out.bias": torch.cat([of(out.bias) for out in outs]).reshape(1, -1),
            "cross.qkv.weight": of(layer.cross.in_proj_weight), "cross.qkv.bias": row(layer.cross.in_proj_bias),
            "cross.out.weight": of(layer.cross.out_proj.weight), "cross.out.bias": row(layer.cross.out_proj.bias),
            "cross_norm.gain": row(layer.norm1.weight), "cross_norm.bias": row(layer.norm1.bias),
            "up.weight": of(layer.up.weight), "up.bias": row(layer.up.bias),
            "down.weight": of(layer.down.weight), "down.bias": row(layer.down.bias),
            "feed_forward_norm.gain": row(layer.norm2.weight), "feed_forward_norm.bias": row(layer.norm2.bias),
            "affinity.weight": of(layer.affinity.weight),
            "sensitivity.up.weight": of(layer.sensitivity1.weight), "sensitivity.up.bias": row(layer.sensitivity1.bias),
            "sensitivity.down.weight": of(layer.sensitivity2.weight), "sensitivity.down.bias": row(layer.sensitivity2.bias),
            "sensitivity.base": row(layer.base),
        }
        if layer.reference:
            parameters["block_interaction.weight"] = of(layer.block_interaction)
        named.update({f"layers.{number}.{name}": value for name, value in parameters.items()})
    return named


def make_model(reference, seed, dtype):
    """Large enough values that every gradient matters."""
    torch.manual_seed(seed)
    model = MU(SHAPE["vocab_size"], SHAPE["num_layers"], SHAPE["max_length"], "original", 0.0, reference)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            noise = torch.randn(value.shape, generator=generator)
            if value.dim() == 1:  # a gain, a bias, the base
                value.copy_((1 if "norm" in name and name.endswith("weight") else 0.5 if name.endswith("base") else 0) + 0.1 * noise)
            elif "embedding" in name or "positions" in name or "affinity" in name:
                value.copy_(0.5 * noise)
            else:
                value.copy_((0.3 if name.startswith("head") else value.shape[1] ** -0.5) * noise)
            if name.endswith("interaction"):
                value.zero_()  # brisk's is frozen
            value.copy_(value.float())  # float32 numbers, whatever type the arithmetic is in
    return model.to(dtype)


def make_batches(generator):
    """A ragged batch a step of a language with a rule, a little noise, and a few rows without target."""
    v = SHAPE["vocab_size"]
    tokens, targets, lengths = [], [], []
    for step in range(STEPS):
        turned = LENGTHS[step % len(LENGTHS):] + LENGTHS[:step % len(LENGTHS)]
        row_tokens, row_targets = [], []
        for length in turned:
            text = [int(torch.randint(v, (1,), generator=generator))]
            while len(text) <= length:
                text.append((3 * text[-1] + 7) % v)
            row_tokens += text[:-1]
            row_targets += text[1:]
        for _ in range(3):
            row_targets[int(torch.randint(len(row_targets), (1,), generator=generator))] = -1
        tokens.append(row_tokens)
        targets.append(row_targets)
        lengths.append(turned)
    return torch.tensor(tokens), torch.tensor(targets), torch.tensor(lengths)


def decays(name):
    """nn.Parameters that stand for weights in brisk, where gains and biases have no weight decay."""
    return not name.endswith("bias") and "norm" not in name and not name.endswith("base")


def make_file(reference, seed, dtype):
    model = make_model(reference, seed, dtype)
    tokens, targets, lengths = make_batches(torch.Generator().manual_seed(seed))
    arrays = {"parameters/" + name: value.clone() for name, value in as_brisk(model, lambda p: p.detach()).items()}
    named = list(model.named_parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [value for name, value in named if decays(name)], "weight_decay": OPTIMIZER["weight_decay"]},
         {"params": [value for name, value in named if not decays(name)], "weight_decay": 0.0}],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])
    rates = [3e-3 * min(1.0, (step + 1) / 3) for step in range(STEPS)]
    losses, norms = [], []
    for step in range(STEPS):
        parts = tokens[step].split(lengths[step].tolist())
        logits = torch.cat([model.logits(part[None])[0] for part in parts])
        loss = F.cross_entropy(logits, targets[step], ignore_index=-1)
        optimizer.zero_grad(set_to_none=False)
        for value in model.parameters():
            value.grad = torch.zeros_like(value) if value.grad is None else value.grad
        loss.backward()
        if step == 0:
            arrays["logits"] = logits.detach()
            arrays.update({"gradients/" + name: value.clone() for name, value in as_brisk(model, lambda p: p.grad).items()})
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["max_grad_norm"]).item())
        losses.append(loss.item())
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        optimizer.step()
    for name, values in (("losses", losses), ("gradient_norms", norms), ("rates", rates)):
        arrays[name] = torch.tensor(values, dtype=torch.float64)
    arrays = {name: value.numpy().astype(numpy.float32) for name, value in arrays.items()}
    for name, value in (("tokens", tokens), ("targets", targets), ("lengths", lengths)):
        arrays[name] = value.numpy().astype(numpy.int32)
    assert sum(arrays[name].size for name in arrays if name.startswith("parameters/")) == sum(p.numel() for p in model.parameters())
    assert BLOCKS * 4 == WIDTH
    metadata = {key: str(value) for key, value in {**SHAPE, **OPTIMIZER, "reference": int(reference)}.items()}
    metadata["torch"] = torch.__version__
    return arrays, metadata


if __name__ == "__main__":
    write_or_check(__doc__, {"mu_reference": functools.partial(make_file, True), "mu_causal": functools.partial(make_file, False)})
