#include "data/examples/pair_sequences.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace brisk {

std::vector<TokenId> PairFrame::source(std::span<const TokenId> tokens, int64_t limit) const {
  const auto kept = std::min(std::ssize(tokens), limit - source_rows(0));
  std::vector<TokenId> rows = source_prefix;
  rows.insert(rows.end(), tokens.begin(), tokens.begin() + kept);
  rows.insert(rows.end(), source_suffix.begin(), source_suffix.end());
  return rows;
}

PairFrame pair_frame_of(const Tokenizer& source, const Tokenizer& target, int64_t first_token) {
  PairFrame frame;
  SequenceTemplate around = source.single_template();
  frame.source_prefix = std::move(around.prefix);
  frame.source_suffix = std::move(around.suffix);
  // A vocabulary of a language model adds nothing: the encoder sees where the text ends all the same.
  if (frame.source_prefix.empty() && frame.source_suffix.empty() && source.end_of_document())
    frame.source_suffix.push_back(*source.end_of_document());
  const std::optional<TokenId> end = target.end_of_document();
  if (!end) user_error("the tokenizer has no token that ends a text (</s>, [SEP], <|endoftext|>); use one that has it");
  frame.end = *end;
  std::optional<TokenId> start = target.start_of_text();
  for (const char* padding : {"<pad>", "[PAD]"}) start = start ? start : target.token_id(padding);
  frame.start = start.value_or(*end);
  if (first_token < 0) return frame;
  frame.start = static_cast<TokenId>(first_token);
  frame.target_prefix = target.single_template().prefix;
  if (frame.target_prefix == std::vector<TokenId>{frame.start}) frame.target_prefix.clear();
  return frame;
}

void check_room_for_pairs(const PairFrame& frame, const PairLimits& limits) {
  const int64_t least = std::max(frame.source_rows(1), frame.target_rows(1));
  if (limits.source >= frame.source_rows(1) && limits.target >= frame.target_rows(1)) return;
  user_error("training.max_length = {}: special tokens are added to each text; use {} or more",
             std::min(limits.source, limits.target), least);
}

FittingPairs fitting_pairs(const ExampleSet& pairs, const PairFrame& frame, const PairLimits& limits, TooLong rule) {
  FittingPairs fitting;
  ChunkListBuilder kept(pairs.data().cache_directory());
  for (int64_t i = 0; i < pairs.count(); ++i) {
    const TextFrame::Lengths lengths = pairs.data().lengths_of(pairs.row_of(i));
    const bool long_source = frame.source_rows(lengths.first) > limits.source;
    const bool long_target = frame.target_rows(lengths.second) > limits.target;
    fitting.long_sources += long_source;
    fitting.long_targets += long_target;
    fitting.too_long += long_source || long_target;
    if (rule == TooLong::cut || !(long_source || long_target)) kept.add(pairs.rows()[static_cast<size_t>(i)]);
  }
  fitting.pairs = pairs.subset(std::move(kept).finish());
  return fitting;
}

PairSequences::PairSequences(ExampleSet pairs, PairFrame frame, PairLimits limits)
    : pairs_(std::move(pairs)), frame_(std::move(frame)), limits_(limits) {
  for (int64_t i = 0; i < count(); ++i) {
    for (const int set : {0, 1}) totals_[set].add(rows(i, set));
  }
}

int64_t PairSequences::text_tokens(int64_t index, int text) const {
  const TextFrame::Lengths lengths = pairs_.data().lengths_of(pairs_.row_of(index));
  return text == 0 ? std::min(lengths.first, limits_.source - frame_.source_rows(0))
                   : std::min(lengths.second, limits_.target - frame_.target_rows(0));
}

int64_t PairSequences::rows(int64_t index, int set) const {
  const int64_t tokens = text_tokens(index, set);
  return set == 0 ? frame_.source_rows(tokens) : frame_.target_rows(tokens);
}

std::vector<TokenId> PairSequences::tokens(int64_t index, int text) const {
  const int64_t row = pairs_.row_of(index);
  const TextFrame::Lengths lengths = pairs_.data().lengths_of(row);
  std::vector<TokenId> tokens(static_cast<size_t>(text == 0 ? lengths.first : lengths.second));
  if (!tokens.empty()) pairs_.data().copy(pairs_.data().place_of(row, text), std::ssize(tokens), tokens.data());
  return tokens;
}

void append_rows(MicroBatch::Set& set, std::span<const TokenId> tokens, std::span<const TokenId> targets,
                 int32_t sequence) {
  const size_t begin = set.tokens.size(), end = begin + tokens.size();
  set.tokens.insert(set.tokens.end(), tokens.begin(), tokens.end());
  set.targets.insert(set.targets.end(), targets.begin(), targets.end());
  set.position.resize(end);
  std::iota(set.position.begin() + static_cast<std::ptrdiff_t>(begin), set.position.end(), 0);
  set.sequence.resize(end, sequence);
  set.end_sequence(end);
}

void PairSequences::append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const {
  const int64_t row = pairs_.row_of(index);
  const auto put_text = [&](int text, std::vector<TokenId>& to) {
    const size_t at = to.size();
    const int64_t count = text_tokens(index, text);
    to.resize(at + static_cast<size_t>(count));
    if (count > 0) pairs_.data().copy(pairs_.data().place_of(row, text), count, to.data() + at);
  };
  std::vector<TokenId> source = frame_.source_prefix;
  put_text(0, source);
  source.insert(source.end(), frame_.source_suffix.begin(), frame_.source_suffix.end());
  append_rows(batch.sets[0], source, {}, sequence);

  std::vector<TokenId> target = {frame_.start};
  target.insert(target.end(), frame_.target_prefix.begin(), frame_.target_prefix.end());
  put_text(1, target);
  target.push_back(frame_.end);
  const std::span<const TokenId> all = target;
  append_rows(batch.sets[kTargetSet], all.first(all.size() - 1), all.subspan(1), sequence);
}

}  // namespace brisk
