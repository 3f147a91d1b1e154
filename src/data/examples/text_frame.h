// A text, or a pair of texts, as rows of a micro-batch: its tokens within the special tokens of the model's kind.
//
//   TextFrame frame(*tokenizer, /*pairs=*/false);
//   frame.append({tokens, {}}, /*max_length=*/128, /*sequence=*/0, batch);     // [CLS] tokens [SEP]
//   append_picked_first(batch, label, /*weight=*/1);                           // the row that a classifier reads
//
// What does not fit into max_length rows is cut off the end of a text; of two texts, off the longer one until both are
// as long, as Hugging Face's longest_first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "data/batch/batch.h"
#include "text/tokenizer.h"

namespace brisk {

// The row set of the rows whose outputs matter: the first of each text, or the masked ones. It is derived from set 0.
constexpr size_t kPickedSet = 1;

class TextFrame {
 public:
  TextFrame() = default;
  TextFrame(const Tokenizer& tokenizer, bool pairs);
  explicit TextFrame(bool pairs) : pairs_(pairs) {}  // no special tokens

  struct Texts {
    std::span<const TokenId> first, second;
  };
  struct Lengths {
    int64_t first = 0, second = 0;
  };

  int64_t specials() const;  // rows besides those of the texts
  bool pairs() const { return pairs_; }
  const SequenceTemplate& around() const { return around_; }

  // How much of texts of these lengths is left within max_length rows.
  Lengths truncated(Lengths texts, int64_t max_length) const;
  int64_t rows(Lengths texts, int64_t max_length) const {
    const Lengths left = truncated(texts, max_length);
    return left.first + left.second + specials();
  }

  // One more sequence of row set 0: tokens, types, position, sequence; targets are -1. Nothing is picked yet.
  void append(const Texts& texts, int64_t max_length, int32_t sequence, MicroBatch& batch) const;

  // The same with the texts written in place by copy(text 0 or 1, count, out): for those that lie in a file.
  using Copy = std::function<void(int text, int64_t count, TokenId* out)>;
  void append(Lengths texts, const Copy& copy, int64_t max_length, int32_t sequence, MicroBatch& batch) const;

 private:
  bool pairs_ = false;
  SequenceTemplate around_;
};

// Row set 1 gets the first row of the sequence that was appended last. A weight other than 1 once means weights for all.
void append_picked_first(MicroBatch& batch, int32_t label, float weight = 1);

}  // namespace brisk
