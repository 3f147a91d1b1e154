#include "data/batch/packer.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/rounding.h"

namespace brisk {

namespace {

// Longest first, each to the emptiest of `parts`; false where one would overflow.
bool divide_into(std::span<const int64_t> lengths, std::span<const int32_t> longest_first, int64_t capacity,
                 size_t parts, std::vector<std::vector<int32_t>>& members) {
  members.assign(parts, {});
  std::vector<int64_t> rows(parts, 0);
  for (const int32_t number : longest_first) {
    const auto emptiest = static_cast<size_t>(std::min_element(rows.begin(), rows.end()) - rows.begin());
    rows[emptiest] += lengths[static_cast<size_t>(number)];
    if (rows[emptiest] > capacity || std::ssize(members[emptiest]) == kMostSequences) return false;
    members[emptiest].push_back(number);
  }
  return true;
}

}  // namespace

std::vector<std::vector<int32_t>> divide_step(std::span<const int64_t> lengths, int64_t micro_batch_tokens) {
  std::vector<std::vector<int32_t>> members;
  if (lengths.empty()) return members;
  int64_t rows = 0;
  for (const int64_t length : lengths) {
    BRISK_CHECK(length <= micro_batch_tokens, "a sequence of {} tokens, micro-batches of {}", length,
                micro_batch_tokens);
    rows += length;
  }
  std::vector<int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return lengths[static_cast<size_t>(a)] > lengths[static_cast<size_t>(b)];
  });
  auto parts = static_cast<size_t>(
      std::max(divide_up(rows, micro_batch_tokens), divide_up(std::ssize(lengths), kMostSequences)));
  while (!divide_into(lengths, order, micro_batch_tokens, parts, members)) ++parts;
  for (std::vector<int32_t>& part : members) std::sort(part.begin(), part.end());
  // Micro-batches in the order of their first sequences: an order that does not depend on the lengths alone.
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  return members;
}

MicroBatch pack(const Sequences& sequences, std::span<const int64_t> step, std::span<const int32_t> members,
                int64_t epoch) {
  MicroBatch batch;
  batch.clear();
  const auto number_at = [&](int32_t place) { return step[static_cast<size_t>(place)]; };
  size_t rows = 0;
  for (const int32_t place : members) rows += static_cast<size_t>(sequences.rows(number_at(place)));
  for (std::vector<int32_t>* column : {&batch.tokens, &batch.targets, &batch.position, &batch.sequence}) {
    column->reserve(rows);
  }
  for (const int32_t place : members) sequences.append(number_at(place), epoch, place, batch);
  return batch;
}

std::vector<MicroBatch> pack_step(const Sequences& sequences, std::span<const int64_t> step, int64_t epoch,
                                  int64_t micro_batch_tokens) {
  std::vector<int64_t> lengths;
  lengths.reserve(step.size());
  for (const int64_t number : step) lengths.push_back(sequences.rows(number));
  std::vector<MicroBatch> batches;
  for (const std::vector<int32_t>& members : divide_step(lengths, micro_batch_tokens)) {
    batches.push_back(pack(sequences, step, members, epoch));
  }
  return batches;
}

EvaluationPacker::EvaluationPacker(const Sequences& sequences, const Limits& limits)
    : sequences_(sequences), limits_(limits) {
  limits_.sequences = std::min(limits_.sequences, kMostSequences);
  limits_.count = std::min(limits_.count, sequences.count());
}

bool EvaluationPacker::next(MicroBatch& batch) {
  if (at_ == limits_.count) return false;
  batch.clear();
  for (; at_ < limits_.count && batch.sequences() < limits_.sequences; ++at_) {
    const int64_t rows = sequences_.rows(at_);
    BRISK_CHECK(rows <= limits_.rows, "a sequence of {} tokens, micro-batches of {}", rows, limits_.rows);
    if (batch.rows() + rows > limits_.rows) break;
    sequences_.append(at_, 0, static_cast<int32_t>(at_), batch);
  }
  return true;
}

}  // namespace brisk
