// Ctrl-C, SIGTERM and a closed terminal cancel what the runtime computes: a training finishes its step, saves a
// checkpoint and says how to resume. A second Ctrl-C ends the process at once; the last checkpoint remains valid.
//
//   InterruptGuard guard(Runtime::current());      // until it goes out of scope
//   train(job, {});
#pragma once

namespace brisk {

class Runtime;

// One at a time: signals are the process's.
class InterruptGuard {
 public:
  explicit InterruptGuard(Runtime& runtime);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Until there is anything to save, an interrupted process says so and ends with the same exit code.
class StartInterruptGuard {
 public:
  StartInterruptGuard();
  ~StartInterruptGuard();
  StartInterruptGuard(const StartInterruptGuard&) = delete;
  StartInterruptGuard& operator=(const StartInterruptGuard&) = delete;
};

}  // namespace brisk
