#!/usr/bin/env python3
"""Compares brisk's translations with those of transformers' generate() on the model that brisk exports.

    scripts/check_translate.py runs/translate test.en --lines 200
    scripts/check_translate.py runs/translate test.en --lines 1000 --speed      # sentences a second, beam 4

Needs torch and transformers. Every line is translated by both with greedy and beam search, several length penalties and rules of
early stopping; a line whose texts differ is a failure, unless the two scores agree to the last digits (a tie).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time


def measure_speed(arguments, texts, tokenizer, model):
    """Both in fp32 with the same threads; transformers in padded batches of texts of about the same length."""
    import torch

    command = [arguments.brisk, "translate", arguments.run, "--fp32", "--beam", "4", "--threads", str(arguments.threads),
               "--max-tokens", str(arguments.max_tokens)]
    for _ in range(2):  # the first reads the files
        start = time.perf_counter()
        told = subprocess.run(command, input="\n".join(texts) + "\n", capture_output=True, text=True, check=True)
        ours = time.perf_counter() - start
    print(f"brisk         {len(texts) / ours:8.1f} sentences/s, loading included; its own figure: {told.stderr.splitlines()[-1]}")
    ordered = sorted(texts, key=lambda text: -len(tokenizer(text)["input_ids"]))
    start = time.perf_counter()
    with torch.no_grad():
        for begin in range(0, len(ordered), arguments.batch):
            inputs = tokenizer(ordered[begin: begin + arguments.batch], return_tensors="pt", padding=True)
            inputs.pop("token_type_ids", None)
            model.generate(**inputs, num_beams=4, do_sample=False, max_new_tokens=arguments.max_tokens)
    theirs = time.perf_counter() - start
    print(f"transformers  {len(texts) / theirs:8.1f} sentences/s; brisk is {theirs / ours:.1f} times as fast")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("lines_file")
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--brisk", default="build/brisk")
    parser.add_argument("--max-tokens", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="of transformers, with --speed")
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()

    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.set_num_threads(arguments.threads)
    texts = [line.rstrip("\r\n") for line in open(arguments.lines_file, encoding="utf-8")][: arguments.lines]
    texts = [text for text in texts if text.strip()]
    with tempfile.TemporaryDirectory() as folder:
        exported = folder + "/export"
        subprocess.run([arguments.brisk, "export", arguments.run, "--format", "huggingface", "--output", exported],
                       check=True, stderr=subprocess.DEVNULL)
        tokenizer = AutoTokenizer.from_pretrained(exported)
        model = AutoModelForSeq2SeqLM.from_pretrained(exported, dtype=torch.float32).eval()
    if arguments.speed:
        return measure_speed(arguments, texts, tokenizer, model)
    failures = 0
    for beam, penalty, rule in [(1, 1.0, "first"), (4, 1.0, "heuristic"), (4, 0.6, "first"), (4, 2.0, "never"),
                                (8, 0.0, "heuristic")]:
        command = [arguments.brisk, "translate", arguments.run, "--fp32", "--json", "--beam", str(beam), "--length-penalty",
                   str(penalty), "--early-stopping", rule, "--max-tokens", str(arguments.max_tokens)]
        told = subprocess.run(command, input="\n".join(texts) + "\n", capture_output=True, text=True, check=True)
        answers = [json.loads(line) for line in told.stdout.splitlines()]
        assert len(answers) == len(texts), f"{len(answers)} answers to {len(texts)} texts"
        differ = ties = 0
        worst = 0.0
        for text, answer in zip(texts, answers):
            inputs = tokenizer(text, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            with torch.no_grad():
                made = model.generate(**inputs, num_beams=beam, length_penalty=penalty, do_sample=False,
                                      early_stopping={"heuristic": False, "first": True, "never": "never"}[rule],
                                      max_new_tokens=arguments.max_tokens, output_scores=True,
                                      return_dict_in_generate=True)
            theirs = tokenizer.decode(made.sequences[0], skip_special_tokens=True)
            score = made.sequences_scores[0].item() if beam > 1 else None
            if score is not None:
                worst = max(worst, abs(score - answer["score"]))
            if theirs.strip() == answer["text"].strip():
                continue
            if score is not None and abs(score - answer["score"]) < 1e-5:
                ties += 1
                continue
            differ += 1
            if differ <= 3:
                print(f"  {text!r}\n    brisk        {answer['text']!r} ({answer['score']})\n    transformers {theirs!r} ({score})")
        print(f"beam {beam}, length penalty {penalty}, {rule}: {len(texts)} lines, {differ} differ, {ties} ties, "
              f"scores within {worst:.1e}")
        failures += differ
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
