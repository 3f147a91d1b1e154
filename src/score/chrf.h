// chrF and chrF++ of a corpus, equal to sacreBLEU's to the last printed digit, in constant memory: a pair at a time.
//
//   Chrf chrf({.word_order = 2});                               // chrF++; 0: chrF
//   chrf.add("the cat sat", "the cat sat down");                // hypothesis, reference
//   chrf.merge(other);                                          // of another thread, whose pairs these are as well
//   chrf.score()                                                // 0 to 100
//   chrf.signature()                                            // "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:..."
//
// N-grams of 1 to 6 characters, white space left out, and of 1 to word_order words. As with Bleu, the statistics are sums
// of integers that add up in any order; of several references the one that fits a hypothesis best counts.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "score/ngram_matches.h"
#include "score/word_numbers.h"

namespace brisk {

inline constexpr int kChrfCharacterOrders = 6, kChrfMostWordOrders = 2;

struct ChrfOptions {
  int word_order = 0;  // 0 to 2
  int beta = 2;        // recall counts so many times as much as precision
  bool lowercase = false;
};

struct ChrfStatistics {
  // By the order: those of characters, then those of words.
  struct Order {
    int64_t in_hypothesis = 0, in_reference = 0, matches = 0;
    bool operator==(const Order&) const = default;
  };
  std::array<Order, kChrfCharacterOrders + kChrfMostWordOrders> orders{};

  ChrfStatistics& operator+=(const ChrfStatistics& other);
  bool operator==(const ChrfStatistics&) const = default;
};

double chrf_score(const ChrfStatistics& statistics, const ChrfOptions& options);
std::string chrf_signature(const ChrfOptions& options, int64_t references);  // as bleu_signature()
std::string chrf_name(const ChrfOptions& options);                           // "chrF2", "chrF2++"

class Chrf {
 public:
  explicit Chrf(ChrfOptions options = {});

  void add(std::string_view hypothesis, std::string_view reference) { add(hypothesis, {&reference, 1}); }
  void add(std::string_view hypothesis, std::initializer_list<std::string_view> references) {
    add(hypothesis, std::span(references.begin(), references.size()));
  }
  void add(std::string_view hypothesis, std::span<const std::string_view> references);  // at least one
  void merge(const Chrf& other);
  void merge(const ChrfStatistics& other) { statistics_ += other; }  // of another process

  const ChrfStatistics& statistics() const { return statistics_; }
  double score() const { return chrf_score(statistics_, options_); }
  std::string signature() const { return chrf_signature(options_, references_ == 0 ? 1 : references_); }

 private:
  ChrfOptions options_;
  ChrfStatistics statistics_;
  int64_t references_ = 0;  // as Bleu's
  NgramMatches characters_, words_;
  WordNumbers numbers_;
};

}  // namespace brisk
