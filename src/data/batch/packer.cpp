#include "data/batch/packer.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/rounding.h"

namespace brisk {

namespace {

double share_of_limit(int64_t rows, int64_t limit) { return static_cast<double>(rows) / static_cast<double>(limit); }

// In this order, each to the emptiest of `parts`; false where one would overflow.
bool divide_into(const StepLengths& lengths, const RowLimits& limits, const std::vector<int32_t>& order, size_t parts,
                 std::vector<std::vector<int32_t>>& members) {
  members.assign(parts, {});
  std::vector<int64_t> rows(parts * limits.size(), 0);
  std::vector<double> filled(parts, 0);  // share of the row set that is nearest to its limit
  for (const int32_t number : order) {
    const auto emptiest = static_cast<size_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
    for (size_t set = 0; set < limits.size(); ++set) {
      int64_t& here = rows[emptiest * limits.size() + set];
      here += lengths[set][static_cast<size_t>(number)];
      if (here > limits[set]) return false;
      filled[emptiest] = std::max(filled[emptiest], share_of_limit(here, limits[set]));
    }
    if (std::ssize(members[emptiest]) == kMostSequences) return false;
    members[emptiest].push_back(number);
  }
  return true;
}

std::vector<std::vector<int32_t>> divide_evenly(const StepLengths& lengths, const RowLimits& limits) {
  std::vector<std::vector<int32_t>> members;
  const size_t count = lengths.front().size();
  if (count == 0) return members;
  int64_t parts = divide_up(static_cast<int64_t>(count), kMostSequences);
  std::vector<double> shares(count, 0);  // of each sequence, in the set of which it takes the most
  for (size_t set = 0; set < limits.size(); ++set) {
    int64_t rows = 0;
    for (size_t i = 0; i < count; ++i) {
      const int64_t length = lengths[set][i];
      BRISK_CHECK(length <= limits[set], "a sequence of {} rows, micro-batches of {}", length, limits[set]);
      rows += length;
      shares[i] = std::max(shares[i], share_of_limit(length, limits[set]));
    }
    parts = std::max(parts, divide_up(rows, limits[set]));
  }
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return shares[static_cast<size_t>(a)] > shares[static_cast<size_t>(b)];
  });
  while (!divide_into(lengths, limits, order, static_cast<size_t>(parts), members)) ++parts;
  for (std::vector<int32_t>& part : members) std::sort(part.begin(), part.end());
  // Micro-batches in the order of their first sequences: an order that does not depend on the lengths alone.
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.front() < b.front(); });
  return members;
}

// In their order, each micro-batch filled as far as the next sequence allows with all of them as long as the longest.
std::vector<std::vector<int32_t>> divide_in_order(const StepLengths& lengths, const RowLimits& limits) {
  std::vector<std::vector<int32_t>> members;
  std::vector<int64_t> longest(limits.size(), 0), longest_with(limits.size());  // of the last micro-batch
  for (size_t number = 0; number < lengths.front().size(); ++number) {
    bool fits = !members.empty() && std::ssize(members.back()) < kMostSequences;
    for (size_t set = 0; set < limits.size(); ++set) {
      const int64_t length = lengths[set][number];
      BRISK_CHECK(length <= limits[set], "a sequence of {} rows, micro-batches of {}", length, limits[set]);
      longest_with[set] = std::max(longest[set], length);
      fits = fits && (std::ssize(members.back()) + 1) * longest_with[set] <= limits[set];
    }
    if (!fits) members.emplace_back();
    for (size_t set = 0; set < limits.size(); ++set) longest[set] = fits ? longest_with[set] : lengths[set][number];
    members.back().push_back(static_cast<int32_t>(number));
  }
  return members;
}

}  // namespace

std::vector<std::vector<int32_t>> divide_step(const StepLengths& lengths, const RowLimits& limits,
                                              const Padding& padding) {
  BRISK_CHECK(!limits.empty() && lengths.size() == limits.size(), "lengths in {} row sets, limits of {}",
              lengths.size(), limits.size());
  switch (padding.to) {
    case Padding::To::longest: return divide_in_order(lengths, limits);
    case Padding::To::lengths: {
      StepLengths padded = lengths;
      for (size_t set = 0; set < padded.size(); ++set)
        std::fill(padded[set].begin(), padded[set].end(), padding.lengths.at(set));
      return divide_evenly(padded, limits);
    }
    case Padding::To::none: break;
  }
  return divide_evenly(lengths, limits);
}

int64_t rows_of(const StepLengths& lengths, std::span<const int32_t> members, const Padding& padding) {
  int64_t rows = 0;
  std::vector<int64_t> of_set(members.size());
  for (size_t set = 0; set < lengths.size(); ++set) {
    std::transform(members.begin(), members.end(), of_set.begin(),
                   [&](int32_t number) { return lengths[set][static_cast<size_t>(number)]; });
    rows += padded_rows(of_set, set, padding);
  }
  return rows;
}

StepLengths lengths_of(const Sequences& sequences, std::span<const int64_t> step) {
  StepLengths lengths(static_cast<size_t>(sequences.sets()));
  for (size_t set = 0; set < lengths.size(); ++set) {
    lengths[set].reserve(step.size());
    for (const int64_t number : step) lengths[set].push_back(sequences.rows(number, static_cast<int>(set)));
  }
  return lengths;
}

MicroBatch pack(const Sequences& sequences, std::span<const int64_t> step, std::span<const int32_t> members,
                int64_t epoch) {
  MicroBatch batch;
  batch.sets.resize(static_cast<size_t>(sequences.sets()));
  const auto number_at = [&](int32_t place) { return step[static_cast<size_t>(place)]; };
  for (size_t i = 0; i < batch.sets.size(); ++i) {
    MicroBatch::Set& set = batch.sets[i];
    size_t rows = 0;
    for (const int32_t place : members)
      rows += static_cast<size_t>(sequences.rows(number_at(place), static_cast<int>(i)));
    for (std::vector<int32_t>* column : {&set.tokens, &set.targets, &set.position, &set.sequence}) {
      column->reserve(rows);
    }
  }
  for (const int32_t place : members) sequences.append(number_at(place), epoch, place, batch);
  return batch;
}

std::vector<MicroBatch> pack_step(const Sequences& sequences, std::span<const int64_t> step, int64_t epoch,
                                  const RowLimits& limits, const Padding& padding) {
  std::vector<MicroBatch> batches;
  for (const std::vector<int32_t>& members : divide_step(lengths_of(sequences, step), limits, padding)) {
    batches.push_back(pack(sequences, step, members, epoch));
    pad(batches.back(), padding);
  }
  return batches;
}

std::vector<std::vector<int32_t>> divide_into_parts(const StepLengths& lengths, int64_t parts) {
  const size_t count = lengths.front().size();
  std::vector<int64_t> rows(count, 0);
  for (const std::vector<int64_t>& of_set : lengths) {
    for (size_t i = 0; i < count; ++i) rows[i] += of_set[i];
  }
  std::vector<int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rows[static_cast<size_t>(a)] > rows[static_cast<size_t>(b)]; });
  std::vector<std::vector<int32_t>> places(static_cast<size_t>(parts));
  std::vector<int64_t> filled(places.size(), 0);
  for (const int32_t place : order) {
    const auto emptiest = static_cast<size_t>(std::min_element(filled.begin(), filled.end()) - filled.begin());
    places[emptiest].push_back(place);
    filled[emptiest] += rows[static_cast<size_t>(place)];
  }
  for (std::vector<int32_t>& part : places) std::sort(part.begin(), part.end());
  return places;
}

std::vector<MicroBatch> pack_part(const Sequences& sequences, std::span<const int64_t> step,
                                  std::span<const int32_t> places, int64_t epoch, const RowLimits& limits,
                                  const Padding& padding) {
  std::vector<int64_t> chosen;
  for (const int32_t place : places) chosen.push_back(step[static_cast<size_t>(place)]);
  std::vector<MicroBatch> batches;
  if (chosen.empty()) return batches;
  for (std::vector<int32_t>& members : divide_step(lengths_of(sequences, chosen), limits, padding)) {
    for (int32_t& member : members) member = places[static_cast<size_t>(member)];
    batches.push_back(pack(sequences, step, members, epoch));
    pad(batches.back(), padding);
  }
  return batches;
}

EvaluationPacker::EvaluationPacker(const Sequences& sequences, const Limits& limits)
    : sequences_(sequences), limits_(limits) {
  BRISK_CHECK(std::ssize(limits_.rows) == sequences.sets(), "sequences of {} row sets, limits of {}", sequences.sets(),
              limits_.rows.size());
  limits_.sequences = std::min(limits_.sequences, kMostSequences);
  limits_.count = std::min(limits_.count, sequences.count());
}

bool EvaluationPacker::fits(const MicroBatch& batch) const {
  bool fits = batch.sequences() < limits_.sequences;
  for (size_t set = 0; set < limits_.rows.size(); ++set) {
    const int64_t rows = sequences_.rows(at_, static_cast<int>(set)), limit = limits_.rows[set];
    BRISK_CHECK(rows <= limit, "a sequence of {} rows, micro-batches of {}", rows, limit);
    fits = fits && batch.sets[set].rows() + rows <= limit;
  }
  return fits;
}

void EvaluationPacker::prefetch() {
  constexpr int64_t kAhead = 64;
  std::vector<int64_t> soon;
  for (prefetched_ = std::max(prefetched_, at_); prefetched_ < std::min(limits_.count, at_ + kAhead); ++prefetched_)
    soon.push_back(prefetched_);
  sequences_.prefetch(soon);
}

bool EvaluationPacker::next(MicroBatch& batch) {
  if (at_ == limits_.count) return false;
  if (sequences_.has_prefetch()) prefetch();
  batch.sets.resize(std::max(batch.sets.size(), limits_.rows.size()));
  batch.clear();
  for (; at_ < limits_.count && fits(batch); ++at_) sequences_.append(at_, 0, static_cast<int32_t>(at_), batch);
  return true;
}

}  // namespace brisk
