// BLEU of a corpus, equal to sacreBLEU's to the last printed digit, in constant memory: a pair at a time.
//
//   Bleu bleu({.tokenizer = BleuTokenizer::k13a});
//   bleu.add("the cat sat", "the cat sat down");                // hypothesis, reference
//   bleu.add("a dog", {"one dog", "a dog!"});                   // or several references
//   bleu.merge(other);                                          // of another thread, whose pairs these are as well
//   bleu.score().score                                          // 0 to 100
//   bleu.signature()                                            // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:..."
//
// The statistics are sums of integers: they add up the same in any order, so ranks and threads may share the pairs. One object
// is one thread's. An empty hypothesis counts with its reference's length; no pairs at all have a score of 0.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "score/bleu_words.h"
#include "score/ngram_matches.h"
#include "score/word_numbers.h"

namespace brisk {

inline constexpr int kBleuOrders = 4;

// What becomes of an order without a match (Chen and Cherry, 2014).
enum class BleuSmoothing : uint8_t { kExp, kFloor, kAddK, kNone };

BleuSmoothing bleu_smoothing_from(std::string_view name, std::string_view option);  // "exp", "floor", "add-k", "none"

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  bool lowercase = false;
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  std::optional<double> smooth_value = std::nullopt;  // of kFloor (0.1) and kAddK (1)
  bool effective_order = false;                       // leave out orders that have no n-grams: for single sentences
};

// All that the score of any number of pairs depends on. To add up those of several ranks, add up the numbers.
struct BleuStatistics {
  int64_t hypothesis_length = 0, reference_length = 0;  // in words; of several references the closest
  std::array<int64_t, kBleuOrders> matches{}, totals{};

  BleuStatistics& operator+=(const BleuStatistics& other);
  bool operator==(const BleuStatistics&) const = default;
};

struct BleuScore {
  double score = 0;  // 0 to 100
  std::array<double, kBleuOrders> precisions{};
  double brevity_penalty = 1;
  BleuStatistics statistics;

  double length_ratio() const;
  // "60.1/35.2/21.0/13.3 (BP = 1.000 ratio = 1.021 hyp_len = 13000 ref_len = 12732)"
  std::string details() const;
};

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options);
// `references`: how many each hypothesis has; -1: not the same number. The version is brisk's.
std::string bleu_signature(const BleuOptions& options, int64_t references);

class Bleu {
 public:
  explicit Bleu(BleuOptions options = {}) : options_(options) {}

  void add(std::string_view hypothesis, std::string_view reference) { add(hypothesis, {&reference, 1}); }
  void add(std::string_view hypothesis, std::initializer_list<std::string_view> references) {
    add(hypothesis, std::span(references.begin(), references.size()));
  }
  void add(std::string_view hypothesis, std::span<const std::string_view> references);  // at least one
  void merge(const Bleu& other);
  void merge(const BleuStatistics& other) { statistics_ += other; }  // of another process

  const BleuStatistics& statistics() const { return statistics_; }
  BleuScore score() const { return bleu_score(statistics_, options_); }
  std::string signature() const { return bleu_signature(options_, references_ == 0 ? 1 : references_); }

 private:
  void read_words(std::string_view line, std::string& words);

  BleuOptions options_;
  BleuStatistics statistics_;
  int64_t references_ = 0;  // of each hypothesis; 0: none yet, -1: not the same number
  NgramMatches ngrams_;
  std::string hypothesis_words_, reference_words_;
  WordNumbers numbers_;
};

// What two accumulators say of the number of references together.
int64_t common_references(int64_t a, int64_t b);

}  // namespace brisk
