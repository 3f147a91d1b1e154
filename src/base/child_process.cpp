#include "base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/files/files.h"

extern char** environ;

namespace brisk {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, std::string output_path)
    : output_path_(std::move(output_path)) {
  std::vector<std::string> words = {"brisk"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  const int reason = ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (reason != 0) user_error("brisk {}: cannot start it: {}", words[1], explain_errno(reason));
}

ChildProcess::~ChildProcess() { kill(); }

bool ChildProcess::reap(bool block) {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, block ? 0 : WNOHANG) == pid_;
  return ended_;
}

bool ChildProcess::wait(double seconds, const std::function<bool()>& stop) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!reap(false)) {
    if ((stop && stop()) || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void ChildProcess::kill() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  reap(true);
}

bool ChildProcess::succeeded() const { return ended_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

std::string ChildProcess::how_it_ended() const {
  if (!ended_) return "it was still running";
  return WIFEXITED(status_) ? fmt::format("exit code {}", WEXITSTATUS(status_))
                            : fmt::format("signal {}", WTERMSIG(status_));
}

std::string ChildProcess::last_words() const {
  constexpr size_t kMost = 1500;
  std::string text = file_exists(output_path_) ? read_file(output_path_, file_kind::output_of_command) : "";
  // The error comes last; the tables before it do not help.
  if (const size_t error = text.rfind("brisk: "); error != std::string::npos) text = text.substr(error + 7);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
}

}  // namespace brisk
