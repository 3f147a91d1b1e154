// A training in a process of its own (doctor/measure/worker.h) that runs a stretch of steps when it is told to and stands
// still otherwise. Two of them take turns, so that what is compared is measured in the same minute; a process of its own
// has its own memory, page faults and threads, and may fail without taking the doctor with it.
//
//   MeasuredRun run(job, scratch.path() + "/a", {});
//   run.start();                                   // ReadyFacts: what it is about to do
//   Block warm_up = run.go(32);                    // steps until 32 sequences are done
//   Block block = run.go(320);
//   Readings readings = run.readings();
//
// RunFailed where the process ends with an error, and what it said; Cancelled where the user interrupts the doctor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "doctor/measure/block.h"
#include "doctor/readings/readings.h"
#include "job/job.h"

namespace brisk {

// What the process said, or how it ended. `refused`: it was the user's input (exit code 2).
class RunFailed : public std::runtime_error {
 public:
  RunFailed(const std::string& what, bool refused) : std::runtime_error(what), refused(refused) {}
  bool refused;
};

struct ReadyFacts {
  double start_up_seconds = 0;  // until then, as the run counts
  int64_t sequences_per_step = 0, steps_per_epoch = 0, total_steps = 0;
  double tokens_per_epoch = 0, gigaflop_per_step = 0, peak_gflops = 0;
  bool on_gpu = false;
  int64_t validation_rows = 0;
  int64_t planned_bytes = 0, longest = 0, micro_batch_tokens = 0, validation_sequences = 0;
  std::string precision;
};

// A micro-batch of so many sequences, and an update of the whole model.
struct BatchSpeed {
  int64_t sequences = 0;
  double tokens_per_second = 0, update_seconds = 0;
};

struct Timed {
  double seconds = 0;
  int64_t count = 0, of = 0;
  double write_seconds = 0;  // of a save
};

class MeasuredRun {
 public:
  // `folder`: for its files, made and removed by the caller. `gradient`: where the first step's goes, or nowhere.
  // `processes`: that train it together on this machine's cores (brisk launch); the first one answers. Of several, go()
  // and readings() alone may be asked for.
  MeasuredRun(const Job& job, std::string folder, const std::string& gradient = "", int64_t processes = 1);
  ~MeasuredRun();  // ends it
  MeasuredRun(const MeasuredRun&) = delete;
  MeasuredRun& operator=(const MeasuredRun&) = delete;

  const ReadyFacts& start();  // waits until it is ready for the first step
  const ReadyFacts& facts() const { return facts_; }
  double start_seconds() const { return start_seconds_; }  // by the wall clock, what start() took

  // Steps until so many sequences more are done. With a limit in seconds: RunFailed where it takes longer.
  // `watches_gpu`: the block tells what a GPU did meanwhile, which costs a few microseconds a step.
  Block go(int64_t sequences, bool watches_gpu = false);
  Timed evaluate(int64_t sequences);
  Timed save();
  std::vector<BatchSpeed> batch_curve(int64_t most_sequences, double seconds);  // nothing can follow but the end
  Readings readings();
  void end();

 private:
  nlohmann::ordered_json ask(const nlohmann::ordered_json& command);
  nlohmann::ordered_json read_answer();
  [[noreturn]] void fail();

  std::string folder_, buffer_;
  pid_t pid_ = -1;
  int commands_ = -1, answers_ = -1;
  ReadyFacts facts_;
  double start_seconds_ = 0;
};

}  // namespace brisk
