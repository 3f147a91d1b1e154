#include "data/examples/masking.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/examples/text_frame.h"

namespace brisk {

namespace {

// Tokens to pick of so many.
int64_t picked_of(int64_t tokens, double probability) {
  return std::min(tokens, std::max<int64_t>(1, std::llround(probability * static_cast<double>(tokens))));
}

}  // namespace

Masker::Masker(const Tokenizer& tokenizer, const MaskingOptions& options)
    : options_(options), vocab_size_(tokenizer.vocab_size()) {
  BRISK_CHECK(options.probability > 0 && options.probability < 1, "probability = {}", options.probability);
  const std::optional<TokenId> mask = tokenizer.mask_token();
  if (!mask) {
    user_error(
        "the tokenizer has no mask token ([MASK], <mask>), which task mlm needs to mask tokens; use "
        " a tokenizer that has one (brisk tokenizer train --kind wordpiece)");
  }
  mask_ = *mask;
  const SequenceTemplate around = tokenizer.single_template();
  special_.resize(static_cast<size_t>(vocab_size_), false);
  special_[static_cast<size_t>(mask_)] = true;
  for (const auto* tokens : {&around.prefix, &around.suffix}) {
    for (const TokenId token : *tokens) special_[static_cast<size_t>(token)] = true;
  }
  specials_ = std::ssize(around.prefix) + std::ssize(around.suffix);
  if (!options_.whole_words) return;
  for (TokenId token = 0; token < vocab_size_; ++token) continues_.push_back(tokenizer.continues_word(token));
}

int64_t most_picked(double probability, int64_t specials, int64_t rows) {
  // A sequence of n tokens has n + specials rows and picked_of(n) picked ones. Rounding up and the one at least make the
  // share largest in a short one; past 2 / probability tokens it only comes nearer to the probability.
  double share = 1.0 / static_cast<double>(std::max<int64_t>(1, specials));
  for (int64_t tokens = 1; tokens <= 4 + static_cast<int64_t>(4 / probability); ++tokens) {
    share =
        std::max(share, static_cast<double>(picked_of(tokens, probability)) / static_cast<double>(tokens + specials));
  }
  return std::min(rows, static_cast<int64_t>(std::ceil(share * static_cast<double>(rows))));
}

std::vector<int32_t> Masker::pick_rows(uint64_t key, int32_t begin, int32_t end, const MicroBatch::Set& set) const {
  std::vector<Word> words;
  int64_t tokens = 0;
  for (int32_t row = begin; row < end; ++row) {
    const TokenId token = set.tokens[static_cast<size_t>(row)];
    if (!may_be_picked(token)) continue;
    ++tokens;
    const bool goes_on =
        options_.whole_words && !words.empty() && words.back().end == row && continues_[static_cast<size_t>(token)];
    if (goes_on) {
      words.back().end = row + 1;
    } else {
      words.push_back({row, row + 1, mix64(key ^ mix64(static_cast<uint64_t>(row - begin)))});
    }
  }
  // A text without a token to guess still has a row, so that no sequence is without one: its first, as it is.
  if (tokens == 0) return {begin};
  const int64_t wanted = picked_of(tokens, options_.probability);
  const auto by_draw = [](const Word& a, const Word& b) {
    return a.draw < b.draw || (a.draw == b.draw && a.begin < b.begin);
  };
  std::vector<int32_t> rows;
  if (!options_.whole_words) {
    std::nth_element(words.begin(), words.begin() + (wanted - 1), words.end(), by_draw);
    for (int64_t i = 0; i < wanted; ++i) rows.push_back(words[static_cast<size_t>(i)].begin);
  } else {
    std::sort(words.begin(), words.end(), by_draw);
    for (const Word& word : words) {
      if (std::ssize(rows) + word.end - word.begin > wanted) continue;  // it would be too many
      for (int32_t row = word.begin; row < word.end; ++row) rows.push_back(row);
    }
    if (rows.empty()) {  // every word is longer than that
      for (int32_t row = words[0].begin; row < words[0].begin + wanted; ++row) rows.push_back(row);
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

void Masker::append_picked(int64_t epoch, int64_t index, MicroBatch& batch) const {
  constexpr uint64_t kMaskSite = 0x6D61736B;  // "mask": apart from every other use of the seed
  const uint64_t key =
      random_key({options_.seed, kMaskSite, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)});
  MicroBatch::Set& picked = batch.derived_set(kPickedSet, 0);
  MicroBatch::Set& set = batch.sets[0];
  const int32_t begin = set.starts[set.starts.size() - 2], end = set.starts.back();
  for (const int32_t row : pick_rows(key, begin, end, set)) {
    TokenId& token = set.tokens[static_cast<size_t>(row)];
    picked.source.push_back(row);
    picked.position.push_back(row - begin);
    picked.sequence.push_back(set.sequence[static_cast<size_t>(row)]);
    picked.targets.push_back(token);
    if (!may_be_picked(token)) continue;
    const uint64_t row_key = random_key({key, static_cast<uint64_t>(row - begin)});
    const double what = random_uniform(row_key, 0);
    if (what < options_.masked) {
      token = mask_;
    } else if (what < options_.masked + options_.replaced) {
      const auto other = static_cast<TokenId>(random_uniform(row_key, 1) * static_cast<double>(vocab_size_));
      token = std::min(other, static_cast<TokenId>(vocab_size_ - 1));
    }
  }
  picked.end_sequence(picked.source.size());
}

}  // namespace brisk
