#include "train/engine/gradient_exchange.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/sum_tree.h"
#include "comm/communicator.h"
#include "ops/optimizer/update.h"
#include "optim/shards.h"

namespace brisk {

namespace {

// Sums of 1, 2, 4, ... parts wait for a neighbour at the same time.
size_t waiting_sums(int64_t own_parts) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(own_parts)) - 1);
}

}  // namespace

GradientExchange::GradientExchange(const ParameterStore& store, StepState& state, ProcessGroup& processes,
                                   const Options& options)
    : store_(store),
      state_(state),
      processes_(processes),
      own_parts_(options.parts / processes.size()),
      bounds_(shard_bounds(store, options.has_muon, options.parts)) {
  BRISK_CHECK(own_parts_ * processes.size() == options.parts, "{} parts on {} ranks", options.parts, processes.size());
  BRISK_CHECK(own_parts_ == 1 || std::has_single_bit(static_cast<uint64_t>(own_parts_)), "{} parts a rank", own_parts_);
  BRISK_CHECK(options.parts == 1 || !store.device().is_cuda(), "parts of a step on a GPU");
  for (size_t i = 0; i < bounds_.size(); i += static_cast<size_t>(own_parts_)) rank_bounds_.push_back(bounds_[i]);
  for (size_t i = 0; i < waiting_sums(own_parts_); ++i)
    waiting_.emplace_back(store.device(), store.flat_gradient().cols * size_of(DType::f32));
}

int64_t GradientExchange::part_bytes(int64_t elements, int64_t own_parts) {
  return static_cast<int64_t>(waiting_sums(own_parts)) * elements * size_of(DType::f32);
}

void GradientExchange::begin_pass() { sums_.clear(); }

void GradientExchange::clear_gradient() {
  const DeviceAccess access(store_.device());
  cpu::clear_floats(store_.flat_gradient().f32(), store_.flat_gradient().cols);
  StepNumbers& numbers = *state_.numbers();
  numbers.loss_sum = numbers.weight_sum = numbers.correct = numbers.targets = 0;
}

void GradientExchange::end_part(bool is_empty) {
  if (own_parts_ == 1 && !is_empty) return;
  if (is_empty) clear_gradient();
  if (own_parts_ == 1) return;
  const DeviceAccess access(store_.device());
  const StepNumbers& numbers = *state_.numbers();
  sums_.push_back({numbers.loss_sum, numbers.weight_sum, numbers.correct, numbers.targets});
  // As a binary counter adds one: a sum meets its neighbour of the same size.
  const Tensor gradient = store_.flat_gradient();
  const size_t done = sums_.size();
  size_t level = 0;
  for (; done % (size_t{2} << level) == 0; ++level)
    cpu::add_floats(static_cast<const float*>(waiting_[level].data()), gradient.f32(), gradient.cols);
  if (done < static_cast<size_t>(own_parts_))
    store_.device().copy_in(waiting_[level].data(), gradient.data, gradient.cols * size_of(DType::f32));
}

void GradientExchange::end_pass() {
  if (own_parts_ == 1) return;
  BRISK_CHECK(std::ssize(sums_) == own_parts_, "a step of {} parts, expected {}", sums_.size(), own_parts_);
  const DeviceAccess access(store_.device());
  const auto sum_of = [&](double Sums::*which) {
    std::vector<double> numbers;
    for (const Sums& sums : sums_) numbers.push_back(sums.*which);
    return sum_in_tree(numbers);
  };
  StepNumbers& numbers = *state_.numbers();
  numbers.loss_sum = sum_of(&Sums::loss);
  numbers.weight_sum = sum_of(&Sums::weights);
  numbers.correct = sum_of(&Sums::correct);
  numbers.targets = sum_of(&Sums::targets);
}

void GradientExchange::reduce() {
  if (!has_ranks()) return;
  const DeviceAccess access(store_.device());
  processes_.communicator()->sum_ranges(store_.flat_gradient().f32(), rank_bounds_);
}

void GradientExchange::measure() {
  if (bounds_.size() == 2) return state_.measure(store_.flat_gradient());
  const DeviceAccess access(store_.device());
  std::vector<double> norms;
  const auto first = static_cast<size_t>(processes_.rank() * own_parts_);
  for (size_t shard = first; shard < first + static_cast<size_t>(own_parts_); ++shard) {
    const int64_t begin = bounds_[shard], count = bounds_[shard + 1] - begin;
    norms.push_back(count > 0 ? cpu::squared_norm(store_.flat_gradient().f32() + begin, count) : 0);
  }
  state_.numbers()->squared_norm = sum_in_tree(norms);
}

std::vector<int64_t> GradientExchange::rank_bounds_in_bytes(int64_t element_bytes) const {
  std::vector<int64_t> bounds = rank_bounds_;
  for (int64_t& bound : bounds) bound *= element_bytes;
  return bounds;
}

std::vector<int64_t> GradientExchange::second_moment_bounds() const {
  const float* all = store_.flat_second_moment().f32();
  std::vector<int64_t> bounds;
  for (const int64_t bound : rank_bounds_) {
    // Where the moments of the parameter at or after this place begin.
    int64_t place = store_.flat_second_moment().cols;
    for (const Parameter* parameter : store_.flat_order()) {
      if (!parameter->second_moment || parameter->offset + parameter->count() <= bound) continue;
      place = parameter->second_moment.f32() - all + std::max<int64_t>(0, bound - parameter->offset);
      break;
    }
    bounds.push_back(place * size_of(DType::f32));
  }
  bounds.front() = 0;
  return bounds;
}

void GradientExchange::share() {
  if (!has_ranks()) return;
  BRISK_CHECK(store_.has_all_masters(), "ranks whose weights have no masters");
  const DeviceAccess access(store_.device());
  Communicator& ranks = *processes_.communicator();
  ranks.share_ranges(store_.flat_master().data, rank_bounds_in_bytes(size_of(DType::f32)));
  if (const Tensor copy = store_.flat_copy()) ranks.share_ranges(copy.data, rank_bounds_in_bytes(size_of(copy.type)));
}

void GradientExchange::collect_gradient() {
  if (!has_ranks()) return;
  const DeviceAccess access(store_.device());
  processes_.communicator()->collect_ranges(store_.flat_gradient().data, rank_bounds_in_bytes(size_of(DType::f32)), 0);
}

void GradientExchange::collect_moments() {
  if (!has_ranks()) return;
  const DeviceAccess access(store_.device());
  Communicator& ranks = *processes_.communicator();
  ranks.collect_ranges(store_.flat_first_moment().data, rank_bounds_in_bytes(size_of(DType::f32)), 0);
  if (const Tensor second = store_.flat_second_moment()) ranks.collect_ranges(second.data, second_moment_bounds(), 0);
}

void GradientExchange::forget_others_moments() {
  if (!has_ranks()) return;
  const auto forget = [&](const Tensor& moments, int64_t own_begin, int64_t own_end) {
    if (!moments) return;
    auto* data = static_cast<char*>(moments.data);
    store_.device().forget(data, own_begin);
    store_.device().forget(data + own_end, moments.cols * size_of(DType::f32) - own_end);
  };
  forget(store_.flat_first_moment(), begin() * size_of(DType::f32), end() * size_of(DType::f32));
  if (!store_.flat_second_moment()) return;
  const std::vector<int64_t> bounds = second_moment_bounds();
  const auto rank = static_cast<size_t>(processes_.rank());
  forget(store_.flat_second_moment(), bounds[rank], bounds[rank + 1]);
}

}  // namespace brisk
