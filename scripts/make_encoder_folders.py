#!/usr/bin/env python3
"""Tiny encoders of Hugging Face with random weights, and their logits, for tests/hub and tests/models. The folders are
committed; run this again only when one is added:

    python3 scripts/make_encoder_folders.py       # writes tests/golden/encoders/*

It needs torch, transformers and safetensors, nothing of brisk. Each folder is what save_pretrained writes, or wrote in
the past, a small vocabulary, and golden.json: token ids, token types and transformers' logits in float32.
"""

import json
import pathlib
import shutil

import torch
from safetensors.torch import load_file
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, BertModel,
                          DistilBertConfig, DistilBertForMaskedLM, DistilBertForSequenceClassification, RobertaConfig,
                          RobertaForMaskedLM, RobertaForSequenceClassification)

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "encoders"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "##s", "##ing", ".", ",", "a",
          "b", "c", "##a", "##b", "##c", "not", "good", "bad", "film"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TOKENS = [2, 5, 6, 10, 7, 8, 5, 9, 3, 14, 19, 12, 3]
TYPES = [0] * 9 + [1] * 4
LABELS = {0: "negative", 1: "neutral", 2: "positive"}

BERT = dict(vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24,
            max_position_embeddings=20, type_vocab_size=2)
DISTILBERT = dict(vocab_size=len(PIECES), dim=16, n_layers=2, n_heads=4, hidden_dim=24, max_position_embeddings=20)


def bytes_as_text():
    """GPT-2's alphabet: printable bytes stand for themselves, the others for the characters from U+0100 on."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def randomise(model, seed):
    """Larger than the usual 0.02, so that every weight and the order of every row shows in the logits."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_(1 + 0.3 * noise if is_gain else 0.3 * noise)
    return model.eval()


def write_wordpiece(folder):
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in PIECES))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}))


def write_byte_level(folder):
    letters = bytes_as_text()
    merges = [("t", "h"), ("th", "e"), (letters[32], "the")]
    tokens = SPECIAL[:4] + letters + [a + b for a, b in merges] + SPECIAL[4:]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}, ensure_ascii=False))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "RobertaTokenizer"}))
    return len(tokens)


def new_folder(name):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write_golden(folder, model, tokens=TOKENS, types=None):
    inputs = dict(input_ids=torch.tensor([tokens]))
    if types is not None:
        inputs["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        output = model(**inputs)
    logits = output.logits if "logits" in output else output.prediction_logits
    rows = [[round(number, 6) for number in row] for row in logits.reshape(-1, logits.shape[-1]).tolist()]
    golden = dict(tokens=tokens, types=types or [0] * len(tokens), logits=rows)
    (folder / "golden.json").write_text(json.dumps(golden))


def with_old_names(tensors):
    return {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
            for name, tensor in tensors.items()}


def save(name, model, tokenizer, **golden):
    folder = new_folder(name)
    model.save_pretrained(folder)
    tokenizer(folder)
    if not isinstance(model, BertModel):
        write_golden(folder, model, **golden)
    return folder


def to_bin(folder, tensors, shards=1):
    """The same tensors as torch.save wrote them before safetensors: whole, or in shards with an index."""
    (folder / "model.safetensors").unlink()
    if shards == 1:
        torch.save(tensors, folder / "pytorch_model.bin")
        return
    names, where = list(tensors), {}
    for i in range(shards):
        file = f"pytorch_model-{i + 1:05d}-of-{shards:05d}.bin"
        part = names[i * len(names) // shards:(i + 1) * len(names) // shards]
        torch.save({name: tensors[name] for name in part}, folder / file)
        where.update({name: file for name in part})
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def main():
    labels = dict(id2label=LABELS, label2id={label: i for i, label in LABELS.items()})
    save("bert", randomise(BertForSequenceClassification(BertConfig(**BERT, **labels)), 1), write_wordpiece, types=TYPES)
    save("bert_mlm", randomise(BertForMaskedLM(BertConfig(**BERT)), 2), write_wordpiece, types=TYPES)
    save("bert_bare", randomise(BertModel(BertConfig(**BERT, hidden_act="gelu_new")), 3), write_wordpiece)

    # As the first files of BERT were: old names, a head for pretraining, a table of positions, in shards.
    model = randomise(BertForPreTraining(BertConfig(**BERT)), 4)
    folder = save("bert_pretraining_bin", model, write_wordpiece, types=TYPES)
    tensors = with_old_names({name: tensor.clone() for name, tensor in model.state_dict().items()})
    tensors["bert.embeddings.position_ids"] = torch.arange(BERT["max_position_embeddings"])[None]
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"]
    to_bin(folder, tensors, shards=2)

    save("distilbert", randomise(DistilBertForSequenceClassification(DistilBertConfig(**DISTILBERT)), 5), write_wordpiece)
    save("distilbert_mlm", randomise(DistilBertForMaskedLM(DistilBertConfig(**DISTILBERT)), 6), write_wordpiece)

    scratch = new_folder("roberta")
    size = write_byte_level(scratch)
    roberta = dict(BERT, vocab_size=size, max_position_embeddings=22, type_vocab_size=1, layer_norm_eps=1e-5,
                   pad_token_id=1, bos_token_id=0, eos_token_id=2)
    tokens = [0, 12, 90, 260, 77, 2]
    model = randomise(RobertaForSequenceClassification(RobertaConfig(**roberta, **labels)), 7).half().float()
    folder = save("roberta", model, write_byte_level, tokens=tokens)
    to_bin(folder, {name: tensor.half() for name, tensor in load_file(folder / "model.safetensors").items()})
    save("roberta_mlm", randomise(RobertaForMaskedLM(RobertaConfig(**roberta)), 8), write_byte_level, tokens=tokens)
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file():
            print(path.relative_to(FOLDER), path.stat().st_size)


if __name__ == "__main__":
    main()
