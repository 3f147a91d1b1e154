"""The PyTorch twins of `brisk bench mu`: complete optimizer steps on token windows, one median step time.

  python bench/peers/mu_torch.py --style modern --mode compile --seconds 10 --json
  python bench/peers/mu_torch.py --style original --reference --text wikitext-2.txt --json

--style original: as the first program was written, sixteen nn.MultiheadAttention and a cross attention a layer, one after the
other, and logits of every row. --style modern: as one would write it today, the sixteen attentions as one, the loss in chunks of
rows that never leave all logits in memory, compiled. Both compute the same function of the same parameters (check with --compare).
--reference: with the first program's defects (docs/mu.md). Needs torch in the environment it runs in; brisk never does.
"""
import argparse
import json
import re
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, BLOCKS, HEADS, HIDDEN = 64, 16, 8, 256
ENTROPY_EPSILON = 1e-9


def block_order():
    """Where the elements of the sixteen 2x2 blocks lie in a row-major 8x8 matrix."""
    return torch.tensor([(2 * (b // 4) + i) * 8 + 2 * (b % 4) + j for b in range(BLOCKS) for i in range(2) for j in range(2)])


def entropy(weights):
    """Of attention weights that sum to 1 over the last dimension, and may be 0."""
    return -(weights * (weights + ENTROPY_EPSILON).log()).sum(-1)


class Layer(nn.Module):
    """What both styles share: the parameters, and all but the attentions."""

    def __init__(self, vocabulary, dropout, reference):
        super().__init__()
        self.reference, self.dropout = reference, nn.Dropout(dropout)
        self.blocks = nn.ModuleList(nn.MultiheadAttention(4, 2, dropout, batch_first=True) for _ in range(BLOCKS))
        self.cross = nn.MultiheadAttention(WIDTH, HEADS, dropout, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.affinity = nn.Embedding(vocabulary, BLOCKS)
        self.sensitivity1, self.sensitivity2 = nn.Linear(BLOCKS + 1, 32), nn.Linear(32, BLOCKS)
        self.base = nn.Parameter(0.5 + 0.1 * torch.randn(BLOCKS))
        if reference:
            self.block_interaction = nn.Parameter(torch.zeros(BLOCKS, BLOCKS))  # no output depends on it
        nn.init.normal_(self.affinity.weight, 0, 0.1)
        self.register_buffer("order", block_order(), persistent=False)

    def forward(self, x, tokens, mask):
        a = self.block_attention(x[..., self.order] if self.reference else x, mask)
        c, weights = self.cross_attention(a, mask)
        a = self.norm1(a + c)
        a = self.norm2(a + self.down(self.dropout(F.gelu(self.up(a)))))
        s = torch.cat([self.affinity(tokens), entropy(weights).unsqueeze(-1)], -1)
        s = torch.sigmoid(self.sensitivity2(self.dropout(F.gelu(self.sensitivity1(s))))) * self.base
        # In the reference a group of four is half a row of x, although a is in the order of blocks.
        return x + s.repeat_interleave(4, -1) * (a - x)


class OriginalLayer(Layer):
    def block_attention(self, x, mask):
        parts = [attention(part, part, part, attn_mask=mask, need_weights=False)[0]
                 for attention, part in zip(self.blocks, x.split(4, -1))]
        return torch.cat(parts, -1)

    def cross_attention(self, a, mask):
        return self.cross(a, a, a, attn_mask=mask, need_weights=True)


class ModernLayer(Layer):
    """The sixteen attentions of two heads are one of 32 heads of width 2."""

    def __init__(self, vocabulary, dropout, reference):
        super().__init__(vocabulary, dropout, reference)
        weights = torch.stack([block.in_proj_weight.detach() for block in self.blocks])  # [16, 12, 4]
        outs = torch.stack([block.out_proj.weight.detach() for block in self.blocks])
        del self.blocks
        self.qkv, self.qkv_bias = nn.Parameter(weights), nn.Parameter(torch.zeros(BLOCKS, 12))
        self.out, self.out_bias = nn.Parameter(outs), nn.Parameter(torch.zeros(BLOCKS, 4))

    def block_attention(self, x, mask):
        batch, length, _ = x.shape
        qkv = torch.einsum("btgi,goi->btgo", x.view(batch, length, BLOCKS, 4), self.qkv) + self.qkv_bias
        q, k, v = qkv.view(batch, length, BLOCKS, 3, 2, 2).permute(3, 0, 2, 4, 1, 5).flatten(2, 3)  # [B, 32, T, 2] each
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout.p if self.training else 0.0, is_causal=mask is not None)
        mixed = mixed.transpose(1, 2).reshape(batch, length, BLOCKS, 4)
        return (torch.einsum("btgi,goi->btgo", mixed, self.out) + self.out_bias).flatten(2)

    def cross_attention(self, a, mask):
        batch, length, _ = a.shape
        qkv = F.linear(a, self.cross.in_proj_weight, self.cross.in_proj_bias)
        q, k, v = qkv.view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        weights = self.dropout(torch.softmax(scores if mask is None else scores + mask, -1))
        return self.cross.out_proj((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH)), weights.mean(1)


class HeadLoss(torch.autograd.Function):
    """The mean cross-entropy of a linear head, its gradients made in the forward pass, a chunk of rows at a time. 4,096 rows of
    50,000 logits on two cores, compiled: 727 ms in chunks of 128, 837 of 32, 996 of 512; F.linear_cross_entropy in chunks 1,034,
    F.cross_entropy of all logits 785 compiled and 1,400 eager."""
    ROWS = 128

    @staticmethod
    def forward(ctx, rows, weight, bias, targets):
        loss = rows.new_zeros((), dtype=torch.float32)
        d_rows, d_weight, d_bias = torch.empty_like(rows), torch.zeros_like(weight), torch.zeros_like(bias)
        for at in range(0, len(rows), HeadLoss.ROWS):
            part, target = rows[at:at + HeadLoss.ROWS], targets[at:at + HeadLoss.ROWS]
            d, sums = chunk_loss(torch.addmm(bias, part, weight.t()), target)
            loss += sums
            d_rows[at:at + HeadLoss.ROWS] = d @ weight
            d_weight.addmm_(d.t(), part)
            d_bias += d.sum(0)
        ctx.save_for_backward(d_rows, d_weight, d_bias)
        return loss / len(rows)

    @staticmethod
    def backward(ctx, d_loss):
        d_rows, d_weight, d_bias = ctx.saved_tensors
        scale = d_loss / len(d_rows)
        return d_rows * scale, d_weight * scale, d_bias * scale, None


def chunk_loss(logits, targets):
    """The derivative of the summed loss by the logits, and that sum; compiled, they are one pass over the logits."""
    probabilities = torch.log_softmax(logits.float(), -1)
    loss = -probabilities.gather(1, targets[:, None]).sum()
    d = probabilities.exp()
    classes = torch.arange(logits.shape[1], device=logits.device)
    return (d - (classes == targets[:, None]).float()).to(logits.dtype), loss


class MU(nn.Module):
    def __init__(self, vocabulary, layers, length, style, dropout=0.1, reference=False):
        super().__init__()
        kind = OriginalLayer if style == "original" else ModernLayer
        self.style, self.reference = style, reference
        self.embedding, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(length, WIDTH)
        self.layers = nn.ModuleList(kind(vocabulary, dropout, reference) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary)
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, 0, 0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def hidden(self, tokens):
        length = tokens.shape[1]
        x = self.embedding(tokens) + self.positions.weight[:length]
        mask = None if self.reference else self.mask[:length, :length]
        for layer in self.layers:
            x = layer(x, tokens, mask)
        return self.norm(x)

    def logits(self, tokens):
        return self.head(self.hidden(tokens))

    def forward(self, tokens, targets):
        if self.style == "original":
            return F.cross_entropy(self.logits(tokens).flatten(0, 1).float(), targets.flatten())
        return self.hidden(tokens)


def as_modern(original, vocabulary, layers, length, reference):
    """The modern twin with the parameters of the original one."""
    modern = MU(vocabulary, layers, length, "modern", 0.0, reference)
    state = {name: value for name, value in original.state_dict().items() if ".blocks." not in name}
    for number, layer in enumerate(original.layers):
        prefix = f"layers.{number}."
        state[prefix + "qkv"] = torch.stack([block.in_proj_weight for block in layer.blocks])
        state[prefix + "qkv_bias"] = torch.stack([block.in_proj_bias for block in layer.blocks])
        state[prefix + "out"] = torch.stack([block.out_proj.weight for block in layer.blocks])
        state[prefix + "out_bias"] = torch.stack([block.out_proj.bias for block in layer.blocks])
    modern.load_state_dict(state)
    return modern


def compare_styles():
    for reference in (True, False):
        torch.manual_seed(1)
        vocabulary, layers, length = 300, 2, 24
        original = MU(vocabulary, layers, length, "original", 0.0, reference)
        modern = as_modern(original, vocabulary, layers, length, reference)
        tokens, targets = torch.randint(vocabulary, (2, 3, length))
        loss = original(tokens, targets)
        loss.backward()
        other = HeadLoss.apply(modern(tokens, targets).flatten(0, 1), modern.head.weight, modern.head.bias, targets.flatten())
        other.backward()
        gap = max((a.grad - b.grad).abs().max().item() / b.grad.abs().max().item() for (name, a), b in
                  ((pair, original.get_parameter(pair[0])) for pair in modern.named_parameters()
                   if not re.search(r"qkv|\.out|interaction", pair[0])))
        print(f"reference {reference}: losses {loss.item():.6f} and {other.item():.6f}, gradients differ by {gap:.1e} at most")
        assert abs(loss.item() - other.item()) < 1e-5 and gap < 1e-3


def token_stream(path, vocabulary, count):
    """Of a text, its words and marks by their rank; without one, numbers spread like words: few common, most rare."""
    if not path:
        return (torch.rand(count) ** 3 * vocabulary).long()
    words = re.findall(r"\w+|[^\w\s]+", open(path, encoding="utf-8").read())
    ranks, seen = {}, {}
    for word in words:
        seen[word] = seen.get(word, 0) + 1
    for rank, word in enumerate(sorted(seen, key=seen.get, reverse=True)):
        ranks[word] = min(rank, vocabulary - 1)
    stream = torch.tensor([ranks[word] for word in words])
    return stream.repeat(count // len(stream) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--style", choices=["original", "modern"], default="modern")
    parser.add_argument("--reference", action="store_true", help="with the first program's defects")
    parser.add_argument("--mode", choices=["eager", "head", "compile", "graphs"], default="eager",
                        help="head: the loss alone is compiled (on a CPU dropout makes compiled layers slower); graphs: all, replayed as CUDA graphs")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], default="fp32", help="fp16: autocast with loss scaling, as the first program")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--vocabulary", type=int, default=50000)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8, help="sequences of a micro-batch")
    parser.add_argument("--accumulation", type=int, default=4, help="micro-batches of an optimizer step")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--text", help="a text whose words are the tokens")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--compare", action="store_true", help="only check that both styles compute the same")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.compare:
        return compare_styles()
    on_gpu = options.device == "cuda"
    if on_gpu:
        torch.set_float32_matmul_precision("highest" if options.precision == "fp32" else "high")
    vocabulary, length = options.vocabulary, options.max_length
    model = MU(vocabulary, options.layers, length, options.style, options.dropout, options.reference).to(options.device)
    run, head_loss = model, HeadLoss.apply
    if on_gpu:
        HeadLoss.ROWS = 4096
    if options.mode != "eager":
        global chunk_loss
        chunk_loss = torch.compile(chunk_loss)
    if options.mode in ("compile", "graphs"):
        run = torch.compile(model, mode="reduce-overhead" if options.mode == "graphs" else None)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.01, fused=options.style == "modern")
    scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")
    # Windows of T + 1 tokens: the reference's overlap by half.
    sequences, steps = options.batch * options.accumulation, 16
    stride = length // 2 if options.reference else length
    stream = token_stream(options.text, vocabulary, steps * sequences * length + length + 1)
    starts = torch.arange(0, steps * sequences) * stride
    windows = torch.stack([stream[start:start + length + 1] for start in starts[torch.randperm(len(starts))]])
    windows = windows.view(steps, options.accumulation, options.batch, length + 1)
    windows = windows.pin_memory() if on_gpu else windows

    def step(number):
        total = 0.0
        for micro_batch in windows[number % steps]:
            if options.mode == "graphs":
                torch.compiler.cudagraph_mark_step_begin()
            both = micro_batch.to(options.device, non_blocking=True)
            tokens, targets = both[:, :-1].contiguous(), both[:, 1:].contiguous()
            kind = torch.float16 if options.precision == "fp16" else torch.bfloat16
            with torch.autocast(options.device, kind, enabled=options.precision != "fp32"):
                loss = run(tokens, targets)
                if options.style == "modern":
                    rows, weight, bias = loss.flatten(0, 1), model.head.weight, model.head.bias
                    if options.precision != "fp32":
                        rows, weight, bias = rows.to(kind), weight.to(kind), bias.to(kind)
                    loss = head_loss(rows, weight, bias, targets.flatten())
                loss = loss / options.accumulation
            scaler.scale(loss).backward()
            total += loss.detach()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return total.item()

    for number in range(10 if on_gpu else 2):
        step(number)
    times, end = [], time.time() + options.seconds
    while time.time() < end or len(times) < 3:
        start = time.time()
        loss = step(len(times))
        times.append(time.time() - start)
    seconds = statistics.median(times)
    result = {
        "style": options.style, "mode": options.mode, "precision": options.precision, "reference": options.reference,
        "layers": options.layers, "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "tokens_per_second": sequences * length / seconds, "step_ms": seconds * 1e3, "steps": len(times), "loss": loss,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "torch": torch.__version__,
    }
    print(json.dumps(result) if options.json else
          f"{options.style} {options.mode} {options.precision}, {options.layers} layers, {result['parameters']} parameters: "
          f"{result['tokens_per_second']:.0f} tokens/s, {seconds * 1e3:.1f} ms a step, peak memory {result['peak_memory_bytes'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
