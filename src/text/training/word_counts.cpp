#include "text/training/word_counts.h"

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/parse_json.h"
#include "base/run_on_pool.h"
#include "base/runtime.h"
#include "text/pipeline/bert_words.h"
#include "text/pipeline/words.h"

namespace brisk {

namespace {

// Open addressing, at most half full. The upper bits of the hash choose the shard, the lower ones the slot.
class WordCounter {
 public:
  void add(std::string_view word, uint64_t hash, int64_t count) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(word, hash);
    if (slot.count == 0) {
      slot = {hash, word, 0};
      ++used_;
    }
    slot.count += count;
  }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.count != 0) visit(slot.word, slot.hash, slot.count);
    }
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    std::string_view word;
    int64_t count = 0;  // 0: empty
  };

  Slot& slot_of(std::string_view word, uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].count != 0 && !(slots_[at].hash == hash && slots_[at].word == word)) at = (at + 1) & mask;
    return slots_[at];
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.count != 0) slot_of(slot.word, slot.hash) = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// Each thread counts into shards of its own; then each shard is joined over the threads by one of them.
constexpr int kShards = 64;
constexpr int kShardShift = 64 - 6;
using ShardedCounter = std::array<WordCounter, kShards>;

// Where words begin and end, and where a text can be cut without changing them.
struct Gpt2Words {
  static size_t begin_at(std::string_view, size_t from) { return from; }
  static size_t end_of(std::string_view text, size_t begin) { return word_end(text, begin); }
  static size_t cut_at(std::string_view text, size_t from) { return cut_between_words(text, from); }
};

struct BertPieces {
  static size_t begin_at(std::string_view text, size_t from) { return bert_piece_begin(text, from); }
  static size_t end_of(std::string_view text, size_t begin) { return bert_piece_end(text, begin); }
  static size_t cut_at(std::string_view text, size_t from) {
    while (from < text.size() && bert_class_of(text[from]) != BertClass::kSpace) ++from;
    return from;
  }
};

struct SpacedPieces {
  static size_t begin_at(std::string_view text, size_t from) { return bert_piece_begin(text, from); }
  static size_t end_of(std::string_view text, size_t begin) { return BertPieces::cut_at(text, begin); }
  static size_t cut_at(std::string_view text, size_t from) { return BertPieces::cut_at(text, from); }
};

template <typename Words>
void count_into(std::string_view text, ShardedCounter& counter) {
  for (size_t begin = Words::begin_at(text, 0); begin < text.size();) {
    const size_t end = Words::end_of(text, begin);
    const std::string_view word = text.substr(begin, end - begin);
    const uint64_t hash = hash_bytes(word);
    counter[hash >> kShardShift].add(word, hash, 1);
    begin = Words::begin_at(text, end);
  }
}

// Pieces of about this size are handed out, so that threads end together whatever the sizes of the texts.
constexpr size_t kPieceSize = size_t{1} << 18;

template <typename Words>
std::vector<std::string_view> cut_into_pieces(std::span<const std::string_view> texts) {
  std::vector<std::string_view> pieces;
  for (const std::string_view text : texts) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t left = text.size() - begin;
      const size_t end = left <= kPieceSize ? text.size() : Words::cut_at(text, begin + kPieceSize);
      pieces.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  }
  return pieces;
}

template <typename Words>
std::vector<WordCount> count_on_pool(std::span<const std::string_view> texts) {
  const std::vector<std::string_view> pieces = cut_into_pieces<Words>(texts);
  std::vector<ShardedCounter> counters(thread_pool().size());
  std::atomic<size_t> next_piece{0};
  run_on_pool([&](int thread) {
    for (size_t i = next_piece++; i < pieces.size(); i = next_piece++) {
      throw_if_cancelled();
      count_into<Words>(pieces[i], counters[thread]);
    }
  });
  std::atomic<int> next_shard{0};
  run_on_pool([&](int) {
    for (int shard = next_shard++; shard < kShards; shard = next_shard++) {
      for (size_t thread = 1; thread < counters.size(); ++thread) {
        WordCounter& from = counters[thread][shard];
        from.for_each(
            [&](std::string_view word, uint64_t hash, int64_t count) { counters[0][shard].add(word, hash, count); });
        from = {};
      }
    }
  });
  std::vector<WordCount> counts;
  for (const WordCounter& counter : counters[0]) {
    counter.for_each([&](std::string_view word, uint64_t, int64_t count) { counts.push_back({word, count}); });
  }
  return counts;
}

}  // namespace

std::vector<WordCount> count_words(std::span<const std::string_view> texts) { return count_on_pool<Gpt2Words>(texts); }

std::vector<WordCount> count_bert_pieces(std::span<const std::string_view> texts) {
  return count_on_pool<BertPieces>(texts);
}

std::vector<WordCount> count_spaced_pieces(std::span<const std::string_view> texts) {
  return count_on_pool<SpacedPieces>(texts);
}

PieceCounts count_pieces(std::span<const WordCount> given, const TokenizerComponents& components) {
  const Normalizer normalizer(parse_own_json<nlohmann::json>(components.normalizer), "normalizer");
  const PreTokenizer pre_tokenizer(parse_own_json<nlohmann::json>(components.pre_tokenizer), "pre_tokenizer");
  const int threads = thread_pool().size();
  std::vector<PieceCounts> counts(threads);
  run_on_pool([&](int thread) {
    const auto [begin, end] = ThreadPool::share(static_cast<int64_t>(given.size()), 1, thread, threads);
    for (int64_t i = begin; i < end; ++i) {
      const std::string normalized = normalizer.apply(given[i].word);
      pre_tokenizer.split(normalized, false,
                          [&](std::string_view word) { counts[thread][std::string(word)] += given[i].count; });
    }
  });
  for (int thread = 1; thread < threads; ++thread) {
    for (const auto& [word, count] : counts[thread]) counts[0][word] += count;
    counts[thread].clear();
  }
  return std::move(counts[0]);
}

}  // namespace brisk
