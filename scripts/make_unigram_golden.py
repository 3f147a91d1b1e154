#!/usr/bin/env python3
"""Writes Unigram tokenizers to tests/text/golden: SentencePiece models with what the sentencepiece library makes of the
difficult texts of make_tokenizer_golden.py, a folder as T5 has it and one as Marian has it, and tokenizer.json files with what
the tokenizers library makes of them.

    python3 -m venv venv && venv/bin/pip install sentencepiece tokenizers
    venv/bin/python scripts/make_unigram_golden.py write README.md tests/text/golden
    venv/bin/python scripts/make_unigram_golden.py compare build/brisk TOKENIZER TEXT...

`write`: NAME.model and NAME.model.golden.json ("ids" and "decoded" of texts.json and more_texts.json; null where a text has the name of a
special token, which is text to the library and that token to brisk); marian/ and t5/ the same. NAME.json and
NAME.golden.json are as those of make_tokenizer_golden.py. `compare`: the ids of every line of the texts, of random characters and
of long lines, by a .model or a tokenizer.json.
"""
import argparse
import base64
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Tokenizer

from make_tokenizer_golden import MORE_TEXTS, TEXTS, random_texts

# A few rules of each kind, as the map of nmt_nfkc has them: one character to one, to several, to none, several to one, and spaces.
RULES = ["FB01\t66 69", "FB03\t66 66 69", "65 301\tE9", "41 30A\tC5", "212B\tC5", "3000\t20", "A0\t20", "2003\t20", "9\t20", "2028\t20", "2126\t3A9",
         "FF41\t61", "2026\t2E 2E 2E", "200B\t", "AD\t", "FF76 FF9E\t30AC", "FF76\t30AB", "BD\t31 2044 32", "1112 1161 11AB\tD55C", "D\t20", "1\t",
         "300\t", "2126 301\t38F", "661\t31", "A9\t28 63 29"]
SPECIALS = ("<unk>", "<s>", "</s>", "<pad>", "<extra_id", ">>de<<")


def texts():
    return TEXTS + list(random_texts(60)) + MORE_TEXTS + list(random_texts(60, seed=8))


def write_json(path, content):
    path.write_text(json.dumps(content, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="utf-8")


class Maker:
    def __init__(self, source, folder):
        self.folder = folder
        self.scratch = tempfile.TemporaryDirectory()
        scratch = pathlib.Path(self.scratch.name)
        self.rules = scratch / "rules.tsv"
        self.rules.write_text("".join(rule + "\n" for rule in RULES))
        self.source = scratch / "text.txt"
        cleaned = [" ".join(text.replace("\x00", "").split()) for text in TEXTS[:40]]
        self.source.write_text(pathlib.Path(source).read_text(encoding="utf-8") + "\n".join(cleaned), encoding="utf-8")

    def model(self, name, **options):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        settings = {"vocab_size": 300, "character_coverage": 0.98, "minloglevel": 2, "num_threads": 1} | options
        if "normalization_rule_name" not in settings:
            settings["normalization_rule_tsv"] = str(self.rules)
        sentencepiece.SentencePieceTrainer.train(input=str(self.source), model_prefix=str(path), **settings)
        (self.folder / f"{name}.vocab").unlink()
        # Not where it was trained, on which text.
        proto = sentencepiece_model_pb2.ModelProto()
        model = self.folder / f"{name}.model"
        proto.ParseFromString(model.read_bytes())
        proto.trainer_spec.ClearField("input")
        proto.trainer_spec.ClearField("model_prefix")
        proto.normalizer_spec.ClearField("normalization_rule_tsv")
        model.write_bytes(proto.SerializeToString())
        return model, proto

    def sentencepiece_golden(self, model, path, ids_of=None):
        library = sentencepiece.SentencePieceProcessor(model_file=str(model))
        ids_of = ids_of or library.encode
        usable = [text if not any(name in text for name in SPECIALS) else None for text in texts()]
        write_json(path, {"ids": [None if text is None else ids_of(text) for text in usable]})

    def sentencepiece_model(self, name, **options):
        model, _ = self.model(name, **options)
        self.sentencepiece_golden(model, self.folder / f"{name}.model.golden.json")

    def tokenizer_json(self, name, normalizer, byte_fallback=False, scheme="always", **options):
        model, proto = self.model(name, byte_fallback=byte_fallback, **options)
        model.unlink()
        character_map = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
        metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}
        content = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": {"type": "Sequence", "normalizers": normalizer(character_map)}, "pre_tokenizer": metaspace,
            "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                               "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}},
                                        {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                               "special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},
            "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, metaspace]} if byte_fallback else metaspace,
            "model": {"type": "Unigram", "unk_id": 0, "vocab": [[piece.piece, piece.score] for piece in proto.pieces], "byte_fallback": byte_fallback}}
        tokenizer = Tokenizer.from_str(json.dumps(content))
        tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<unk>", "<s>", "</s>")])
        tokenizer.add_tokens([AddedToken("<x>", lstrip=True, rstrip=True, normalized=False), AddedToken("speed", single_word=True, normalized=True)])
        write_json(self.folder / f"{name}.json", json.loads(tokenizer.to_str()))
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts()]
        pairs = [tokenizer.encode(*pair) for pair in zip(texts()[20:25], texts()[21:26])]
        write_json(self.folder / f"{name}.golden.json",
                   {"ids": ids, "with_specials": [tokenizer.encode(text).ids for text in texts()[:10]],
                    "decoded": [tokenizer.decode(row, skip_special_tokens=False) for row in ids[:70]],
                    "pairs": [[pair.ids, pair.type_ids] for pair in pairs]})

    def t5(self):
        model, proto = self.model("t5/spiece", vocab_size=250, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
        write_json(self.folder / "t5/tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 3, "eos_token": "</s>", "pad_token": "<pad>"})
        self.sentencepiece_golden(model, self.folder / "t5/golden.json")

    def marian(self):
        source, source_proto = self.model("marian/source", vocab_size=250, unk_id=1, eos_id=0, bos_id=-1)
        target, target_proto = self.model("marian/target", vocab_size=330, unk_id=1, eos_id=0, bos_id=-1, character_coverage=0.985)
        tokens = ["</s>", "<unk>", ">>de<<"]
        for number, piece in enumerate([*source_proto.pieces, *target_proto.pieces]):
            if piece.piece not in tokens and number % 40 != 39:  # some that the vocabulary does not have
                tokens.append(piece.piece)
        tokens.append("<pad>")
        ids = {token: number for number, token in enumerate(tokens)}
        write_json(self.folder / "marian/vocab.json", ids)
        for side, model in (("source", source), ("target", target)):
            model = model.rename(model.with_suffix(".spm"))
            library = sentencepiece.SentencePieceProcessor(model_file=str(model))
            # As MarianTokenizer of transformers does it.
            self.sentencepiece_golden(model, self.folder / f"marian/{side}.golden.json",
                                      lambda text, library=library: [ids.get(piece, ids["<unk>"]) for piece in library.encode(text, out_type=str)])


def write(source, folder):
    maker = Maker(source, pathlib.Path(folder))
    maker.sentencepiece_model("unigram_plain")
    maker.sentencepiece_model("unigram_bytes", vocab_size=500, byte_fallback=True, user_defined_symbols=["<sep>", "ed\u2581", "speed"])
    maker.sentencepiece_model("unigram_identity", normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=False)
    maker.sentencepiece_model("unigram_across", split_by_whitespace=False, remove_extra_whitespaces=False)
    maker.t5()
    maker.marian()

    def converted(character_map):  # as transformers converts a SentencePiece model
        return [{"type": "Precompiled", "precompiled_charsmap": character_map}, {"type": "Strip", "strip_left": False, "strip_right": True},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]

    maker.tokenizer_json("unigram", converted)
    maker.tokenizer_json("unigram_first", converted, byte_fallback=True, scheme="first", vocab_size=500)
    maker.tokenizer_json("unigram_nmt", lambda _: [{"type": "Nmt"}, {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}])


def lines_of(path):
    opened = gzip.open(path, "rt", encoding="utf-8", newline="\n") if path.endswith(".gz") else open(path, encoding="utf-8", newline="\n")
    with opened:
        return opened.read().rstrip("\n").split("\n")


def compare(brisk, tokenizer, names):
    if tokenizer.endswith(".json"):
        library = Tokenizer.from_file(tokenizer)
        encode, name = lambda lines: [line.ids for line in library.encode_batch(lines, add_special_tokens=False)], "tokenizers"
    else:
        library = sentencepiece.SentencePieceProcessor(model_file=tokenizer)
        encode, name = library.encode, "sentencepiece"
    generator = random.Random(4)
    sets = {path: lines_of(path) for path in names}
    sets["random characters"] = TEXTS + MORE_TEXTS + list(random_texts(5000, seed=3))
    sets["repeated characters"] = ["".join(generator.choices("aabe .!n", k=generator.randint(1, 300))) for _ in range(1000)]
    first = next(iter(sets.values()))
    sets["long lines"] = [" ".join(first), "a" * 20000, "!" * 5001, " ".join(first[::-1])[:100000]]
    failed = False
    for title, lines in sets.items():
        lines = [line.replace("\n", " ") for line in lines]
        if name == "sentencepiece":
            lines = [line for line in lines if not any(special in line for special in SPECIALS)]
        result = subprocess.run([brisk, "tokenizer", "encode", "--tokenizer", tokenizer], input="".join(line + "\n" for line in lines).encode(), capture_output=True)
        if result.returncode != 0:
            sys.exit(result.stderr.decode())
        ours = result.stdout.decode().split("\n")[:-1]
        theirs = [" ".join(map(str, ids)) for ids in encode(lines)]
        different = [i for i in range(len(lines)) if ours[i] != theirs[i]]
        failed = failed or bool(different) or len(ours) != len(lines)
        print(f"{'FAIL' if different else 'ok  '} {tokenizer}, {title}: {sum(len(line.split()) for line in theirs)} ids of {len(lines)} lines, "
              f"{len(different)} lines other than {name}'s", flush=True)
        for i in different[:3]:
            print(f"     {lines[i][:100]!r}\n     brisk    {ours[i][:150]}\n     expected {theirs[i][:150]}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing, comparing = commands.add_parser("write"), commands.add_parser("compare")
    writing.add_argument("source")
    writing.add_argument("folder")
    comparing.add_argument("brisk")
    comparing.add_argument("tokenizer")
    comparing.add_argument("texts", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "write":
        return write(arguments.source, arguments.folder)
    return compare(arguments.brisk, arguments.tokenizer, arguments.texts)


if __name__ == "__main__":
    sys.exit(main())
