#include "text/training/merge_learner.h"

#include "base/error.h"

namespace brisk {

void MergeLearner::add_word(std::span<const TokenId> symbols, int64_t count) {
  BRISK_CHECK(!is_learning_, "a word after the first merge");
  if (symbols.size() >= kNowhere - symbols_.size()) {
    user_error("the texts have more than {} symbols of different words; train the tokenizer on a part of the texts",
               kNowhere - 1);
  }
  const auto begin = static_cast<Place>(symbols_.size());
  const auto end = static_cast<Place>(begin + symbols.size());
  const auto word_number = static_cast<uint32_t>(word_counts_.size());
  word_counts_.push_back(count);
  for (Place place = begin; place < end; ++place) {
    symbols_.push_back(symbols[place - begin]);
    next_.push_back(place + 1 < end ? place + 1 : kNowhere);
    previous_.push_back(place > begin ? place - 1 : kNowhere);
    word_of_.push_back(word_number);
    if (place > begin) add_pair(place - 1, symbols_[place - 1], symbols_[place], count);
  }
}

std::optional<Merge> MergeLearner::learn_next(TokenId result, uint32_t rank) {
  if (!is_learning_) {
    for (uint32_t number = 0; number < pairs_.size(); ++number) queue_pair(number);
    is_learning_ = true;
  }
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    Pair& pair = pairs_[best.number];
    if (pair.count != best.count) {  // it lost some since it was queued; counts never rise again
      queue_pair(best.number);
      continue;
    }
    const Merge merge = {pair.left, pair.right, result, rank};
    join_everywhere(best.number, result);
    return merge;
  }
  return std::nullopt;
}

void MergeLearner::add_pair(Place place, TokenId left, TokenId right, int64_t count) {
  uint32_t& number = numbers_(left, right);
  if (number == PairNumbers::kNone) {
    number = static_cast<uint32_t>(pairs_.size());
    pairs_.push_back({left, right, 0, {}});
  }
  pairs_[number].count += count;
  pairs_[number].places.push_back(place);
}

void MergeLearner::queue_pair(uint32_t number) {
  const Pair& pair = pairs_[number];
  if (pair.count >= min_pair_count_) queue_.push({pair.count, pair.left, pair.right, number});
}

void MergeLearner::join_everywhere(uint32_t number, TokenId result) {
  const size_t pairs_before = pairs_.size();
  const auto [left, right] = std::pair(pairs_[number].left, pairs_[number].right);
  const std::vector<Place> places = std::move(pairs_[number].places);
  for (const Place place : places) {
    const Place second = next_[place];
    if (symbols_[place] != left || second == kNowhere || symbols_[second] != right) continue;
    const int64_t count = word_counts_[word_of_[place]];
    const Place before = previous_[place], after = next_[second];
    if (before != kNowhere) {
      remove_pair(symbols_[before], left, count);
      add_pair(before, symbols_[before], result, count);
    }
    if (after != kNowhere) {
      remove_pair(right, symbols_[after], count);
      add_pair(place, result, symbols_[after], count);
      previous_[after] = place;
    }
    symbols_[place] = result;
    symbols_[second] = kGone;
    next_[place] = after;
  }
  pairs_[number].count = 0;
  pairs_[number].places = {};
  // Only pairs with `result` in them are new, and none of those existed before.
  for (size_t i = pairs_before; i < pairs_.size(); ++i) queue_pair(static_cast<uint32_t>(i));
}

}  // namespace brisk
