// Saves a run's checkpoints while its steps go on: the state is copied, and another thread writes the copy. At most one
// save is in flight.
//
//   CheckpointSaver saver({.run = path, .keep = 2, .copy_bytes = plan.copy_bytes});
//   saver.begin(store, state, SaveMode::in_background);          // returns when the copy is made
//   if (saver.in_flight() && saver.is_done()) tell(saver.take()); // after each step: how it went
//   if (saver.in_flight()) tell(saver.take());                    // waits
//
// Of several processes each copies and writes its own range (checkpoint/shared_checkpoint.h). They talk in begin(), is_done()
// and take() alone, which all of them call after the same steps: when all have written, the first one's thread completes the
// checkpoint.
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
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/shared_checkpoint.h"
#include "train/engine/process_group.h"

namespace brisk {

// What writes a checkpoint: save_checkpoint(), unless a test has another. Of several processes, what each does before it writes
// its share; a problem in the result is the share's.
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
    bool is_trial = false;  // nothing is written
    ProcessGroup* processes = &single_process();
    FlatRange own = {};  // that this process writes
  };

  explicit CheckpointSaver(Options options);
  ~CheckpointSaver();  // waits for what this process writes: alone, a checkpoint that was begun is saved
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // None is in flight. What goes wrong is in take(); it throws where another process is gone (RankFailed), as is_done() and
  // take() do.
  void begin(const ParameterStore& store, const CheckpointState& state, SaveMode mode);

  bool in_flight() const { return in_flight_; }  // its outcome has not been taken
  bool is_done();                                // taking it takes no time; the same in all processes
  SavedCheckpoint take();  // waits until it is done; whether it was saved is known to the first process

  // Why the copy that was planned is not made after all, once: another process took the memory. Empty: nothing to tell.
  std::string take_note() { return std::exchange(note_, ""); }

 private:
  enum class Stage : uint8_t { writing, ending };

  bool is_shared() const { return options_.processes->size() > 1 && !options_.is_trial; }
  bool copy(const ParameterStore& store);
  void run(SaveMode mode, const std::function<void()>& work);
  void write(const CheckpointTensors& tensors);
  void end_shared();
  void measure(const std::function<void()>& work);
  bool own_is_done() const { return done_.load(std::memory_order_acquire); }

  Options options_;
  std::unique_ptr<CheckpointCopy> copy_;
  bool may_copy_;
  bool in_flight_ = false;
  std::string note_;
  SavedCheckpoint saved_;  // the writer's until it is done, and the share
  Stage stage_ = Stage::writing;
  CheckpointState state_;  // that is being saved
  SavedShare share_;
  std::vector<SavedShare> shares_;  // of all processes, in the first one
  const CheckpointTensors* tensors_ = nullptr;
  CheckpointTensors of_store_;  // where there is no copy
  std::atomic<bool> done_ = true;
  std::thread thread_;
};

}  // namespace brisk
