// A tokenizer in the files that AutoTokenizer of Hugging Face reads.
//
//   write_huggingface_tokenizer("export", tokenizer, 1024);
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace brisk {

// Byte-level BPE becomes vocab.json and merges.txt, GPT-2's two files; with them goes tokenizer_config.json, which says
// how to read them, which tokens are special, and the longest text of the model.
void write_huggingface_tokenizer(const std::string& folder, const Tokenizer& tokenizer, int64_t context);

}  // namespace brisk
