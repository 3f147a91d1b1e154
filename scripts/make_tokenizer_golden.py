#!/usr/bin/env python3
"""Writes tests/text/golden: small tokenizer.json files of every kind that brisk reads, trained by Hugging Face's tokenizers
library, and what the library makes of difficult texts with them.

    python3 -m venv venv && venv/bin/pip install tokenizers
    venv/bin/python scripts/make_tokenizer_golden.py README.md tests/text/golden [NAME ...]

NAME.json is the tokenizer; NAME.golden.json has "ids" (add_special_tokens=False), "with_specials" and "decoded"
(skip_special_tokens=False) of the first texts of texts.json, and "pairs": ids and token types of neighbours in it.
The texts of WordPiece go on with those of more_texts.json. README.md is the text they are trained on; WordPiece is
trained on the difficult texts, too, so that its vocabularies have their characters, and word_bpe on them alone, so that
brisk's training can be compared with the library's. With names, only those are made.
"""
import json
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ODD = r"(?<=[a-z])[A-Z]|\d{2,3}|(?:ab)+?c*+|[^\W\d_]{4}|[\p{P}&&[^.]]+"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]

TEXTS = [
    "", " ", "  ", "a", " a", "a ", "  a  b   c    ", "\ta\t\tb", "line\nline\n\n  line\r\n", "x\u00a0y\u2003z\u3000w\u2028v\u0085u",
    "\u200b\u200c\u200d\u2060\ufeff zero width", "e\u0301 e\u0301\u0323 \u1e69 s\u0323\u0307 s\u0307\u0323 q\u0307\u0323",
    "Å Å A\u030a \u212b", "한국어 \u1112\u1161\u11ab\u1100\u116e\u11a8 각\u11a8", "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 🏴‍☠️ ❤️ ☺︎",
    "العربية مع تشكيل: السَّلامُ", "עברית עם נִקּוּד", "mixed עברית and English ١٢٣ 123", "中文字符测试，标点。「引用」",
    "日本語テスト、カタカナ・ひらがな ｶﾀｶﾅ ﾊﾞ", "ไทยภาษา", "हिन्दी १२३", "தமிழ் ௧௨௩", "ﬁ ﬂ ﬀ ﬃ ﬆ Ⅷ ½ ¼ ² ³ ¹ ① Ⓐ ⓐ ℃ ㎏ ㍿",
    "İstanbul ıI ſtraße STRASSE ẞ ΑΣ Σίσυφος ς", "don't DON'T I'LL we'Ve 'Sup 'ſ it'ſ 'tis ''s '", "1234567890 12 345 6,789.01 ٣٤٥٦ 〇",
    "a.b,c;d:e!f?g-h_i(j)k[l]m{n}o'p\"q@r#s$t%u^v&w*x+y=z/~`|\\<>", "… — ‘quoted’ “double” «guillemets» ¿que?",
    "\x01\x02\x1b[0m\x7f\x1c\x1f control\x00null", "tab\there\x0bvt\x0cff\rcr",
    "<|endoftext|> <unk> <s> </s> [UNK] [CLS] <x> a<x>b  <x>  c speed speeds speed's speedspeed THE Speed the speed",
    "<|begin_of_text|>hi<|end_of_text|> <|endoftext", "<0x41><0xE2> ▁ ▁▁ a▁b ▁a", "##a ##b </w> a</w>", "a" * 70, "ab" * 60, " " * 60,
    "\u3000" * 9 + "x", "é" * 30, "中" * 30, "👍" * 10, "supercalifragilisticexpialidocious" * 3, "AbCdEfGh HTTPServer getHTTPResponse2XML",
    "\u0301", "\u0301a", "\ufffd", "\U0010ffff \ue000 \U000e0001", "𝔘𝔫𝔦𝔠 𝟙𝟚𝟛", "𐍈 𓀀 𒀀", "ᴀʙᴄ ʰʷ ₁₂ ⁿ", "ǅ ǈ ᾈ K Å Ω",
    "\u0344 \u0958 \u2126 \uf900 \U0002f800", "a\u0300\u0315\u0300\u05ae b", "\u1100\u1161\u11a7 \uac00\u11a7 \uac00\u11a8",
    "$5.00/€4,50 £3 50% 20°C ±3 ×2 ≤≥≠ ∑√∞", "http://example.com/a?b=c&d=e#f C:\\dir\\file.txt", "soft\u00adhyphen non‑breaking",
    "ab abab ababcc abcc abc aB zZ 12 123 1234 12345", "The speed of the machine is measured, always.",
]
POOLS = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1100, 0x11FF),
         (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x27BF), (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xACFF),
         (0xFB00, 0xFBFF), (0xFF00, 0xFFEF), (0x1F300, 0x1F6FF), (0x1D400, 0x1D7FF), (0, 0x1F)]

# What BERT's normalizer and pre-tokenizer stumble on.
MORE_TEXTS = [
    "a\u0301,b\u0301 ,\u0301a .\u0301\u0323. =\u0338 !\u20dd", "na\u00efve\u00e9t\u00e9 NAI\u0308VETE\u0301 \u00c9\u00c8\u00ca \u1ea4\u1ebe\u1ec0 \u01d8\u01dc",
    "a\x00b c\ufffdd e\x01\u0301f g\x7fh i\u0085j k\u200bl m\u200dn o\u00adp q\ufeffr s\u2028t u\ue000v", "a\u00a0b\u2000c\u3000d\x0be\x0cf\x1cg\x1fh\u1680i",
    "中a文b 字\u0301符 \u4e00\u9fff\u3400\u4dbf\u4dc0\u9fa6 \U00020000\U0002a6df\U0002a700\U0002b740\U0002b820\U0002ceaf\U0002cea1\U0002f800 \uf900\ufaff",
    "かがガｶﾞ ヴ ゔ パ ﾊﾟ か\u3099", "한\u1112\u1161\u11ab 각 갂", "İ ı I i \u0130\u0307 \u1e9e ß ŉ ǰ ΐ ﬀ Σς ΣΑΣ Ǆǅ Ⅳⅳ Ⓐⓐ Ａａ 𐐀𐐨 Ꭰꭰ ᲐაႠⴀ",
    "don't -- it's _under_score_ e-mail @user #tag $5 50% a/b a\\b <br /><br />it's", "¡hola! ¿qué? «x» „y“ ‚z‘ …—–‐ ‰ § ¶ † ‡ • · ※ ⁂ 、。・「」『』【】 ！？（）",
    "$ € ¢ ∑ ∞ © ® ™ ° ± ² ½ × ÷ ^ ` ~ | + < = > ¨ ´ ¸ ˆ ˜", "[CLS] [SEP] [MASK] [PAD] [UNK] [cls] [MASK][MASK] a[MASK]b [ MASK ] [mask",
    "w" * 99, "w" * 100, "w" * 101, "é" * 100, "é" * 101, "e\u0301" * 100, "e\u0301" * 101, "中" * 120, "." * 120, "speed" * 21,
    "##speed ## # ##s #s", "x" * 23 + " " + "y" * 24 + " " + "z" * 25 + " speedspeedspeed thethethethethe", "\u0e01\u0e33\u0e34 \u0e33 नि ক্ষ ക്ഷ ខ្មែរ မြန်မာ བོད་",
    "\u0300 \u0300a \u20dda \u0903a \u0488 \U0001d165 \U000e0100 \ufe0f \u180e\u2066\u202e", "\u16fe1 \U00016fe4 \U0001e000 \U0001e944 \U00010f46 \U00011f00 \U0001e4ec",
    "\t\n\r", "\x01", "\u0301\u0301", "a\tb\nc\rd\r\ne", "The Quick BROWN fox, jumps; over: (the) lazy \"dog\"!?", "3.14 1,000 10:30 2024-01-01 A4 x86_64 C++ U.S.A.",
    "http://www.imdb.com/title/tt0111161/?ref_=fn", "speed,speed.Speed:SPEED the-speed [THE] speed\u0301 sp\u00e9\u00e8d s\u200dpeed",
]


def random_texts(count, seed=7):
    generator = random.Random(seed)
    for _ in range(count):
        text = ""
        for _ in range(generator.randint(1, 24)):
            if generator.random() < 0.25:
                text += generator.choice([" ", "  ", "'s", "\t", "the", "speed", "<x>", "12", " \u0301"])
            else:
                text += chr(generator.randint(*generator.choice(POOLS)))
        yield text


class Maker:
    def __init__(self, source, directory, names):
        self.source, self.directory, self.names = source, directory, names
        self.texts = TEXTS + list(random_texts(60))
        self.more_texts = MORE_TEXTS + list(random_texts(60, seed=8))
        self.write("texts", self.texts)
        self.write("more_texts", self.more_texts)

    def write(self, name, content):
        with open(f"{self.directory}/{name}.json", "w", encoding="utf-8") as out:
            json.dump(content, out, ensure_ascii=True, separators=(",", ":"))
            out.write("\n")

    def make(self, name, change=None, model=None, pre_tokenizer=None, normalizer=None, decoder=None, specials=("<|endoftext|>",),
             bytes_first=False, added=(), post_processor=None, size=420, on_texts=False, **trainer):
        if self.names and name not in self.names:
            return
        is_wordpiece = isinstance(model, models.WordPiece)
        tokenizer = Tokenizer(model or models.BPE())
        if pre_tokenizer:
            tokenizer.pre_tokenizer = pre_tokenizer
        if normalizer:
            tokenizer.normalizer = normalizer
        if decoder:
            tokenizer.decoder = decoder
        alphabet = pre_tokenizers.ByteLevel.alphabet() if bytes_first else []
        trainer_class = trainers.WordPieceTrainer if is_wordpiece else trainers.BpeTrainer
        learner = trainer_class(vocab_size=size, special_tokens=list(specials), initial_alphabet=alphabet, show_progress=False, **trainer)
        if is_wordpiece:
            with open(self.source, encoding="utf-8") as source:
                tokenizer.train_from_iterator([source.read()] + self.texts + self.more_texts, learner)
        elif on_texts:
            tokenizer.train_from_iterator(self.texts, learner)
        else:
            tokenizer.train([self.source], learner)
        tokenizer.add_tokens(list(added))
        if post_processor:
            tokenizer.post_processor = post_processor
        content = json.loads(tokenizer.to_str())
        if change:
            change(content)
            tokenizer = Tokenizer.from_str(json.dumps(content))
        self.write(name, content)
        texts = self.texts + (self.more_texts if is_wordpiece else [])
        plain = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        decoded = [tokenizer.decode(ids, skip_special_tokens=False) for ids in plain[:70]]
        pairs = [tokenizer.encode(*pair) for pair in zip(texts[20:25], texts[21:26])]
        self.write(f"{name}.golden", {"ids": plain, "with_specials": [tokenizer.encode(text).ids for text in self.texts[:10]],
                                      "decoded": decoded, "pairs": [[pair.ids, pair.type_ids] for pair in pairs]})


def without_words(content):
    """Llama's way: no pre-tokenizer, spaces become ▁, bytes are no added tokens."""
    content["pre_tokenizer"] = None
    content["added_tokens"] = content["added_tokens"][:3]
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    content["decoder"] = {"type": "Sequence", "decoders": [back, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                           {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}


def around(first, last, start_id, end_id):
    specials = [(first, start_id)] + ([(last, end_id)] if last else [])
    single = f"{first} $A {last}" if last else f"{first} $A"
    return processors.TemplateProcessing(single=single, pair=f"{single} $B", special_tokens=specials)


def main():
    maker = Maker(sys.argv[1], sys.argv[2], sys.argv[3:])
    byte_level, split = pre_tokenizers.ByteLevel, pre_tokenizers.Split

    def words(regex):
        return pre_tokenizers.Sequence([split(Regex(regex), "isolated"), byte_level(add_prefix_space=False, use_regex=False)])

    maker.make("gpt2", pre_tokenizer=byte_level(add_prefix_space=False), decoder=decoders.ByteLevel(), bytes_first=True)
    maker.make("gpt2_prefix", pre_tokenizer=byte_level(add_prefix_space=True), decoder=decoders.ByteLevel(), bytes_first=True)
    maker.make("llama3", lambda content: content["model"].update(ignore_merges=True), pre_tokenizer=words(LLAMA3),
               decoder=decoders.ByteLevel(), bytes_first=True, specials=("<|begin_of_text|>", "<|end_of_text|>"),
               post_processor=around("<|begin_of_text|>", None, 0, 0))
    maker.make("qwen2", pre_tokenizer=words(QWEN2), normalizer=normalizers.NFC(), decoder=decoders.ByteLevel(), bytes_first=True)
    maker.make("o200k", pre_tokenizer=words(O200K), decoder=decoders.ByteLevel(), bytes_first=True)
    digits = pre_tokenizers.Digits(individual_digits=False)
    maker.make("falcon", pre_tokenizer=pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(behavior="contiguous"), byte_level(add_prefix_space=False), digits, split(Regex("[0-9]{3}"), "isolated")]),
        decoder=decoders.ByteLevel(), bytes_first=True)
    maker.make("llama", without_words, model=models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
               pre_tokenizer=pre_tokenizers.Metaspace(), specials=["<unk>", "<s>", "</s>"] + BYTES, size=600,
               post_processor=around("<s>", None, 1, 0))
    added = [AddedToken("<x>", lstrip=True, rstrip=True, normalized=False), AddedToken("speed", single_word=True, normalized=True)]
    for scheme in ("always", "first"):
        maker.make(f"metaspace_{scheme}", model=models.BPE(unk_token="<unk>"), specials=["<unk>"], added=added, size=250,
                   pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme=scheme), decoder=decoders.Metaspace(prepend_scheme=scheme))
    maker.make("bert_like", model=models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"), specials=["[UNK]", "[CLS]", "[SEP]"],
               normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
               pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True),
                                                      pre_tokenizers.Punctuation()]),
               post_processor=around("[CLS]", "[SEP]", 1, 2), added=[AddedToken("THE Speed", normalized=True)], size=300,
               continuing_subword_prefix="##")
    maker.make("suffix", model=models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=True), specials=["<unk>"], size=300,
               normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " ")]),
               pre_tokenizer=pre_tokenizers.WhitespaceSplit(), decoder=decoders.BPEDecoder(), end_of_word_suffix="</w>")
    maker.make("bert", model=models.BPE(unk_token="[UNK]"), normalizer=normalizers.BertNormalizer(), size=200,
               pre_tokenizer=pre_tokenizers.BertPreTokenizer(), specials=["[UNK]"])
    for behavior in ("removed", "merged_with_previous", "merged_with_next", "contiguous"):
        maker.make(f"split_{behavior}", model=models.BPE(unk_token="<unk>"), specials=["<unk>"], size=200, normalizer=normalizers.NFKD(),
                   pre_tokenizer=pre_tokenizers.Sequence([split(" ", behavior), split(Regex(ODD), behavior, invert=behavior == "contiguous")]))

    roberta = ["<s>", "<pad>", "</s>", "<unk>"]
    maker.make("roberta", pre_tokenizer=byte_level(add_prefix_space=False), decoder=decoders.ByteLevel(), bytes_first=True, specials=roberta,
               added=[AddedToken("<mask>", lstrip=True, normalized=False, special=True)], size=330,
               post_processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False))
    maker.make("word_bpe", model=models.BPE(unk_token="<unk>"), pre_tokenizer=pre_tokenizers.Whitespace(), on_texts=True,
               specials=["<pad>", "<unk>", "<eos>", "<mask>"], size=1400, min_frequency=2)
    make_wordpiece(maker)


def make_wordpiece(maker):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

    def make(name, normalizer, post_processor=None, prefix="##", pre_tokenizer=None, longest=100, **other):
        maker.make(name, model=models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=longest, continuing_subword_prefix=prefix),
                   normalizer=normalizer, pre_tokenizer=pre_tokenizer or pre_tokenizers.BertPreTokenizer(), specials=specials,
                   post_processor=post_processor or processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)),
                   continuing_subword_prefix=prefix, **other)

    bert = normalizers.BertNormalizer
    template = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                             special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    make("wordpiece_uncased", bert(), template, decoder=decoders.WordPiece(), size=2600)
    make("wordpiece_cased", bert(lowercase=False), decoder=decoders.WordPiece(cleanup=False), size=1000, limit_alphabet=300)
    make("wordpiece_bare", bert(lowercase=False, strip_accents=True, clean_text=False, handle_chinese_chars=False), size=1000, limit_alphabet=300)
    make("wordpiece_lowercase", bert(strip_accents=False), size=1000, limit_alphabet=300,
         added=[AddedToken("<x>", lstrip=True, rstrip=True, normalized=False), AddedToken("Speed", single_word=True, normalized=True)])
    make("wordpiece_other", normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), prefix="@@", longest=20, size=800,
         limit_alphabet=200, pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]),
         decoder=decoders.WordPiece(prefix="@@"), post_processor=processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)))


if __name__ == "__main__":
    sys.exit(main())
