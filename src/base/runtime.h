// The runtime (brisk/runtime.h) that is bound to a thread: main() or a function of the library's interface binds one, and
// the code below uses it.
//
//   Runtime runtime({.threads = 4});
//   const RuntimeScope scope(runtime);                // this thread, until the end of the scope
//   train(job, {});
//
//   thread_pool().for_range(n, 64, ...);              // code below: the current runtime's pool
//   throw_if_cancelled();                             // in every loop that may take long
//
// Threads that brisk starts are bound to the runtime of the thread that started them.
#pragma once

#include <brisk/runtime.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/machine/isa.h"
#include "base/threads.h"

namespace brisk {

inline Runtime& Runtime::current() { return current_ != nullptr ? *current_ : none_is_bound(); }
inline ThreadPool& Runtime::pool() { return pool_ ? *pool_ : start_pool(); }
inline Isa Runtime::isa() {
  const int known = isa_.load(std::memory_order_relaxed);
  return known >= 0 ? static_cast<Isa>(known) : choose_isa();
}

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

// Another number of threads of the current runtime while it lives: a job's training.threads.
class ThreadsScope {
 public:
  explicit ThreadsScope(int threads);  // 0: the runtime's own
  ~ThreadsScope() { runtime_.set_threads(before_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  Runtime& runtime_;
  int before_;
};

inline void throw_if_cancelled() {
  if (Runtime::current().cancelled()) throw Cancelled();
}

// What messages call an option of a call: "max_length", or where a command line made the call, "--max-length".
std::string option_name(std::string_view field);

// A callback as brisk's code calls it: in the floating-point mode of the caller. None stays none.
template <typename Result, typename... Args>
std::function<Result(Args...)> in_callers_mode(const std::function<Result(Args...)>& callback) {
  if (!callback) return {};
  return [callback](Args... args) -> Result {
    const CallersFloatingPoint mode;
    return callback(std::forward<Args>(args)...);
  };
}

inline ThreadPool& thread_pool() { return Runtime::current().pool(); }

}  // namespace brisk
