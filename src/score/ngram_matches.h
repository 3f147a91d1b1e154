// How many n-grams a hypothesis has in common with its references: what BLEU and chrF count. In time and memory linear in
// the length of the texts, whatever is in them; the memory is kept for the next pair.
//
//   NgramMatches ngrams;
//   ngrams.hypothesis() = {7, 3, 3};                   // words or characters as numbers
//   ngrams.reference(0) = {3, 3, 7};
//   ngrams.count(/*references=*/1, /*orders=*/4);
//   ngrams.matches(0)[2]                               // of trigrams: the sum of min(count here, count there)
//   ngrams.clipped()[2]                                // the same of the largest count in any of the references
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace brisk {

class NgramMatches {
 public:
  static constexpr int kMostOrders = 6;
  using Counts = std::array<int64_t, kMostOrders>;  // by the order, less one

  // To be filled with the symbols of a text.
  std::vector<uint32_t>& hypothesis() { return hypothesis_.symbols; }
  std::vector<uint32_t>& reference(size_t index) {
    if (index >= references_.size()) references_.resize(index + 1);
    return references_[index].symbols;
  }

  void count(size_t references, int orders);

  const Counts& matches(size_t reference) const { return references_[reference].matches; }
  const Counts& clipped() const { return clipped_; }

  // How many n-grams a text of so many symbols has.
  static int64_t ngrams_in(size_t symbols, int order) {
    const auto size = static_cast<int64_t>(symbols);
    return size < order ? 0 : size - order + 1;
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  struct Text {
    std::vector<uint32_t> symbols;
    std::vector<uint32_t>
        ngrams;  // by where they begin: the number of the n-gram of the order at hand, kNone: of none here
    Counts matches{};
  };

  // Numbers the n-grams of one order: a n-gram is the number of the one that is shorter by a symbol, and that symbol.
  class Numbers {
   public:
    void start(size_t most);
    uint32_t number_of(uint64_t key);  // a new one for a key that is new
    uint32_t find(uint64_t key) const;
    uint32_t size() const { return size_; }

   private:
    struct Slot {
      uint64_t key = 0;
      uint32_t number = 0;
      uint32_t round = 0;  // of start(), in which it was filled
    };
    std::vector<Slot> slots_;  // open addressing, at most half full
    uint64_t mask_ = 0;
    uint32_t round_ = 0, size_ = 0;
  };

  void number_hypothesis(int order);
  void count_reference(Text& reference, int order);

  Text hypothesis_;
  std::vector<Text> references_;
  Numbers numbers_;
  std::vector<uint32_t> in_hypothesis_, in_reference_, in_any_reference_;  // by the n-gram
  Counts clipped_{};
};

}  // namespace brisk
