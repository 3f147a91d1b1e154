// Which tokens of a text a masked language model has to guess, and what it is shown instead.
//
//   Masker masker(*tokenizer, {.probability = 0.15, .seed = 7});
//   frame.append(texts, 128, sequence, batch);
//   masker.append_picked(epoch, index, batch);        // masks rows of the sequence that was appended last
//
// Of the tokens of a text, special ones left out, a fixed number is picked: probability x tokens, rounded, at least
// one, as BERT's own data was made; so the rows to predict are known before, to the last one. Of those picked 80 % are
// shown as [MASK], 10 % as a token drawn from the vocabulary, 10 % as they are. All draws are a function of (seed,
// epoch, index) and the position: the same however the step is divided, another in each epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch/batch.h"
#include "text/tokenizer.h"

namespace brisk {

struct MaskingOptions {
  double probability = 0.15;  // of a token to be picked
  double masked = 0.8;        // share of the picked that is shown as [MASK]
  double replaced = 0.1;      // share that is shown as another token
  bool whole_words = false;   // the tokens of a word are picked together
  uint64_t seed = 1;
};

class Masker {
 public:
  Masker(const Tokenizer& tokenizer, const MaskingOptions& options);  // UserError without a mask token

  // Into row set 1.
  void append_picked(int64_t epoch, int64_t index, MicroBatch& batch) const;

  int64_t specials() const { return specials_; }  // tokens around a text, which are not picked

 private:
  struct Word {
    int32_t begin, end;  // rows, of which all may be picked
    uint64_t draw;
  };

  bool may_be_picked(TokenId token) const { return !special_[static_cast<size_t>(token)]; }
  std::vector<int32_t> pick_rows(uint64_t key, int32_t begin, int32_t end, const MicroBatch::Set& set) const;

  MaskingOptions options_;
  TokenId mask_;
  int64_t vocab_size_, specials_;
  std::vector<bool> special_, continues_;  // [V]
};

// Rows that a micro-batch of so many rows can have picked, at most, whatever its sequences are.
int64_t most_picked(double probability, int64_t specials, int64_t rows);

}  // namespace brisk
