"""The PyTorch twins of `brisk bench image`: Hugging Face's ViTForImageClassification, and DIMTDA of its Swin, BEiT and BERT modules
(dimtda_torch.py), on images made up in memory, in a loop with best practice.

  python bench/peers/image_torch.py --shape vit-base --batch 64 --json
  python bench/peers/image_torch.py --shape dimtda --batch 32 --mode compile --precision bf16 --device cuda --checkpointing

AdamW (fused), gradients clipped at 1, images of 8 bits in memory and normalised on the device, as brisk does it. The texts of DIMTDA
have --length tokens on average, from half to one and a half times as many; --padding: max (all to 1.5 x --length), dynamic (to the
longest of a batch). --frozen: the two encoders are not trained. Needs torch and transformers.
"""
import argparse
import json
import os
import resource
import time

import torch
import torch.nn.functional as F
import transformers

from dimtda_torch import Dimtda, DimtdaShape

VIT = {"vit-tiny": (192, 12, 3), "vit-small": (384, 12, 6), "vit-base": (768, 12, 12), "vit-large": (1024, 24, 16)}
# Small enough for a try on two cores.
DIMTDA = {"dimtda": {}, "dimtda-official": {"queries": 1024, "query_width": 1024, "query_ffn": 2048, "layers": 6},
          "dimtda-small": {"page_size": (224, 224), "page_width": 32, "page_depths": (2, 2, 2, 2), "page_heads": (1, 2, 4, 8),
                           "layout_size": 224, "layout_width": 192, "layout_layers": 4, "layout_heads": 3, "layout_ffn": 768, "queries": 64,
                           "query_width": 256, "query_ffn": 512, "width": 256, "heads": 4, "ffn": 1024, "vocabulary": 8000}}


def length_of(i, options):
    """As brisk bench image makes them up."""
    return max(2, options.length // 2 + i * 7919 % max(1, options.length))


class Classifier:
    unit = "images"

    def __init__(self, options):
        width, layers, heads = VIT[options.shape]
        size = options.image_size or [224, 224]
        self.images = torch.randint(0, 256, (options.batch, 3, *size), dtype=torch.uint8)
        self.labels = torch.arange(options.batch) * 7919 % options.classes
        self.model = transformers.ViTForImageClassification(transformers.ViTConfig(
            image_size=size, patch_size=16, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
            intermediate_size=4 * width, hidden_dropout_prob=options.dropout, attention_probs_dropout_prob=options.dropout,
            num_labels=options.classes, attn_implementation=options.attention))
        self.tokens = 0

    def inputs(self, step, device):
        return self.images.to(device, non_blocking=True), self.labels.to(device, non_blocking=True)

    def loss(self, run, inputs):
        images, labels = inputs
        return F.cross_entropy(run(pixel_values=images.float().div_(127.5).sub_(1)).logits.float(), labels)


class Translator:
    unit = "pages"

    def __init__(self, options):
        changed = dict(DIMTDA[options.shape], dropout=options.dropout)
        if options.image_size:
            changed["page_size"] = tuple(options.image_size)
        shape = DimtdaShape(**changed)
        self.options, self.shape = options, shape
        self.pages = torch.randint(0, 256, (options.batch, 3, *shape.page_size), dtype=torch.uint8)
        self.layouts = torch.randint(0, 256, (options.batch, 3, shape.layout_size, shape.layout_size), dtype=torch.uint8)
        self.model = Dimtda(shape, attention=options.attention)
        if options.frozen:
            for part in (self.model.page, self.model.layout):
                part.requires_grad_(False)
        if options.checkpointing:
            self.model.page.gradient_checkpointing_enable()
            self.model.layout.gradient_checkpointing_enable()
            self.model.decoder.gradient_checkpointing_enable()
        self.tokens = sum(length_of(i, options) for i in range(options.batch))

    def inputs(self, step, device):
        lengths = [length_of(i, self.options) for i in range(self.options.batch)]
        longest = self.options.length * 3 // 2 if self.options.padding == "max" else max(lengths)
        kept = torch.arange(longest)[None] < torch.tensor(lengths)[:, None]
        tokens = torch.randint(5, self.shape.vocabulary, (len(lengths), longest + 1)).where(F.pad(kept, (1, 0), value=True), 1)
        wanted = tokens[:, 1:].where(kept, -100)
        return [one.to(device, non_blocking=True) for one in (self.pages, self.layouts, tokens[:, :-1].contiguous(), wanted)]

    def loss(self, run, inputs):
        pages, layouts, tokens, wanted = inputs
        logits = run(pages.float().div_(127.5).sub_(1), layouts.float().div_(127.5).sub_(1), tokens)
        return F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="vit-base", choices=[*VIT, *DIMTDA])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--image-size", type=lambda text: [int(side) for side in text.split("x")], help="HEIGHTxWIDTH")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--length", type=int, default=512, help="tokens of a page's text, on average")
    parser.add_argument("--padding", default="dynamic", choices=["max", "dynamic"])
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--frozen", action="store_true")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    parser.add_argument("--mode", default="eager", choices=["eager", "compile"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)

    twin = (Classifier if options.shape in VIT else Translator)(options)
    model = twin.model.to(options.device).train()
    run = torch.compile(model) if options.mode == "compile" else model
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW([{"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.01},
                                   {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0}], 5e-5, fused=True)

    def step(inputs):
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = twin.loss(run, inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    on_gpu = options.device.startswith("cuda")
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    for i in range(3 if on_gpu or options.mode == "compile" else 1):
        step(twin.inputs(i, options.device))
    wait()
    steps, each, start = 0, [], time.time()
    while steps < 2 or time.time() - start < options.seconds:
        began = time.time()
        step(twin.inputs(steps, options.device))
        wait()
        each.append(time.time() - began)
        steps += 1
    seconds = time.time() - start
    result = {"shape": options.shape, "mode": options.mode, "precision": options.precision,
              "parameters": sum(parameter.numel() for parameter in model.parameters()), "unit": twin.unit,
              "rows_per_second": steps * options.batch / seconds,
              "step_ms": 1000 * sorted(each)[len(each) // 2], "steps": steps,
              "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu
              else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if twin.tokens:
        result["text_tokens_per_second"] = steps * twin.tokens / seconds
    print(json.dumps(result) if options.json else result)


main()
