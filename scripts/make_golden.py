#!/usr/bin/env python3
"""Golden values from PyTorch for tests/models/decoder_golden_test.cpp: both decoder shapes, their logits, every gradient and ten
optimizer steps. The files are committed; run this again only when a shape or a parameter's name changes:

    python3 scripts/make_golden.py              # writes tests/golden/gpt.safetensors and tests/golden/llama.safetensors
    python3 scripts/make_golden.py --check      # compares with the committed files instead of writing them

It needs torch (2.4 or later) and numpy, nothing of brisk. Everything is computed in float64 from parameters that are
float32 numbers, and stored as float32, so a file is the exact answer and what the test measures is brisk's error alone.

A file holds, in safetensors:
    parameters/NAME, gradients/NAME   parameters before the first step and their gradients on its batch (before clipping)
    tokens, targets [steps, N]; lengths [steps, S]   a ragged batch a step; target -1: none
    logits [N, V]                     of the first batch
    losses, gradient_norms, rates [steps]   mean loss over valid tokens and norm before clipping of each AdamW step
The model's sizes and the optimizer's numbers are in the metadata.
"""

import functools
import math

import numpy
import torch
import torch.nn.functional as F

from golden_file import write_or_check

OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "max_grad_norm": 1.0}
STEPS = 10
LENGTHS = [7, 1, 16, 9]

# Names and values as in DecoderConfig (src/models/decoder.h).
SHAPES = {
    "gpt": dict(vocab_size=61, d_model=32, num_layers=2, num_heads=4, num_kv_heads=4, d_ff=64, max_length=16,
                norm="layer", feed_forward="gelu_tanh", positions="learned", rope_theta=10000, bias=1,
                tie_embeddings=1, norm_epsilon=1e-5),
    "llama": dict(vocab_size=61, d_model=32, num_layers=2, num_heads=4, num_kv_heads=2, d_ff=48, max_length=16,
                  norm="rms", feed_forward="swiglu", positions="rotary", rope_theta=10000, bias=0,
                  tie_embeddings=0, norm_epsilon=1e-5),
}


def make_parameters(shape, generator, dtype):
    """Large enough values that every gradient matters: at GPT-2's 0.02 attention would be nearly uniform. Not larger:
    with 1.5 instead of 1 in qkv, PyTorch's own bf16 gradients (autocast) are up to 2.4e-2 off, with 1 up to 1.3e-2."""
    d, f, v = shape["d_model"], shape["d_ff"], shape["vocab_size"]
    head = d // shape["num_heads"]
    q, kv = shape["num_heads"] * head, shape["num_kv_heads"] * head
    up = 2 * f if shape["feed_forward"] == "swiglu" else f
    parameters = {}

    def weight(name, rows, cols, deviation):
        parameters[name + ".weight"] = deviation * torch.randn(rows, cols, generator=generator)

    def bias(name, cols):
        if shape["bias"]:
            parameters[name + ".bias"] = 0.1 * torch.randn(1, cols, generator=generator)

    def gain(name):
        parameters[name + ".gain"] = 1 + 0.1 * torch.randn(1, d, generator=generator)
        if shape["norm"] == "layer":
            bias(name, d)

    weight("embedding", v, d, 0.3)
    if shape["positions"] == "learned":
        weight("positions", shape["max_length"], d, 0.3)
    for layer in range(shape["num_layers"]):
        prefix = f"layers.{layer}."
        gain(prefix + "attention_norm")
        weight(prefix + "qkv", q + 2 * kv, d, 1 / math.sqrt(d))
        bias(prefix + "qkv", q + 2 * kv)
        weight(prefix + "attention_out", d, q, 0.7 / math.sqrt(q))
        bias(prefix + "attention_out", d)
        gain(prefix + "feed_forward_norm")
        weight(prefix + "up", up, d, 1 / math.sqrt(d))
        bias(prefix + "up", up)
        weight(prefix + "down", d, f, 0.7 / math.sqrt(f))
        bias(prefix + "down", d)
    gain("final_norm")
    if not shape["tie_embeddings"]:
        weight("head", v, d, 0.3)
    # float32 numbers, whatever type the arithmetic is in.
    return {name: value.float().to(dtype).requires_grad_() for name, value in parameters.items()}


def make_batches(shape, generator):
    """Ragged batches of a language with a rule (so that losses fall), a little noise, and a few rows without target."""
    v = shape["vocab_size"]
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


def normalise(shape, parameters, name, x):
    gain = parameters[name + ".gain"][0]
    if shape["norm"] == "rms":
        return F.rms_norm(x, (x.shape[-1],), gain, shape["norm_epsilon"])
    bias = parameters.get(name + ".bias")
    return F.layer_norm(x, (x.shape[-1],), gain, None if bias is None else bias[0], shape["norm_epsilon"])


def linear(parameters, name, x):
    bias = parameters.get(name + ".bias")
    return F.linear(x, parameters[name + ".weight"], None if bias is None else bias[0])


def turn(shape, x):
    """Rotary positions on adjacent pairs (2i, 2i + 1). x: [heads, T, K]"""
    _, length, width = x.shape
    frequency = shape["rope_theta"] ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency[None, :]  # [T, K / 2]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def attend(shape, qkv):
    """Causal attention of one sequence. qkv: [T, (heads + 2 kv_heads) K], queries first, then keys, then values."""
    length = qkv.shape[0]
    heads, kv_heads = shape["num_heads"], shape["num_kv_heads"]
    width = shape["d_model"] // heads
    q, k, v = (part.reshape(length, -1, width).transpose(0, 1)
               for part in qkv.split([heads * width, kv_heads * width, kv_heads * width], dim=-1))
    if shape["positions"] == "rotary":
        q, k = turn(shape, q), turn(shape, k)
    mixed = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=heads != kv_heads)[0]
    return mixed.transpose(0, 1).reshape(length, heads * width)


def decoder_logits(shape, parameters, tokens):
    """Of one sequence."""
    h = parameters["embedding.weight"][tokens]
    if shape["positions"] == "learned":
        h = h + parameters["positions.weight"][:len(tokens)]
    for layer in range(shape["num_layers"]):
        prefix = f"layers.{layer}."
        x = normalise(shape, parameters, prefix + "attention_norm", h)
        h = h + linear(parameters, prefix + "attention_out", attend(shape, linear(parameters, prefix + "qkv", x)))
        x = linear(parameters, prefix + "up", normalise(shape, parameters, prefix + "feed_forward_norm", h))
        if shape["feed_forward"] == "swiglu":
            gate, value = x.chunk(2, dim=-1)
            x = F.silu(gate) * value
        else:
            x = F.gelu(x, approximate="tanh")
        h = h + linear(parameters, prefix + "down", x)
    h = normalise(shape, parameters, "final_norm", h)
    return h @ parameters["embedding.weight" if shape["tie_embeddings"] else "head.weight"].T


def batch_logits(shape, parameters, tokens, lengths):
    return torch.cat([decoder_logits(shape, parameters, part) for part in tokens.split(lengths.tolist())])


def make_file(shape, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    parameters = make_parameters(shape, generator, dtype)
    tokens, targets, lengths = make_batches(shape, generator)
    tensors = {"parameters/" + name: value.detach().clone() for name, value in parameters.items()}

    decays = [value for name, value in parameters.items() if name.endswith(".weight")]
    others = [value for name, value in parameters.items() if not name.endswith(".weight")]
    optimizer = torch.optim.AdamW(
        [dict(params=decays, weight_decay=OPTIMIZER["weight_decay"]), dict(params=others, weight_decay=0.0)],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])
    rates = [3e-3 * min(1.0, (step + 1) / 3) for step in range(STEPS)]
    losses, norms = [], []
    for step in range(STEPS):
        logits = batch_logits(shape, parameters, tokens[step], lengths[step])
        loss = F.cross_entropy(logits, targets[step], ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach()
            for name, value in parameters.items():
                tensors["gradients/" + name] = value.grad.clone()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), OPTIMIZER["max_grad_norm"]).item())
        losses.append(loss.item())
        for group in optimizer.param_groups:
            group["lr"] = rates[step]
        optimizer.step()
    tensors["losses"] = torch.tensor(losses, dtype=torch.float64)
    tensors["gradient_norms"] = torch.tensor(norms, dtype=torch.float64)
    tensors["rates"] = torch.tensor(rates, dtype=torch.float64)
    arrays = {name: value.numpy().astype(numpy.float32) for name, value in tensors.items()}
    for name, value in (("tokens", tokens), ("targets", targets), ("lengths", lengths)):
        arrays[name] = value.numpy().astype(numpy.int32)
    metadata = {key: str(value) for key, value in {**shape, **OPTIMIZER}.items()}
    metadata["torch"] = torch.__version__
    return arrays, metadata


if __name__ == "__main__":
    write_or_check(__doc__, {name: functools.partial(make_file, shape) for name, shape in SHAPES.items()})
