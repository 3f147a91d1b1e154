// Ranks on CPUs: collectives of a Communicator. What moves while backward goes on is moved by one thread, which owns the
// communicator for that time.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/runtime.h"
#include "comm/communicator.h"
#include "train/engine/shard_transport.h"

namespace brisk {

namespace {

using Seconds = std::chrono::duration<double>;

class CpuTransport final : public ShardTransport {
 public:
  CpuTransport(const ParameterStore& store, ProcessGroup& processes, std::vector<int64_t> shards, bool overlaps)
      : store_(store), processes_(processes), shards_(std::move(shards)) {
    BRISK_CHECK(!store.device().is_cuda(), "a GPU's weights by the CPU's transport");
    if (overlaps) thread_ = std::thread([this] { work(); });
  }

  // What has been begun in part is ended: the other ranks are in it, too, or fail.
  ~CpuTransport() override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      quits_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  bool in_stream_order() const override { return false; }

  void begin_reduce(int64_t begin, int64_t end) override {
    if (begin >= end) return;
    if (!thread_.joinable()) return reduce(begin, end);
    {
      const std::lock_guard lock(mutex_);
      if (problem_) return;  // told by wait_for_reduce()
      waiting_.push_back({begin, end});
      is_idle_ = false;
    }
    changed_.notify_all();
  }

  void wait_for_reduce() override {
    if (!thread_.joinable()) return;
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_idle_; });
    if (problem_) std::rethrow_exception(std::exchange(problem_, nullptr));
    // What it did before this rank began to wait for it.
    const Seconds waited = std::chrono::steady_clock::now() - start;
    hidden_ += std::max(0.0, std::exchange(busy_, 0) - waited.count());
  }

  void sum(StepState& state) override { processes_.sum(state); }

  void share(void* data, std::span<const int64_t> bounds) override {
    const DeviceAccess access(store_.device());
    ranks().share_ranges(data, bounds);
  }
  void collect(void* data, std::span<const int64_t> bounds) override {
    const DeviceAccess access(store_.device());
    ranks().collect_ranges(data, bounds, 0);
  }

  double hidden_seconds() const override { return hidden_; }
  int64_t bytes_sent() const override { return processes_.communicator()->bytes_sent(); }

 private:
  struct Range {
    int64_t begin, end;
  };

  Communicator& ranks() { return *processes_.communicator(); }

  void reduce(int64_t begin, int64_t end) {
    std::vector<int64_t> bounds = shards_;
    for (int64_t& bound : bounds) bound = std::clamp(bound, begin, end);
    ranks().sum_ranges(store_.flat_gradient().f32(), bounds);
  }

  void work() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&signals, fault);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    Runtime runtime({.threads = 1, .environment = {}});  // the pool is backward's
    const RuntimeScope scope(runtime);
    const BackgroundCollectives waits_without_spinning;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return quits_ || !waiting_.empty(); });
      if (quits_) return;
      const Range range = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      const auto start = std::chrono::steady_clock::now();
      std::exception_ptr problem;
      try {
        reduce(range.begin, range.end);
      } catch (...) {
        problem = std::current_exception();
      }
      const Seconds took = std::chrono::steady_clock::now() - start;
      lock.lock();
      busy_ += took.count();
      if (problem) {
        problem_ = problem;
        waiting_.clear();
      }
      if (waiting_.empty()) {
        is_idle_ = true;
        changed_.notify_all();
      }
    }
  }

  const ParameterStore& store_;
  ProcessGroup& processes_;
  const std::vector<int64_t> shards_;
  double hidden_ = 0;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Range> waiting_;
  bool is_idle_ = true, quits_ = false;
  double busy_ = 0;  // since the last wait
  std::exception_ptr problem_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ShardTransport> make_cpu_transport(const ParameterStore& store, ProcessGroup& processes,
                                                   std::vector<int64_t> shards, bool overlaps) {
  return std::make_unique<CpuTransport>(store, processes, std::move(shards), overlaps);
}

}  // namespace brisk
