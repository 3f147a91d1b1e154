#include "data/examples/text_frame.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace brisk {

TextFrame::TextFrame(const Tokenizer& tokenizer, bool pairs)
    : pairs_(pairs), around_(pairs ? tokenizer.pair_template() : tokenizer.single_template()) {}

int64_t TextFrame::specials() const {
  return std::ssize(around_.prefix) + (pairs_ ? std::ssize(around_.middle) : 0) + std::ssize(around_.suffix);
}

TextFrame::Lengths TextFrame::truncated(Lengths texts, int64_t max_length) const {
  const int64_t room = std::max<int64_t>(0, max_length - specials());
  if (!pairs_) return {std::min(texts.first, room), 0};
  if (texts.first + texts.second <= room) return texts;
  const bool first_is_longer = texts.first > texts.second;
  const int64_t shorter = std::min(std::min(texts.first, texts.second), room / 2);
  const int64_t longer = room - shorter;
  return first_is_longer ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

void TextFrame::append(const Texts& texts, int64_t max_length, int32_t sequence, MicroBatch& batch) const {
  append(
      {std::ssize(texts.first), std::ssize(texts.second)},
      [&](int text, int64_t count, TokenId* out) {
        std::copy_n((text == 0 ? texts.first : texts.second).begin(), count, out);
      },
      max_length, sequence, batch);
}

void TextFrame::append(Lengths texts, const Copy& copy, int64_t max_length, int32_t sequence, MicroBatch& batch) const {
  const Lengths left = truncated(texts, max_length);
  const int64_t rows = left.first + left.second + specials();
  BRISK_CHECK(rows > 0, "a sequence without rows");
  MicroBatch::Set& set = batch.sets[0];
  const auto begin = static_cast<std::ptrdiff_t>(set.tokens.size());
  const auto put = [&](const std::vector<TokenId>& tokens) {
    set.tokens.insert(set.tokens.end(), tokens.begin(), tokens.end());
  };
  const auto put_text = [&](int text, int64_t count) {
    const size_t at = set.tokens.size();
    set.tokens.resize(at + static_cast<size_t>(count));
    if (count > 0) copy(text, count, set.tokens.data() + at);
  };
  put(around_.prefix);
  put_text(0, left.first);
  if (pairs_) put(around_.middle);
  set.types.resize(set.tokens.size(), 0);
  if (pairs_) put_text(1, left.second);
  put(around_.suffix);
  set.types.resize(set.tokens.size(), pairs_ && around_.second_type ? 1 : 0);
  set.targets.resize(set.tokens.size(), -1);
  set.position.resize(set.tokens.size());
  std::iota(set.position.begin() + begin, set.position.end(), 0);
  set.sequence.resize(set.tokens.size(), sequence);
  set.end_sequence(set.tokens.size());
}

void append_picked_first(MicroBatch& batch, int32_t label, float weight) {
  MicroBatch::Set& picked = batch.derived_set(kPickedSet, 0);
  const MicroBatch::Set& rows = batch.sets[0];
  const int32_t row = rows.starts[rows.starts.size() - 2];
  if (weight != 1 && picked.weights.empty()) picked.weights.assign(picked.source.size(), 1.0f);
  const bool weighted = weight != 1 || !picked.weights.empty();
  if (weighted) picked.weights.push_back(weight);
  picked.source.push_back(row);
  picked.position.push_back(0);
  picked.sequence.push_back(rows.sequence[static_cast<size_t>(row)]);
  picked.targets.push_back(label);
  picked.end_sequence(picked.source.size());
}

}  // namespace brisk
