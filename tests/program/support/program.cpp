#include "program/support/program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace brisk::program {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void take(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/brisk-program-XXXXXX";
  take(::mkdtemp(path_.data()) != nullptr, "mkdtemp");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(std::vector<std::string> arguments, const TemporaryFolder& folder, ProcessOptions options)
    : options_(std::move(options)) {
  // A file and not a pipe, so that input of any length cannot block both sides.
  const std::string input = folder / ".standard-input";
  write_text(input, options_.input);
  int out[2], err[2];
  take(::pipe2(out, O_CLOEXEC) == 0, "pipe2");
  const winsize columns = {.ws_row = 25, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0};
  take((options_.terminal ? ::openpty(&err[0], &err[1], nullptr, nullptr, &columns) : ::pipe2(err, O_CLOEXEC)) == 0,
       "openpty or pipe2");
  std::vector<std::string> environment = options_.environment;  // of two with one name the first counts
  environment.insert(environment.end(), {"XDG_CACHE_HOME=" + folder / "cache", "HOME=" + folder.path()});
  if (options_.terminal) environment.emplace_back("TERM=xterm");
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  arguments.insert(arguments.begin(), BRISK_PROGRAM);
  // Made before the fork: after it, only what is safe in a signal handler may run.
  std::vector<char*> argv, envp;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  for (std::string& variable : environment) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_ = ::fork();
  take(pid_ >= 0, "fork");
  if (pid_ == 0) {
    const int standard_input = ::open(input.c_str(), O_RDONLY);
    if (!options_.output_path.empty()) out[1] = ::open(options_.output_path.c_str(), O_WRONLY | O_CREAT, 0666);
    const rlimit memory = {static_cast<rlim_t>(options_.memory_limit_bytes),
                           static_cast<rlim_t>(options_.memory_limit_bytes)};
    if (options_.memory_limit_bytes > 0 && ::setrlimit(RLIMIT_DATA, &memory) != 0) ::_exit(126);
    const bool ready = standard_input >= 0 && ::dup2(standard_input, 0) >= 0 && ::dup2(out[1], 1) >= 0 &&
                       ::dup2(err[1], 2) >= 0 && ::chdir(folder.path().c_str()) == 0;
    if (ready) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  deadline_ = now() + options_.timeout_seconds;
}

Process::~Process() {
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    reap();
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool Process::read_some(double seconds) {
  pollfd waiting[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // poll passes over descriptors of -1
  if (out_ < 0 && err_ < 0) return false;
  const double most = std::min(seconds, deadline_ - now());
  if (most <= 0 && now() >= deadline_) {
    outcome_.timed_out = true;
    ::kill(pid_, SIGKILL);
  }
  ::poll(waiting, 2, static_cast<int>(1000 * std::max(0.0, most)));
  const auto drain = [](int& descriptor, const pollfd& state, std::string& text) {
    if (descriptor < 0 || state.revents == 0) return;
    char block[16384];
    const ssize_t count = ::read(descriptor, block, sizeof(block));
    if (count > 0) {
      text.append(block, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      ::close(descriptor);
      descriptor = -1;
    }
  };
  drain(out_, waiting[0], outcome_.out);
  drain(err_, waiting[1], outcome_.err);
  return out_ >= 0 || err_ >= 0;
}

bool Process::wait_for(const std::string& text) {
  while (outcome_.err.find(text) == std::string::npos) {
    if (!read_some(1) || outcome_.timed_out) return outcome_.err.find(text) != std::string::npos;
  }
  return true;
}

void Process::sleep(double seconds) {
  const double until = now() + seconds;
  while (now() < until && read_some(until - now())) {
  }
}

void Process::send(int signal_number) { ::kill(pid_, signal_number); }  // not reaped yet, so the number is still its

void Process::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.ended_by = WTERMSIG(status);
}

Outcome Process::finish() {
  while (read_some(1)) {
  }
  if (!reaped_) reap();
  return outcome_;
}

Outcome run_brisk(std::vector<std::string> arguments, const TemporaryFolder& folder, ProcessOptions options) {
  return Process(std::move(arguments), folder, std::move(options)).finish();
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string listing(const std::string& path) {
  std::vector<std::string> lines;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::string line = it->path().string().substr(path.size());
    if (it->is_directory()) {
      line += "/";
    } else if (it->path().filename() != ".lock") {  // a process id, of any number of digits
      line += " " + std::to_string(it->file_size());
    }
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  std::ostringstream text;
  for (const std::string& line : lines) text << line << "\n";
  return text.str();
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace brisk::program
