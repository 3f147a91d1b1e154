// `brisk launch`: several ranks of one command on this machine.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "base/threads.h"
#include "cli/command.h"
#include "comm/shared_memory.h"

extern char** environ;

namespace brisk {

namespace {

struct LaunchArguments {
  int ranks = 0, threads_per_rank = 0, restarts = 0;
  std::vector<std::string> command;
};

constexpr int kMostRanksOfMachine = 256;
constexpr auto kTimeToEnd = std::chrono::seconds(10);  // of the other ranks, when one has failed

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
bool ignores_hangup = false;  // started with nohup: it outlives its terminal
std::atomic<int> signal_to_forward = 0;
void remember_signal(int number) { signal_to_forward = number; }

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

struct Rank {
  pid_t process = -1;
  bool ended = false;
  int status = 0;

  bool succeeded() const { return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  bool was_interrupted() const { return ended && WIFEXITED(status) && WEXITSTATUS(status) == kExitInterrupted; }
  bool was_killed() const { return ended && WIFSIGNALED(status); }
  int exit_code() const { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }
  std::string how() const {
    if (WIFSIGNALED(status))
      return fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }
};

// In the child, before the program is replaced: nothing here may allocate.
[[noreturn]] void become_rank(const cpu_set_t* cores, bool reads_input, pid_t launcher, char* const* words,
                              char* const* environment) {
  ::setpgid(0, 0);  // a Ctrl-C comes from the launcher, once
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != launcher) ::_exit(kExitInternalError);
  for (const int number : kForwarded) {
    if (number != SIGHUP || !ignores_hangup) ::signal(number, SIG_DFL);
  }
  ::signal(SIGCHLD, SIG_DFL);
  if (cores != nullptr) ::sched_setaffinity(0, sizeof(cpu_set_t), cores);
  if (!reads_input) ::close(STDIN_FILENO);  // main() opens /dev/null in its place
  ::execve("/proc/self/exe", words, environment);
  ::_exit(127);
}

class Launch {
 public:
  Launch(const LaunchArguments& arguments, int ranks, bool resumes)
      : segment_(SharedSegment::create(ranks)), ranks_(static_cast<size_t>(ranks)) {
    start(arguments, resumes);
  }
  ~Launch() { signal_all(SIGKILL); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Waits until all have ended; the first that failed, if any did.
  std::optional<int> wait() {
    std::optional<int> failed;
    auto deadline = std::chrono::steady_clock::time_point::max();
    int last_resort = SIGTERM;
    while (true) {
      if (const int number = signal_to_forward.exchange(0)) {
        was_interrupted_ = true;
        signal_all(number);
      }
      const bool all_ended = collect(failed);
      if (all_ended) return failed;
      const auto now = std::chrono::steady_clock::now();
      if (failed && deadline == std::chrono::steady_clock::time_point::max()) deadline = now + kTimeToEnd;
      if (now > deadline) {  // a rank that is stopped or computes for long
        signal_all(std::exchange(last_resort, SIGKILL));
        deadline = now + kTimeToEnd / 2;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  bool was_interrupted() const { return was_interrupted_; }
  const Rank& rank(int number) const { return ranks_[static_cast<size_t>(number)]; }
  int ranks() const { return static_cast<int>(ranks_.size()); }
  int64_t step_of(int number) const { return segment_.step_of(number); }
  int64_t parts() const { return segment_.parts(); }

 private:
  void start(const LaunchArguments& arguments, bool resumes) {
    std::vector<std::string> words = {"brisk"};
    words.insert(words.end(), arguments.command.begin(), arguments.command.end());
    if (resumes && std::find(words.begin(), words.end(), "--resume") == words.end()) words.emplace_back("--resume");
    std::erase_if(words, [&](const std::string& word) { return resumes && word == "--overwrite"; });
    std::vector<char*> word_pointers;
    for (std::string& word : words) word_pointers.push_back(word.data());
    word_pointers.push_back(nullptr);
    const std::vector<int> cores = allowed_cores();
    const int all = std::min(static_cast<int>(cores.size()), available_cores()),
              count = static_cast<int>(ranks_.size());
    const int each = arguments.threads_per_rank > 0 ? arguments.threads_per_rank : std::max(1, all / count);
    const bool bind = each * count <= all;
    const pid_t launcher = ::getpid();
    for (int number = 0; number < count; ++number) {
      std::vector<std::string> variables;
      for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!std::string_view(*variable).starts_with("BRISK_RANK") &&
            !std::string_view(*variable).starts_with("BRISK_WORLD"))
          variables.emplace_back(*variable);
      }
      variables.push_back(fmt::format("BRISK_RANK={}", number));
      variables.push_back(fmt::format("BRISK_WORLD_SIZE={}", count));
      variables.push_back(fmt::format("BRISK_RANKS_MEMORY={}", segment_.descriptor()));
      if (!bind) variables.push_back(fmt::format("BRISK_RANK_THREADS={}", each));
      std::vector<char*> pointers;
      for (std::string& variable : variables) pointers.push_back(variable.data());
      pointers.push_back(nullptr);
      cpu_set_t own;
      CPU_ZERO(&own);
      for (int i = 0; i < each && bind; ++i) CPU_SET(cores[static_cast<size_t>(number * each + i)], &own);
      std::fflush(nullptr);
      const pid_t process = ::fork();
      if (process < 0) user_error("rank {} cannot be started: {}", number, explain_errno(errno));
      if (process == 0)
        become_rank(bind ? &own : nullptr, number == 0, launcher, word_pointers.data(), pointers.data());
      ranks_[static_cast<size_t>(number)].process = process;
    }
  }

  // Ranks that have ended since; `failed` becomes the first that did not do what it was asked.
  bool collect(std::optional<int>& failed) {
    bool all = true;
    for (size_t number = 0; number < ranks_.size(); ++number) {
      Rank& rank = ranks_[number];
      if (!rank.ended) rank.ended = ::waitpid(rank.process, &rank.status, WNOHANG) == rank.process;
      all = all && rank.ended;
      // One that was killed explains what the others say.
      const bool explains = rank.was_killed() && failed && !ranks_[static_cast<size_t>(*failed)].was_killed();
      if (rank.ended && !rank.succeeded() && !rank.was_interrupted() && (!failed || (explains && !told_)))
        failed = static_cast<int>(number);
    }
    return all;
  }

  void signal_all(int number) {
    if (number == SIGTERM || number == SIGKILL) told_ = true;  // who ends from now on does so because of it
    for (const Rank& rank : ranks_) {
      if (!rank.ended && rank.process > 0) ::kill(rank.process, number);
    }
    if (number != SIGKILL) return;
    for (Rank& rank : ranks_) {
      if (!rank.ended && rank.process > 0) rank.ended = ::waitpid(rank.process, &rank.status, 0) == rank.process;
    }
  }

  SharedSegment segment_;
  std::vector<Rank> ranks_;
  bool told_ = false;  // the ranks that are left were asked to end
  bool was_interrupted_ = false;
};

void check(const LaunchArguments& arguments) {
  if (arguments.ranks < 1 || arguments.ranks > kMostRanksOfMachine)
    user_error("-n {}: expected 1 to {} ranks", arguments.ranks, kMostRanksOfMachine);
  if (arguments.threads_per_rank < 0)
    user_error("--threads-per-rank {}: expected 1 or more", arguments.threads_per_rank);
  if (arguments.restarts < 0) user_error("--restarts {}: expected 0 or more", arguments.restarts);
  if (arguments.command.front() != "train")
    user_error("brisk launch starts ranks of brisk train; '{}' runs in one process", arguments.command.front());
}

// Those that are left when one is gone: of training.logical_ranks, as many as divide them.
int ranks_after(int ranks, int64_t logical_ranks) {
  int left = std::max(1, ranks - 1);
  while (logical_ranks > 0 && left > 1 && logical_ranks % left != 0) --left;
  return left;
}

int run_launch(const LaunchArguments& arguments) {
  check(arguments);
  ignores_hangup = ::signal(SIGHUP, SIG_IGN) == SIG_IGN;
  for (const int number : kForwarded) {
    if (number != SIGHUP || !ignores_hangup) ::signal(number, remember_signal);
  }
  ::signal(SIGCHLD, SIG_DFL);
  int ranks = arguments.ranks;
  bool resumes = false;
  for (int attempt = 0;; ++attempt) {
    Launch launch(arguments, ranks, resumes);
    const std::optional<int> failed = launch.wait();
    if (launch.was_interrupted()) return kExitInterrupted;
    if (!failed) return launch.rank(0).was_interrupted() ? kExitInterrupted : kExitDone;
    const Rank& rank = launch.rank(*failed);
    // One that was refused has said why, and would be refused again.
    if (!rank.was_killed()) return rank.exit_code();
    const int64_t step = launch.step_of(*failed);
    const std::string what = fmt::format("rank {} of {} (process {}) {} {}", *failed, ranks, rank.process, rank.how(),
                                         step > 0    ? fmt::format("after step {}", step)
                                         : ranks > 1 ? std::string("before its first step")
                                                     : std::string("on its own"));
    if (attempt >= arguments.restarts) {
      say("brisk launch: {}; the others were ended. Continue from the last checkpoint with --resume{}", what,
          arguments.restarts > 0 ? fmt::format("; {} made", plural(attempt, "restart was", "restarts were")) : "");
      return rank.exit_code();
    }
    ranks = ranks_after(ranks, launch.parts());
    // Before the first step there is nothing to go on from: it is the same command again.
    for (int number = 0; number < launch.ranks(); ++number) resumes = resumes || launch.step_of(number) > 0;
    say("brisk launch: {}; restart {} of {}, {} with {}", what, attempt + 1, arguments.restarts,
        resumes ? "from the last checkpoint" : "from the beginning", plural(ranks, "rank"));
  }
}

}  // namespace

void add_launch_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "launch",
      "Train with several processes of this machine, which share its cores, as one: the same maths, more processes");
  auto arguments = std::make_shared<LaunchArguments>();
  command->add_option("-n,--ranks", arguments->ranks, "How many processes")->required()->type_name("N");
  command->add_option("--threads-per-rank", arguments->threads_per_rank,
                      "Compute threads of each (default: the cores divided by the ranks)");
  command->add_option("--restarts", arguments->restarts,
                      "How often to go on from the last checkpoint, with the ranks that are left, when one was killed "
                      "(default: 0)");
  command->add_option("command", arguments->command, "The command of each rank: train JOB ...")->required();
  command->prefix_command();
  command->positionals_at_end();
  command->footer(
      "Ctrl-C and SIGTERM reach every rank: they save a checkpoint together. When a rank dies, the others are ended and the\n"
      "message says which one, and why. Between machines: mpirun or srun (docs/distributed.md).\n\n"
      "Examples:\n"
      "  brisk launch -n 4 train examples/prototype.json --data book.txt\n"
      "  brisk launch -n 8 --threads-per-rank 2 --restarts 3 train job.json");
  command->callback([arguments, &exit_code, command] {
    for (const std::string& word : command->remaining()) arguments->command.push_back(word);
    exit_code = run_launch(*arguments);
  });
}

}  // namespace brisk
