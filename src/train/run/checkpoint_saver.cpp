#include "train/run/checkpoint_saver.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/terminal/terminal.h"

namespace brisk {

namespace {

// The writer yields to the threads that compute, and leaves the process's signals to the others: a Ctrl-C that cut one of
// its system calls short would be a failed save.
void become_a_background_thread() {
  constexpr int kNice = 10;  // a tenth of a core where all are busy
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&signals, fault);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

CheckpointSaver::CheckpointSaver(Options options) : options_(std::move(options)), may_copy_(options_.copy_bytes > 0) {
  if (!options_.write) {
    options_.write = [](const std::string& run, const CheckpointTensors& tensors, const CheckpointState& state) {
      return save_checkpoint(run, tensors, state);
    };
  }
}

CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
}

// False: training waits for this save, and for later ones.
bool CheckpointSaver::copy(const ParameterStore& store) {
  if (!may_copy_) return false;
  try {
    if (!copy_) {
      const int64_t needed = tensors_of(store).bytes(), available = memory_available();
      if (needed > options_.copy_bytes || needed > available) {
        user_error("it needs {} and {} are available", format_bytes(static_cast<double>(needed)),
                   format_bytes(static_cast<double>(std::min(options_.copy_bytes, available))));
      }
      copy_ = std::make_unique<CheckpointCopy>(store);
    }
    copy_->take(store);
    return true;
  } catch (const std::exception& error) {
    copy_.reset();
    may_copy_ = false;
    note_ = fmt::format("training waits while a checkpoint is written: there is no memory for a copy of it: {}",
                        error.what());
    return false;
  }
}

void CheckpointSaver::write(const CheckpointTensors& tensors, const CheckpointState& state) {
  const auto start = std::chrono::steady_clock::now();
  try {
    saved_.result = options_.write(options_.run, tensors, state);
    if (saved_.result.ok()) saved_.prune_problem = prune_checkpoints(options_.run, options_.keep, state.best_step);
  } catch (const std::exception& error) {  // not of the kind a disk gives; a thread must not end with it
    saved_.result.problem = fmt::format("the checkpoint of step {} was not saved: {}", state.step, error.what());
  }
  saved_.write_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  done_.store(true, std::memory_order_release);
}

void CheckpointSaver::begin(const ParameterStore& store, const CheckpointState& state, SaveMode mode) {
  BRISK_CHECK(!in_flight_, "a save of step {} while that of step {} is in flight", state.step, saved_.step);
  saved_ = {.step = state.step, .in_background = mode == SaveMode::in_background && copy(store)};
  in_flight_ = true;
  done_.store(false, std::memory_order_relaxed);
  if (saved_.in_background) {
    try {
      thread_ = std::thread([this, state] {
        become_a_background_thread();
        write(copy_->tensors(), state);
      });
      return;
    } catch (const std::system_error&) {  // no thread to be had
      saved_.in_background = false;
    }
  }
  write(tensors_of(store), state);
}

SavedCheckpoint CheckpointSaver::take() {
  BRISK_CHECK(in_flight_, "no save is in flight");
  if (thread_.joinable()) thread_.join();
  in_flight_ = false;
  return std::move(saved_);
}

}  // namespace brisk
