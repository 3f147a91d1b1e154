// Ctrl-C, SIGTERM and a closed terminal cancel what the runtime computes: a training finishes its step, saves a
// checkpoint and says how to resume. A second Ctrl-C ends the process at once; the last checkpoint remains valid.
//
//   InterruptGuard guard(Runtime::current(), kStopping);      // until it goes out of scope
//   train(job, {});
#pragma once

namespace brisk {

class Runtime;

// What the first Ctrl-C is answered with, at once, whatever takes a while then.
constexpr const char* kStopping =
    "\nstopping: this step is finished and saved first; a second Ctrl-C ends it at once, and only what was trained since the "
    "last checkpoint is lost\n";
constexpr const char* kStoppingSmokeTest =
    "\nstopping: what the smoke test made is removed first; a second Ctrl-C ends it at once and leaves that behind\n";

// One at a time: signals are the process's.
class InterruptGuard {
 public:
  InterruptGuard(Runtime& runtime, const char* said);
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
