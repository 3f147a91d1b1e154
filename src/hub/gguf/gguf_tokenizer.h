// A tokenizer as llama.cpp keeps it in the metadata of a GGUF file (tokenizer.ggml.*): "gpt2" is byte-level BPE with
// its merges, "llama" SentencePiece with its scores.
//
//   set_tokenizer(writer, tokenizer, vocab_size);
//   std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(file);
#pragma once

#include <cstdint>
#include <memory>

#include "hub/gguf/gguf.h"
#include "text/tokenizer.h"

namespace brisk {

// A model may have more entries than its tokenizer; the rest is named "<|unused 0|>", ...
void set_tokenizer(GgufWriter& writer, const Tokenizer& tokenizer, int64_t vocab_size);

std::unique_ptr<Tokenizer> tokenizer_of(const GgufFile& file);

}  // namespace brisk
