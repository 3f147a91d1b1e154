#!/usr/bin/env python3
"""Whether transformers reads an encoder that brisk exported as the model it was.

    brisk export RUN --format huggingface --output EXPORT
    python3 scripts/check_huggingface_encoder.py EXPORT
    python3 scripts/check_huggingface_encoder.py EXPORT --like ORIGINAL        # the folder it was imported from
    brisk predict RUN --data texts.txt --fp32 > predictions.jsonl
    python3 scripts/check_huggingface_encoder.py EXPORT --texts texts.txt --predictions predictions.jsonl --max-length 128

brisk predict cuts texts at the run's training.max_length unless told otherwise: --max-length is that number. Without it
texts are cut where the model's positions end.

It needs torch and transformers, nothing of brisk. It fails (exit code 1) unless AutoTokenizer and
AutoModelForSequenceClassification or AutoModelForMaskedLM load the folder without a weight missing, left over or of
another shape; with --like, unless the token ids are equal and the logits within 1e-4; with --predictions, unless the
labels are transformers' own and the probabilities within 1e-4.
"""

import argparse
import json
import pathlib
import sys

import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

TEXTS = ["A film that is good, not bad.", "the cat sat on the mat", "", "Ünïcödé, 中文 and [MASK] in a text!",
         "a far longer text: " + "the cats were sitting on all of the mats. " * 12]
PAIRS = [("the cat sat", "on the mat"), ("", "good")]


def load(folder, architecture):
    kind = AutoModelForMaskedLM if architecture.endswith("ForMaskedLM") else AutoModelForSequenceClassification
    model, info = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    return model.eval(), AutoTokenizer.from_pretrained(folder), info


def positions_of(model):
    return model.config.max_position_embeddings - (2 if model.config.model_type == "roberta" else 0)


def logits_of(model, tokenizer, text, pair=None, max_length=None):
    inputs = tokenizer(text, pair, truncation=True, max_length=max_length or positions_of(model), return_tensors="pt")
    with torch.no_grad():
        return inputs["input_ids"][0].tolist(), model(**inputs).logits[0]


class Check:
    def __init__(self):
        self.failed = False

    def expect(self, holds, what):
        print(f"{'ok  ' if holds else 'FAIL'} {what}")
        self.failed = self.failed or not holds


def compare_with_original(check, model, tokenizer, folder):
    other, other_tokenizer, _ = load(folder, model.__class__.__name__)
    same_ids, largest = True, 0.0
    for text, pair in [(text, None) for text in TEXTS] + PAIRS:
        ids, logits = logits_of(model, tokenizer, text, pair)
        other_ids, other_logits = logits_of(other, other_tokenizer, text, pair)
        same_ids = same_ids and ids == other_ids
        if ids == other_ids:
            largest = max(largest, (logits - other_logits).abs().max().item())
    check.expect(same_ids, f"token ids are those of {folder}")
    check.expect(largest <= 1e-4, f"logits differ from those of {folder} by at most {largest:.1e}")
    labels = model.config.id2label == other.config.id2label
    check.expect(labels or "ForMaskedLM" in model.__class__.__name__, "labels are the same")


def compare_with_predictions(check, model, tokenizer, texts, predictions, max_length):
    same_labels, largest = 0, 0.0
    for text, prediction in zip(texts, predictions):
        _, logits = logits_of(model, tokenizer, text, max_length=max_length)
        expected = torch.softmax(logits, -1)
        given = prediction["probabilities"]
        if isinstance(given, dict):
            given = [given[model.config.id2label[i]] for i in range(len(given))]
        largest = max(largest, (torch.tensor(given) - expected).abs().max().item())
        same_labels += prediction["label"] == model.config.id2label[int(expected.argmax())]
    check.expect(len(texts) == len(predictions), f"{len(predictions)} predictions of {len(texts)} texts")
    check.expect(same_labels == len(texts), f"{same_labels} of {len(texts)} labels are those of brisk predict")
    check.expect(largest <= 1e-4, f"probabilities differ from those of brisk predict by at most {largest:.1e}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("export", help="a folder that brisk export wrote")
    arguments.add_argument("--like", help="the folder of Hugging Face that it was imported from")
    arguments.add_argument("--texts", help="a file with a text a line")
    arguments.add_argument("--predictions", help="what brisk predict wrote for --texts")
    arguments.add_argument("--max-length", type=int, help="where brisk predict cut the texts (default: the model's positions)")
    arguments = arguments.parse_args()
    check = Check()
    architecture = json.loads((pathlib.Path(arguments.export) / "config.json").read_text())["architectures"][0]
    model, tokenizer, info = load(arguments.export, architecture)
    check.expect(model.__class__.__name__ == architecture, f"transformers makes a {architecture} of it")
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        check.expect(not info[kind], f"no {kind}: {', '.join(map(str, sorted(info[kind]))) or 'none'}")
    check.expect(len(tokenizer) <= model.config.vocab_size,
                 f"the tokenizer's {len(tokenizer)} ids fit the vocabulary of {model.config.vocab_size}")
    check.expect(tokenizer.model_max_length == positions_of(model),
                 f"the tokenizer cuts at {tokenizer.model_max_length} tokens, and the model has {positions_of(model)} positions")
    if arguments.like:
        compare_with_original(check, model, tokenizer, arguments.like)
    if arguments.predictions:
        texts = pathlib.Path(arguments.texts).read_text().splitlines()
        predictions = [json.loads(line) for line in pathlib.Path(arguments.predictions).read_text().splitlines()]
        compare_with_predictions(check, model, tokenizer, texts, predictions, arguments.max_length)
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
