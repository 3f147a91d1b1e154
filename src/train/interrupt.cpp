#include "train/interrupt.h"

#include <signal.h>

#include <iterator>

namespace brisk {

namespace {

volatile sig_atomic_t interrupted = 0;

void on_signal(int signal_number) {
  interrupted = 1;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal_number, &standard, nullptr);
}

// SIGHUP: the terminal is gone; a run started with nohup ignores it and goes on.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
struct sigaction previous[std::size(kSignals)];

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &previous[i]);
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

bool InterruptGuard::requested() { return interrupted != 0; }

}  // namespace brisk
