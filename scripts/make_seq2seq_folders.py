#!/usr/bin/env python3
"""Tiny encoder-decoders of Hugging Face with random weights, and their logits, for tests/models. The folders are committed;
run this again only when one is added:

    python3 scripts/make_seq2seq_folders.py       # writes tests/golden/seq2seq/folders/*

It needs torch and transformers, nothing of brisk. Each folder is what save_pretrained writes, a small vocabulary, and
golden.json: token ids of a source and of what the decoder reads, transformers' logits in float32, and its num_parameters().
"""

import json
import pathlib
import shutil

import torch
from transformers import (BartConfig, BartForConditionalGeneration, BertConfig, EncoderDecoderConfig, EncoderDecoderModel,
                          MarianConfig, MarianMTModel, MBartConfig, MBartForConditionalGeneration, PegasusConfig,
                          PegasusForConditionalGeneration, T5Config, T5ForConditionalGeneration)

from make_encoder_folders import PIECES, randomise, write_wordpiece

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "seq2seq" / "folders"
SOURCE, TARGET = [2, 5, 6, 10, 7, 8, 5, 9, 3], [2, 14, 19, 12, 15]
SPECIALS = dict(pad_token_id=0, bos_token_id=None, eos_token_id=3, decoder_start_token_id=2)
BART = dict(SPECIALS, vocab_size=len(PIECES), d_model=8, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=4, encoder_ffn_dim=12, decoder_ffn_dim=16, max_position_embeddings=20,
            forced_eos_token_id=None)
T5 = dict(SPECIALS, vocab_size=len(PIECES), d_model=8, d_kv=3, d_ff=12, num_layers=1, num_decoder_layers=2, num_heads=2,
          relative_attention_num_buckets=8, relative_attention_max_distance=9)
BERT = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, max_position_embeddings=20,
            type_vocab_size=2, pad_token_id=0)


def two_berts(**encoder):
    config = EncoderDecoderConfig.from_encoder_decoder_configs(
        BertConfig(vocab_size=len(PIECES), **{**BERT, **encoder}),
        BertConfig(vocab_size=len(PIECES), is_decoder=True, add_cross_attention=True, **BERT), **SPECIALS)
    return EncoderDecoderModel(config=config)


MODELS = {
    "marian": lambda: MarianMTModel(MarianConfig(**BART, activation_function="swish", scale_embedding=True)),
    "marian_two": lambda: MarianMTModel(MarianConfig(**{**BART, "vocab_size": 30}, decoder_vocab_size=len(PIECES),
                                                     share_encoder_decoder_embeddings=False, scale_embedding=True)),
    "pegasus": lambda: PegasusForConditionalGeneration(PegasusConfig(**BART, activation_function="relu")),
    "bart": lambda: BartForConditionalGeneration(BartConfig(**BART)),
    "mbart": lambda: MBartForConditionalGeneration(MBartConfig(**BART, activation_function="gelu_new",
                                                               scale_embedding=True)),
    "t5": lambda: T5ForConditionalGeneration(T5Config(**T5)),
    "t5_gated": lambda: T5ForConditionalGeneration(T5Config(**T5, feed_forward_proj="gated-gelu",
                                                            tie_word_embeddings=False)),
    "two_berts": lambda: two_berts(),
    "two_widths": lambda: two_berts(hidden_size=12, num_attention_heads=3, max_position_embeddings=16),
}


def main():
    for seed, (name, make) in enumerate(MODELS.items(), 1):
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        model = make()
        frozen = {key: value.clone() for key, value in model.named_parameters() if not value.requires_grad}
        randomise(model, seed)
        with torch.no_grad():
            for key, value in frozen.items():  # sinusoids stay what they are
                dict(model.named_parameters())[key].copy_(value)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape))
            logits = model(input_ids=torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([TARGET])).logits[0]
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        write_wordpiece(folder)
        rows = [[round(number, 6) for number in row] for row in logits.tolist()]
        (folder / "golden.json").write_text(json.dumps(dict(source=SOURCE, target=TARGET, logits=rows,
                                                            parameters=model.num_parameters())))
        print(f"{name}: {model.num_parameters()} parameters, logits {rows[0][:3]}")


if __name__ == "__main__":
    main()
