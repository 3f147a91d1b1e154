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
#include "comm/communicator.h"

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
  if (options_.is_trial) options_.write = [](const auto&...) { return SaveResult(); };
}

CheckpointSaver::~CheckpointSaver() {
  if (thread_.joinable()) thread_.join();
}

// False: training waits for this save, and for later ones.
bool CheckpointSaver::copy(const ParameterStore& store) {
  if (!may_copy_) return false;
  try {
    if (!copy_) {
      const int64_t needed = tensors_of(store, options_.own).own_bytes(), available = memory_available();
      if (needed > options_.copy_bytes || needed > available) {
        user_error("it needs {} and {} are available", format_bytes(static_cast<double>(needed)),
                   format_bytes(static_cast<double>(std::min(options_.copy_bytes, available))));
      }
      copy_ = std::make_unique<CheckpointCopy>(store, options_.own);
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

void CheckpointSaver::measure(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  try {
    work();
  } catch (const std::exception& error) {  // not of the kind a disk gives; a thread must not end with it
    std::string& problem = is_shared() && stage_ == Stage::writing ? share_.problem : saved_.result.problem;
    problem = is_shared() && stage_ == Stage::writing
                  ? error.what()
                  : fmt::format("the checkpoint of step {} was not saved: {}", saved_.step, error.what());
  }
  saved_.write_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  done_.store(true, std::memory_order_release);
}

// In the background where a copy is there to be written; else at once.
void CheckpointSaver::run(SaveMode mode, const std::function<void()>& work) {
  done_.store(false, std::memory_order_relaxed);
  if (mode == SaveMode::in_background) {
    try {
      thread_ = std::thread([this, work] {
        become_a_background_thread();
        measure(work);
      });
      return;
    } catch (const std::system_error&) {  // no thread to be had
      saved_.in_background = false;
    }
  }
  measure(work);
}

void CheckpointSaver::write(const CheckpointTensors& tensors) {
  if (!is_shared()) {
    saved_.result =
        options_.write ? options_.write(options_.run, tensors, state_) : save_checkpoint(options_.run, tensors, state_);
    if (saved_.result.ok() && !options_.is_trial)
      saved_.prune_problem = prune_checkpoints(options_.run, options_.keep, state_.best_step);
    return;
  }
  share_ = {};
  if (options_.write) share_.problem = options_.write(options_.run, tensors, state_).problem;
  if (share_.problem.empty()) share_ = write_share(options_.run, tensors, state_.step);
}

void CheckpointSaver::begin(const ParameterStore& store, const CheckpointState& state, SaveMode mode) {
  BRISK_CHECK(!in_flight_, "a save of step {} while that of step {} is in flight", state.step, saved_.step);
  saved_ = {.step = state.step};
  state_ = state;
  stage_ = Stage::writing;
  in_flight_ = true;
  of_store_ = tensors_of(store, options_.own);
  if (is_shared()) {
    ProcessGroup& processes = *options_.processes;
    if (processes.is_first()) saved_.result.problem = begin_shared_checkpoint(options_.run, of_store_, state.step);
    if (!processes.broadcast(saved_.result.ok())) {
      stage_ = Stage::ending;  // has ended
      done_.store(true, std::memory_order_release);
      return;
    }
  }
  saved_.in_background = mode == SaveMode::in_background && copy(store);
  tensors_ = saved_.in_background ? &copy_->tensors() : &of_store_;
  run(saved_.in_background ? SaveMode::in_background : SaveMode::at_once, [this] { write(*tensors_); });
}

// The first process hears what the others wrote, and completes the checkpoint as it wrote its own share.
void CheckpointSaver::end_shared() {
  if (thread_.joinable()) thread_.join();
  stage_ = Stage::ending;
  shares_.clear();
  for (const std::string& text : options_.processes->communicator()->gather(share_.text()))
    shares_.push_back(saved_share_from_text(text));
  if (!options_.processes->is_first()) return;
  run(saved_.in_background ? SaveMode::in_background : SaveMode::at_once, [this] {
    saved_.result = end_shared_checkpoint(options_.run, *tensors_, state_, shares_);
    if (saved_.result.ok()) saved_.prune_problem = prune_checkpoints(options_.run, options_.keep, state_.best_step);
  });
}

bool CheckpointSaver::is_done() {
  ProcessGroup& processes = *options_.processes;
  if (!is_shared()) return processes.broadcast(own_is_done());
  if (stage_ == Stage::writing) {
    if (processes.sum(own_is_done() ? 0.0 : 1.0) > 0) return false;
    end_shared();
  }
  return processes.broadcast(own_is_done());
}

SavedCheckpoint CheckpointSaver::take() {
  BRISK_CHECK(in_flight_, "no save is in flight");
  if (is_shared() && stage_ == Stage::writing) end_shared();
  if (thread_.joinable()) thread_.join();
  in_flight_ = false;
  return std::move(saved_);
}

}  // namespace brisk
