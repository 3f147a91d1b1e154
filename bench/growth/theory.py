"""What a step should cost: FLOP and bytes from the shape alone, as docs/architecture.md counts them.

    shape = Shape(width=256, layers=4, vocabulary=8192, length=128)
    flop_per_token(shape)                               # 6 a weight of a product, and attention's 6 L T D
    memory_bytes(shape, rows=4096, precision="fp32")    # 16 bytes a parameter, and what a micro-batch keeps for backward

D width, L layers, V vocabulary, T length, N rows of a micro-batch. The feed-forward is 4 D wide, the output is the embedding.
"""
import dataclasses

LOGITS_ROWS, LOGITS_BYTES = 1024, 104 << 20  # of a chunk of the loss: at most (src/ops/loss/linear_cross_entropy_cpu.cpp)


@dataclasses.dataclass
class Shape:
    width: float
    layers: float
    vocabulary: float
    length: float


def parameters(shape):
    D, L, V, T = dataclasses.astuple(shape)
    return V * D + T * D + L * (12 * D * D + 13 * D) + 2 * D


def flop_per_token(shape):
    D, L, V, T = dataclasses.astuple(shape)
    return 6 * (12 * L * D * D + V * D) + 6 * L * T * D


def state_bytes(shape, precision):
    """Master, gradient and two moments in fp32; bf16 has a copy of the master to multiply with."""
    return (18 if precision == "bf16" else 16) * parameters(shape)


def activation_bytes(shape, rows, precision):
    """Kept for backward of each layer: two norms (2 D), q, k and v (3 D), what attention mixed (D), both sides of the activation (8 D),
    and the residual stream twice (2 D), which stays fp32. Besides: the residual stream at the start, the last norm and its gradient,
    and the logits of one chunk of the loss."""
    element = 2 if precision == "bf16" else 4
    per_row = shape.layers * (14 * element + 2 * 4) * shape.width + (2 * element + 4) * shape.width
    return rows * per_row + min(4 * min(rows, LOGITS_ROWS) * shape.vocabulary, LOGITS_BYTES)


def memory_bytes(shape, rows, precision):
    return state_bytes(shape, precision) + activation_bytes(shape, rows, precision)
