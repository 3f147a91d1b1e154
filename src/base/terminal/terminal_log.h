// The log on standard error: a line each; on a terminal, a bar that is redrawn about 10 times a second at most.
//
//   TerminalLog log;
//   log.progress({.epoch = 1, .epochs = 3, .step = 40, .steps = 900, .loss = 5.31, ...}, false);   // each step: cheap
//   log.line(LogLevel::info, "saved");    // takes the bar off the screen first; the next progress draws it again
//   log.finish_progress();                // the last state stays as a line of its own
#pragma once

#include <chrono>
#include <mutex>
#include <string_view>

#include "base/log.h"

namespace brisk {

class TerminalLog final : public LogSink {
 public:
  TerminalLog();                                  // draws where standard error is a terminal
  TerminalLog(int file_descriptor, bool redraw);  // chosen by the caller, as tests do
  ~TerminalLog() override;

  void line(LogLevel level, std::string_view text) override;  // a warning begins with "warning:"
  bool shows_colours() const override { return colours_; }
  void progress(const Progress& progress, bool is_logged) override;  // in a pipe a plain line where it is logged
  void work(const WorkProgress& progress) override;
  std::chrono::milliseconds work_interval() const override;
  void clear_progress() override;
  void finish_progress() override;

 private:
  // Their callers hold the lock.
  void draw();
  void take_off_screen();

  std::mutex mutex_;
  int file_descriptor_;
  bool redraw_, colours_;
  enum class Shown { nothing, progress, work } shown_ = Shown::nothing;
  bool pending_ = false;  // `last_` has not been drawn
  Progress last_;
  std::chrono::steady_clock::time_point drawn_at_{};
};

}  // namespace brisk
