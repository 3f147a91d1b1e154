#include "cli/interrupt.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "comm/control.h"

namespace brisk {

namespace {

std::atomic<Runtime*> interrupted_runtime = nullptr;

// Read by handlers: set before they are installed, and constant while they are.
std::string answer_text;
std::vector<std::string> made_by_start;  // innermost first
std::string job_of_start;                // with it, there is a run: a later start clears it away

// What may be called in a handler.
void write_error(std::string_view text) {
  const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);
}

// SIGHUP: the terminal is gone; a run started with nohup ignores it and goes on.
// SIGUSR1 and SIGUSR2: what batch systems send before the time is over.
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
using Actions = std::array<struct sigaction, std::size(kSignals)>;
Actions previous, before_start;

void on_signal(int signal_number) {
  if (Runtime* const runtime = interrupted_runtime) runtime->cancel();
  if (signal_number == SIGHUP) return;  // nobody reads an answer, nor asks twice
  // First of all: whoever reads the answer may send the second one at once, and another thread would take it.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (const int again : {SIGINT, SIGTERM}) sigaction(again, &standard, nullptr);
  write_error(answer_text);
}

void remove_what_start_made() {
  if (::access(job_of_start.c_str(), F_OK) != 0) {
    for (const std::string& path : made_by_start) {
      if (::unlink(path.c_str()) != 0) ::rmdir(path.c_str());  // only where it is empty
    }
  }
}

void on_signal_at_start(int) {
  remove_what_start_made();
  write_error(answer_text);
  ::_exit(128 + SIGINT);  // as a run that was interrupted later
}

void handle_with(void (*handler)(int), Actions& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int other : kSignals) sigaddset(&action.sa_mask, other);  // one handler at a time
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

void give_back(const Actions& before) {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

// On a terminal, in place of the progress line and the ^C in it.
std::string on_a_line(std::string_view text) {
  if (text.empty()) return {};
  return fmt::format("{}{}\n", can_redraw(STDERR_FILENO) ? "\r\x1b[K" : "", text);
}

// Of what a start makes, what is not there yet.
std::vector<std::string> missing_of(const std::string& run) {
  std::vector<std::string> missing;
  std::error_code error;
  const auto is_missing = [&](const std::filesystem::path& path) {
    return std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found;
  };
  const std::filesystem::path folder = std::filesystem::absolute(run, error).lexically_normal();
  for (const char* name : {".lock", "checkpoints"}) {
    if (is_missing(folder / name)) missing.push_back((folder / name).string());
  }
  for (std::filesystem::path place = folder; !place.empty() && place != place.root_path() && is_missing(place);
       place = place.parent_path()) {
    missing.push_back(place.string());
  }
  return missing;
}

}  // namespace

InterruptGuard::InterruptGuard(Runtime& runtime, std::string_view answer) {
  interrupted_runtime = &runtime;
  answer_text = on_a_line(answer);
  handle_with(on_signal, previous);
}
InterruptGuard::~InterruptGuard() {
  give_back(previous);
  interrupted_runtime = nullptr;
}

StartInterruptGuard::StartInterruptGuard(const std::string& run) {
  const bool answers = !run.empty();
  answer_text = answers ? on_a_line("interrupted before the first step: nothing new was trained; start it again") : "";
  made_by_start = answers ? missing_of(run) : std::vector<std::string>();
  job_of_start = run + "/job.json";
  handle_with(on_signal_at_start, before_start);
  set_end_hook(remove_what_start_made);
}
StartInterruptGuard::~StartInterruptGuard() {
  set_end_hook(nullptr);
  give_back(before_start);
}

}  // namespace brisk
