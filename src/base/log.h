// The log sink (brisk/log.h) as a training uses it. Messages go there by say() and warn() (base/terminal/terminal.h).
#pragma once

#include <brisk/log.h>

namespace brisk {

// However a training ends, its last progress stays on the screen.
class ProgressScope {
 public:
  explicit ProgressScope(LogSink& log) : log_(log) {}
  ~ProgressScope() { log_.finish_progress(); }
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  LogSink& log_;
};

}  // namespace brisk
