#include "train/interrupt.h"

#include <signal.h>

namespace brisk {

namespace {

volatile sig_atomic_t interrupted = 0;

void on_signal(int signal_number) {
  interrupted = 1;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal_number, &standard, nullptr);
}

struct sigaction previous_interrupt, previous_terminate;

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_interrupt);
  sigaction(SIGTERM, &action, &previous_terminate);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_interrupt, nullptr);
  sigaction(SIGTERM, &previous_terminate, nullptr);
}

bool InterruptGuard::requested() { return interrupted != 0; }

}  // namespace brisk
