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

// line() is called from any thread, the rest from the one that trains. They must not throw. On the thread that called
// brisk, they run in the floating-point mode that it had then.
class BRISK_API LogSink {
 public:
  virtual ~LogSink() = default;
  // A message: mostly one line, sometimes several; without a newline at its end. Empty: a blank line between messages.
  virtual void line(LogLevel level, std::string_view text) = 0;
  virtual bool shows_colours() const { return false; }  // whether line() may be given the colour codes of a terminal
  // After every step; `is_logged`: one to write down where nothing can be redrawn (every training.logging_steps, or now
  // and then).
  virtual void progress(const Progress& /*progress*/, bool /*is_logged*/) {}
  virtual void work(const WorkProgress& /*progress*/) {}
  virtual std::chrono::milliseconds work_interval() const { return std::chrono::seconds(10); }  // between two work()
  virtual void clear_progress() {}   // other output follows: takes a bar off the screen until the next progress()
  virtual void finish_progress() {}  // the training is over: a bar stays as a line of its own
};

// Numbers for people, as brisk's own messages have them.
BRISK_API std::string format_count(double count);       // 950, 1.23K, 12.3K, 123K, 1.23M, 1.23G, 1.23T
BRISK_API std::string format_bytes(double bytes);       // 512 B, 1.00 KiB, 1.42 GiB
BRISK_API std::string format_duration(double seconds);  // 850 us, 12.3 ms, 4.20 s, 3m 05s, 2h 07m, 3d 04h
// "epoch 1/3  step 40/900  4 %  loss 5.310  12.3K tokens/s  98 % busy, 612 W, 64 C  elapsed 4.20 s  left 1m 30s"
BRISK_API std::string format_progress(const Progress& progress);

// A text that a file or a model chose, made fit for a terminal: characters that a terminal obeys, that change the direction
// of the text or that are no UTF-8 are written as escapes; line ends and tabs stay.
BRISK_API std::string without_controls(std::string_view text);

// The same of a text that comes in pieces, which may end inside a character.
class BRISK_API ControlFilter {
 public:
  std::string next(std::string_view piece);
  std::string rest();  // what waited for the rest of its character

 private:
  std::string waiting_;
};

}  // namespace brisk
