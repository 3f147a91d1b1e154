#!/usr/bin/env python3
"""Writes the inputs that the fuzzers begin with, tests/fuzz/corpus/<reader>/, and their dictionaries, tests/fuzz/<reader>.dict.

    scripts/make_fuzz_corpus.py

Files named found_* are inputs that once were findings; they are left as they are. Small on purpose: a fuzzer tries tens of
thousands of changes to them each second.
"""
import base64
import json
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests/fuzz/corpus"


def write(reader, name, content):
    folder = CORPUS / reader
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_dictionary(reader, words):
    escaped = []
    for word in words:
        data = word if isinstance(word, bytes) else word.encode()
        text = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in data)
        escaped.append(f'"{text}"')
    (ROOT / f"tests/fuzz/{reader}.dict").write_text("\n".join(sorted(set(escaped))) + "\n")


def make_jobs():
    write("job", "empty", "{}")
    for example in sorted((ROOT / "examples").glob("*.json")):
        write("job", example.stem, example.read_text())
    write("job", "llama", compact({
        "$schema": "x", "name": "a", "model": {"type": "llama", "n_embd": 128, "n_layers": 2, "heads": 4, "n_kv_heads": 2,
                                               "positions": "rope", "dropout": 0.1, "bias": None, "context": 512},
        "training": {"bf16": True, "lr": 1e-3, "batch_size": "auto", "stop": "1h30m", "gradient_checkpointing": True,
                     "sample_prompts": ["Once", "upon\n\"a\""], "warmup_steps": 10, "seed": 7, "epochs": None}}))
    write("job", "sources", compact({
        "output_dir": "runs/x", "data": {"train": ["a/*.txt", {"path": "b.jsonl", "weight": 0.5, "text_field": "x.y"},
                                                   {"path": "c", "document": "line"}],
                                         "validation": "v.txt", "tokenizer": "t.json", "cache": "/tmp/c"}}))
    write("job", "fine_tune", compact({
        "model": {"from": "m.gguf"}, "training": {"lora_r": 8, "lora_matrices": ["qkv", "up"], "optim": "adamw_torch",
                                                  "max_steps": 100, "grad_clip": 0.5, "save_minutes": 2.5}}))
    write("job", "train_layers", compact({"model": {"from": "m", "num_layers": 6}, "training": {"train_layers": 2, "stop": "2e"}}))
    write("job", "overrides", '{"training": {"max_length": 64, "stop": "500u"}} // a comment\0training.max_steps=10\0'
          'data.train=["a","b"]\0model.d_model=1e2\0output=2024\0training.fp16=true')
    write("job", "pairs", compact({
        "task": "translate", "data": {"train": {"source": "a.en", "target": ["a.de", "b.de"]}, "too_long": "cut",
                                      "validation": {"source": "v.en", "target": "v.de"}, "separate_tokenizers": True}}))
    write("job", "slips", "{\"model\": {\"d_modl\": 3, \"num_heads\": 3, \"norm\": \"rmsnrm\"},\n/* \"x\" */ \"trainin\": {}, "
          "\"training\": {\"seed\": \"1\", \"stop\": \"10Mt\", \"lr\": 2, \"learning_rate\": 2, \"seed\": 1}, \"data\": 3}")
    write("job", "syntax", "{\"model\": {\"d_model\": 3,}")
    declarations = "".join(path.read_text() for path in sorted((ROOT / "src/job").glob("job*_options.cpp")))
    words = set(re.findall(r'"([A-Za-z_.]+)"', declarations))
    write_dictionary("job", [f'"{w.split(".")[-1]}"' for w in words] + ['"auto"', "null", "true", "//", "/*", "*/", "1e400",
                                                                       "\0", "2e", "500u", "10Mt", "30m"])


def added(identifier, content, **flags):
    return {"id": identifier, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True} | flags


def tokenizer(normalizer=None, pre=None, post=None, decoder=None, tokens=("a", "b", "ab", "▁", "t", "▁t", "h", "e", "he"),
              merges=(("a", "b"), ("▁", "t"), ("h", "e")), specials=("<s>",), pairs=False, added_flags=None, **model):
    vocabulary = {token: i for i, token in enumerate(list(specials) + list(tokens))}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(vocabulary[s], s, **(added_flags or {})) for s in specials],
            "normalizer": normalizer, "pre_tokenizer": pre, "post_processor": post, "decoder": decoder,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocabulary, "merges": [list(m) if pairs else " ".join(m) for m in merges]} | model}


def of(kind, **fields):
    return {"type": kind} | fields


def make_tokenizer_jsons():
    def save(name, **parts):
        write("tokenizer_json", name, compact(tokenizer(**parts)))

    def regex(pattern, behavior="Isolated", invert=False):
        return of("Split", pattern={"Regex": pattern}, behavior=behavior, invert=invert)

    save("plain")
    save("byte_level", pre=of("ByteLevel", add_prefix_space=True, use_regex=True, trim_offsets=True), decoder=of("ByteLevel"),
         post=of("ByteLevel"), tokens=("a", "b", "ab", "Ġ", "Ġa", "Ã", "©", "Ã©"), merges=(("a", "b"), ("Ġ", "a"), ("Ã", "©")))
    save("llama", normalizer=of("Sequence", normalizers=[of("Prepend", prepend="▁"),
                                                         of("Replace", pattern={"String": " "}, content="▁")]),
         decoder=of("Sequence", decoders=[of("Replace", pattern={"String": "▁"}, content=" "), of("ByteFallback"), of("Fuse"),
                                          of("Strip", content=" ", start=1, stop=0)]),
         post=of("TemplateProcessing", single=[{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                 pair=[], special_tokens={"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}),
         tokens=("<0x20>", "<0x41>", "<0xC3>", "▁", "t", "▁t", "h", "e", "he"), unk_token="<s>", fuse_unk=True, byte_fallback=True)
    save("bert", normalizer=of("BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
         pre=of("BertPreTokenizer"), specials=("[CLS]", "[SEP]", "[UNK]"), unk_token="[UNK]", continuing_subword_prefix="##",
         tokens=("a", "##b", "ab"), merges=(("a", "##b"),), post=of("BertProcessing", sep=["[SEP]", 1], cls=["[CLS]", 0]))
    save("roberta", post=of("Sequence", processors=[of("RobertaProcessing", sep=["</s>", 1], cls=["<s>", 0]), of("ByteLevel")]),
         specials=("<s>", "</s>"), added_flags={"lstrip": True, "rstrip": True, "normalized": True, "special": False},
         normalizer=of("Lowercase"))
    save("suffix", end_of_word_suffix="</w>", tokens=("a", "b", "b</w>", "ab</w>"), merges=(("a", "b</w>"),), unk_token="<s>",
         pre=of("WhitespaceSplit"), decoder=of("BPEDecoder", suffix="</w>"), normalizer=of("Sequence", normalizers=[
             of("NFKC"), of("Strip", strip_left=True, strip_right=True), of("Replace", pattern={"Regex": r"\s+"}, content=" ")]))
    save("metaspace", pre=of("Metaspace", replacement="▁", prepend_scheme="first", split=True), pairs=True,
         decoder=of("Metaspace", replacement="▁", prepend_scheme="first"), added_flags={"single_word": True})
    save("sequence", pre=of("Sequence", pretokenizers=[of("Punctuation", behavior="Contiguous"), of("Digits", individual_digits=True),
                                                       of("Whitespace"), of("CharDelimiterSplit", delimiter="x")]),
         normalizer=of("Sequence", normalizers=[of("NFD"), of("StripAccents"), of("NFC"), of("NFKD"), of("ByteLevel")]))
    save("split_literal", pre=of("Split", pattern={"String": " "}, behavior="MergedWithPrevious", invert=True), ignore_merges=True)
    save("cl100k", pre=of("Sequence", pretokenizers=[
        regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
        of("ByteLevel", add_prefix_space=False, use_regex=False)]))
    save("qwen", pre=regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
                           r"\s*[\r\n]+|\s+(?!\S)|\s+"))
    save("regex_groups", pre=regex(r"(?<=[a-z])[A-Z]|\d{2,3}|(?:ab)+?c*+|[^\W\d_]{4}|[\p{P}&&[^.]]+|(?>a|b)?+", "Removed"))
    save("regex_places", pre=regex(r"^a|b$|\Ac|d\z|e\Z|\bf\B|(?!g)h|(?<!i)j|\x41|\x{42}|\u0043|[\h\t-\r]", "MergedWithNext"))
    save("regex_names", pre=regex(r"(?i)\p{Letter}|\P{^Lu}|\pN|[^\s\S]|\w\W|\D.*?x{,3}y{2,}|[a[b-d]&&\w]", "Contiguous", True))
    unigram = {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
               "vocab": [["<s>", 0.0], ["▁", -1.5], ["a", -2.0], ["ab", -2.5], ["<0x41>", -3.0], ["b▁", -1.0]]}
    mapped = of("Sequence", normalizers=[of("Nmt"), of("Precompiled", precompiled_charsmap=base64.b64encode(character_map()).decode())])
    metaspace = of("Metaspace", replacement="▁", prepend_scheme="always", split=True)
    save("unigram", pre=metaspace, decoder=metaspace, normalizer=mapped, **unigram)
    save("unigram_of_sentencepiece", pre=metaspace, decoder=metaspace, normalizer=mapped, **unigram, sentencepiece={
        "remove_extra_whitespaces": True, "add_dummy_prefix": True, "ids_from_vocabulary": True, "outside_text": [0], "user_defined": [3],
        "without_id": [["a▁", -1.0]]})
    words = ["unk_id", "vocab", "Unigram", "sentencepiece", "outside_text", "user_defined", "without_id", "ids_from_vocabulary", "Precompiled",
             "precompiled_charsmap", "Nmt", "add_dummy_prefix", "remove_extra_whitespaces", "normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens", "model", "vocab", "merges", "unk_token",
             "Sequence", "normalizers", "pretokenizers", "processors", "decoders", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip",
             "StripAccents", "Prepend", "prepend", "Replace", "BertNormalizer", "ByteLevel", "Split", "Whitespace", "WhitespaceSplit",
             "Metaspace", "Digits", "Punctuation", "BertPreTokenizer", "CharDelimiterSplit", "TemplateProcessing", "BertProcessing",
             "RobertaProcessing", "ByteFallback", "Fuse", "BPEDecoder", "pattern", "String", "Regex", "behavior", "Removed", "Isolated",
             "MergedWithPrevious", "MergedWithNext", "Contiguous", "content", "replacement", "prepend_scheme", "byte_fallback",
             "ignore_merges", "fuse_unk", "continuing_subword_prefix", "end_of_word_suffix", "single_word", "lstrip", "rstrip",
             "normalized", "special", "id", "type", "first", "never", "always", "invert", "dropout"]
    pieces = ["(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i)", "(?i:", "{2,3}", "{1000}", "\\\\p{L}", "\\\\s", "\\\\W", "\\\\b", "&&",
              "[^", "*+", "+?", "▁", "##", "</w>", "<0x41>", "null", "true"]
    write_dictionary("tokenizer_json", [f'"{w}"' for w in words] + pieces)


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text, score, kind):
    return field(1, field(1, text) + field(2, float(score)) + field(3, kind))


def character_map():
    """A becomes "b e": a double array of one key, and the text."""
    units = [0] * 0x143
    units[0] = 0x100 << 10                                      # the children of the root
    units[0x141] = (0x141 ^ 0x142) << 10 | 1 << 8 | ord("A")    # a key ends here
    units[0x142] = 1 << 31                                      # and becomes the text at 0
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + b"b e\0"


def make_sentencepieces():
    base = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)]
    letters = [("▁t", 0, 1), ("he", -1, 1), ("▁the", -2, 1), ("▁", -3, 1), ("t", -4, 1), ("h", -5, 1), ("e", -6, 1)]
    some_bytes = [(f"<0x{b:02X}>", 0, 6) for b in (0x20, 0x41, 0xC3, 0xA9)]

    def save(name, pieces, training, normalizer):
        write("sentencepiece", name, b"".join(piece(*p) for p in pieces) + field(2, training) + field(3, normalizer))

    bpe = field(3, 2)
    save("llama", base + some_bytes + letters, bpe + field(35, 1) + field(41, 1) + field(42, 2),
         field(1, "identity") + field(3, 1) + field(4, 0) + field(5, 1))
    save("no_prefix", base + letters, bpe, field(3, 0) + field(4, 1))
    save("user_defined", base + letters + [("<mask>", 0, 4), ("unused", 0, 5)], bpe + field(41, -1), b"")
    save("unigram", base + letters, field(3, 1), b"")
    save("unigram_mapped", base + some_bytes + letters + [("<x>", 0, 4), ("he▁", -9, 5)], field(3, 1) + field(35, 1),
         field(1, "a") + field(2, character_map()) + field(3, 1) + field(4, 1))
    save("normalizes", base + letters, bpe, field(1, "nmt_nfkc") + field(2, "x"))
    save("suffix_spaces", base, bpe + field(24, 1), b"")
    write("sentencepiece", "fixed_fields", piece("<unk>", 0, 2) + varint(9 << 3 | 1) + bytes(8) + varint(9 << 3 | 5) + bytes(4))


def make_llama2c_tokenizers():
    pieces = [("<unk>", 0), ("\n<s>\n", 0), ("\n</s>\n", 0)] + [(f"<0x{b:02X}>", 0) for b in range(256)]
    pieces += [(" t", 0), ("he", -1), (" the", -2), (" ", -3), ("t", -4), ("h", -5), ("e", -6), ("é", -7)]

    def binary(longest, pieces):
        parts = [struct.pack("<i", longest)]
        for text, score in pieces:
            data = text.encode()
            parts.append(struct.pack("<fi", score, len(data)) + data)
        return b"".join(parts)

    write("llama2c_tokenizer", "whole", binary(7, pieces))
    write("llama2c_tokenizer", "few", binary(7, pieces[:4]))
    write("llama2c_tokenizer", "twice", binary(7, pieces + [("t", 0)]))


def byte_alphabet():
    characters, spare = [], 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            characters.append(chr(byte))
        else:
            characters.append(chr(spare))
            spare += 1
    return characters


def make_gpt2_files():
    tokens = byte_alphabet() + ["Ġt", "he", "Ġthe", "<|endoftext|>"]
    vocabulary = compact({token: i for i, token in enumerate(tokens)})
    write("gpt2_files", "whole", vocabulary + "\0#version: 0.2\nĠ t\nh e\nĠt he\n")
    write("gpt2_files", "carriage_returns", vocabulary + "\0Ġ t\r\nh e\r\n\r\nĠt he")
    write("gpt2_files", "no_merges", vocabulary + "\0#version: 0.2\n")
    write("gpt2_files", "few_tokens", '{"a":0,"b":1,"ab":2}\0a b\n')


def make_json_lines():
    write("json_lines", "plain", 'text\n{"text": "one"}\n\n{"text": "two\\nlines", "n": 1.5e3}\n{"text": null}\n{"text": " "}')
    write("json_lines", "nested", 'a.b.text\n{"a": {"b": {"text": "deep"}}}\r\n{"a.b": {"text": "x"}}\n{"a": [{"b": {"text": "y"}}]}\n')
    write("json_lines", "lists", 'p.0.text\n{"p": [{"text": "one"}, {"text": ["a", null, ["b"]]}]}\n{"p": {"0.text": "é"}}\n')
    write("json_lines", "missing", 'text\n{"content": "x", "b": []}\n')
    write("json_lines", "no_object", 'text\n["a"]\n')
    write("json_lines", "number", 'a\n{"a": 1e400}\n{"a": 3}\n')
    write_dictionary("json_lines", ['"text"', '"a"', "null", "[[", "]]", "{", "}", "\\ud83d\\ude00", "1e400", "a.b", ".0.", "\n"])


def make_safetensors():
    def save(name, header, data, padding=""):
        text = (header if isinstance(header, str) else compact(header)) + padding
        write("safetensors", name, struct.pack("<Q", len(text.encode())) + text.encode() + data)

    def entry(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    save("two", {"__metadata__": {"format": "pt"}, "a": entry("F32", [2, 3], 0, 24), "b": entry("BF16", [4], 24, 32)},
         bytes(range(32)), "   ")
    types = ["F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"]
    sizes = [8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1]
    header, at = {}, 0
    for kind, size in zip(types, sizes):
        header[kind.lower()] = entry(kind, [], at, at + size)
        at += size
    save("all_types", header, bytes(at))
    save("empty_tensor", {"a": entry("F32", [0, 5], 0, 0), "b": entry("U8", [3], 0, 3)}, b"abc")
    save("nothing", "{}", b"")
    save("twice", '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"x")
    save("quantised", {"a": entry("F8_E4M3", [1], 0, 1)}, b"x")
    save("too_large", {"a": entry("F32", [1 << 62, 4], 0, 4)}, b"xxxx")
    write_dictionary("safetensors", [f'"{t}"' for t in types] + ['"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', "[0,1]"])


def gguf_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value):
    """(kind, value), or a list of them with one kind: (kind, [values])."""
    kind, content = value
    formats = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}
    one = (lambda v: gguf_string(v)) if kind == 8 else (lambda v: struct.pack(formats[kind], v))
    if isinstance(content, (list, tuple)):
        return struct.pack("<IIQ", 9, kind, len(content)) + b"".join(one(v) for v in content)
    return struct.pack("<I", kind) + one(content)


def gguf(pairs, tensors, alignment=32, version=3):
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    for key, value in pairs:
        out += gguf_string(key) + gguf_value(value)
    data = b""
    for name, kind, shape in tensors:
        size = {0: 4, 1: 2, 30: 2}.get(kind, 1)
        for length in shape:
            size *= length
        out += gguf_string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        out += struct.pack("<IQ", kind, len(data))
        data += bytes(range(size % 251)) + bytes(size - size % 251)
        data += bytes(-len(data) % alignment)
    return out + bytes(-len(out) % alignment) + data


def make_ggufs():
    shape = [("general.architecture", (8, "llama")), ("llama.block_count", (4, 1)), ("llama.context_length", (4, 32)),
             ("llama.embedding_length", (4, 4)), ("llama.feed_forward_length", (4, 8)), ("llama.attention.head_count", (4, 2)),
             ("llama.attention.head_count_kv", (4, 1)), ("llama.attention.layer_norm_rms_epsilon", (6, 1e-5)),
             ("llama.rope.freq_base", (6, 10000.0)), ("llama.rope.dimension_count", (4, 2))]
    table = [("token_embd.weight", 1, [3, 4]), ("output.weight", 0, [3, 4]), ("blk.0.attn_q.bias", 30, [4]), ("q", 12, [8])]
    write("gguf", "model", gguf(shape, table))
    write("gguf", "values", gguf([(f"v{kind}", (kind, 1)) for kind in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12)] + [("s", (8, "text"))],
                                 [("x", 0, [2])]))
    write("gguf", "arrays", gguf([(f"a{kind}", (kind, [1, 0])) for kind in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12)] +
                                 [("s", (8, ["a", ""])), ("general.alignment", (4, 64))], [("x", 30, [1, 1, 1, 2])], 64, 2))
    byte_level = byte_alphabet() + ["Ġt", "he", "<|endoftext|>", "<|user|>", "<|unused 0|>"]
    write("gguf", "gpt2", gguf([("tokenizer.ggml.model", (8, "gpt2")), ("tokenizer.ggml.pre", (8, "gpt-2")),
                                ("tokenizer.ggml.tokens", (8, byte_level)),
                                ("tokenizer.ggml.token_type", (5, [1] * 258 + [3, 4, 5])),
                                ("tokenizer.ggml.merges", (8, ["Ġ t", "h e"])), ("tokenizer.ggml.eos_token_id", (4, 258)),
                                ("tokenizer.ggml.bos_token_id", (4, 258))], []))
    pieces = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + ["▁", "t", "h", "e", "▁t", "he", "▁the"]
    write("gguf", "llama", gguf([("tokenizer.ggml.model", (8, "llama")), ("tokenizer.ggml.tokens", (8, pieces)),
                                 ("tokenizer.ggml.token_type", (5, [2, 3, 3] + [6] * 256 + [1] * 7)),
                                 ("tokenizer.ggml.scores", (6, [0.0] * 259 + [-float(i) for i in range(7)])),
                                 ("tokenizer.ggml.bos_token_id", (4, 1)), ("tokenizer.ggml.eos_token_id", (4, 2)),
                                 ("tokenizer.ggml.unknown_token_id", (4, 0))], []))
    readable = table[:3]
    write("gguf", "readable", gguf(shape, readable))
    whole = bytearray(gguf(shape, readable))
    at = whole.find(b"output.weight") + len("output.weight") + 4 + 16
    struct.pack_into("<I", whole, at, 1)  # of another type than it has bytes for
    write("gguf", "other_type", bytes(whole))
    struct.pack_into("<IQ", whole, at, 0, 0)  # where the tensor before it is
    write("gguf", "overlap", bytes(whole))
    write("gguf", "other_family", gguf([("tokenizer.ggml.model", (8, "bert")), ("general.architecture", (8, "bert"))], []))
    words = [key for key, _ in shape] + ["general.alignment", "tokenizer.ggml.model", "tokenizer.ggml.tokens", "rope_freqs.weight",
                                         "tokenizer.ggml.token_type", "tokenizer.ggml.merges", "tokenizer.ggml.scores",
                                         "llama.rope.scaling.type", "llama.expert_count", "token_embd.weight"]
    write_dictionary("gguf", words)


def make_jsons():
    write("json", "kinds", '{"a":null,"b":[true,false,-1,18446744073709551615,1.5e-3],"c":{"d":"\\u00e9\\n\\ud83d\\ude00"}}')
    write("json", "twice", '{"a":1,"b":{"c":[{"d":1,"d":2}]},"a":2}')
    write("json", "keys", compact({f"k{i * 7 % 40}": i for i in range(40)}))
    write("json", "deep", "[" * 120 + "]" * 120)
    write("json", "comments", '// a\n{"a": 1, /* b */ "c": [1, 2,]}')
    write("json", "overflow", "[1e400]")
    write("json", "cut", '{"a": "b')
    write_dictionary("json", ["null", "true", "\\u001b", "\\ud800", "1e999", "//", "/*", "{\"a\":", "[[", "]]", "}}"])


def make_run_folders():
    def lines(*values):
        return "".join(compact(value) + "\n" for value in values)

    def folder(job, metrics="", ledger="", samples="", summary="", evaluation=""):
        return "\0".join([compact(job), metrics, ledger, samples, summary, evaluation])

    step = {"step": 10, "epoch": 1, "tokens": 1000, "loss": 5.5, "accuracy": 0.1, "learning_rate": 1e-3, "gradient_norm": 0.5,
            "tokens_per_second": 1000.0, "step_ms": 100.0, "seconds": 1.0, "skipped_updates": 1, "rollbacks": 0,
            "skipped_steps": 2, "loss_scale": 1024.0}
    evaluation = {"step": 20, "epoch": 1, "validation_loss": 4.5, "validation_perplexity": 90.0, "validation_accuracy": 0.2,
                  "validation_accuracy_interval": [0.1, 0.3], "seconds": 2.0}
    start = {"kind": "start", "step": 0, "time": "2026-01-02T03:04:05Z", "host": "h", "process": 1, "cpu": "c", "cores": 2,
             "logical_processors": 2, "memory_bytes": 1 << 30, "system": "s", "threads": 2, "isa": "avx2", "precision": "fp32",
             "peak_gflops": 100.0, "flop_per_token": 1e7, "parameters": 1000, "total_steps": 40, "training_tokens": 500,
             "metrics": [{"name": "loss", "higher_is_better": False, "format": "number", "label": "l", "description": "d"}]}
    stretch = {"kind": "stretch", "epoch": 1, "step": 20, "steps": 20, "tokens": 2000, "sequences": 20, "seconds": 2.0,
               "peak_memory_bytes": 1 << 20, "ledger": {"forward_linear": 1.0, "evaluation": 0.5, "x": 0.5}}
    write("run_folder", "language_model", folder(
        {"training": {"batch_size": 8, "max_steps": 40}}, lines(step, dict(step, step=20, loss=4.9, seconds=2.0), evaluation),
        lines(start, stretch, {"kind": "end", "step": 20, "ended": "finished"}),
        lines({"step": 20, "prompt": "Once", "text": "Once upon", "tokens": 3, "ended": True}, {"step": 20, "prompt": "", "text": ""}),
        compact({"step": 20, "ended": "finished", "parameters": 1000, "wall_seconds": 2.0, "ledger": {"other": 1.0}})))
    write("run_folder", "classifier", folder(
        {"task": "classify", "model": {"type": "bert"}, "training": {"max_steps": 40, "best_by": "accuracy", "teacher": "t"}},
        lines(dict(evaluation, validation_macro_f1=0.5)), lines(start, stretch), evaluation=compact(
            {"examples": 4, "accuracy": 0.5, "macro_f1": 0.4, "weighted_precision": 0.1, "confusion": [[1, 2], [0, 1]], "classes": [
                {"label": "<b>a", "examples": 3, "predictions": 1, "precision": 1, "recall": 0.3, "f1": 0.5},
                {"label": "\u001b[2J", "examples": 1, "predictions": 3, "precision": 0.3, "recall": 1, "f1": 0.5}]})))
    write("run_folder", "numbers", folder(
        {"training": {"warp_drive": [1, 2]}, "task": "<script>"},
        lines(*[dict(step, step=i, loss=loss, seconds=i) for i, loss in enumerate([1e17, 1e17 + 16, 5e-324, -1.5, 1e308, 3])],
              {"step": 3, "validation_<img>": 1e-300, "validation_loss": None}), lines(dict(start, metrics=7), dict(stretch, epoch=2)),
        evaluation=compact({"classes": [{"label": "a"}], "confusion": [{"label": "a", "predicted": "a", "examples": 2}]})))
    write("run_folder", "imported", folder({}, summary=compact({"ended": "imported", "parameters": 5})))
    write_dictionary("run_folder", list(step) + list(evaluation) + list(start) + list(stretch) + [
        "1e17", "100000000000000016", "5e-324", "1e308", "-1", "null", "<script>", "\\u001b", "&quot;", "samples", "imported"])


def make_regexes():
    def save(name, pattern, text):
        write("regex", name, pattern + "\n" + text)

    save("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "They're 12  a\n\n b's é。 ")
    save("o200k", r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+", "aB'S 1234 ;\n")
    save("groups", r"(?<=[a-z])[A-Z]|\d{2,3}|(?:ab)+?c*+|[^\W\d_]{4}|[\p{P}&&[^.]]+|(?>a|b)?+", "aB 12345 ababcc abcd,.;")
    save("places", r"^a|b$|\Ac|d\z|e\Z|\bf\B|(?!g)h|(?<!i)j|\x41|\x{42}|\u0043|[\h\t-\r]", "a\nb c fg h ij ABC\te")
    # Families that take exponential or quadratic time where nothing is remembered.
    for name, pattern in {"stars": "(a*)*b", "pluses": "(a+)+[bc]", "either": "(?:a|aa)+$", "same": "(a|a)*b", "options": "(a?){20}a{20}",
                          "restart": "a+b", "first_fails": "a*b|a", "counted": "((a{1,5}){1,5}){1,5}b", "ahead": "(?=a*b)c|a",
                          "nested_ahead": "(?=.*(?=.*(?=.*b)))c", "possessive": "a*+b|a", "atomic": "(?>(?:a|aa)*)b|a",
                          "behind": "(?<=(a|a)(a|a)(a|a))b", "lazy": "(a*?)*?b", "nothing": "(|a)*b", "too_large": "(?:a{1000}){1000}",
                          "too_deep": "(" * 14 + "a" + ")*" * 14}.items():
        save(name, pattern, "a" * 200)
    save("invalid_text", r".+?|\w\W", b"\xff\xc3\xa9\xe4\xb8".decode("latin-1"))
    words = ["(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i)", "(?i:", "{2,3}", "{1000}", "{0,}", "\\p{L}", "\\s", "\\W", "\\b", "&&", "[^",
             "*+", "+?", "*?", "|", ")*", ")+", "^", "$", "\\A", "\\z"]
    write_dictionary("regex", words)


def make_model_configs():
    llama = {"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "intermediate_size": 48, "vocab_size": 260, "max_position_embeddings": 32, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
             "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "head_dim": 8, "tie_word_embeddings": True,
             "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "sliding_window": None}
    gpt2 = {"model_type": "gpt2", "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": None, "vocab_size": 260, "n_positions": 32,
            "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "resid_pdrop": 0.1, "scale_attn_weights": True}
    bert = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 16, "num_hidden_layers": 2,
            "num_attention_heads": 4, "intermediate_size": 24, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "vocab_size": 24,
            "attention_probs_dropout_prob": 0.1, "classifier_dropout": None, "layer_norm_eps": 1e-12, "type_vocab_size": 2,
            "max_position_embeddings": 20, "id2label": {"0": "no", "1": "yes"}, "problem_type": "single_label_classification"}
    distilbert = {"model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "dim": 16, "n_layers": 2, "n_heads": 4,
                  "hidden_dim": 24, "activation": "gelu", "dropout": 0.1, "seq_classif_dropout": 0.2, "vocab_size": 24}
    for name, config in {"llama": llama, "gpt2": gpt2, "bert": bert, "distilbert": distilbert,
                         "roberta": {**bert, "model_type": "roberta", "pad_token_id": 1},
                         # What a review found accepted, or never to end.
                         "layers_40000": {**llama, "num_hidden_layers": 40000}, "negative_epsilon": {**llama, "rms_norm_eps": -1},
                         "no_rope": {**llama, "rope_theta": 0, "rope_parameters": None},
                         "many_labels": {**bert, "id2label": None, "num_labels": 2**24},
                         "same_label": {**bert, "id2label": {"0": "no", "1": "no"}},
                         "regression": {**bert, "problem_type": "regression"}}.items():
        write("model_config", name, compact(config))
    words = sorted({key for config in (llama, gpt2, bert, distilbert) for key in config} | {"rope_scaling", "num_labels"})
    write_dictionary("model_config", [f'"{w}"' for w in words] + ["1e400", "-1", "null", "16777217", "0.5"])


def make_weight_indexes():
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    write("weight_index", "whole", compact({"metadata": {"total_size": 8}, "weight_map": shards}))
    write("weight_index", "outside", compact({"weight_map": {"a": "../secret", "b": "/etc/passwd"}}))
    write("weight_index", "empty", compact({"weight_map": {}}))
    write("weight_index", "list", compact({"weight_map": ["a"]}))
    write("weight_index", "deep", '{"weight_map": ' + "[" * 2000 + "]" * 2000 + "}")
    write("weight_index", "many", compact({"weight_map": {f"t{i}": "x" for i in range(300)}}))


def make_checkpoint_states():
    state = {"format_version": 1, "step": 5, "cursor": {"epoch": 1, "step": 2}, "tokens_seen": 1000, "best_metrics": {"loss": "1.5"},
             "best_step": 4, "evaluations_without_improvement": 1, "seed": 42, "accumulators": {"loss": "3.25"},
             "guard": {"gradient_norms": ["0.5", "1e-3"], "losses": ["2.5"], "recent_skips": [3], "first_loss": "5", "lowest_loss": "2",
                       "skipped": 1, "rollbacks": 0, "rate_factor": "0.5", "healthy": True},
             "loss_scale": {"scale": "65536", "good_steps": 3, "skipped_steps": 0},
             "clock": {"elapsed_seconds": "12.5", "progress": "0.25"}, "checksums": {"model": "00", "optimizer": ""},
             "choices": {"micro_batch_tokens": 64}, "run_files": {"tokenizer.json": "00"}, "job_fingerprint": "abc"}
    earlier = {key: value for key, value in state.items() if key not in ("guard", "clock", "run_files", "loss_scale", "best_metrics")}
    for name, content in {"whole": state, "earlier": {**earlier, "best_validation_loss": "0.25"},
                          "checksum": {**state, "checksum": "0000000000000000"}, "large_seed": {**state, "seed": 2**64 - 1},
                          "far_cursor": {**state, "cursor": {"epoch": 0, "step": 10**15}},
                          "no_time": {**state, "clock": {"elapsed_seconds": "nan", "progress": "0"}}}.items():
        write("checkpoint_state", name, json.dumps(content, indent=2) + "\n")
    write_dictionary("checkpoint_state", [f'"{w}"' for w in [*state, *state["guard"], "nan", "inf", "-inf", "checksum"]])


def make_labels():
    write("labels", "two", '["negative", "positive"]')
    write("labels", "three", '["a", "é", "c"]')
    write("labels", "numbers", '["0", "1.0", "01"]')
    write("labels", "same", '["no", "yes", "no"]')
    write("labels", "one", '["only"]')
    write("labels", "object", '{"0": "a"}')


def make_aligned():
    write("aligned", "pairs", "16\na house\nthe cat\nein Haus\ndie Katze\n")
    write("aligned", "ends", "5\na\r\nbä\nx\n\n")
    write("aligned", "longer", "2\na\nx\ny\n")


def make_markdown_pages():
    write("markdown_page", "sections", "# A\ntext\n\n## B\nmore *text*\n---\n# A\n## B\n\n### A\ntext\n")
    write("markdown_page", "no_heading", "one\ntwo\n---\n#\n# #\nthree\r\n\rfour")
    write("markdown_page", "tables", "\\begin {table}a & b\\end {table} x \\begin{tabular}{c} 1 \\end{tabular} \\( y \\) \\[ z \\]\n---\n\\( x\n\\) \\]")
    write("markdown_page", "pieces", "<bos># trans ##lat ##ion<eos>\n * * bold * * { \\ a }\n---\n　图像 ##翻译 \n")
    write("markdown_page", "empty", "---\n")
    write_dictionary("markdown_page", ["\n---\n", "# ", " ##", "\\begin{table}", "\\end{table}", "\\begin{tabular}", "\\end{tabular}",
                                       "\\(", "\\)", "\\[", "\\]", "<bos>", " * * ", "\u3000"])


def make_images():
    golden = json.loads((ROOT / "tests/image/golden/images.json").read_text())
    for file in golden["files"]:
        write("image", file["name"], base64.b64decode(file["file"]))
    configs = {case["config"]["image_processor_type"]: case["config"] for case in golden["processed"]}
    for name, config in configs.items():
        write("preprocessor_config", name, compact(config))
    write("preprocessor_config", "old", '{"feature_extractor_type": "ViTFeatureExtractor", "size": 8, "rescale_factor": 0.0078, '
          '"image_mean": 0.5, "image_std": [1, 2, 0.3], "do_rescale": false, "crop_pct": null}')
    write_dictionary("preprocessor_config", ['"shortest_edge"', '"longest_edge"', '"do_', '"crop_size"', "1e400", "-1", "16384",
                                             *(f'"{key}"' for config in configs.values() for key in config)])
    write_dictionary("image", ["IHDR", "PLTE", "IDAT", "IEND", "tRNS", "iCCP", "gAMA", "P2\n", "P3\n", "P5\n", "65535\n", "# x\n",
                               b"\xff\xd8", b"\xff\xc0", b"\xff\xc2", b"\xff\xc4", b"\xff\xda", b"\xff\xdb", b"\xff\xdd",
                               b"\xff\xee\0\x0eAdobe", b"\xff\xd9", "RIFF", "WEBPVP8 ", "WEBPVP8L", "VP8X", "ANIM", b"\xff\xff\xff\xff"])
    write("image_table", "split", 'split train\n{"train_name_list": ["a", "b.png"], "valid_name_list": ["c"], "test_name_list": []}')
    write("image_table", "short_split", 'split validation\n{"train": ["a"], "validation": ["c"]}')
    write("image_table", "texts", 'csv texts\nimage,caption\na.png,"a ""cat"""\nb.png,two\n')
    write("image_table", "no_header", "tsv texts\na.png\tone\nb.jpg\ttwo\n")
    write("image_table", "labels", 'jsonl labels file kind\n{"file": "a.png", "kind": "cat"}\n{"file": "b.png", "kind": 3}\n')


if __name__ == "__main__":
    make_images()
    make_jsons()
    make_run_folders()
    make_jobs()
    make_tokenizer_jsons()
    make_sentencepieces()
    make_llama2c_tokenizers()
    make_gpt2_files()
    make_json_lines()
    make_safetensors()
    make_ggufs()
    make_regexes()
    make_model_configs()
    make_weight_indexes()
    make_checkpoint_states()
    make_labels()
    make_aligned()
    make_markdown_pages()
    files = [f for f in CORPUS.rglob("*") if f.is_file()]
    print(f"{len(files)} inputs, {sum(f.stat().st_size for f in files)} bytes")
