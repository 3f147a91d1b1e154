// Ctrl-C, SIGTERM and a closed terminal ask a run to stop; the loop sees it between two steps, saves and says how to
// resume. A second Ctrl-C ends the process at once: the last checkpoint stands.
//
//   InterruptGuard guard;                               // until it goes out of scope
//   while (!InterruptGuard::requested()) step();
//   save();
#pragma once

namespace brisk {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool requested();
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
