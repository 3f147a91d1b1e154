#include "train/engine/shared_evaluation.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sum_tree.h"
#include "comm/communicator.h"

namespace brisk {

namespace {

// Some of the sequences, numbered from 0.
class SequenceRange final : public Sequences {
 public:
  SequenceRange(const Sequences& all, int64_t begin, int64_t end) : all_(all), begin_(begin), end_(end) {}

  int64_t count() const override { return end_ - begin_; }
  int sets() const override { return all_.sets(); }
  int64_t rows(int64_t index, int set) const override { return all_.rows(begin_ + index, set); }
  LengthTotals totals(int set) const override {
    return all_.totals(set);
  }  // of all: the longest decides what is planned
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override {
    all_.append(begin_ + index, epoch, sequence, batch);
  }
  bool has_prefetch() const override { return all_.has_prefetch(); }
  void prefetch(std::span<const int64_t> indices) const override {
    std::vector<int64_t> of_all(indices.begin(), indices.end());
    for (int64_t& index : of_all) index += begin_;
    all_.prefetch(of_all);
  }

 private:
  const Sequences& all_;
  int64_t begin_, end_;
};

// The bytes of plain values, and back.
template <typename Value>
std::string bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}
template <typename Value>
std::vector<Value> values_of(const std::string& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
  return values;
}

}  // namespace

EvaluationResult evaluate_in_parts(Evaluator& evaluator, const Sequences& sequences, Ledger& ledger, int64_t count,
                                   int64_t parts, ProcessGroup& processes) {
  const int64_t own_parts = parts / processes.size(), first = processes.rank() * own_parts;
  std::vector<double> numbers;  // of one part after the other
  std::vector<ClassScores::Confusion> confusions;
  bool cancelled = false;
  try {
    for (int64_t part = first; part < first + own_parts; ++part) {
      const SequenceRange range(sequences, part * count / parts, (part + 1) * count / parts);
      const EvaluationSums sums = evaluator.sums(range, ledger, range.count());
      numbers.insert(numbers.end(), sums.numbers.begin(), sums.numbers.end());
      confusions.insert(confusions.end(), sums.confusions.begin(), sums.confusions.end());
    }
  } catch (const Cancelled&) {
    cancelled = true;
  }
  Ledger::Hold hold(ledger, Phase::evaluation);
  // One rank may be done where another was interrupted: all leave it, or none does.
  if (processes.sum(cancelled ? 1.0 : 0.0) > 0) throw Cancelled();
  if (Communicator* ranks = processes.communicator()) {
    std::string all_numbers, all_confusions;
    for (const std::string& of_rank : ranks->gather(bytes_of(numbers))) all_numbers += of_rank;
    for (const std::string& of_rank : ranks->gather(bytes_of(confusions))) all_confusions += of_rank;
    numbers = values_of<double>(all_numbers);
    confusions = values_of<ClassScores::Confusion>(all_confusions);
  }
  EvaluationSums sums{.confusions = std::move(confusions)};
  const size_t each = numbers.size() / static_cast<size_t>(parts);
  for (size_t i = 0; i < each; ++i) {
    std::vector<double> of_parts;
    for (size_t part = 0; part < static_cast<size_t>(parts); ++part) of_parts.push_back(numbers[part * each + i]);
    sums.numbers.push_back(sum_in_tree(of_parts));
  }
  return evaluator.result(sums);
}

}  // namespace brisk
