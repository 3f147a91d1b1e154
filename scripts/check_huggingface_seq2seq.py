#!/usr/bin/env python3
"""Whether transformers reads an encoder-decoder that brisk exported as the model it was.

    brisk import ORIGINAL --output RUN && brisk export RUN --format huggingface --output EXPORT
    python3 scripts/check_huggingface_seq2seq.py EXPORT --like ORIGINAL
    python3 scripts/check_huggingface_seq2seq.py EXPORT --texts texts.en --translations texts.de    # brisk translate's, greedy

It needs torch and transformers, nothing of brisk. It fails (exit code 1) unless the class that config.json names loads the
folder without a weight missing or left over (but a BERT's pooler, which nothing reads, and tables of sinusoids, which are
computed); with --like, unless the logits of some texts are within 1e-4; with --translations, unless generate() writes the same
lines.
"""

import argparse
import json
import pathlib
import sys

import torch
import transformers

TEXTS = ["A film that is good, not bad.", "the cat sat on the mat", "a", "the cats were sitting on all of the mats. " * 3]


def load(folder):
    name = json.loads((pathlib.Path(folder) / "config.json").read_text())["architectures"][0]
    model, info = getattr(transformers, name).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder), info


def logits_of(model, tokenizer, text):
    ids = tokenizer(text, truncation=True, max_length=16, return_tensors="pt")["input_ids"]
    start = torch.tensor([[model.config.decoder_start_token_id]])
    with torch.no_grad():
        return model(input_ids=ids, decoder_input_ids=torch.cat([start, ids[:, :5]], dim=1)).logits[0]


def lines_of(path):
    return pathlib.Path(path).read_text(encoding="utf8").splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--like", help="the folder that it was imported from")
    parser.add_argument("--texts", help="with --translations: what was translated, a text a line")
    parser.add_argument("--translations", help="what brisk wrote, greedily")
    parser.add_argument("--max-length", type=int, default=128, help="tokens of a translation")
    options = parser.parse_args()
    problems = []

    def expect(holds, what):
        print(f"{'ok  ' if holds else 'FAIL'} {what}")
        if not holds:
            problems.append(what)

    model, tokenizer, info = load(options.folder)
    missing = [key for key in info["missing_keys"] if ".pooler." not in key and "embed_positions" not in key]
    expect(not missing and not info["unexpected_keys"],
           f"{model.__class__.__name__}: missing {missing}, left over {list(info['unexpected_keys'])}")
    if options.like:
        other, _, _ = load(options.like)
        largest = max(float((logits_of(model, tokenizer, text) - logits_of(other, tokenizer, text)).abs().max())
                      for text in TEXTS)
        expect(largest <= 1e-4, f"logits within {largest:.1e} of {options.like}")
    if options.translations:
        same = 0
        texts, found = lines_of(options.texts), lines_of(options.translations)
        expect(len(texts) == len(found), f"{len(found)} translations of {len(texts)} texts")
        for text, ours in zip(texts, found):
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                theirs = model.generate(ids, num_beams=1, do_sample=False, max_length=options.max_length)
            same += tokenizer.decode(theirs[0], skip_special_tokens=True) == ours
        expect(same == len(texts), f"{same} of {len(texts)} lines are the same")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
