// What brisk runs on: thread pool, log sink, cancellation, cache directory, environment variables. The caller makes
// one. On the CPU the library has no process-wide state; the GPU can be used by one runtime at a time.
//
//   brisk::Runtime runtime({.threads = 4});
//   brisk::train(runtime, job);               // another thread may call runtime.cancel()
//
// A runtime computes for one thread at a time. Two trainings at once need a runtime each; they then give the bits they
// give alone.
#pragma once

#include <brisk/error.h>
#include <brisk/log.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brisk {

class ThreadPool;
enum class Isa : int;

// The variables that brisk reads: BRISK_..., HOME, XDG_CACHE_HOME, TERM, NO_COLOR, and what launchers tell of ranks
// (RANK, WORLD_SIZE, ..., OMPI_COMM_WORLD_..., PMI_..., SLURM_..., TORCHELASTIC_..., NCCL_HOSTID).
using Environment = std::map<std::string, std::string, std::less<>>;
BRISK_API Environment process_environment();

struct RuntimeOptions {
  int threads = 0;  // of the pool; 0: one for each core this process may use (in Slurm: SLURM_CPUS_PER_TASK at most). A
                    // job's training.threads precedes it.
  Environment environment = process_environment();
  std::string cache_directory = {};        // empty: $XDG_CACHE_HOME/brisk, or ~/.cache/brisk, or a folder under /tmp
  std::shared_ptr<LogSink> log = nullptr;  // null: standard error
  bool names_flags = false;                // messages call an option --max-length, as a command line has it
};

class Runtime {
 public:
  BRISK_API explicit Runtime(RuntimeOptions options = {});
  BRISK_API ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  BRISK_API void set_threads(int threads);  // between two calls
  int threads() const { return threads_; }
  LogSink& log() const { return quiet_ ? nobodys_log() : *log_; }
  const std::string& cache_directory() const { return cache_directory_; }

  // Asks for an early end: a training finishes its step, saves a checkpoint and returns; every other call, and a training
  // before its first step, throws Cancelled. From any thread, and from a signal handler. There is no way back: go on
  // with another runtime.
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_relaxed); }

  // Of several ranks that train together, one talks. Errors are exceptions as ever.
  void set_quiet(bool quiet) { quiet_ = quiet; }
  bool is_quiet() const { return quiet_; }

  // For brisk's own code (base/runtime.h has those that are inline).
  static Runtime& current();                                  // bound to this thread; InternalError if there is none
  ThreadPool& pool();                                         // its threads start with the first use
  std::string_view environment(std::string_view name) const;  // empty if it is not set
  bool names_flags() const { return names_flags_; }
  Isa isa();              // of the kernels: the best there is, or BRISK_ISA. UserError if that is not supported.
  void set_isa(Isa isa);  // for tests and benchmarks
  // Destroyed with the runtime, in reverse order: what a device holds for it.
  void keep(std::shared_ptr<void> resource) { kept_.push_back(std::move(resource)); }

 private:
  friend class RuntimeScope;
  friend class CacheDirectoryScope;
  [[noreturn]] static Runtime& none_is_bound();
  BRISK_API static LogSink& nobodys_log();
  ThreadPool& start_pool();
  Isa choose_isa();

  static constinit thread_local Runtime* current_;
  Environment environment_;
  std::string cache_directory_;
  std::shared_ptr<LogSink> log_;
  bool names_flags_;
  bool quiet_ = false;
  int threads_;
  std::unique_ptr<ThreadPool> pool_;
  std::atomic<int> isa_{-1};  // not chosen yet
  std::atomic<bool> cancelled_{false};
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace brisk
