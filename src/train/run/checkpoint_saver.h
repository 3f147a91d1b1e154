// Saves a run's checkpoints while its steps go on: the state is copied, and another thread writes the copy. At most one
// save is in flight.
//
//   CheckpointSaver saver({.run = path, .keep = 2, .copy_bytes = plan.copy_bytes});
//   saver.begin(store, state, SaveMode::in_background);          // returns when the copy is made
//   if (saver.in_flight() && saver.is_done()) tell(saver.take()); // after each step: how it went
//   if (saver.in_flight()) tell(saver.take());                    // waits
//
// Without memory for a copy, or where it may not wait (the last save of a run), begin() writes the checkpoint itself;
// take() tells of it in the same way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "checkpoint/checkpoint.h"

namespace brisk {

// What writes a checkpoint: save_checkpoint(), unless a test has another.
using CheckpointWrite =
    std::function<SaveResult(const std::string& run, const CheckpointTensors& tensors, const CheckpointState& state)>;

enum class SaveMode : uint8_t { in_background, at_once };

struct SavedCheckpoint {
  int64_t step = 0;
  SaveResult result;
  std::string prune_problem;  // why an old checkpoint could not be removed; empty: nothing
  double write_seconds = 0;   // files, flushing, removing of old ones
  bool in_background = false;
};

class CheckpointSaver {
 public:
  struct Options {
    std::string run;
    int64_t keep = 0;        // the last so many, and the best (prune_checkpoints)
    int64_t copy_bytes = 0;  // host memory that a copy may take; less than it needs: training waits for every save
    CheckpointWrite write = {};
  };

  explicit CheckpointSaver(Options options);
  ~CheckpointSaver();  // waits: a checkpoint that was begun is saved
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // None is in flight. Never throws: what goes wrong is in take().
  void begin(const ParameterStore& store, const CheckpointState& state, SaveMode mode);

  bool in_flight() const { return in_flight_; }                           // its outcome has not been taken
  bool is_done() const { return done_.load(std::memory_order_acquire); }  // taking it takes no time
  SavedCheckpoint take();                                                 // waits until it is done

  // Why the copy that was planned is not made after all, once: another process took the memory. Empty: nothing to tell.
  std::string take_note() { return std::exchange(note_, ""); }

 private:
  bool copy(const ParameterStore& store);
  void write(const CheckpointTensors& tensors, const CheckpointState& state);

  Options options_;
  std::unique_ptr<CheckpointCopy> copy_;
  bool may_copy_;
  bool in_flight_ = false;
  std::string note_;
  SavedCheckpoint saved_;  // the writer's until it is done
  std::atomic<bool> done_ = true;
  std::thread thread_;
};

}  // namespace brisk
