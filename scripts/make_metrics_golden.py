#!/usr/bin/env python3
"""Writes tests/score/golden/scores.json: what sacreBLEU makes of difficult hypotheses and references; or compares `brisk score`
with it on files.

    python3 -m venv venv && venv/bin/pip install sacrebleu
    venv/bin/python scripts/make_metrics_golden.py write tests/score/golden
    venv/bin/python scripts/make_metrics_golden.py compare build/brisk FILE [FILE] ...

scores.json has "pairs" (a hypothesis and two references each), and for each set of options the corpus's score, signature
and details, and the statistics of every pair. What is compared: the lines of the first file with those of the others,
where they are translations of it; and noisy copies of every file with the file itself, in every tokenizer and option, by
the last digit that is printed and the signature.
"""
import argparse
import gzip
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

POOLS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1E00, 0x1FFF),
         (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x2BFF), (0x2E80, 0x30FF), (0x3100, 0x33FF), (0x3400, 0x34FF), (0x4E00, 0x4FFF),
         (0x9F90, 0x9FFF), (0xAC00, 0xACFF), (0xF900, 0xFAFF), (0xFE10, 0xFE6F), (0xFF00, 0xFFEF), (0x1F300, 0x1F6FF),
         (0x1D400, 0x1D7FF), (0x20000, 0x200FF), (0x2F800, 0x2FA1D), (1, 0x1F), (0x7F, 0x9F)]
TEXTS = [
    "", " ", "\t", "\u00a0", ".", "...", ",.,.", "a", "a b", "a b c", "a b c d", "a b c d e", "The cat sat on the mat.", "the the the the the",
    "It's 3.14, not 1,000.50 -- see page 7-8 (or 9-).", "1.", "1.a", "a.1", ".5", "5.", "-5", "5-", "5-5", "x-5", "5-x", "1,2,3", "a,b,c", ",,a,,",
    "&quot;Hi&quot; &amp;lt; &lt;b&gt; &amp; & &apos; <skipped> a<skipped>b well-known up-\u00adto", "(hi) (hi), \"hi\" 'hi' [hi] {hi} hi! !hi !! !",
    "price: $5.00/\u20ac4,50 3\u00d74=12 50% 20\u00b0C \u00b13 \u2264\u2265 \u2211\u221a\u221e", "a_b^c`d~e|f\\g#h@i*j+k=l<m>n;o:p?q!r",
    "http://example.com/a?b=c&d=e#f user@host.org C:\\dir\\file.txt", "\u201edouble\u201c \u201asingle\u2018 \u00abguillemets\u00bb \u2026 \u2014 \u2013 \u2010",
    "\u00bfqu\u00e9? \u00a1hola! na\u00efve\u0301 e\u0301 e\u0301\u0323", "中文字符测试，标点。「引用」abc中12.5文", "日本語テスト、カタカナ・ひらがな ｶﾀｶﾅ ﾊﾞ。１２．３", "한국어 텍스트, 문장.",
    "العربية مع تشكيل: السَّلامُ، ٣٫١٤ ١٢٣.", "עברית עם נִקּוּד – \u05f4\u05f3", "हिन्दी १२३। ॥", "ไทยภาษา ๑๒๓ ฿5", "\u2001a\u2010b\u2203c\u2a6dd\u2a6ee\u2f80f\u2f81g\u2fa1h",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ ☺︎ ✂ ⛄", "ΑΣ ΣΑΣ Σ ΣΣ ΟΔΥΣΣΕΥΣ. ΑΣ\u0301 ΑΣ'Β ΑΣ'", "İSTANBUL Iı STRASSE ẞ Ǆǅǆ ﬀ K Å Ω 𐐀", "ʰΣ AʰΣ AʰΣb ⅣΣ ⒶΣ",
    "\x01\x02\x1b[0m\x7f control\x1ca\x1db\x1ec\x1fd \x85 \x0b \x0c", "a\u2028b\u2029c\u200bd\u2009e\u3000f\ufeffg\u180eh", "x" * 300, "ab " * 150, "1." * 80, "," * 99,
    "²³¹ ½ Ⅷ ① 〇 ٣٤٥٦ a² 5² ².", "q\u0307\u0323 \ufffd \ue000 \U0010ffff \U000e0001", "the quick brown fox jumps over the lazy dog", "le chat, assis; sur: le tapis.",
]


def noisy(text, generator):
    """As a poor translation has it: words left out, doubled, moved, changed, other punctuation, other case."""
    words = text.split(" ")
    for _ in range(generator.randint(0, 1 + len(words) // 4)):
        at = generator.randrange(len(words)) if words else 0
        what = generator.randrange(8)
        if not words or what == 0:
            words.insert(at, generator.choice(["the", "und", "a", ",", "...", "5.0", "中", "👍"]))
        elif what == 1:
            del words[at]
        elif what == 2:
            words.insert(at, words[at])
        elif what == 3:
            words[at] = words[at].swapcase()
        elif what == 4:
            words[at] += generator.choice([".", ",", "!", "\u2026", "-", "s", "\u0301", "\t"])
        elif what == 5:
            words[at] = words[at][::-1]
        elif what == 6:
            other = generator.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        else:
            words[at] = words[at][: len(words[at]) // 2]
    return " ".join(words)


def random_text(generator):
    text = ""
    for _ in range(generator.randint(0, 60)):
        if generator.random() < 0.4:
            text += generator.choice([" ", ". ", ", ", "5", ".", "-", "the ", "and", "Σ", "&quot;"])
        else:
            character = chr(generator.randint(*generator.choice(POOLS)))
            # What Unicode assigned lately is punctuation for intl in one version of the package regex and not in another.
            text += character if unicodedata.category(character) != "Cn" else "?"
    return text


def golden_pairs():
    generator = random.Random(22)
    texts = TEXTS + [random_text(generator) for _ in range(40)]
    pairs = [[noisy(text, generator), noisy(text, generator), noisy(text, generator)] for text in texts]
    pairs += [["", "a reference", ""], ["a hypothesis", "", ""], ["", "", ""], ["same", "same", "other"], ["a b c d", "a b", "a b c d e f"]]
    return pairs


def write(folder):
    pairs = golden_pairs()
    hypotheses, first, second = map(list, zip(*pairs))
    content = {"sacrebleu": sacrebleu.__version__, "pairs": pairs, "bleu": [], "chrf": []}

    def entry(metric, options, references):
        score = metric.corpus_score(hypotheses, references)
        signature = metric.get_signature().format().replace(f"version:{sacrebleu.__version__}", "version:")
        return {"options": options, "references": len(references), "score": score.score, "printed": score.format(), "signature": signature,
                "statistics": metric._extract_corpus_statistics(hypotheses, references)}

    tokenizers = ("13a", "intl", "zh", "char", "none")
    for tokenizer, lowercase in itertools.product(tokenizers, (False, True)):
        options = {"tokenize": tokenizer, "lowercase": lowercase}
        content["bleu"].append(entry(BLEU(**options), options, [first]))
    for more in ({"smooth_method": "floor"}, {"smooth_method": "floor", "smooth_value": 0.35}, {"smooth_method": "add-k"},
                 {"smooth_method": "add-k", "smooth_value": 2.0}, {"smooth_method": "none"}, {"effective_order": True}):
        options = {"tokenize": "13a", "lowercase": False} | more
        made = entry(BLEU(**options), options, [first])
        del made["statistics"]
        made["sentences"] = [BLEU(**(options | {"effective_order": True})).sentence_score(hypothesis, [reference]).score
                             for hypothesis, reference in zip(hypotheses, first)]
        content["bleu"].append(made)
    content["bleu"].append(entry(BLEU(), {"tokenize": "13a", "lowercase": False}, [first, second]))
    for word_order, lowercase, references in itertools.product((0, 1, 2), (False, True), ([first], [first, second])):
        options = {"word_order": word_order, "lowercase": lowercase}
        content["chrf"].append(entry(CHRF(**options), options, references))
    with open(pathlib.Path(folder) / "scores.json", "w", encoding="utf-8") as out:
        json.dump(content, out, ensure_ascii=True, separators=(",", ":"))
        out.write("\n")


def lines_of(path):
    """As sacreBLEU reads a file."""
    opened = gzip.open(path, "rt", encoding="utf-8", newline="\n") if path.endswith(".gz") else open(path, encoding="utf-8", newline="\n")
    with opened:
        return [line.rstrip() for line in opened]


class Comparison:
    def __init__(self, brisk, folder):
        self.brisk, self.folder, self.failed, self.pairs = brisk, folder, False, 0

    def brisk_score(self, files, flags):
        names = ["--hypotheses", files[0]] + [word for name in files[1:] for word in ("-r", name)]
        result = subprocess.run([self.brisk, "score", *names, *flags], capture_output=True, encoding="utf-8")
        if result.returncode != 0:
            sys.exit(f"brisk score: {result.stderr}")
        return result.stdout.splitlines()

    def compare(self, what, *texts):
        """`texts`: lines of hypotheses, and of each set of references."""
        files = []
        for i, lines in enumerate(texts):
            files.append(str(self.folder / f"{i}.txt"))
            with open(files[-1], "w", encoding="utf-8", newline="\n") as out:
                out.writelines(line + "\n" for line in lines)
        hypotheses, *references = [lines_of(name) for name in files]
        smoothings = [{}, {"smooth_method": "floor"}, {"smooth_method": "add-k", "smooth_value": 0.5}, {"smooth_method": "none"}]
        cases = [(tokenizer, lowercase, {}, 2 * lowercase) for tokenizer in ("13a", "intl", "zh", "char", "none") for lowercase in (False, True)]
        cases += [("13a", False, smoothing, 1) for smoothing in smoothings[1:]]
        different = 0
        for tokenizer, lowercase, smoothing, word_order in cases:
            flags = ["--tokenize", tokenizer, "--chrf-word-order", str(word_order)] + (["--lowercase"] if lowercase else [])
            for name, value in smoothing.items():
                flags += [f"--{name.replace('_', '-')}", str(value)]
            ours = self.brisk_score(files, flags)
            for metric, line in ((BLEU(tokenize=tokenizer, lowercase=lowercase, force=True, **smoothing), ours[0]),
                                 (CHRF(word_order=word_order, lowercase=lowercase), ours[1])):
                score = metric.corpus_score(hypotheses, references)
                signature = metric.get_signature().format()
                version = line[line.index("|version:"):line.index(" = ")]
                expected = score.format(signature=signature).replace(f"|version:{sacrebleu.__version__}", version)
                if line != expected:
                    different += 1
                    print(f"     brisk     {line}\n     sacreBLEU {expected}")
        self.failed = self.failed or different > 0
        self.pairs += len(hypotheses)
        print(f"{'FAIL' if different else 'ok  '} {what}: {len(hypotheses)} lines, {2 * len(cases)} scores, {different} other than sacreBLEU's", flush=True)


def compare(brisk, names):
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(brisk, pathlib.Path(folder))
        files = {name: lines_of(name) for name in names}
        first, *others = files.values()
        for other in others:
            if len(other) == len(first):
                comparison.compare(f"{names[0]} with a file of as many lines", first, other)
        for name, lines in files.items():
            comparison.compare(f"{name}, noisy", [noisy(line, generator) for line in lines], lines)
        noisy_first = [[noisy(line, generator) for line in first] for _ in range(3)]
        comparison.compare(f"{names[0]}, noisy, three references", first, *noisy_first)
        texts = [random_text(generator) for _ in range(3000)]
        clean = [text.replace("\n", " ").replace("\r", " ") for text in texts]
        comparison.compare("random characters of all scripts", [noisy(text, generator) for text in clean], clean)
        long_lines = [" ".join(generator.choices(first or ["a"], k=400)) for _ in range(12)]
        comparison.compare("lines of tens of thousands of characters", [noisy(line, generator) for line in long_lines], long_lines)
        torture = [text for pair in golden_pairs() for text in pair if "\n" not in text and "\r" not in text]
        comparison.compare("the texts of the tests, each with the next", torture, torture[1:] + torture[:1])
        comparison.compare("empty hypotheses", [""] * 7, torture[:7])
        comparison.compare("one line, the same", ["a b c d e"], ["a b c d e"])
        print(f"{comparison.pairs} pairs, sacreBLEU {sacrebleu.__version__}")
        return 1 if comparison.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write").add_argument("folder")
    comparing = commands.add_parser("compare")
    comparing.add_argument("brisk")
    comparing.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "write":
        return write(arguments.folder)
    return compare(arguments.brisk, arguments.files)


if __name__ == "__main__":
    sys.exit(main())
