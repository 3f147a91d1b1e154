#include "doctor/measure/measured_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/runtime.h"

extern char** environ;

namespace brisk {

namespace {

using nlohmann::ordered_json;

// The descriptors that a worker finds its pipes at.
constexpr int kCommands = 3, kAnswers = 4;

struct PipeEnds {
  int read = -1, write = -1;
};

PipeEnds make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) user_error("cannot make a pipe: {}", explain_errno(errno));
  return {ends[0], ends[1]};
}

// The end of a run's output that says why it ended.
std::string last_words(const std::string& path) {
  constexpr size_t kMost = 1500;
  std::string text = file_exists(path) ? read_file(path, file_kind::output_of_command) : "";
  if (const size_t error = text.rfind("brisk: "); error != std::string::npos) text = text.substr(error + 7);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
}

}  // namespace

MeasuredRun::MeasuredRun(const Job& job, std::string folder, const std::string& gradient, int64_t processes)
    : folder_(std::move(folder)) {
  make_directories(folder_);
  Job own = job;
  own.output = folder_ + "/run";
  write_file_atomically(folder_ + "/job.json", job_to_json_text(own));
  const PipeEnds commands = make_pipe(), answers = make_pipe();
  std::vector<std::string> words = {"brisk"};
  if (processes > 1) words.insert(words.end(), {"launch", "-n", std::to_string(processes)});
  words.insert(words.end(), {"doctor-run", folder_ + "/job.json", std::to_string(kCommands), std::to_string(kAnswers)});
  if (!gradient.empty()) words.push_back(gradient);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // What is inherited must not be closed by the renaming of another: first out of the way.
  const int command_end = ::fcntl(commands.read, F_DUPFD_CLOEXEC, 10),
            answer_end = ::fcntl(answers.write, F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const std::string output = folder_ + "/output.txt";
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_adddup2(&actions, command_end, kCommands);
  posix_spawn_file_actions_adddup2(&actions, answer_end, kAnswers);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // Ctrl-C is the doctor's
  const int reason = ::posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  for (const int end : {commands.read, answers.write, command_end, answer_end}) ::close(end);
  commands_ = commands.write;
  answers_ = answers.read;
  if (reason != 0) {
    pid_ = -1;
    user_error("cannot start another brisk: {}", explain_errno(reason));
  }
}

MeasuredRun::~MeasuredRun() { end(); }

void MeasuredRun::end() {
  for (int* const descriptor : {&commands_, &answers_}) {
    if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
  }
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void MeasuredRun::fail() {
  if (pid_ < 0) throw RunFailed("it had ended before", false);  // and was told of: any other may still run
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  const std::string words = last_words(folder_ + "/output.txt");
  const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == 2;
  if (WIFSIGNALED(status)) {
    throw RunFailed(fmt::format("it was ended by signal {}{}", WTERMSIG(status),
                                WTERMSIG(status) == SIGKILL ? ": most likely the system was out of memory" : ""),
                    false);
  }
  throw RunFailed(words.empty() ? fmt::format("it ended with exit code {}", WEXITSTATUS(status)) : words, refused);
}

ordered_json MeasuredRun::read_answer() {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return parse_own_json<ordered_json>(line);
    }
    pollfd waiting{.fd = answers_, .events = POLLIN, .revents = 0};
    constexpr int kLookForInterrupts = 200;  // milliseconds
    const int ready = ::poll(&waiting, 1, kLookForInterrupts);
    throw_if_cancelled();
    if (ready <= 0) continue;
    char bytes[1 << 16];
    const ssize_t count = ::read(answers_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail();
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

ordered_json MeasuredRun::ask(const ordered_json& command) {
  const std::string line = command.dump() + "\n";
  // Shorter than what a pipe takes at once. Where nobody reads any more, the answer tells why.
  const ssize_t written = ::write(commands_, line.data(), line.size());
  static_cast<void>(written);
  return read_answer();
}

const ReadyFacts& MeasuredRun::start() {
  const int64_t begin = kSystemClock.nanoseconds();
  const ordered_json ready = read_answer().at("ready");
  start_seconds_ = kSystemClock.seconds_since(begin);
  ready.at("start_up_seconds").get_to(facts_.start_up_seconds);
  ready.at("sequences_per_step").get_to(facts_.sequences_per_step);
  ready.at("steps_per_epoch").get_to(facts_.steps_per_epoch);
  ready.at("total_steps").get_to(facts_.total_steps);
  ready.at("tokens_per_epoch").get_to(facts_.tokens_per_epoch);
  ready.at("gigaflop_per_step").get_to(facts_.gigaflop_per_step);
  ready.at("peak_gflops").get_to(facts_.peak_gflops);
  ready.at("planned_bytes").get_to(facts_.planned_bytes);
  ready.at("longest").get_to(facts_.longest);
  ready.at("validation_rows").get_to(facts_.validation_rows);
  ready.at("on_gpu").get_to(facts_.on_gpu);
  ready.at("micro_batch_tokens").get_to(facts_.micro_batch_tokens);
  ready.at("validation_sequences").get_to(facts_.validation_sequences);
  ready.at("precision").get_to(facts_.precision);
  return facts_;
}

Block MeasuredRun::go(int64_t sequences, bool watches_gpu) {
  return block_from_json(ask({{"go", sequences}, {"watch", watches_gpu}}).at("block"));
}

Timed MeasuredRun::evaluate(int64_t sequences) {
  const ordered_json answer = ask({{"evaluate", sequences}});
  return {.seconds = answer.at("seconds"), .count = answer.at("sequences"), .of = answer.at("of")};
}

Timed MeasuredRun::save() {
  const ordered_json answer = ask({{"save", true}});
  return {.seconds = answer.at("seconds"), .count = 1, .of = 1, .write_seconds = answer.at("write_seconds")};
}

std::vector<BatchSpeed> MeasuredRun::batch_curve(int64_t most_sequences, double seconds) {
  const ordered_json answer = ask({{"curve", most_sequences}, {"seconds", seconds}});
  std::vector<BatchSpeed> points;
  for (const ordered_json& point : answer.at("points"))
    points.push_back({.sequences = point.at(0), .tokens_per_second = point.at(1), .update_seconds = point.at(2)});
  return points;
}

Readings MeasuredRun::readings() {
  return readings_from_json(ask({{"readings", true}}).at("readings").get<std::string>(), "what a measured run said");
}

}  // namespace brisk
