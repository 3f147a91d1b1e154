// A pool of threads for all compute of a runtime (base/runtime.h). It outlives steps, so a step starts no thread, and
// everything shares the same threads, so that two libraries never fight over the cores.
//
//   ThreadPool& pool = thread_pool();      // the current runtime's
//   pool.run([&](int thread) { ... });     // once on every thread, at the same time; may use barrier()
//   pool.for_range(n, 64, [&](int64_t begin, int64_t end, int thread) { ... });     // a fixed share for each
//
// Shares are fixed by n and the number of threads alone, so a reduction over threads in order is deterministic.
// The body must not throw. Calls do not nest: a body that calls run() again is an internal error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace brisk {

class Runtime;

// While it lives, subnormal numbers (below 1e-38) are 0 on this thread. They carry no information, and the processor
// takes about 150 cycles for each: moments of a table's unused rows reach them after 800 steps, GELU's tail at once.
// The mode of a pool's threads, and of a thread while a runtime is bound to it.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  friend class CallersFloatingPoint;
  struct Mode {
    bool flushes = false;  // by an object that lives
    unsigned callers = 0;  // what the outermost one found
  };
  static constinit thread_local Mode mode_;
  Mode outer_;
  unsigned before_;
};

// While it lives, this thread has the mode that the caller of brisk had. For callbacks and log sinks, which are the
// caller's code.
class CallersFloatingPoint {
 public:
  CallersFloatingPoint();
  ~CallersFloatingPoint();
  CallersFloatingPoint(const CallersFloatingPoint&) = delete;
  CallersFloatingPoint& operator=(const CallersFloatingPoint&) = delete;

 private:
  FlushSubnormals::Mode inside_;
};

class ThreadPool {
 public:
  // Its threads are bound to `runtime`, where there is one.
  explicit ThreadPool(int threads, Runtime* runtime = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }
  // body(0) ... body(size() - 1), each once, all at the same time: they may wait for each other in barrier(). An exception
  // of one of them is rethrown here when all have ended; until then nobody waits for it at the barrier.
  void run(const std::function<void(int thread)>& body);
  // The same, but independent of each other: the caller does what a thread that got no core yet has not begun, so that
  // a busy machine slows a step by its share of the cores and no more.
  void run_parts(const std::function<void(int part)>& body);

  // Waits for every thread of the current run(); only from inside a body, by all threads.
  void barrier();

  // Divides [0, n) into size() contiguous shares, each but the last a multiple of `grain`.
  template <typename Body>
  void for_range(int64_t n, int64_t grain, const Body& body) {
    if (n <= 0) return;
    if (size_ == 1 || n <= grain) {
      body(int64_t{0}, n, 0);
      return;
    }
    run_parts([&](int part) {
      const auto [begin, end] = share(n, grain, part, size_);
      if (begin < end) body(begin, end, part);
    });
  }

  struct Range {
    int64_t begin, end;
  };
  static Range share(int64_t n, int64_t grain, int part, int parts);

 private:
  struct State;
  void start(const std::function<void(int)>& body);
  void wait();
  void stop_workers();

  int size_;
  std::unique_ptr<State> state_;
};

// Cores this process may use (affinity mask and cgroup quota considered).
int available_cores();

// Threads for this process by default: its share of those cores, where `processes` use the same ones, and no more than Slurm
// gave to the task (its SLURM_CPUS_PER_TASK; empty: it did not), whose binding of tasks to cores may be off.
int cores_of_task(std::string_view slurm_cpus_per_task, int processes = 1);

// For Runtime::set_threads: the number of threads `asked` for, 0: one per core. UserError, with the option's name, for
// so many on so few cores that they would only wait for each other.
int thread_count_for(int64_t asked, std::string_view name);

}  // namespace brisk
