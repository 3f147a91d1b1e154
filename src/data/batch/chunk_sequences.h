// The pieces of documents as sequences of a language model: each row reads a token and predicts the next.
//
//   std::shared_ptr<const Sequences> train = text_sequences(stream, split.train.chunks);
#pragma once

#include <memory>
#include <utility>

#include "data/batch/sequences.h"
#include "data/token_store/chunk_list.h"
#include "data/token_store/token_stream.h"

namespace brisk {

class ChunkSequences final : public Sequences {
 public:
  ChunkSequences(std::shared_ptr<const TokenStream> stream, ChunkList chunks, int64_t text_bytes = 0)
      : stream_(std::move(stream)), chunks_(std::move(chunks)), text_bytes_(text_bytes) {}

  int64_t count() const override { return std::ssize(chunks_); }
  int64_t rows(int64_t index, int /*set*/ = 0) const override { return chunks_[static_cast<size_t>(index)].length; }
  LengthTotals totals(int /*set*/ = 0) const override {
    return {chunks_.longest(), chunks_.rows(), chunks_.squared_rows()};
  }
  int64_t text_bytes() const override { return text_bytes_; }
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

 private:
  std::shared_ptr<const TokenStream> stream_;
  ChunkList chunks_;
  int64_t text_bytes_;
};

// `text_bytes`: as data/corpus/text_bytes.h counts them, where bits per byte are wanted.
inline std::shared_ptr<const Sequences> text_sequences(std::shared_ptr<const TokenStream> stream, ChunkList chunks,
                                                       int64_t text_bytes = 0) {
  return std::make_shared<const ChunkSequences>(std::move(stream), std::move(chunks), text_bytes);
}

}  // namespace brisk
