// What brisk's code runs on: thread pool, log sink, cancellation, cache directory, environment variables. main() or the
// library's caller makes one and binds it to a thread; nothing below it has process-wide state.
//
//   Runtime runtime({.threads = 4});
//   const RuntimeScope scope(runtime);                // this thread, until the end of the scope
//   train(job, {});                                   // another thread may call runtime.cancel()
//
//   thread_pool().for_range(n, 64, ...);              // code below: the current runtime's pool
//   if (Runtime::current().cancelled()) ...
//
// A runtime computes for one thread at a time. Two trainings at once need a runtime each; they then give the bits they
// give alone. Threads that brisk starts are bound to the runtime of the thread that started them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/machine/isa.h"
#include "base/threads.h"

namespace brisk {

// The variables that brisk reads: BRISK_..., HOME, XDG_CACHE_HOME, TERM, NO_COLOR.
using Environment = std::map<std::string, std::string, std::less<>>;
Environment process_environment();

struct RuntimeOptions {
  int threads = 0;  // of the pool; 0: one for each core this process may use
  Environment environment = process_environment();
  std::string cache_directory = {};        // empty: $XDG_CACHE_HOME/brisk, or ~/.cache/brisk, or a folder under /tmp
  std::shared_ptr<LogSink> log = nullptr;  // null: standard error
};

class Runtime {
 public:
  explicit Runtime(RuntimeOptions options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The one bound to this thread; InternalError if there is none.
  static Runtime& current() { return current_ != nullptr ? *current_ : none_is_bound(); }

  ThreadPool& pool() { return pool_ ? *pool_ : start_pool(); }  // its threads start with the first use
  void set_threads(int threads);                                // between two runs of the pool
  LogSink& log() const { return *log_; }
  const std::string& cache_directory() const { return cache_directory_; }
  std::string_view environment(std::string_view name) const;  // empty if it is not set

  // Asks for an early end: a training finishes its step, saves a checkpoint and returns. From any thread, and from a
  // signal handler.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }

  // The instruction set of the kernels: the best there is, or BRISK_ISA. UserError if that is not supported.
  Isa isa() {
    const int known = isa_.load(std::memory_order_relaxed);
    return known >= 0 ? static_cast<Isa>(known) : choose_isa();
  }
  void set_isa(Isa isa);  // for tests and benchmarks

  // Destroyed with the runtime, in reverse order: what a device holds for it.
  void keep(std::shared_ptr<void> resource) { kept_.push_back(std::move(resource)); }

 private:
  friend class RuntimeScope;
  friend class CacheDirectoryScope;
  [[noreturn]] static Runtime& none_is_bound();
  ThreadPool& start_pool();
  Isa choose_isa();

  static constinit thread_local Runtime* current_;
  Environment environment_;
  std::string cache_directory_;
  std::shared_ptr<LogSink> log_;
  int threads_;
  std::unique_ptr<ThreadPool> pool_;
  std::atomic<int> isa_{-1};  // not chosen yet
  std::atomic<bool> cancelled_{false};
  std::vector<std::shared_ptr<void>> kept_;
};

// Binds a runtime to this thread while it lives. Then the previous one is bound again, and the thread's floating-point
// mode is what it was.
class RuntimeScope {
 public:
  explicit RuntimeScope(Runtime& runtime) : before_(Runtime::current_) { Runtime::current_ = &runtime; }
  ~RuntimeScope() { Runtime::current_ = before_; }
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  Runtime* before_;
  FlushSubnormals flush_;
};

// Another cache directory of the current runtime while it lives: a job's data.cache_dir.
class CacheDirectoryScope {
 public:
  explicit CacheDirectoryScope(std::string directory);  // empty: the runtime's own
  ~CacheDirectoryScope() { runtime_.cache_directory_ = std::move(before_); }
  CacheDirectoryScope(const CacheDirectoryScope&) = delete;
  CacheDirectoryScope& operator=(const CacheDirectoryScope&) = delete;

 private:
  Runtime& runtime_;
  std::string before_;
};

inline ThreadPool& thread_pool() { return Runtime::current().pool(); }

}  // namespace brisk
