// How many bytes of text the tokens of a corpus stand for, and whose text it is: what makes figures of models with
// different tokenizers comparable.
//
//   const std::optional<int64_t> bytes = text_bytes(*stream, part.chunks, *tokenizer);
//   if (bytes) bits_per_byte = loss * rows / std::log(2) / *bytes;
//   text_fingerprint(*stream, part.chunks, *tokenizer);      // of the text alone, whatever the tokenizer
#pragma once

#include <cstdint>
#include <optional>

#include "data/token_store/chunk_list.h"
#include "data/token_store/token_stream.h"
#include "text/tokenizer.h"

namespace brisk {

// Of all targets of the chunks; ends of documents stand for no bytes. Nothing where the tokenizer loses some of the
// text (capitals, unknown characters): what it does not have to predict would make a model look better than it is.
std::optional<int64_t> text_bytes(const TokenStream& stream, const ChunkList& chunks, const Tokenizer& tokenizer);

// Of the documents that the chunks are of, whatever their order. Where a document is not there as a whole, its first
// row and the tokenizer are part of it.
uint64_t text_fingerprint(const TokenStream& stream, const ChunkList& chunks, const Tokenizer& tokenizer);

}  // namespace brisk
