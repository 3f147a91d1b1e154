// Character and word error rate of a corpus: the edits (insertions, deletions, substitutions) that make the hypotheses
// of the references, by the number of characters or words of all references. 0 is perfect, above 1 is possible.
//
//   ErrorRate characters(TextUnit::kCharacter);
//   characters.add("the cat sit", "the cat sat");      // hypothesis, reference
//   characters.merge(other);                           // of another thread, whose pairs these are as well
//   characters.rate()                                  // 0.0909...: 1 of 11
//
// Characters are Unicode code points of the texts as they are: nothing is normalised, every space counts, a byte that is not
// UTF-8 is a character. Words are what stands between white space (Python's str.split()). So have torchmetrics' CharErrorRate
// and WordErrorRate it, and jiwer's where texts have no white space at their ends. Statistics add up in any order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "score/edit_distance.h"

namespace brisk {

enum class TextUnit : uint8_t { kCharacter, kWord };

struct ErrorStatistics {
  int64_t errors = 0, reference_length = 0;

  ErrorStatistics& operator+=(const ErrorStatistics& other);
  bool operator==(const ErrorStatistics&) const = default;
};

// Without a character in any reference: the number of errors, as jiwer has it.
double error_rate(const ErrorStatistics& statistics);

class ErrorRate {
 public:
  explicit ErrorRate(TextUnit unit, bool lowercase = false) : unit_(unit), lowercase_(lowercase) {}

  void add(std::string_view hypothesis, std::string_view reference);
  void merge(const ErrorRate& other) { merge(other.statistics_); }
  void merge(const ErrorStatistics& other) { statistics_ += other; }  // of another process

  const ErrorStatistics& statistics() const { return statistics_; }
  double rate() const { return error_rate(statistics_); }

 private:
  void read(std::string_view text, std::vector<uint32_t>& symbols);

  TextUnit unit_;
  bool lowercase_;
  ErrorStatistics statistics_;
  EditDistance distance_;
  std::unordered_map<std::string, uint32_t> words_;  // of this pair
  std::vector<uint32_t> hypothesis_, reference_;
};

}  // namespace brisk
