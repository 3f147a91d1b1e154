// Texts and their translations as sequences of two row sets: the source in set 0, the target in set 1. Both are ragged;
// a pair has rows of its own in each.
//
//   const PairFrame frame = pair_frame_of(source_tokenizer, target_tokenizer);
//   ExampleSet pairs(open_examples(table, {source_tokenizer, target_tokenizer}, cache_directory));
//   FittingPairs fit = fitting_pairs(pairs, frame, {.source = 128, .target = 128}, TooLong::skip);
//   auto train = std::make_shared<const PairSequences>(fit.pairs, frame, limits);
//
// Set 0 has the source's tokens. Set 1 has what the decoder reads and predicts: tokens `start t1 t2 t3`, targets
// `t1 t2 t3 end`.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/batch/sequences.h"
#include "data/examples/examples.h"
#include "text/tokenizer.h"

namespace brisk {

// The row set of the targets.
constexpr size_t kTargetSet = 1;

// The special tokens around a source and a target.
struct PairFrame {
  std::vector<TokenId> source_prefix, source_suffix;
  TokenId start = 0;                   // what the decoder reads first
  std::vector<TokenId> target_prefix;  // that begins every target
  TokenId end = 0;                     // of a target

  int64_t source_rows(int64_t tokens) const { return std::ssize(source_prefix) + tokens + std::ssize(source_suffix); }
  int64_t target_rows(int64_t tokens) const { return std::ssize(target_prefix) + tokens + 1; }

  // The rows of a source, cut at `limit` of them.
  std::vector<TokenId> source(std::span<const TokenId> tokens, int64_t limit) const;
};

// As the tokenizers' files say: what they put around a text, their start of a text, or the padding token as Marian and T5
// begin with it, and their end. UserError where the target's has no token for one of them. `first_token`: what the decoder
// reads first, where the model says so (-1: it does not); then what the tokenizer puts before a text begins every target,
// unless it is that token (BART reads </s> and says <s> first).
PairFrame pair_frame_of(const Tokenizer& source, const Tokenizer& target, int64_t first_token = -1);

struct PairLimits {
  int64_t source = 128, target = 128;  // rows of each
};

// UserError where the limits leave no room for a token.
void check_room_for_pairs(const PairFrame& frame, const PairLimits& limits);

enum class TooLong : uint8_t { skip, cut };

// Of pairs of which a side is longer than its limit: how many there are, and the others, or all of them, to be cut.
struct FittingPairs {
  ExampleSet pairs;
  int64_t long_sources = 0, long_targets = 0;  // pairs may be both
  int64_t too_long = 0;
};
FittingPairs fitting_pairs(const ExampleSet& pairs, const PairFrame& frame, const PairLimits& limits, TooLong rule);

class PairSequences : public Sequences {
 public:
  // Pairs that are too long lose the ends of their texts; the end token stays.
  PairSequences(ExampleSet pairs, PairFrame frame, PairLimits limits);

  int64_t count() const override { return pairs_.count(); }
  int sets() const override { return 2; }
  int64_t rows(int64_t index, int set = 0) const override;
  LengthTotals totals(int set = 0) const override { return totals_[set == 0 ? 0 : 1]; }
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

  const ExampleSet& pairs() const { return pairs_; }
  const PairFrame& frame() const { return frame_; }
  const PairLimits& limits() const { return limits_; }

  // The tokens of a text, whole and without special ones: 0: the source, 1: the target.
  std::vector<TokenId> tokens(int64_t index, int text) const;

 private:
  int64_t text_tokens(int64_t index, int text) const;  // that fit

  ExampleSet pairs_;
  PairFrame frame_;
  PairLimits limits_;
  LengthTotals totals_[2];
};

// One more sequence of a set: tokens, position, sequence and, where there are any, targets.
void append_rows(MicroBatch::Set& set, std::span<const TokenId> tokens, std::span<const TokenId> targets,
                 int32_t sequence);

}  // namespace brisk
