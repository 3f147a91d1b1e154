#!/usr/bin/env python3
"""Repeats what README.md and docs/ say of other programs: each command compares brisk with one of them.

    VENV/bin/python scripts/check_other_programs.py tokenizers TOKENIZER TEXT...      tokenizers, sentencepiece, AutoTokenizer
    VENV/bin/python scripts/check_other_programs.py wordpiece TEXT                    the WordPiece trainer of tokenizers
    VENV/bin/python scripts/check_other_programs.py decoder FOLDER TEXT               transformers, a language model
    VENV/bin/python scripts/check_other_programs.py classifier FOLDER TABLE           transformers, a classifier
    VENV/bin/python scripts/check_other_programs.py imports TEXT                      transformers, models that it wrote
    VENV/bin/python scripts/check_other_programs.py exports TEXT TABLE                transformers, models that brisk trained
    VENV/bin/python scripts/check_other_programs.py gguf MODEL TEXT                   llama.cpp
    VENV/bin/python scripts/check_other_programs.py llama2c PROGRAM MODEL             llama2.c's run
    VENV/bin/python scripts/check_other_programs.py tensorboard TEXT                  TensorBoard
    VENV/bin/python scripts/check_other_programs.py training-arguments TEXT           the keys of transformers' TrainingArguments
    VENV/bin/python scripts/check_other_programs.py frozen                            transformers, dropout of frozen layers
    VENV/bin/python scripts/check_other_programs.py pickle                            torch.save of before PyTorch 1.6

docs/testing.md says which claim each of them is for, and what to install. --help of a command tells its options. --brisk
names the program (build/brisk). A line is printed for each comparison; the exit code is 1 if one fails.
"""

import argparse
import dataclasses
import gzip
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

# Nothing is fetched, and only what is compared is printed.
os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error"}
ROOT = pathlib.Path(__file__).resolve().parent.parent


class Check:
    def __init__(self, brisk):
        self.program = brisk
        self.failed = False

    def expect(self, holds, what):
        print(f"{'ok  ' if holds else 'FAIL'} {what}", flush=True)
        self.failed = self.failed or not holds

    def run(self, *arguments, text=None):
        return subprocess.run([self.program, *map(str, arguments)], input=text, capture_output=True)

    def brisk(self, *arguments, text=None):
        result = self.run(*arguments, text=text)
        if result.returncode != 0:
            sys.exit(f"brisk {' '.join(map(str, arguments))}: {result.stderr.decode()}")
        return result.stdout.decode()


def bytes_of(path):
    return gzip.open(path).read() if path.endswith(".gz") else pathlib.Path(path).read_bytes()


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def lines_of(path, limit=None):
    lines = bytes_of(path).decode().split("\n")
    return [line for line in (lines[:-1] if lines[-1] == "" else lines)[:limit]]


# The tokenizers library, sentencepiece, AutoTokenizer


def library_encoder(path):
    """What the other library makes of a line, and its name."""
    path = pathlib.Path(path)
    if path.is_dir():
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(path)
        return lambda lines: tokenizer(lines, add_special_tokens=False)["input_ids"], "AutoTokenizer"
    if path.suffix == ".model":
        import sentencepiece
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        return pieces.encode, "sentencepiece"
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer
    if path.name == "vocab.txt":
        tokenizer = BertWordPieceTokenizer(str(path))
    elif path.name in ("encoder.json", "vocab.json"):
        merges = path.with_name("vocab.bpe" if path.name == "encoder.json" else "merges.txt")
        tokenizer = ByteLevelBPETokenizer(str(path), str(merges))
    else:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return lambda lines: [line.ids for line in tokenizer.encode_batch(lines, add_special_tokens=False)], "tokenizers"


def check_tokenizers(check, arguments):
    encode, library = library_encoder(arguments.tokenizer)
    for path in arguments.texts:
        lines = lines_of(path, arguments.lines)
        if library == "sentencepiece":  # to it, the name of a special token in a text is text
            lines = [line for line in lines if not any(name in line for name in ("<unk>", "<s>", "</s>"))]
        text = "".join(line + "\n" for line in lines).encode()
        before = children_seconds()
        given = check.brisk("tokenizer", "encode", "--tokenizer", arguments.tokenizer, text=text).split("\n")[:-1]
        ours, begin = children_seconds() - before, time.process_time()
        expected = encode(lines)
        theirs = time.process_time() - begin
        expected = [" ".join(map(str, ids)) for ids in expected]
        different = [i for i in range(len(lines)) if given[i] != expected[i]]
        tokens = sum(len(line.split()) for line in expected)
        check.expect(len(given) == len(lines) and not different,
                     f"{path}: {tokens} ids of {len(lines)} lines, {len(different)} lines other than {library}'s")
        print(f"     processor time: brisk {ours:.2f} s, the whole program; {library} {theirs:.2f} s, the call alone")
        for i in different[:3]:
            print(f"     line {i + 1}: {lines[i][:100]!r}\n     brisk    {given[i][:100]}\n     expected {expected[i][:100]}")


def check_lowercasing(check):
    """A vocabulary with capitals that says nothing of them."""
    from transformers import AutoTokenizer
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nApple\napple\n")
        (folder / "config.json").write_text('{"model_type": "bert"}')
        theirs = AutoTokenizer.from_pretrained(folder)("Apple apple", add_special_tokens=False)["input_ids"]
        ours = check.brisk("tokenizer", "encode", "--tokenizer", folder, text=b"Apple apple\n").strip()
    check.expect(theirs == [6, 6] and ours == "5 6", f"of a vocab.txt with capitals, transformers makes {theirs} of 'Apple apple', brisk {ours}")


def check_wordpiece(check, arguments):
    check_lowercasing(check)
    from tokenizers import BertWordPieceTokenizer
    lines = lines_of(arguments.text)

    def library():
        trainer = BertWordPieceTokenizer(lowercase=not arguments.cased, strip_accents=not arguments.cased)
        trainer.train_from_iterator(lines, vocab_size=arguments.vocab_size, min_frequency=2, show_progress=False)
        return set(trainer.get_vocab())

    def own(folder):
        text = pathlib.Path(folder) / "text.txt"
        text.write_text("\n".join(lines))
        check.brisk("tokenizer", "train", "--kind", "wordpiece", *([] if arguments.cased else ["--lowercase"]), "--vocab-size",
                    arguments.vocab_size, "--output", f"{folder}/vocab.txt", text)
        return pathlib.Path(f"{folder}/vocab.txt").read_text()

    with tempfile.TemporaryDirectory() as folder:
        first, again = own(folder), own(folder)
    check.expect(first == again, "brisk trains the same vocabulary again")
    theirs, once_more = library(), library()
    print(f"     two vocabularies of the library differ in {len(theirs - once_more)} of {len(theirs)} entries")
    ours = set(first.split("\n")[:-1])
    other = len(theirs - ours)
    check.expect(len(ours) == len(theirs) and other <= len(theirs) // 100,
                 f"brisk's differs from the library's in {other} of {len(theirs)} entries (at most 1 %: ties)")


# transformers


def check_loading(check, info):
    wrong = [str(key) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in sorted(info[kind])]
    check.expect(not wrong, f"weights that are missing, left over or of another shape: {', '.join(wrong) or 'none'}")


def check_decoder(check, arguments):
    compare_decoder(check, arguments.folder, lines_of(arguments.text), arguments.lines)


def compare_decoder(check, folder, lines, count):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    check_loading(check, info)
    # An evaluated document begins after the end of another; a text that is generated, after the model's bos.
    begin, end = model.config.bos_token_id, model.config.eos_token_id
    context = model.config.max_position_embeddings
    # Whole texts, so that brisk and transformers see each of them in one piece.
    texts = [(line, ids) for line, ids in ((line, tokenizer(line, add_special_tokens=False)["input_ids"]) for line in lines[:10 * count])
             if line.strip() and len(ids) < context][:count]
    largest = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "text.txt"
        for text, ids in texts:
            path.write_text(text)
            targets = torch.tensor(ids + [end])
            with torch.no_grad():
                logits = model.eval()(torch.tensor([[end] + ids])).logits[0].double()
            expected = torch.nn.functional.cross_entropy(logits, targets).item()
            given = json.loads(check.brisk("eval", folder, "--data", path, "--json", "--fp32"))
            if given["tokens"] != len(targets):
                check.expect(False, f"{given['tokens']} tokens instead of {len(targets)}: {text[:60]!r}")
            largest = max(largest, abs(given["loss"] - expected))
    check.expect(texts and largest < 1e-4, f"losses of brisk eval differ from transformers' by at most {largest:.1e}, {len(texts)} texts")
    prompt = texts[0][0]
    ids = [begin] + texts[0][1]
    count = min(40, context - len(ids))
    output = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=count,
                            do_sample=False, eos_token_id=end, pad_token_id=end)[0].tolist()
    expected = tokenizer.decode(output[1:-1] if output[-1] == end else output[1:], clean_up_tokenization_spaces=False)
    given = json.loads(check.brisk("generate", folder, "--temperature", "0", "--prompt", prompt, "--max-tokens", count, "--json"))["text"]
    check.expect(given.strip() == expected.strip(), f"the likeliest {count} tokens are the same: {given[len(prompt):][:50]!r}")
    if given.strip() != expected.strip():
        print(f"     expected {expected[len(prompt):][:50]!r}")


def check_classifier(check, arguments):
    rows = lines_of(arguments.table, arguments.lines and arguments.lines + 1)
    names, rows = rows[0].split("\t"), [row.split("\t") for row in rows[1:]]
    texts = [row[names.index(arguments.text_field)] for row in rows]
    compare_classifier(check, arguments.folder, arguments.run or arguments.folder, texts, arguments.pairs, arguments.max_length)


def neighbours(texts):
    """The second texts of pairs: long ones next to short ones."""
    return texts[1:] + texts[:1]


def compare_classifier(check, folder, run, texts, in_pairs, max_length):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    model, info = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    check_loading(check, info)
    pairs = neighbours(texts) if in_pairs else [None] * len(texts)
    with tempfile.TemporaryDirectory() as temporary:
        table = pathlib.Path(temporary) / "table.jsonl"
        table.write_text("".join(json.dumps({"a": text} | ({"b": pair} if in_pairs else {})) + "\n" for text, pair in zip(texts, pairs)))
        answers = check.brisk("predict", run, "--data", table, "--text-field", "a", *(["--pair-field", "b"] if in_pairs else []),
                              "--fp32", "--max-length", max_length)
    answers = [json.loads(line) for line in answers.splitlines()]
    largest, labels, firsts = 0.0, 0, []
    for text, pair, answer in zip(texts, pairs, answers):
        inputs = tokenizer(text, pair, truncation="longest_first", max_length=max_length, return_tensors="pt")
        with torch.no_grad():
            expected = torch.softmax(model.eval()(**inputs).logits[0], -1)
        given = answer["probabilities"]
        given = torch.tensor([given[model.config.id2label[i]] for i in range(len(expected))])
        largest = max(largest, (given - expected).abs().max().item())
        labels += answer["label"] == model.config.id2label[int(expected.argmax())]
        firsts.append(expected[0].item())
    what = f"{'pairs' if in_pairs else 'texts'} of at most {max_length} tokens"
    check.expect(len(answers) == len(texts) == labels, f"{labels} of {len(texts)} labels are those of brisk predict, {what}")
    # Of a model that answers all texts alike, equal answers say nothing.
    spread = max(firsts) - min(firsts)
    check.expect(largest <= 1e-5 and spread > 0.1, f"probabilities differ by at most {largest:.1e}; from text to text by {spread:.2f}")


def made_models(vocabulary):
    """Small models of every kind that brisk imports, with a name each."""
    import transformers as t
    shape = dict(vocab_size=vocabulary, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
    decoder = dict(bos_token_id=0, eos_token_id=2, pad_token_id=1)
    labels = dict(id2label={0: "bad", 1: "fair", 2: "good"}, label2id={"bad": 0, "fair": 1, "good": 2}, pad_token_id=1)
    return {
        "gpt2": t.GPT2LMHeadModel(t.GPT2Config(vocab_size=vocabulary, n_positions=64, n_embd=32, n_layer=2, n_head=4, **decoder)),
        "llama": t.LlamaForCausalLM(t.LlamaConfig(**shape, **decoder, num_key_value_heads=2, max_position_embeddings=64)),
        "mistral": t.MistralForCausalLM(t.MistralConfig(**shape, **decoder, num_key_value_heads=2, max_position_embeddings=64,
                                                        sliding_window=None)),
        "bert": t.BertForSequenceClassification(t.BertConfig(**shape, **labels, max_position_embeddings=64)),
        "roberta": t.RobertaForSequenceClassification(t.RobertaConfig(**shape, **labels, max_position_embeddings=66, type_vocab_size=1)),
        "distilbert": t.DistilBertForSequenceClassification(t.DistilBertConfig(
            vocab_size=vocabulary, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64, **labels)),
    }


def check_imports(check, arguments):
    import torch
    from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer
    from transformers import BertTokenizerFast, DistilBertTokenizerFast, PreTrainedTokenizerFast, RobertaTokenizerFast
    lines = [line for line in lines_of(arguments.text) if line.strip()]
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        bytes_, words = ByteLevelBPETokenizer(), BertWordPieceTokenizer()
        bytes_.train_from_iterator(lines, vocab_size=600, special_tokens=specials, show_progress=False)
        words.train_from_iterator(lines, vocab_size=600, show_progress=False)
        (temporary / "words").mkdir()
        bytes_.save_model(str(temporary))
        bytes_.save(str(temporary / "tokenizer.json"))
        words.save_model(str(temporary / "words"))
        byte_files = (str(temporary / "vocab.json"), str(temporary / "merges.txt"))
        for name, model in made_models(600).items():
            generator = torch.Generator().manual_seed(1)
            with torch.no_grad():  # larger than usual, so that every weight shows in the answer
                for key, weight in model.named_parameters():
                    noise = 0.2 * torch.randn(weight.shape, generator=generator)
                    weight.copy_(1 + noise if weight.dim() == 1 and key.endswith("weight") else noise)
            tokenizer = (BertTokenizerFast.from_pretrained(str(temporary / "words")) if name == "bert" else
                         DistilBertTokenizerFast.from_pretrained(str(temporary / "words")) if name == "distilbert" else
                         RobertaTokenizerFast(*byte_files) if name == "roberta" else
                         PreTrainedTokenizerFast(tokenizer_file=str(temporary / "tokenizer.json"), bos_token="<s>", eos_token="</s>"))
            for written in ("safetensors", "shards", "bin"):
                print(f"     {name}, {written}:")
                folder = temporary / f"{name}-{written}"
                model.save_pretrained(folder, max_shard_size="20KB" if written == "shards" else "1GB")
                if written == "bin":
                    (folder / "model.safetensors").unlink()
                    torch.save(model.state_dict(), folder / "pytorch_model.bin")
                tokenizer.save_pretrained(folder)
                if "ForCausalLM" in type(model).__name__ or "LMHead" in type(model).__name__:
                    compare_decoder(check, folder, lines, 5)
                else:
                    compare_classifier(check, folder, folder, lines[:50], False, 32)


def check_exports(check, arguments):
    """Models of every kind, trained for a few steps by brisk, which transformers reads. The classes are easy to learn: whether
    a text has the word "the"."""
    lines = lines_of(arguments.text)
    rows = lines_of(arguments.table, 501)
    names, rows = rows[0].split("\t"), [row.split("\t") for row in rows[1:]]
    texts = [row[names.index(arguments.text_field)] for row in rows]
    small = {"d_model": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 1000}
    jobs = {"gpt2": ("language_model", small), "llama": ("language_model", small | {"type": "llama", "num_kv_heads": 2}),
            "bert": ("classify", small), "distilbert": ("classify", small | {"type": "distilbert"}),
            "roberta": ("classify", small | {"type": "roberta"}), "cased": ("classify", small),
            "pairs": ("classify", small), "roberta-words": ("mlm", small | {"type": "roberta"})}
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        (temporary / "table.jsonl").write_text("".join(
            json.dumps({"text": text, "second": second, "label": "yes" if " the " in text else "no"}) + "\n"
            for text, second in zip(texts, neighbours(texts))))
        (temporary / "text.txt").write_text("\n".join(lines))
        for name, (task, model) in jobs.items():
            print(f"     {name}:")
            job = {"task": task, "model": model, "data": {"cache_dir": str(temporary / "cache"), "text_field": "text"},
                   "training": {"max_steps": 150, "batch_size": 16, "max_length": 64, "learning_rate": 0.002}}
            if name == "pairs":
                job["data"]["pair_field"] = "second"
            if name == "cased":
                job["data"]["lowercase"] = False
            (temporary / "job.json").write_text(json.dumps(job))
            run, folder = temporary / name, temporary / (name + "-export")
            data = temporary / ("text.txt" if task == "language_model" else "table.jsonl")
            check.brisk("train", temporary / "job.json", "--data", data, "--output", run)
            check.brisk("export", run, "--format", "huggingface", "--output", folder)
            if task == "language_model":
                compare_decoder(check, folder, lines, 10)
            elif task == "classify":
                compare_classifier(check, folder, run, texts[:100], name == "pairs", 64)
                compare_classifier(check, folder, run, texts[:100], name == "pairs", 12)
            else:
                from transformers import AutoModelForMaskedLM
                check_loading(check, AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)[1])
            arguments.tokenizer, arguments.texts, arguments.lines = str(folder), [arguments.text], 1000
            check_tokenizers(check, arguments)


def check_frozen(check, _):
    import torch
    from transformers import BertConfig, BertModel
    model = BertModel(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)).train()
    for parameter in model.parameters():
        parameter.requires_grad = False
    first, second = (model(torch.tensor([[2, 7, 8, 3]])).last_hidden_state for _ in range(2))
    check.expect(not torch.equal(first, second), "an encoder frozen by requires_grad = False gives two answers to one text: its dropout is on")


def check_training_arguments(check, arguments):
    import transformers
    fields = [field.name for field in dataclasses.fields(transformers.TrainingArguments) if field.init]
    without = []
    for task, table in (("language_model", arguments.text), ("classify", arguments.table)):
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder) / "job.json"
            for name in fields:
                job.write_text(json.dumps({"task": task, "training": {name: {"a": "value"}}}))
                message = check.run("train", job, "--data", table or arguments.text, "--dry-run").stderr.decode()
                if "unknown" in message.lower():
                    without.append(f"{name} ({task})")
    check.expect(not without, f"{len(fields)} keys of transformers {transformers.__version__}, without an answer: {', '.join(without) or 'none'}")


# llama.cpp, llama2.c


def check_gguf(check, arguments):
    import llama_cpp
    import numpy
    from gguf import GGUFReader
    lines = [line for line in lines_of(arguments.text) if line.strip()][:arguments.lines]
    prompt = arguments.prompt or lines[0][:40]

    def generated(path):
        return json.loads(check.brisk("generate", path, "--temperature", "0", "--prompt", prompt, "--max-tokens", arguments.tokens, "--json"))

    with tempfile.TemporaryDirectory() as folder:
        for precision in ("fp32", "bf16", "fp16"):
            path = f"{folder}/{precision}.gguf"
            check.brisk("export", arguments.model, "--format", "gguf", "--precision", precision, "--output", path)
            tensors = len(GGUFReader(path).tensors)
            llama = llama_cpp.Llama(path, n_ctx=512, verbose=False, logits_all=True)
            # Every token that brisk chose is llama.cpp's choice too, or as good up to rounding.
            answer = generated(path)
            before = llama.tokenize(prompt.encode(), add_bos=True)
            ids = llama.tokenize(answer["text"].encode(), add_bos=True)[:len(before) + arguments.tokens]
            llama.eval(ids)
            logits = llama.scores[:len(ids)]
            behind = [float(logits[i - 1].max() - logits[i - 1][ids[i]]) for i in range(len(before), len(ids))]
            check.expect(behind and numpy.max(behind) < 0.05,
                         f"{precision}: {tensors} tensors; of {len(behind)} tokens {sum(gap == 0 for gap in behind)} are llama.cpp's likeliest, the "
                         f"others at most {numpy.max(behind):.3f} behind: {answer['text'][:60]!r}")
        text = "".join(line + "\n" for line in lines).encode()
        ids = check.brisk("tokenizer", "encode", "--tokenizer", arguments.tokenizer or arguments.model, text=text).splitlines()
        different = sum(" ".join(map(str, llama.tokenize(line.encode(), add_bos=False))) != own for line, own in zip(lines, ids))
        check.expect(different == 0, f"{len(lines)} lines, {different} with other ids in llama.cpp")
        settings = llama_cpp.llama_model_quantize_default_params()
        settings.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_F16
        written = f"{folder}/llama.gguf"
        done = llama_cpp.llama_model_quantize(f"{folder}/fp32.gguf".encode(), written.encode(), settings) == 0
        check.expect(done and generated(written)["text"] == generated(f"{folder}/fp16.gguf")["text"],
                     "brisk reads the F16 file that llama.cpp writes")


def check_llama2c(check, arguments):
    model = pathlib.Path(arguments.model)
    tokenizer = next(model.parent.glob("tok*.bin"))
    output = subprocess.run([arguments.program, model, "-z", tokenizer, "-t", "0", "-n", "100"], capture_output=True, check=True)
    expected = output.stdout.decode().strip()
    given = check.brisk("generate", model, "--temperature", "0", "--max-tokens", 99).strip()
    check.expect(expected.startswith(given) or given.startswith(expected), f"the same text as llama2.c: {given[:60]!r}")


# TensorBoard


def scalars_of(events):
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def check_events(check, events, run, when):
    scalars = scalars_of(events)
    twice = [tag for tag, values in scalars.items() if len({step for step, _ in values}) != len(values)]
    check.expect(not twice, f"{when}: {len(scalars)} scalars, no step twice: {', '.join(twice) or 'none'}")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for tag, key in (("loss/train", "loss"), ("loss/validation", "validation_loss"), ("learning_rate", "learning_rate")):
        wanted = {line["step"]: line[key] for line in lines if key in line}
        found = dict(scalars.get(tag, []))
        same = wanted.keys() == found.keys() and all(abs(wanted[step] - found[step]) <= 1e-6 * abs(wanted[step]) + 1e-12 for step in wanted)
        check.expect(same, f"{when}: {tag} has the {len(wanted)} values of metrics.jsonl")


def check_tensorboard(check, arguments):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    # Logged often and saved seldom, so that a kill leaves events after the last checkpoint.
    job = {"model": {"d_model": 64, "num_layers": 2, "vocab_size": 1000},
           "training": {"max_length": 64, "batch_size": 16, "max_steps": 600, "logging_steps": 5, "eval_steps": 100, "save_steps": 150,
                        "save_minutes": 0, "histogram_steps": 100, "sample_prompts": ["The"], "sample_tokens": 8}}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "job.json").write_text(json.dumps(job))
        run = folder / "run"
        training = subprocess.Popen([check.program, "train", folder / "job.json", "--data", arguments.text, "--output", run],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        metrics = run / "metrics.jsonl"
        while training.poll() is None and time.monotonic() < deadline and not (metrics.exists() and '"step": 220' in metrics.read_text()):
            time.sleep(0.005)
        training.send_signal(signal.SIGKILL)
        training.wait()
        events = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0, "histograms": 0})
        events.Reload()
        killed = max((step for step, _ in scalars_of(events).get("loss/train", [(0, 0)])), default=0)
        check.brisk("train", run, "--resume")
        begins = sorted(int(path.name.split("-")[1]) for path in (run / "checkpoints").glob("step-*"))
        print(f"     killed after step {killed}; checkpoints {begins}")
        events.Reload()
        check_events(check, events, run, "open while the run was resumed")
        fresh = EventAccumulator(str(run / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0, "histograms": 0})
        fresh.Reload()
        check_events(check, fresh, run, "opened afterwards")
        tags = fresh.Tags()
        names = [tag for kind in ("scalars", "tensors", "histograms") for tag in tags[kind]]
        for wanted in ("accuracy/train", "perplexity/validation", "gradient_norm", "speed/", "ledger_percent/", "job", "samples/",
                       "parameters/", "gradients/"):
            check.expect(any(name.startswith(wanted) for name in names), f"there is {wanted}")


# PyTorch's files


def check_pickle(check, _):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        config = GPT2Config(vocab_size=257, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=256, eos_token_id=256)
        model = GPT2LMHeadModel(config)
        config.architectures = ["GPT2LMHeadModel"]
        config.save_pretrained(folder)
        text = folder / "text.txt"
        text.write_text("a text of bytes, and another text of bytes " * 20)
        check.brisk("tokenizer", "train", "--vocab-size", "257", "--output", folder / "tokenizer.json", text)
        weights = folder / "pytorch_model.bin"
        state = {key: value for key, value in model.state_dict().items() if key != "lm_head.weight"}
        torch.save(state, weights, _use_new_zipfile_serialization=False)
        refused = check.run("generate", folder, "--prompt", "a")
        message = refused.stderr.decode()
        check.expect(refused.returncode == 2, f"a file as PyTorch before 1.6 wrote it is refused: {message.strip()[:300]!r}")
        line = next((part for part in message.replace("`", "\n").split("\n") if "torch.load" in part), "")
        print(f"     the line that converts it: {line.strip()}")
        if "python" in line:
            command = line[line.index("python"):].strip().replace("FILE", str(weights))
            done = subprocess.run(["bash", "-c", f"PATH={pathlib.Path(sys.executable).parent}:$PATH; {command}"], capture_output=True)
            check.expect(done.returncode == 0, f"that line runs {done.stderr.decode()[-200:]!r}")
        check.expect(check.run("generate", folder, "--prompt", "a").returncode == 0, "and brisk reads what it wrote")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brisk", default=str(ROOT / "build" / "brisk"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name, function, about):
        command = commands.add_parser(name, help=about, description=about)
        command.set_defaults(function=function)
        return command

    command = add("tokenizers", check_tokenizers, "ids of every line of texts")
    command.add_argument("tokenizer", help="tokenizer.json, .model, encoder.json, vocab.json, vocab.txt, or a folder for AutoTokenizer")
    command.add_argument("texts", nargs="+", help="UTF-8, plain or .gz")
    command.add_argument("--lines", type=int, help="only the first lines of each")
    command = add("wordpiece", check_wordpiece, "a WordPiece vocabulary trained on a text")
    command.add_argument("text")
    command.add_argument("--vocab-size", type=int, default=5000)
    command.add_argument("--cased", action="store_true")
    command = add("decoder", check_decoder, "losses and the likeliest continuation of a Hugging Face folder")
    command.add_argument("folder", help="what transformers or brisk export wrote")
    command.add_argument("text")
    command.add_argument("--lines", type=int, default=20)
    command = add("classifier", check_classifier, "answers of a Hugging Face folder to the rows of a .tsv with a header")
    command.add_argument("folder")
    command.add_argument("table")
    command.add_argument("--run", help="the run that it was exported of, to ask that")
    command.add_argument("--text-field", default="text")
    command.add_argument("--pairs", action="store_true", help="each row and the next one as a pair")
    command.add_argument("--max-length", type=int, default=32, help="short, so that texts are cut")
    command.add_argument("--lines", type=int)
    command = add("imports", check_imports, "small models and tokenizers that transformers makes and writes, in every kind of weight file")
    command.add_argument("text")
    command = add("exports", check_exports, "small models of every kind that brisk trains and exports")
    command.add_argument("text")
    command.add_argument("table", help="a .tsv with a header")
    command.add_argument("--text-field", default="text")
    command = add("gguf", check_gguf, "the likeliest continuation in llama.cpp, of files that brisk and llama.cpp wrote")
    command.add_argument("model", help="a run or another model of Llama's shape")
    command.add_argument("text")
    command.add_argument("--tokenizer", help="the model's, where it does not come with it")
    command.add_argument("--lines", type=int, default=200)
    command.add_argument("--prompt", help="the text that is continued (its first line)")
    command.add_argument("--tokens", type=int, default=40)
    command = add("llama2c", check_llama2c, "the likeliest text of llama2.c's program")
    command.add_argument("program", help="its run, compiled")
    command.add_argument("model", help="its .bin, with tok*.bin next to it")
    command = add("tensorboard", check_tensorboard, "what TensorBoard reads of a run that was killed and resumed")
    command.add_argument("text")
    command = add("training-arguments", check_training_arguments, "each key of TrainingArguments in a job")
    command.add_argument("text")
    command.add_argument("--table", help="labelled rows, to ask a classifier's job too")
    add("frozen", check_frozen, "what requires_grad = False leaves on")
    add("pickle", check_pickle, "a pytorch_model.bin of an old PyTorch")
    arguments = parser.parse_args()
    check = Check(arguments.brisk)
    arguments.function(check, arguments)
    sys.exit(1 if check.failed else 0)


if __name__ == "__main__":
    main()
