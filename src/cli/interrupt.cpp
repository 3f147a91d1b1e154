#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <iterator>
#include <string_view>

#include "base/runtime.h"

namespace brisk {

namespace {

std::atomic<Runtime*> interrupted_runtime = nullptr;
std::atomic<const char*> answer = "";

// What may be called in a handler.
void say_in_handler(std::string_view text) {
  const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

void on_signal(int signal_number) {
  if (Runtime* const runtime = interrupted_runtime) runtime->cancel();
  if (signal_number == SIGINT) say_in_handler(answer.load());
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal_number, &standard, nullptr);
}

void on_signal_at_start(int) {
  say_in_handler("\ninterrupted before the first step: nothing new was trained; start it again\n");
  ::_exit(128 + SIGINT);  // as a run that was interrupted later
}

// SIGHUP: the terminal is gone; a run started with nohup ignores it and goes on.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
using Actions = struct sigaction[std::size(kSignals)];
Actions previous, before_start;

void handle_with(void (*handler)(int), Actions& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

void give_back(const Actions& before) {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(Runtime& runtime, const char* said) {
  answer = said;
  interrupted_runtime = &runtime;
  handle_with(on_signal, previous);
}
InterruptGuard::~InterruptGuard() {
  give_back(previous);
  interrupted_runtime = nullptr;
}

StartInterruptGuard::StartInterruptGuard() { handle_with(on_signal_at_start, before_start); }
StartInterruptGuard::~StartInterruptGuard() { give_back(before_start); }

}  // namespace brisk
