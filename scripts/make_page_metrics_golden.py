#!/usr/bin/env python3
"""Writes tests/score/golden/pages.json: what jiwer, torchmetrics, zss and DIMTDA's own evaluation make of difficult texts and pages; or
compares `brisk score` with them on thousands of pairs.

    python3 -m venv venv && venv/bin/pip install sacrebleu jiwer torchmetrics zss
    git clone https://github.com/liangyupu/DIMTDA
    venv/bin/python scripts/make_page_metrics_golden.py write DIMTDA/codes/evaluate.py tests/score/golden
    venv/bin/python scripts/make_page_metrics_golden.py compare DIMTDA/codes/evaluate.py build/brisk

evaluate.py is imported as it is; jieba, which it cuts Chinese references with, is not needed, as texts and references arrive
segmented here. Left out of the pages: a heading with the very text of a line before it, for which evaluate.py takes that line
(see docs/scores.md).
"""
import argparse
import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

import jiwer
import sacrebleu
import zss
from torchmetrics.functional.text import char_error_rate, word_error_rate
from torchmetrics.functional.text.cer import _cer_update
from torchmetrics.functional.text.wer import _wer_update

from make_metrics_golden import golden_pairs, noisy, random_text

WORDS = ["results", "method", "the", "图像", "翻译", "模型", "我们", "*bold*", "**strong**", "_it_", "a_b", "\\(x = 1\\)", "\\[ y_{ 2 } \\]", "\\( open",
         "\\) closed", "\\begin{table}", "\\end{table}", "\\begin {tabular}", "\\end {tabular}", "{ a }", "{ }", "} }", "<bos>", "<eos>", "<unk>", "<pad>",
         "trans ##lat ##ion", " ##", "## ", "#", "* * ", " * * *", "\\ frac", "\\\\", "\\", "\u3000", "\u00a0", "\u2028", "\x0b", "1.", "。", "|a|b|", "-", "👍",
         "\\begin{table*}", "\\end{table}\\begin{table}"]


def page(generator, lines):
    text = ""
    for _ in range(generator.randint(0, lines)):
        kind = generator.random()
        words = [generator.choice(WORDS) for _ in range(generator.randint(0, 8))]
        if kind < 0.25:
            # Its words and a number make it other than any line.
            text += generator.choice(["#", "##", "###", " # ", "# #", "<bos># "]) + " "
            text += generator.choice(["", "", " ".join(words)]) + generator.choice(["", "", f" {generator.randint(1, 6)} section"])
        elif kind < 0.9:
            text += " ".join(words)
        text += generator.choice(["\n", "\n", "\n\n", "\r\n", "\n \n", "\r"])
    return text if generator.random() < 0.7 else text.rstrip()


def noisy_page(text, generator):
    lines = text.split("\n")
    for _ in range(generator.randint(0, 4)):
        at = generator.randrange(len(lines))
        what = generator.randrange(5)
        if what == 0:
            del lines[at]
        elif what == 1:
            lines.insert(at, generator.choice(["# a new section", "a line", "", "#"]))
        elif what == 2:
            lines[at] = "# " + lines[at]
        elif what == 3:
            lines[at] = lines[at].lstrip("# ")
        else:
            lines[at] = noisy(lines[at], generator)
        if not lines:
            return ""
    return "\n".join(lines)


def random_tree(generator, nodes):
    """Of (blank, children)."""
    all_nodes = [(generator.random() < 0.2, [])]
    for _ in range(generator.randint(0, nodes - 1)):
        node = (generator.random() < 0.2, [])
        near = generator.random() < 0.5
        all_nodes[generator.randrange(max(0, len(all_nodes) - 3) if near else 0, len(all_nodes))][1].append(node)
        all_nodes.append(node)
    return all_nodes[0]


def as_text(tree):
    return "(" + ("-" if tree[0] else "") + "".join(map(as_text, tree[1])) + ")"


def as_zss(tree):
    return zss.Node("" if tree[0] else "x", [as_zss(child) for child in tree[1]])


def tree_distance(a, b):
    return zss.simple_distance(as_zss(a), as_zss(b), label_dist=lambda x, y: 0 if x and y else 1)


class Evaluation:
    """DIMTDA's, of files as it reads them."""

    def __init__(self, path):
        sys.modules.setdefault("jieba", types.ModuleType("jieba"))
        specification = importlib.util.spec_from_file_location("dimtda_evaluate", path)
        self.module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(self.module)

    def of_page(self, path):
        with open(path) as file:
            text = self.module.metric_post_process(" ".join(file.readlines()))
        return text, self.module.clean_table_math(text), self.module.get_tree(path)

    def of_pages(self, pairs, folder):
        """By the pair: for the hypothesis and the reference the two texts, and STEDS."""
        all_pairs = []
        for pair in pairs:
            read = []
            for i, text in enumerate(pair):
                path = folder / f"page{i}.mmd"
                path.write_bytes(text.encode())
                read.append(self.of_page(path))
            all_pairs.append((read, 100 * self.module.STEDS(read[0][2], read[1][2])))
        return all_pairs


def bleu(hypotheses, references):
    return sacrebleu.corpus_bleu(hypotheses, [references]).score


def write(evaluation, folder):
    generator = random.Random(23)
    texts = [(pair[0], pair[1]) for pair in golden_pairs()]
    pages = [["", ""], ["", "# a\nb"], ["#", "#"], ["a\n\nb", "# a\nb"]]
    pages += [[noisy_page(text, generator), text] for text in (page(generator, 9) for _ in range(36))]
    with tempfile.TemporaryDirectory() as scratch:
        read = evaluation.of_pages(pages, pathlib.Path(scratch))
    trees = [(random_tree(generator, nodes), random_tree(generator, nodes)) for nodes in (2, 4, 6, 9, 14, 25) for _ in range(12)]
    content = {
        # Of the pairs of scores.json: errors and the reference's characters, errors and its words.
        "errors": [[int(number) for update in (_cer_update, _wer_update) for number in update(*pair)] for pair in texts],
        "cer": float(char_error_rate(*zip(*texts))), "wer": float(word_error_rate(*zip(*texts))),
        "pages": [{"texts": pair, "markdown": [side[0] for side in sides], "text": [side[1] for side in sides], "steds": steds}
                  for pair, (sides, steds) in zip(pages, read)],
        "bleu_markdown": bleu(*([sides[i][0] for sides, _ in read] for i in range(2))),
        "bleu_text": bleu(*([sides[i][1] for sides, _ in read] for i in range(2))),
        "trees": [[as_text(a), as_text(b), tree_distance(a, b)] for a, b in trees],
    }
    with open(pathlib.Path(folder) / "pages.json", "w", encoding="utf-8") as out:
        json.dump(content, out, ensure_ascii=True, separators=(",", ":"))
        out.write("\n")


class Comparison:
    def __init__(self, brisk, folder):
        self.brisk, self.folder, self.failed = brisk, folder, False

    def score(self, hypotheses, references, metrics):
        result = subprocess.run([self.brisk, "score", "--hypotheses", hypotheses, "-r", references, "--metrics", metrics, "--json"],
                                capture_output=True, encoding="utf-8")
        if result.returncode != 0:
            sys.exit(f"brisk score: {result.stderr}")
        return json.loads(result.stdout)

    def check(self, what, ours, theirs, tolerance=1e-7):
        same = abs(ours - theirs) <= tolerance * max(1, abs(theirs))
        self.failed = self.failed or not same
        print(f"{'ok  ' if same else 'FAIL'} {what}: {ours:.10g}, expected {theirs:.10g}", flush=True)

    def lines(self, what, pairs):
        paths = []
        for i in range(2):
            paths.append(self.folder / f"lines{i}.txt")
            paths[-1].write_bytes("".join(pair[i] + "\n" for pair in pairs).encode())
        ours = self.score(*paths, "cer,wer")
        hypotheses, references = map(list, zip(*pairs))
        if any(text.split() for text in references):  # to torchmetrics infinite without, and it adds up in fp32
            self.check(f"{what}: CER of {len(pairs)} lines, torchmetrics", ours["cer"], float(char_error_rate(hypotheses, references)), 1e-6)
            self.check(f"{what}: WER, torchmetrics", ours["wer"], float(word_error_rate(hypotheses, references)), 1e-6)
        stripped = [[text.strip() for text in side] for side in (references, hypotheses)]
        for path, texts in zip(reversed(paths), stripped):
            path.write_bytes("".join(text + "\n" for text in texts).encode())
        ours = self.score(*paths, "cer,wer")
        self.check(f"{what}: CER, jiwer", ours["cer"], jiwer.cer(*stripped))
        # jiwer cuts at spaces alone.
        if all(" ".join(text.split()) == " ".join(text.split(" ")) for side in stripped for text in side):
            self.check(f"{what}: WER, jiwer", ours["wer"], jiwer.wer(*stripped))

    def pages(self, what, pairs, evaluation):
        folders = [self.folder / f"{what.replace(' ', '-')}{i}" for i in range(2)]
        for i, folder in enumerate(folders):
            folder.mkdir()
            for number, pair in enumerate(pairs):
                (folder / f"{number}.mmd").write_bytes(pair[i].encode())
        ours = self.score(*folders, "bleu_markdown,bleu_text,steds,cer")
        read = evaluation.of_pages(pairs, self.folder)
        self.check(f"{what}: STEDS of {len(pairs)} pages", ours["steds"], sum(steds for _, steds in read) / len(read))
        for i, name in enumerate(("bleu_markdown", "bleu_text")):
            self.check(f"{what}: {name}", ours[name], bleu(*([sides[side][i] for sides, _ in read] for side in range(2))))
        self.check(f"{what}: CER of pages", ours["cer"], float(char_error_rate(*zip(*pairs))), 1e-6)


def compare(evaluation, brisk):
    generator = random.Random(5)
    one_line = str.maketrans("\r\n", "  ")
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(brisk, pathlib.Path(folder))
        texts = [random_text(generator).translate(one_line) for _ in range(3000)]
        # A file's first byte order mark is no text of it.
        comparison.lines("random characters", [("", "")] + [(noisy(text, generator), text) for text in texts])
        torture = [text.translate(one_line) for pair in golden_pairs() for text in pair]
        comparison.lines("texts of the tests", [("", "")] + list(zip(torture, torture[1:] + torture[:1])))
        words = [" ".join(generator.choices(["a", "b", "the", "cat", "sat"], k=generator.randint(0, 70))) for _ in range(2000)]
        comparison.lines("few words", list(zip(words, words[1:] + words[:1])))
        long_lines = ["".join(generator.choices("abcd ", k=generator.randint(3000, 6000))) for _ in range(6)]
        comparison.lines("long lines", list(zip(long_lines, long_lines[1:] + long_lines[:1])))
        comparison.lines("no text in the references", [("abc", ""), ("d e", ""), ("", "")])
        pages = [page(generator, 14) for _ in range(2000)]
        comparison.pages("noisy pages", [[noisy_page(text, generator), text] for text in pages], evaluation)
        comparison.pages("other pages", list(zip(pages[:1000], pages[1000:])), evaluation)
        comparison.pages("long pages", [[page(generator, 80), page(generator, 80)] for _ in range(20)], evaluation)
        comparison.pages("empty pages", [["", ""], ["", "# a\nb"], ["a", ""], ["#", "#"]], evaluation)
    return 1 if comparison.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, last in (("write", "folder"), ("compare", "brisk")):
        command = commands.add_parser(name)
        command.add_argument("evaluate", help="codes/evaluate.py of DIMTDA")
        command.add_argument(last)
    arguments = parser.parse_args()
    evaluation = Evaluation(arguments.evaluate)
    if arguments.command == "write":
        return write(evaluation, arguments.folder)
    return compare(evaluation, arguments.brisk)


if __name__ == "__main__":
    sys.exit(main())
