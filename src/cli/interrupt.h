// Ctrl-C, SIGTERM and a closed terminal cancel what the runtime computes: a training finishes its step, saves a
// checkpoint and says how to resume. The signal is answered at once, in the handler; a second Ctrl-C or SIGTERM ends the
// process, and the last checkpoint remains valid.
//
//   InterruptGuard guard(Runtime::current(), "finishing this step");      // until it goes out of scope
//   train(job, {});
#pragma once

#include <string>
#include <string_view>

namespace brisk {

class Runtime;

// One at a time: signals are the process's.
class InterruptGuard {
 public:
  // `answer`: what the first signal is answered with; without a line end.
  InterruptGuard(Runtime& runtime, std::string_view answer);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Until there is anything to save, an interrupted process says so and ends with the same exit code. The run directory, and
// what a start makes in it, is gone again where it was not there before and nobody else has put anything there. Of a rank that
// writes none, `run` is empty: it ends without a word.
class StartInterruptGuard {
 public:
  explicit StartInterruptGuard(const std::string& run);
  ~StartInterruptGuard();
  StartInterruptGuard(const StartInterruptGuard&) = delete;
  StartInterruptGuard& operator=(const StartInterruptGuard&) = delete;
};

}  // namespace brisk
