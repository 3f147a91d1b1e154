#!/usr/bin/env python3
"""A table of texts whose lengths in tokens are known, and its vocabulary: the rows of bench/gpu.sh's classifiers.

  bench/peers/length_table.py FOLDER [--rows 10240] [--shortest 8] [--longest 256] [--mean 114]

Writes FOLDER/rows.tsv (label, text) and FOLDER/vocab.txt (30,522 entries, as many as BERT's; each word of the texts is one). The
lengths, [CLS] and [SEP] included, lie between the shortest and the longest and have this mean; words are as unequally frequent as in
real text.
"""
import argparse
import os
import random


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=10240)
    parser.add_argument("--shortest", type=int, default=8)
    parser.add_argument("--longest", type=int, default=256)
    parser.add_argument("--mean", type=float, default=114)
    options = parser.parse_args()
    random.seed(1)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [a + b + c + d for a in letters for b in "aeiou" for c in letters for d in letters][:30522 - len(special)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    # With u even between 0 and 1, u^p has the mean 1 / (p + 1).
    power = (options.longest - options.shortest) / (options.mean - options.shortest) - 1
    os.makedirs(options.folder, exist_ok=True)
    with open(f"{options.folder}/vocab.txt", "w", encoding="utf8") as file:
        file.write("\n".join(special + words) + "\n")
    with open(f"{options.folder}/rows.tsv", "w", encoding="utf8") as file:
        file.write("label\ttext\n")
        for row in range(options.rows):
            length = options.shortest + round((options.longest - options.shortest) * random.random() ** power)
            file.write(f"{row % 2}\t{' '.join(random.choices(words, weights, k=length - 2))}\n")


main()
