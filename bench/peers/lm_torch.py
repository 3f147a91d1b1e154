"""The PyTorch twin of `brisk bench lm`: the same decoder, AdamW, clipping, real data movement, one median step time.

  python bench/peers/lm_torch.py --shape small --mode compile --precision fp32 --seconds 10 --json
  python -m torch.distributed.run --nproc-per-node 2 bench/peers/lm_torch.py --shape small --threads 1 --json

Started as several processes they train as DDP does, over gloo: the batch is that of all of them, each has --threads threads on
cores of its own, and the first one prints.

Needs torch in the environment it runs in (a virtual environment outside this repository); brisk never does.
"""
import argparse
import json
import os
import resource
import statistics
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

SHAPES = {  # vocabulary, width, layers, heads, length, sequences
    "small": (10000, 256, 2, 4, 128, 32),
    "large": (50000, 512, 6, 8, 128, 16),
    "production": (32000, 512, 6, 8, 128, 16),
    "gpt2": (50304, 768, 12, 12, 1024, 32),
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, h):
        batch, length, width = h.shape
        heads = [t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.attention_norm(h)).chunk(3, 2)]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        h = h + self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))
        return h + self.down(F.gelu(self.up(self.feed_forward_norm(h)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, layers, heads, length):
        super().__init__()
        self.table, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, tokens, targets):
        h = self.table(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            h = block(h)
        logits = F.linear(self.norm(h), self.table.weight)  # the head is tied
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def join_processes(threads):
    """The number of processes and which this is; each on cores of its own, where there are enough."""
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    if world > 1:
        dist.init_process_group("gloo")
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= world * threads:
            os.sched_setaffinity(0, cores[rank * threads:(rank + 1) * threads])
    return world, rank


def agreed_steps(step, seconds):
    """As many as the first process thinks it can do in this time."""
    start = time.time()
    for number in range(5):
        step(number)
    count = torch.tensor([max(5, round(seconds * 5 / (time.time() - start)))])
    dist.broadcast(count, 0)
    return int(count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--mode", choices=["eager", "compile", "graphs"], default="eager",
                        help="graphs: compiled, and replayed as CUDA graphs")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    vocabulary, width, layers, heads, length, batch = SHAPES[options.shape]
    batch, length, on_gpu = options.batch or batch, options.max_length or length, options.device == "cuda"
    world, rank = join_processes(options.threads)
    if world > 1 and on_gpu:
        parser.error("several processes are timed on CPUs")
    if batch % world:
        parser.error(f"--batch {batch} is not divisible by {world} processes")
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if on_gpu:
        torch.set_float32_matmul_precision("high" if options.precision == "bf16" else "highest")
    model = Decoder(vocabulary, width, layers, heads, length).to(options.device)
    whole = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if world > 1 else model
    run = whole if options.mode == "eager" else torch.compile(whole, mode="reduce-overhead" if options.mode == "graphs" else None)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    # Eight batches in turn, spread like words: few tokens common, most rare.
    data = (torch.rand(8, batch, length + 1) ** 3 * vocabulary).long()[:, rank * (batch // world):(rank + 1) * (batch // world)]
    data = data.pin_memory() if on_gpu else data

    def step(number):
        both = data[number % 8].to(options.device, non_blocking=True)
        tokens, targets = both[:, :-1].contiguous(), both[:, 1:].contiguous()
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = run(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for number in range(10 if on_gpu else 3):
        step(number)
    times, end = [], time.time() + options.seconds
    steps = agreed_steps(step, options.seconds) if world > 1 else None
    while len(times) < steps if steps else time.time() < end or len(times) < 3:
        start = time.time()
        step(len(times))
        times.append(time.time() - start)
    seconds = statistics.median(times)
    flop = 6 * (12 * width * width * layers + vocabulary * width) + 6 * layers * length * width
    speed = batch * length / seconds
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()
        if rank > 0:
            return
    result = {
        "world_size": world, "threads": options.threads, "shape": options.shape, "mode": options.mode, "precision": options.precision, "tokens_per_second": speed,
        "gflops": speed * flop * 1e-9, "step_ms": seconds * 1e3, "steps": len(times),
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "torch": torch.__version__,
    }
    print(json.dumps(result) if options.json else
          f"{options.shape} {options.mode} {options.precision}: {speed:.0f} tokens/s, {result['gflops']:.1f} GFLOP/s, "
          f"{seconds * 1e3:.1f} ms a step, peak memory {result['peak_memory_bytes'] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
