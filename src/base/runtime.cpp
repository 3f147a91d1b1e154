#include "base/runtime.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/terminal/terminal_log.h"

namespace brisk {

namespace {

std::string default_cache_directory(const Runtime& runtime) {
  const std::string_view cache = runtime.environment("XDG_CACHE_HOME"), home = runtime.environment("HOME");
  if (cache.starts_with('/')) return fmt::format("{}/brisk", cache);
  if (home.starts_with('/')) return fmt::format("{}/.cache/brisk", home);
  return fmt::format("/tmp/brisk-cache-{}", ::getuid());
}

// The caller's sink, which runs in the caller's floating-point mode.
class CallersLog final : public LogSink {
 public:
  explicit CallersLog(std::shared_ptr<LogSink> sink) : sink_(std::move(sink)) {}
  void line(LogLevel level, std::string_view text) override {
    const CallersFloatingPoint mode;
    sink_->line(level, text);
  }
  bool shows_colours() const override {
    const CallersFloatingPoint mode;
    return sink_->shows_colours();
  }
  void progress(const Progress& progress, bool is_logged) override {
    const CallersFloatingPoint mode;
    sink_->progress(progress, is_logged);
  }
  void work(const WorkProgress& progress) override {
    const CallersFloatingPoint mode;
    sink_->work(progress);
  }
  std::chrono::milliseconds work_interval() const override {
    const CallersFloatingPoint mode;
    return sink_->work_interval();
  }
  void clear_progress() override {
    const CallersFloatingPoint mode;
    sink_->clear_progress();
  }
  void finish_progress() override {
    const CallersFloatingPoint mode;
    sink_->finish_progress();
  }

 private:
  std::shared_ptr<LogSink> sink_;
};

}  // namespace

Environment process_environment() {
  constexpr std::string_view kNames[] = {"HOME",        "XDG_CACHE_HOME", "TERM",       "NO_COLOR",
                                         "RANK",        "WORLD_SIZE",     "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                         "MASTER_ADDR", "MASTER_PORT",    "NCCL_HOSTID"};
  constexpr std::string_view kPrefixes[] = {"BRISK_",    "OMPI_COMM_WORLD_", "PMI_",         "PMIX_RANK",
                                            "MPI_LOCAL", "SLURM_",           "TORCHELASTIC_"};
  Environment found;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t end = text.find('=');
    if (end == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, end);
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins) ||
        std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames))
      found.emplace(name, text.substr(end + 1));
  }
  return found;
}

constinit thread_local Runtime* Runtime::current_ = nullptr;

Runtime::Runtime(RuntimeOptions options)
    : environment_(std::move(options.environment)),
      cache_directory_(std::move(options.cache_directory)),
      names_flags_(options.names_flags),
      threads_(options.threads > 0 ? options.threads : cores_of_task(environment("SLURM_CPUS_PER_TASK"))) {
  if (cache_directory_.empty()) cache_directory_ = default_cache_directory(*this);
  if (options.log) {
    log_ = std::make_shared<CallersLog>(std::move(options.log));
  } else {
    const RuntimeScope scope(*this);  // whether to redraw and to colour is a question to the environment
    log_ = std::make_shared<TerminalLog>();
  }
}

Runtime::~Runtime() {
  while (!kept_.empty()) kept_.pop_back();
}

LogSink& Runtime::nobodys_log() {
  class Silence final : public LogSink {
    void line(LogLevel /*level*/, std::string_view /*text*/) override {}
  };
  static Silence silence;
  return silence;
}

Runtime& Runtime::none_is_bound() {
  throw InternalError("no Runtime is bound to this thread: make one, and a RuntimeScope (base/runtime.h)");
}

ThreadPool& Runtime::start_pool() {
  pool_ = std::make_unique<ThreadPool>(threads_, this);
  return *pool_;
}

void Runtime::set_threads(int threads) {
  if (threads_ == std::max(1, threads)) return;
  pool_.reset();
  threads_ = std::max(1, threads);
}

std::string_view Runtime::environment(std::string_view name) const {
  const auto found = environment_.find(name);
  return found == environment_.end() ? std::string_view() : found->second;
}

Isa Runtime::choose_isa() {
  const Isa isa = isa_from_name(environment("BRISK_ISA"), "BRISK_ISA");
  isa_.store(static_cast<int>(isa), std::memory_order_relaxed);  // whoever else is here chooses the same
  return isa;
}

void Runtime::set_isa(Isa isa) {
  BRISK_CHECK(isa <= best_isa(), "{} is not available", isa_name(isa));
  isa_.store(static_cast<int>(isa), std::memory_order_relaxed);
}

std::string option_name(std::string_view field) {
  if (!Runtime::current().names_flags()) return std::string(field);
  std::string flag = fmt::format("--{}", field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

CacheDirectoryScope::CacheDirectoryScope(std::string directory)
    : runtime_(Runtime::current()), before_(runtime_.cache_directory_) {
  if (!directory.empty()) runtime_.cache_directory_ = std::move(directory);
}

ThreadsScope::ThreadsScope(int threads) : runtime_(Runtime::current()), before_(runtime_.threads()) {
  if (threads > 0) runtime_.set_threads(threads);
}

}  // namespace brisk
