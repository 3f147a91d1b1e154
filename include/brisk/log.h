// The log sink: receives messages and the progress of a training.
//
//   class Quiet : public brisk::LogSink {
//     void line(brisk::LogLevel level, std::string_view text) override {
//       if (level == brisk::LogLevel::warning) remember(text);
//     }
//   };
//   brisk::Runtime runtime({.log = std::make_shared<Quiet>()});      // the default writes to standard error
#pragma once

#include <brisk/error.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace brisk {

enum class LogLevel { info, warning };

struct Progress {
  int64_t epoch = 0, epochs = 0;  // epochs 0: not shown
  int64_t step = 0, steps = 0;
  double loss = 0;  // of the last steps, the latest weighing most
  double tokens_per_second = 0;
  double elapsed_seconds = 0;
  double seconds_left = -1;   // negative: not known yet
  int64_t skipped_steps = 0;  // by loss scaling; 0: not shown
  std::string gpu = {};       // its load and temperature, as text; empty: not shown
};

// Work before the first step, measured in bytes: tokenizing, a teacher's answers.
struct WorkProgress {
  std::string what;
  int64_t done = 0, total = 0;  // bytes
  double bytes_per_second = 0;
};

// line() is called from any thread, the rest from the one that trains. They must not throw.
class BRISK_API LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void line(LogLevel level, std::string_view text) = 0;  // without a newline at its end
  // After every step; `is_logged`: one to write down where nothing can be redrawn (every training.logging_steps, or now
  // and then).
  virtual void progress(const Progress& /*progress*/, bool /*is_logged*/) {}
  virtual void work(const WorkProgress& /*progress*/) {}
  virtual std::chrono::milliseconds work_interval() const { return std::chrono::seconds(10); }  // between two work()
  virtual void clear_progress() {}   // other output follows: takes a bar off the screen until the next progress()
  virtual void finish_progress() {}  // the training is over: a bar stays as a line of its own
};

}  // namespace brisk
