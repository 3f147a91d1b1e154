#include "train/engine/gradient_exchange.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "base/error.h"
#include "ops/optimizer/parameters.h"
#include "ops/optimizer/parts.h"
#include "optim/shards.h"

namespace brisk {

namespace {

// Sums of 1, 2, 4, ... parts wait for a neighbour at the same time.
size_t waiting_sums(int64_t own_parts) {
  return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(own_parts)) - 1);
}

}  // namespace

GradientExchange::GradientExchange(const ParameterStore& store, StepState& state, ProcessGroup& processes,
                                   std::unique_ptr<ShardTransport> transport, const Options& options)
    : store_(store),
      state_(state),
      processes_(processes),
      transport_(std::move(transport)),
      own_parts_(options.parts / processes.size()),
      bucket_(options.bucket),
      bounds_(shard_bounds(store, options.has_muon, options.parts)) {
  BRISK_CHECK(own_parts_ * processes.size() == options.parts, "{} parts on {} ranks", options.parts, processes.size());
  BRISK_CHECK(own_parts_ == 1 || std::has_single_bit(static_cast<uint64_t>(own_parts_)), "{} parts a rank", own_parts_);
  BRISK_CHECK(has_ranks() || processes.size() == 1, "{} processes without a transport", processes.size());
  for (size_t i = 0; i < bounds_.size(); i += static_cast<size_t>(own_parts_)) rank_bounds_.push_back(bounds_[i]);
  for (size_t i = 0; i < waiting_sums(own_parts_); ++i)
    waiting_.emplace_back(store.device(), store.flat_gradient().cols * size_of(DType::f32));
  if (keeps_masters_apart()) find_shared_masters();
  state.reserve_parts(own_parts_);
}

int64_t GradientExchange::part_bytes(int64_t elements, int64_t own_parts) {
  return static_cast<int64_t>(waiting_sums(own_parts)) * elements * size_of(DType::f32);
}

GradientListener GradientExchange::listener() {
  if (!leaves_early()) return {};
  return {.ready = [this](Parameter& parameter) { send_until(parameter.offset + parameter.count()); },
          .after_last = [this] { send_rest(); },
          .take_recorded = [this] { return transport_->take_recorded(); }};
}

void GradientExchange::begin_pass() {
  parts_done_ = sent_ = 0;
  is_sent_ = false;
  if (has_ranks()) transport_->wait_for_reduce();  // of a pass that was given up: it writes to the same gradient
}

// The sums of earlier parts of this process, into the gradient of its last one.
void GradientExchange::add_waiting(int64_t begin, int64_t end) {
  if (own_parts_ == 1) return;
  for (const Buffer& waiting : waiting_) {
    add_floats(store_.device(), static_cast<const float*>(waiting.data()) + begin, store_.flat_gradient().f32() + begin,
               end - begin);
  }
}

// Every bucket below this element: they are cut at the same places in all ranks.
void GradientExchange::send_until(int64_t complete) {
  const int64_t count = store_.flat_gradient().cols;
  while (sent_ < count) {
    const int64_t end = bucket_ > 0 ? std::min(count, sent_ + bucket_) : count;
    if (end > complete) return;
    add_waiting(sent_, end);
    transport_->begin_reduce(sent_, end);
    sent_ = end;
  }
}

// What backward told nothing of has been complete since the last part began.
void GradientExchange::send_rest() {
  send_until(store_.flat_gradient().cols);
  sent_ = 0;
}

void GradientExchange::clear_gradient() {
  clear_floats(store_.device(), store_.flat_gradient().f32(), store_.flat_gradient().cols);
  state_.clear_sums();
}

void GradientExchange::end_part(bool is_empty) {
  ++parts_done_;
  if (is_empty) clear_gradient();
  const bool is_last = parts_done_ == own_parts_;
  is_sent_ = is_last && !is_empty && leaves_early();
  if (own_parts_ == 1) return;
  state_.keep_part(parts_done_ - 1);
  if (is_last) return;
  // As a binary counter adds one: a sum meets its neighbour of the same size.
  const Tensor gradient = store_.flat_gradient();
  size_t level = 0;
  for (; parts_done_ % (int64_t{2} << level) == 0; ++level)
    add_floats(store_.device(), static_cast<const float*>(waiting_[level].data()), gradient.f32(), gradient.cols);
  copy_floats(store_.device(), gradient.f32(), static_cast<float*>(waiting_[level].data()), gradient.cols);
}

void GradientExchange::end_pass() {
  BRISK_CHECK(parts_done_ == own_parts_, "a step of {} parts, expected {}", parts_done_, own_parts_);
  if (!has_ranks()) {
    add_waiting(0, store_.flat_gradient().cols);
  } else if (leaves_early() && !is_sent_) {
    send_rest();
  }
  if (own_parts_ > 1) state_.sum_parts(own_parts_);
}

void GradientExchange::reduce() {
  if (!has_ranks()) return;
  if (!leaves_early()) send_rest();
  transport_->wait_for_reduce();
}

void GradientExchange::measure() {
  if (own_parts_ == 1) {
    const Tensor all = store_.flat_gradient();
    return state_.measure(matrix(all.f32() + begin(), DType::f32, 1, end() - begin()));
  }
  const auto first = static_cast<size_t>(processes_.rank() * own_parts_);
  state_.measure(store_.flat_gradient(), std::span(bounds_).subspan(first, static_cast<size_t>(own_parts_) + 1));
}

void GradientExchange::sum() {
  if (has_ranks()) return transport_->sum(state_);
  processes_.sum(state_);
}

std::vector<int64_t> GradientExchange::rank_bounds_in_bytes(int64_t element_bytes) const {
  std::vector<int64_t> bounds = rank_bounds_;
  for (int64_t& bound : bounds) bound *= element_bytes;
  return bounds;
}

CommunicationTotals GradientExchange::communication() const {
  if (!has_ranks()) return {};
  return {.hidden_seconds = transport_->hidden_seconds(), .bytes_sent = transport_->bytes_sent()};
}

bool GradientExchange::keeps_masters_apart() const {
  return has_ranks() && !transport_->in_stream_order() && static_cast<bool>(store_.flat_copy());
}

// Of a matrix between hidden layers a product reads the copy, and the optimizer of its own rank the master.
void GradientExchange::find_shared_masters() {
  constexpr int64_t kShort = int64_t{1} << 14;
  const std::vector<Parameter*>& order = store_.flat_order();
  const int64_t count = store_.flat_gradient().cols;
  std::vector<Run> runs;
  for (size_t i = 0; i < order.size() && order[i]->spec.trained; ++i) {
    const Parameter& parameter = *order[i];
    if (parameter.spec.hidden && parameter.spec.multiplies) continue;
    const int64_t end = i + 1 < order.size() ? std::min(count, order[i + 1]->offset) : count;
    if (!runs.empty() && runs.back().end == parameter.offset) {
      runs.back().end = end;
    } else {
      runs.push_back({parameter.offset, end});
    }
  }
  for (const Run& run : runs) (run.end - run.begin > kShort ? long_runs_ : short_runs_).push_back(run);
  short_bounds_ = {0};
  for (size_t rank = 0; rank + 1 < rank_bounds_.size(); ++rank) {
    int64_t elements = 0;
    for (const Run& run : short_runs_) {
      elements += std::clamp(run.end, rank_bounds_[rank], rank_bounds_[rank + 1]) -
                  std::clamp(run.begin, rank_bounds_[rank], rank_bounds_[rank + 1]);
    }
    short_bounds_.push_back(short_bounds_.back() + elements);
  }
  if (short_bounds_.back() > 0) short_ = Buffer(store_.device(), short_bounds_.back() * size_of(DType::f32));
}

void GradientExchange::share_with_copies() {
  const DeviceAccess access(store_.device());
  float* const masters = store_.flat_master().f32();
  const auto in_bytes = [](std::vector<int64_t> bounds) {
    for (int64_t& bound : bounds) bound *= size_of(DType::f32);
    return bounds;
  };
  for (const Run& run : long_runs_) {
    std::vector<int64_t> bounds = rank_bounds_;
    for (int64_t& bound : bounds) bound = std::clamp(bound, run.begin, run.end);
    transport_->share(masters, in_bytes(std::move(bounds)));
  }
  if (short_bounds_.back() > 0) {
    auto* const together = static_cast<float*>(short_.data());
    // Between the masters of a rank and their place among those of short runs.
    const auto move = [&](size_t rank, const auto& copy) {
      float* place = together + short_bounds_[rank];
      for (const Run& run : short_runs_) {
        const int64_t begin = std::clamp(run.begin, rank_bounds_[rank], rank_bounds_[rank + 1]);
        const int64_t elements = std::clamp(run.end, rank_bounds_[rank], rank_bounds_[rank + 1]) - begin;
        copy(masters + begin, place, elements);
        place += elements;
      }
    };
    const auto own = static_cast<size_t>(processes_.rank());
    move(own, [](const float* master, float* place, int64_t count) { std::copy_n(master, count, place); });
    transport_->share(together, in_bytes(short_bounds_));
    for (size_t rank = 0; rank + 1 < rank_bounds_.size(); ++rank) {
      if (rank == own) continue;
      move(rank, [](float* master, const float* place, int64_t count) { std::copy_n(place, count, master); });
    }
  }
  const Tensor copy = store_.flat_copy();
  transport_->share(copy.data, rank_bounds_in_bytes(size_of(copy.type)));
}

void GradientExchange::share_masters() {
  if (!keeps_masters_apart()) return;
  transport_->share(store_.flat_master().data, rank_bounds_in_bytes(size_of(DType::f32)));
}

void GradientExchange::share() {
  if (!has_ranks()) return;
  if (keeps_masters_apart()) return share_with_copies();
  const Tensor masters = store_.flat_master();
  std::vector<int64_t> bounds;
  for (const int64_t bound : rank_bounds_)
    bounds.push_back(store_.place_of(bound, masters, &Parameter::master) * size_of(DType::f32));
  transport_->share(masters.data, bounds);
  const Tensor copy = store_.flat_copy();
  if (!copy) return;
  // What a GPU rounds itself need not come from another.
  if (processes_.gpus() != nullptr && store_.has_all_masters()) {
    refresh_compute_copies(store_, 0, begin());
    refresh_compute_copies(store_, end(), rank_bounds_.back());
    return;
  }
  transport_->share(copy.data, rank_bounds_in_bytes(size_of(copy.type)));
}

void GradientExchange::collect_gradient() {
  if (!has_ranks()) return;
  transport_->collect(store_.flat_gradient().data, rank_bounds_in_bytes(size_of(DType::f32)));
}

}  // namespace brisk
