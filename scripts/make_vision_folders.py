#!/usr/bin/env python3
"""Tiny VisionEncoderDecoderModels of Hugging Face with random weights, and their logits, for tests/models. The folders are
committed; run this again only when one is added:

    python3 scripts/make_vision_folders.py       # writes tests/golden/vision/*

It needs torch and transformers, nothing of brisk. Each folder is what save_pretrained writes, a preprocessor_config.json, a
small vocabulary, and golden.json: the pixels of an image, what the decoder reads, and transformers' logits in float32.
"""

import json
import pathlib
import shutil

import torch
from transformers import (BeitConfig, BertConfig, DonutSwinConfig, GPT2Config, MBartConfig, SwinConfig, TrOCRConfig,
                          VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig)

from make_encoder_folders import PIECES, randomise, write_wordpiece

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "vision"
TARGET = [2, 14, 19, 12, 15]
SPECIALS = dict(pad_token_id=0, bos_token_id=2, eos_token_id=3)
WORDS = dict(SPECIALS, vocab_size=len(PIECES), is_decoder=True, add_cross_attention=True)
IMAGE = dict(image_size=8, patch_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12)
SWIN = dict(image_size=[16, 8], patch_size=2, embed_dim=4, depths=[2, 1], num_heads=[1, 2], window_size=2, drop_path_rate=0.0)
BART = dict(WORDS, d_model=8, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=12, max_position_embeddings=12)

MODELS = {
    "vit_gpt2": (ViTConfig(hidden_size=8, **IMAGE),
                 GPT2Config(**WORDS, n_embd=12, n_layer=2, n_head=3, n_positions=10)),
    "dit_bert": (BeitConfig(hidden_size=8, use_absolute_position_embeddings=True, drop_path_rate=0.0, **IMAGE),
                 BertConfig(**WORDS, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
                            max_position_embeddings=10)),
    "swin_trocr": (SwinConfig(**SWIN), TrOCRConfig(**{**BART, "d_model": 12}, cross_attention_hidden_size=8)),
    "donut_mbart": (DonutSwinConfig(**SWIN), MBartConfig(**BART, scale_embedding=True, activation_function="gelu_new")),
}


def main():
    for seed, (name, (encoder, decoder)) in enumerate(MODELS.items(), 1):
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder, decoder_start_token_id=2,
                                                                        pad_token_id=0, eos_token_id=3)
        model = VisionEncoderDecoderModel(config=config).eval()
        randomise(model, seed)
        size = encoder.image_size if isinstance(encoder.image_size, list) else [encoder.image_size] * 2
        image = torch.randint(0, 256, (*size, 3), generator=torch.Generator().manual_seed(seed))
        pixels = ((image.permute(2, 0, 1) / 255 - 0.5) / 0.5)[None]
        with torch.no_grad():
            logits = model(pixel_values=pixels, decoder_input_ids=torch.tensor([TARGET])).logits[0]
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        write_wordpiece(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(
            {"image_processor_type": "ViTImageProcessor", "size": {"height": size[0], "width": size[1]}, "do_resize": True,
             "resample": 2, "do_rescale": True, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}))
        rows = [[round(number, 6) for number in row] for row in logits.tolist()]
        (folder / "golden.json").write_text(json.dumps(dict(size=size, image=image.flatten().tolist(), target=TARGET,
                                                            logits=rows)))
        print(f"{name}: {model.num_parameters()} parameters, logits {rows[0][:3]}")


if __name__ == "__main__":
    main()
