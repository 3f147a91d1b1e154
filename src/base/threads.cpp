#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"

namespace brisk {

namespace {

// Workers spin this many rounds (about 50 us) before they sleep: between two ops of a step they are wanted again
// within microseconds, between two commands of a user they are not.
constexpr int kSpinRounds = 3000;

// With 4 threads a core a step takes several times as long as with one, with 32 some take seconds.
constexpr int64_t kMostThreadsPerCore = 8;

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

template <typename Done>
void wait_until(std::atomic<uint32_t>& word, const Done& done) {
  for (int round = 0; round < kSpinRounds; ++round) {
    if (done(word.load(std::memory_order_acquire))) return;
    pause_core();
  }
  for (;;) {
    const uint32_t seen = word.load(std::memory_order_acquire);
    if (done(seen)) return;
    word.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace

// A ticket is 2 * round while the part waits for its thread and 2 * round + 1 once somebody has taken it. A thread that
// wakes late finds a later round's ticket, or its own taken, and goes back to waiting.
struct alignas(64) Ticket {
  std::atomic<uint32_t> value{0};
  bool take(uint32_t round) {
    uint32_t waiting = 2 * round;
    return value.compare_exchange_strong(waiting, waiting + 1, std::memory_order_acq_rel);
  }
};

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::vector<Ticket> tickets;
  const std::function<void(int)>* body = nullptr;
  alignas(64) std::atomic<uint32_t> round{0};    // raised once per run
  alignas(64) std::atomic<uint32_t> working{0};  // parts not done yet, without part 0
  alignas(64) std::atomic<uint32_t> arrived{0};  // at the barrier
  alignas(64) std::atomic<uint32_t> barrier_round{0};
  std::atomic<bool> quit{false};
  std::atomic<bool> running{false};
  std::atomic<bool> failed{false};  // a part threw: nobody waits for it at the barrier
  std::mutex failure_mutex;
  std::exception_ptr failure;  // the first one

  void run_body(int part) {
    try {
      (*body)(part);
    } catch (...) {
      {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
      failed.store(true, std::memory_order_release);
      barrier_round.fetch_add(1, std::memory_order_acq_rel);
      barrier_round.notify_all();
    }
  }

  void run_part(int part) {
    run_body(part);
    if (working.fetch_sub(1, std::memory_order_acq_rel) == 1) working.notify_one();
  }
};

// The two bits of the control word that set subnormal results and subnormal inputs to 0.
namespace {
constexpr unsigned kFlush = 0x8000 | 0x0040;
#if defined(__SSE2__)
unsigned flush_bits() { return __builtin_ia32_stmxcsr() & kFlush; }
void set_flush_bits(unsigned bits) { __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~kFlush) | bits); }
#else
unsigned flush_bits() { return 0; }
void set_flush_bits(unsigned) {}
#endif
}  // namespace

constinit thread_local FlushSubnormals::Mode FlushSubnormals::mode_;

FlushSubnormals::FlushSubnormals() : outer_(mode_), before_(flush_bits()) {
  if (!mode_.flushes) mode_ = {true, before_};
  set_flush_bits(kFlush);
}

FlushSubnormals::~FlushSubnormals() {
  set_flush_bits(before_);
  mode_ = outer_;
}

CallersFloatingPoint::CallersFloatingPoint() : inside_(FlushSubnormals::mode_) {
  if (!inside_.flushes) return;
  set_flush_bits(inside_.callers);
  FlushSubnormals::mode_.flushes = false;
}

CallersFloatingPoint::~CallersFloatingPoint() {
  if (!inside_.flushes) return;
  set_flush_bits(kFlush);
  FlushSubnormals::mode_ = inside_;
}

ThreadPool::ThreadPool(int threads, Runtime* runtime) : size_(std::max(1, threads)), state_(std::make_unique<State>()) {
  state_->tickets = std::vector<Ticket>(static_cast<size_t>(size_));
  const auto work = [this, runtime](int thread) {
    const FlushSubnormals flush;
    std::optional<RuntimeScope> scope;
    if (runtime != nullptr) scope.emplace(*runtime);
    State& state = *state_;
    uint32_t seen = 0;
    for (;;) {
      wait_until(state.round, [&](uint32_t round) { return round != seen; });
      seen = state.round.load(std::memory_order_acquire);
      if (state.quit.load(std::memory_order_acquire)) return;
      if (state.tickets[static_cast<size_t>(thread)].take(seen)) state.run_part(thread);
    }
  };
  state_->workers.reserve(static_cast<size_t>(size_));
  try {
    for (int thread = 1; thread < size_; ++thread) state_->workers.emplace_back(work, thread);
  } catch (const std::system_error& error) {
    const size_t started = state_->workers.size() + 1;
    stop_workers();
    user_error("the system started only {} of {} threads ({}): use fewer, or raise ulimit -u", started, size_,
               error.what());
  }
}

ThreadPool::~ThreadPool() { stop_workers(); }

void ThreadPool::stop_workers() {
  state_->quit.store(true, std::memory_order_release);
  state_->round.fetch_add(1, std::memory_order_acq_rel);
  state_->round.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
  state_->workers.clear();
}

void ThreadPool::start(const std::function<void(int)>& body) {
  State& state = *state_;
  BRISK_CHECK(
      !state.running.exchange(true, std::memory_order_acquire),
      "ThreadPool::run called inside ThreadPool::run, or by two threads at once: each needs a Runtime of its own");
  state.body = &body;
  state.working.store(static_cast<uint32_t>(size_ - 1), std::memory_order_release);
  const uint32_t round = state.round.load(std::memory_order_relaxed) + 1;
  for (Ticket& ticket : state.tickets) ticket.value.store(2 * round, std::memory_order_release);
  state.round.store(round, std::memory_order_release);
  state.round.notify_all();
}

void ThreadPool::wait() {
  wait_until(state_->working, [](uint32_t working) { return working == 0; });
  const std::exception_ptr failure = std::exchange(state_->failure, nullptr);
  if (state_->failed.exchange(false, std::memory_order_acquire)) state_->arrived.store(0, std::memory_order_relaxed);
  state_->running.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

void ThreadPool::run(const std::function<void(int)>& body) {
  if (size_ == 1) return body(0);
  start(body);
  state_->run_body(0);
  wait();
}

void ThreadPool::run_parts(const std::function<void(int)>& body) {
  if (size_ == 1) return body(0);
  start(body);
  state_->run_body(0);
  const uint32_t round = state_->round.load(std::memory_order_relaxed);
  for (int part = 1; part < size_; ++part) {
    if (state_->tickets[static_cast<size_t>(part)].take(round)) state_->run_part(part);
  }
  wait();
}

void ThreadPool::barrier() {
  if (size_ == 1) return;
  State& state = *state_;
  const uint32_t round = state.barrier_round.load(std::memory_order_acquire);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.barrier_round.fetch_add(1, std::memory_order_acq_rel);
    state.barrier_round.notify_all();
    return;
  }
  // `failed` is raised before the round is.
  wait_until(state.barrier_round,
             [&](uint32_t now) { return now != round || state.failed.load(std::memory_order_acquire); });
}

ThreadPool::Range ThreadPool::share(int64_t n, int64_t grain, int part, int parts) {
  const int64_t grains = divide_up(n, grain);
  const int64_t begin = grains * part / parts * grain;
  const int64_t end = grains * (part + 1) / parts * grain;
  return {std::min(begin, n), std::min(end, n)};
}

int thread_count_for(int64_t asked, std::string_view name) {
  const int cores = available_cores();
  if (asked <= 0) return cores;
  if (asked > kMostThreadsPerCore * cores) {
    user_error(
        "{} = {}: this process may use {} core{}, and more threads than cores only wait for each other: use {} "
        "or leave it out",
        name, asked, cores, cores == 1 ? "" : "s", cores);
  }
  return static_cast<int>(asked);
}

int available_cores() {
  cpu_set_t mask;
  int cores = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0) {
    cores = std::min(cores, std::max(1, static_cast<int>(std::ceil(std::stod(quota) / period))));
  }
  return std::max(1, cores);
}

int cores_of_task(std::string_view slurm_cpus_per_task, int processes) {
  const int share = std::max(1, available_cores() / std::max(1, processes));
  int given = 0;
  const char* const end = slurm_cpus_per_task.data() + slurm_cpus_per_task.size();
  const auto [stop, error] = std::from_chars(slurm_cpus_per_task.data(), end, given);
  return error == std::errc() && stop == end && given > 0 ? std::min(share, given) : share;
}

}  // namespace brisk
