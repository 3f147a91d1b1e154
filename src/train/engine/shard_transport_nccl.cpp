// Ranks on GPUs: NCCL's operations, on a queue beside that of the device. None of them is ever recorded in a graph
// (docs/decisions.md): what is recorded are the places at which a part of the gradient is complete, and whenever the graph was
// queued, the reductions are queued behind these places. They begin while the rest of the graph still runs.
//
// On a device that is no GPU everything happens at once: so the tests run it where there is none, with an NCCL of their own.
#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "base/error.h"
#include "comm/ranges.h"
#include "ops/optimizer/parts.h"
#include "train/engine/shard_transport.h"

namespace brisk {

namespace {

// Elements of a sum of our own that lie side by side, of all ranks together: 64 MiB, enough for the bandwidth of any link.
constexpr int64_t kMostElements = int64_t{1} << 24;

class NcclTransport final : public ShardTransport {
 public:
  NcclTransport(const ParameterStore& store, StepState& state, Nccl& gpus, std::vector<int64_t> shards, bool ordered)
      : store_(store),
        device_(store.device()),
        gpus_(gpus),
        shards_(std::move(shards)),
        ordered_(ordered),
        queue_(device_.queue()),
        here_(device_.mark()) {
    state.reserve_parts(gpus.size());
    if (ordered) parts_ = Buffer(device_, std::max<int64_t>(1, nccl_sum_bytes(own(shards_), gpus.size())));
  }

  // What was begun and not waited for uses memory that others give back, and where this rank ends with an error, it may wait for
  // ever.
  ~NcclTransport() override {
    if (std::uncaught_exceptions() > 0) gpus_.abort();
    if (begun_) queue_->hold_back_device();
  }

  bool in_stream_order() const override { return true; }

  void begin_reduce(int64_t begin, int64_t end) override {
    if (begin >= end) return;
    if (device_.is_recording()) {
      recorded_.push_back({begin, end, device_.mark()});
      recorded_.back().complete->set();
      return;
    }
    if (here_) here_->set();
    reduce({begin, end, here_});
  }

  void wait_for_reduce() override {
    if (device_.is_recording() || !std::exchange(begun_, false)) return;
    if (!timed_) return queue_->hold_back_device();
    timed_->waiting->stamp();
    queue_->hold_back_device();
    timed_->waiting->stamp();
    timed_->is_complete = true;
  }

  std::function<void()> take_recorded() override {
    return [this, ranges = std::exchange(recorded_, {})] {
      for (const Range& range : ranges) reduce(range);
    };
  }

  void sum(StepState& state) override {
    in_order([&] {
      constexpr int64_t kBytes = StepNumbers::kSums * sizeof(double);
      gpus_.all_gather(&state.numbers()->squared_norm, state.part(0), kBytes, queue_->handle());
      state.sum_parts(gpus_.size());
      sent_ += kBytes * (gpus_.size() - 1);
    });
  }

  void share(void* data, std::span<const int64_t> bounds) override {
    in_order([&] { gpus_.share_ranges(data, bounds, queue_->handle()); });
    sent_ += own(bounds) * (gpus_.size() - 1);
  }

  void collect(void* data, std::span<const int64_t> bounds) override {
    in_order([&] { gpus_.collect_ranges(data, bounds, 0, queue_->handle()); });
    sent_ += gpus_.rank() == 0 ? 0 : own(bounds);
  }

  double hidden_seconds() const override {
    return timed_passes_ > 0 ? hidden_of_timed_ / static_cast<double>(timed_passes_) * static_cast<double>(passes_) : 0;
  }
  int64_t bytes_sent() const override { return sent_; }

 private:
  struct Range {
    int64_t begin, end;
    std::shared_ptr<DeviceMark> complete;  // null where everything is done at once
  };

  int64_t own(std::span<const int64_t> bounds) const { return piece_of(bounds, gpus_.rank(), 0, INT64_MAX).count; }

  // Now and then the queue's work is stamped, and how long the device waits for it. Stamps are read some passes later, when they
  // have long been there: the host is at most one pass ahead.
  struct Timed {
    std::unique_ptr<DeviceClock> moving, waiting;  // two stamps around each reduction; around the wait
    bool is_complete = false;
  };
  void begin_pass() {
    constexpr int64_t kBetweenTimed = 16, kTimed = 1, kRead = 4;
    if (timed_ && timed_->is_complete && passes_ % kBetweenTimed == kRead) {
      const auto every_other = [](const std::vector<double>& seconds) {
        double sum = 0;
        for (size_t i = 0; i < seconds.size(); i += 2) sum += seconds[i];
        return sum;
      };
      const double moving = every_other(timed_->moving->seconds()), waiting = every_other(timed_->waiting->seconds());
      hidden_of_timed_ += std::max(0.0, moving - waiting);
      ++timed_passes_;
      timed_.reset();
    }
    if (passes_ % kBetweenTimed == kTimed) {
      std::unique_ptr<DeviceClock> moving = queue_->clock(), waiting = device_.clock();
      if (moving && waiting) timed_ = Timed{std::move(moving), std::move(waiting)};
    }
    ++passes_;
  }

  void reduce(const Range& range) {
    if (!std::exchange(begun_, true)) begin_pass();
    if (range.complete) queue_->wait_for(*range.complete);
    const bool stamps = timed_ && !timed_->is_complete;
    if (stamps) timed_->moving->stamp();
    move(range);
    if (stamps) timed_->moving->stamp();
  }

  void move(const Range& range) {
    std::vector<int64_t> bounds = shards_;
    for (int64_t& bound : bounds) bound = std::clamp(bound, range.begin, range.end);
    sent_ += size_of(DType::f32) * (range.end - range.begin - own(bounds));
    float* gradient = store_.flat_gradient().f32();
    if (!ordered_) {
      return queue_->run([&] { gpus_.reduce_to_owners(gradient, range.begin, range.end, shards_, queue_->handle()); });
    }
    auto* parts = static_cast<float*>(parts_.data());
    const int64_t most = kMostElements / gpus_.size();
    for (int64_t offset = 0; offset < longest_range(bounds); offset += most) {
      queue_->run([&] {
        gpus_.exchange_ranges(gradient, bounds, offset, most, parts, queue_->handle());
        const auto [to, count] = piece_of(bounds, gpus_.rank(), offset, most);
        if (count > 0) sum_parts(device_, parts, gpus_.size(), count, gradient + to);
      });
    }
  }

  // After everything queued on the device so far, and before what is queued there later.
  template <typename Work>
  void in_order(const Work& work) {
    BRISK_CHECK(!device_.is_recording(), "ranks that exchange data while a graph is recorded");
    if (here_) {
      here_->set();
      queue_->wait_for(*here_);
    }
    queue_->run(work);
    queue_->hold_back_device();
    begun_ = false;
  }

  const ParameterStore& store_;
  Device& device_;
  Nccl& gpus_;
  const std::vector<int64_t> shards_;
  const bool ordered_;
  Buffer parts_;  // [ranks, elements of a piece]
  std::unique_ptr<DeviceQueue> queue_;
  std::shared_ptr<DeviceMark> here_;  // the device's place where an operation was begun
  std::vector<Range> recorded_;       // in the graph that is recorded now
  bool begun_ = false;                // and not waited for
  std::optional<Timed> timed_;        // the pass that is stamped now, or was
  int64_t passes_ = 0, timed_passes_ = 0;
  double hidden_of_timed_ = 0;
  int64_t sent_ = 0;
};

}  // namespace

void try_nccl(Device& device, Nccl& gpus) {
  constexpr int64_t kEach = 1024;  // floats of every rank's range
  const auto ranks = static_cast<int64_t>(gpus.size()), count = ranks * kEach;
  const int64_t bytes = count * size_of(DType::f32);
  std::vector<int64_t> bounds, bounds_in_bytes;
  for (int64_t rank = 0; rank <= ranks; ++rank) {
    bounds.push_back(rank * kEach);
    bounds_in_bytes.push_back(rank * kEach * size_of(DType::f32));
  }
  // Rank r has r + 1 everywhere.
  std::vector<float> numbers(static_cast<size_t>(count), static_cast<float>(gpus.rank() + 1));
  const Buffer data(device, bytes), parts(device, bytes), gathered(device, bytes);
  device.copy_in(data.data(), numbers.data(), bytes);
  device.wait();
  const std::unique_ptr<DeviceQueue> queue = device.queue();
  auto* const floats = static_cast<float*>(data.data());
  gpus.exchange_ranges(floats, bounds, 0, kEach, static_cast<float*>(parts.data()), queue->handle());
  gpus.all_gather(floats + gpus.rank() * kEach, gathered.data(), kEach * size_of(DType::f32), queue->handle());
  gpus.reduce_to_owners(floats, 0, count, bounds, queue->handle());
  gpus.share_ranges(floats, bounds_in_bytes, queue->handle());
  queue->hold_back_device();
  const auto expect = [&](const Buffer& buffer, const char* what, const auto& expected) {
    device.copy_out(numbers.data(), buffer.data(), bytes);
    for (int64_t i = 0; i < count; ++i) {
      const float found = numbers[static_cast<size_t>(i)], wanted = expected(i / kEach);
      if (found == wanted) continue;
      user_error(
          "{}: {} between the GPUs are wrong on rank {}: number {} is {}, expected {}; direct access from GPU to GPU may be broken "
          "here: try NCCL_P2P_DISABLE=1",
          gpus.version(), what, gpus.rank(), i, found, wanted);
    }
  };
  const auto of_rank = [](int64_t rank) { return static_cast<float>(rank + 1); };
  expect(parts, "messages", of_rank);
  expect(gathered, "gathered numbers", of_rank);
  expect(data, "sums", [&](int64_t) { return static_cast<float>(ranks * (ranks + 1) / 2); });
}

int64_t nccl_sum_bytes(int64_t own_elements, int64_t ranks) {
  return std::min(own_elements, kMostElements / ranks) * ranks * size_of(DType::f32);
}

std::unique_ptr<ShardTransport> make_nccl_transport(const ParameterStore& store, StepState& state, Nccl& gpus,
                                                    std::vector<int64_t> shards, bool ordered) {
  return std::make_unique<NcclTransport>(store, state, gpus, std::move(shards), ordered);
}

}  // namespace brisk
