// Learns BPE merges. The words of the text, each once, lie one after the other as linked symbols; for each pair of
// neighbours we know how often it occurs and where. A merge touches only the places of its pair, so the cost follows
// the number of changes, not the size of the text.
#include <limits>
#include <queue>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/hash.h"
#include "text/tokenizer_files.h"
#include "text/word_counts.h"

namespace brisk {

namespace {

using Place = uint32_t;  // an index into the symbols
constexpr Place kNowhere = std::numeric_limits<Place>::max();
constexpr TokenId kGone = -1;

struct Pair {
  TokenId left, right;
  int64_t count = 0;
  std::vector<Place> places;  // of its left symbol, ascending; some are out of date: a merge took a symbol of it
};

// Pair of tokens to its number in a list of Pairs.
class PairNumbers {
 public:
  uint32_t& operator()(TokenId left, TokenId right) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right));
    if (slot.number == kNone) ++used_;  // the caller gives it a number
    return slot.number;
  }
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t number = kNone;
  };

  Slot& slot_of(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_mix(key, 0) & mask;
    while (slots_[at].number != kNone && slots_[at].key != key) at = (at + 1) & mask;
    slots_[at].key = key;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 1 << 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) slot_of(slot.key).number = slot.number;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class MergeLearner {
 public:
  MergeLearner(std::span<const WordCount> words, int64_t min_pair_count) : min_pair_count_(min_pair_count) {
    size_t symbols = 0;
    for (const WordCount& word : words) symbols += word.word.size();
    if (symbols >= kNowhere) {
      user_error(
          "the texts have {} bytes of different words; training a tokenizer takes at most {}: train it on a part "
          "of the texts",
          symbols, kNowhere - 1);
    }
    symbols_.reserve(symbols);
    for (const WordCount& word : words) add_word(word);
    for (uint32_t number = 0; number < pairs_.size(); ++number) queue_pair(number);
  }

  // The most frequent pair, joined everywhere into `result`; nothing if no pair is frequent enough.
  std::optional<Merge> learn_next(TokenId result, uint32_t rank) {
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

 private:
  struct Candidate {
    int64_t count;
    TokenId left, right;
    uint32_t number;
    bool operator<(const Candidate& other) const {  // the top of the queue is the largest
      if (count != other.count) return count < other.count;
      if (left != other.left) return left > other.left;
      return right > other.right;
    }
  };

  void add_word(const WordCount& word) {
    const auto begin = static_cast<Place>(symbols_.size());
    const auto end = static_cast<Place>(begin + word.word.size());
    const auto word_number = static_cast<uint32_t>(word_counts_.size());
    word_counts_.push_back(word.count);
    for (Place place = begin; place < end; ++place) {
      symbols_.push_back(static_cast<unsigned char>(word.word[place - begin]));
      next_.push_back(place + 1 < end ? place + 1 : kNowhere);
      previous_.push_back(place > begin ? place - 1 : kNowhere);
      word_of_.push_back(word_number);
      if (place > begin) add_pair(place - 1, symbols_[place - 1], symbols_[place], word.count);
    }
  }

  void add_pair(Place place, TokenId left, TokenId right, int64_t count) {
    uint32_t& number = numbers_(left, right);
    if (number == PairNumbers::kNone) {
      number = static_cast<uint32_t>(pairs_.size());
      pairs_.push_back({left, right, 0, {}});
    }
    pairs_[number].count += count;
    pairs_[number].places.push_back(place);
  }

  void remove_pair(TokenId left, TokenId right, int64_t count) { pairs_[numbers_(left, right)].count -= count; }

  void queue_pair(uint32_t number) {
    const Pair& pair = pairs_[number];
    if (pair.count >= min_pair_count_) queue_.push({pair.count, pair.left, pair.right, number});
  }

  void join_everywhere(uint32_t number, TokenId result) {
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

  int64_t min_pair_count_;
  std::vector<TokenId> symbols_;
  std::vector<Place> next_, previous_;
  std::vector<uint32_t> word_of_;
  std::vector<int64_t> word_counts_;
  std::vector<Pair> pairs_;
  PairNumbers numbers_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

TrainedTokenizer train_bpe(std::span<const std::string_view> texts, const BpeTrainingOptions& options) {
  constexpr int64_t kBytes = 256, kSpecials = 1, kMost = int64_t{1} << 30;
  if (options.vocab_size < kBytes + kSpecials || options.vocab_size > kMost) {
    user_error("a vocabulary of {} tokens; expected {} (256 bytes and {}) to {}", options.vocab_size,
               kBytes + kSpecials, kGpt2EndOfDocument, kMost);
  }
  BRISK_CHECK(options.min_pair_count >= 1, "min_pair_count = {}", options.min_pair_count);

  std::vector<std::string> pieces;
  std::vector<Merge> merges;
  for (int byte = 0; byte < kBytes; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  MergeLearner learner(count_words(texts), options.min_pair_count);
  while (static_cast<int64_t>(pieces.size()) < options.vocab_size - kSpecials) {
    const auto merge = learner.learn_next(static_cast<TokenId>(pieces.size()), static_cast<uint32_t>(merges.size()));
    if (!merge) break;
    merges.push_back(*merge);
    pieces.push_back(pieces[merge->left] + pieces[merge->right]);
  }
  BpeModelParts model;
  for (const std::string& piece : pieces) model.tokens.push_back(byte_alphabet_encode(piece));
  model.tokens.emplace_back(kGpt2EndOfDocument);  // no merge can make it: letters and symbols are different words
  model.merges = std::move(merges);

  TrainedTokenizer result;
  result.requested = options.vocab_size;
  result.reached = static_cast<int64_t>(model.tokens.size());
  result.tokenizer = std::make_unique<BpeTokenizer>(byte_level_parts(std::move(model)), "trained");
  return result;
}

}  // namespace brisk
