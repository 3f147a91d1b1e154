#!/usr/bin/env python3
"""Tiny models of Hugging Face with random weights, and their logits, for tests/hub and tests/infer. The folders are
committed; run this again only when one is added:

    python3 scripts/make_hub_golden.py            # writes tests/golden/hub/{gpt2,llama,llama_sharded}
    python3 scripts/make_hub_golden.py --check    # compares the logits with those of the committed folders instead

It needs torch, transformers and safetensors, nothing of brisk. Each folder is what save_pretrained writes (weights in
another number format each), a byte-level vocabulary of 256 bytes, three merges and <|endoftext|>, and golden.json: token
ids and transformers' logits for them, computed in float32 from the weights as stored.
"""

import argparse
import json
import pathlib
import shutil

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "hub"
VOCABULARY = 260
ROWS = 9  # of logits
SHOWN = 40  # columns of logits kept, so that golden.json stays small; every weight takes part in each


def models():
    gpt2 = GPT2Config(vocab_size=VOCABULARY, n_embd=24, n_layer=2, n_head=4, n_positions=24, n_inner=40,
                      layer_norm_epsilon=1e-5, bos_token_id=VOCABULARY - 1, eos_token_id=VOCABULARY - 1)
    llama = dict(vocab_size=VOCABULARY, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=32, rms_norm_eps=1e-6, bos_token_id=VOCABULARY - 1, eos_token_id=VOCABULARY - 1)
    yield "gpt2", GPT2LMHeadModel(gpt2), torch.float32, "10MB"
    tied = LlamaConfig(**llama, hidden_size=32, intermediate_size=48, rope_theta=500000.0, tie_word_embeddings=True)
    yield "llama", LlamaForCausalLM(tied), torch.bfloat16, "10MB"
    biased = LlamaConfig(**llama, hidden_size=24, intermediate_size=40, rope_theta=10000.0, tie_word_embeddings=False,
                         attention_bias=True)
    yield "llama_sharded", LlamaForCausalLM(biased), torch.float16, "30KB"


def randomise(model, generator):
    """Larger than the usual 0.02, so that every weight and the order of every row shows in the logits."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_(1 + 0.3 * noise if is_gain else 0.3 * noise)


def bytes_as_text():
    """GPT-2's alphabet: printable bytes stand for themselves, the others for the characters from U+0100 on."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    letters, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            letters[byte] = chr(byte)
        else:
            letters[byte] = chr(256 + extra)
            extra += 1
    return [letters[byte] for byte in range(256)]


def write_tokenizer(folder):
    letters = bytes_as_text()
    merges = [("t", "h"), ("th", "e"), (letters[32], "the")]
    tokens = letters + [a + b for a, b in merges] + ["<|endoftext|>"]
    assert len(tokens) == VOCABULARY
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}, ensure_ascii=False))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))


def logits_of(kind, folder, tokens):
    """Of the model as stored: a model converted in memory has its rotary frequencies rounded too."""
    model = kind.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0, :, :SHOWN]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    check = arguments.parse_args().check
    generator = torch.Generator().manual_seed(4)
    for name, model, dtype, shard in models():
        folder = FOLDER / name
        tokens = torch.randint(0, VOCABULARY, (ROWS,), generator=generator).tolist()
        if check:
            golden = json.loads((folder / "golden.json").read_text())
            gap = (logits_of(type(model), folder, golden["tokens"]) - torch.tensor(golden["logits"])).abs().max().item()
            print(f"{name}: largest difference {gap:.1e}")
            assert gap < 1e-4
            continue
        randomise(model, generator)
        model = model.to(dtype)
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder, max_shard_size=shard, safe_serialization=True)
        (folder / "generation_config.json").unlink(missing_ok=True)
        write_tokenizer(folder)
        logits = logits_of(type(model), folder, tokens)
        rounded = [[round(value, 6) for value in row] for row in logits.tolist()]
        (folder / "golden.json").write_text(json.dumps({"tokens": tokens, "logits": rounded}))


if __name__ == "__main__":
    main()
