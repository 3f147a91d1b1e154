// `brisk launch`: several ranks of one command on this machine.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
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
#include "base/machine/process.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "base/threads.h"
#include "cli/command.h"
#include "comm/communicator.h"
#include "comm/shared_memory.h"

extern char** environ;

namespace brisk {

namespace {

struct LaunchArguments {
  int ranks = 0, threads_per_rank = 0, restarts = 0;
  std::vector<std::string> command;
};

constexpr int kMostRanksOfMachine = 256;
constexpr std::array<std::string_view, 4> kCommandsOfRanks = {"train", "bench", "machine",
                                                              "doctor-run"};  // which brisk doctor starts
constexpr auto kTimeToEnd = std::chrono::seconds(10);                         // of the other ranks, when one has failed
// When they miss one, which does not hear a SIGTERM: they have seen it at the same time.
constexpr auto kTimeToMiss = std::chrono::seconds(2);

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
  bool was_ended_by_forwarded() const {
    return was_killed() && std::ranges::find(kForwarded, WTERMSIG(status)) != std::end(kForwarded);
  }
  bool misses_another() const { return ended && WIFEXITED(status) && WEXITSTATUS(status) == kExitRankLost; }
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
  Launch(const LaunchArguments& arguments, int ranks, bool is_restart, bool resumes)
      : segment_(SharedSegment::create(ranks)), ranks_(static_cast<size_t>(ranks)) {
    start(arguments, is_restart, resumes);
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
      if (failed && deadline == std::chrono::steady_clock::time_point::max()) {
        const bool misses = rank(*failed).misses_another();
        deadline = now + (misses ? kTimeToMiss : kTimeToEnd);
        if (misses) last_resort = SIGKILL;
      }
      if (now > deadline) {  // a rank that is stopped or computes for long
        signal_all(std::exchange(last_resort, SIGKILL));
        deadline = now + kTimeToEnd / 2;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  bool was_interrupted() const { return was_interrupted_; }
  // A rank whose end is what the signal asked for: before it knew better, or because the one that it misses had ended so.
  bool ended_as_asked(const Rank& failed, const std::optional<SharedSegment::Lost>& lost) const {
    const Rank& cause = lost ? rank(lost->rank) : failed;
    return cause.was_interrupted() || cause.was_ended_by_forwarded();
  }
  const Rank& rank(int number) const { return ranks_[static_cast<size_t>(number)]; }
  int ranks() const { return static_cast<int>(ranks_.size()); }
  int64_t step_of(int number) const { return segment_.step_of(number); }
  int64_t parts() const { return segment_.parts(); }
  std::optional<SharedSegment::Lost> lost() const { return segment_.lost(); }

 private:
  void start(const LaunchArguments& arguments, bool is_restart, bool resumes) {
    std::vector<std::string> words = {"brisk"};
    words.insert(words.end(), arguments.command.begin(), arguments.command.end());
    if (resumes && std::find(words.begin(), words.end(), "--resume") == words.end()) words.emplace_back("--resume");
    std::erase_if(words, [&](const std::string& word) { return resumes && word == "--overwrite"; });
    std::vector<char*> word_pointers;
    for (std::string& word : words) word_pointers.push_back(word.data());
    word_pointers.push_back(nullptr);
    const std::vector<int> cores = allowed_cores();
    const int all = std::min(static_cast<int>(cores.size()),
                             cores_of_task(Runtime::current().environment("SLURM_CPUS_PER_TASK"))),
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
      for (std::string& variable : variables) {  // who gives one wants ranks to share a GPU: each needs its own
        if (variable.starts_with("NCCL_HOSTID=") && variable.size() > std::strlen("NCCL_HOSTID="))
          variable += fmt::format(".{}", number);
      }
      variables.push_back(fmt::format("BRISK_RANK={}", number));
      variables.push_back(fmt::format("BRISK_WORLD_SIZE={}", count));
      variables.push_back(fmt::format("BRISK_RANKS_MEMORY={}", segment_.descriptor()));
      if (!bind) variables.push_back(fmt::format("BRISK_RANK_THREADS={}", each));
      // One that was alone has told nobody how far it came: it goes on where there is something to go on from.
      if (is_restart) variables.emplace_back("BRISK_RANK_RESTARTED=1");
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
      // One that was killed, or ended by itself, explains why others miss it.
      const bool explains = failed && !rank.misses_another() && ranks_[static_cast<size_t>(*failed)].misses_another();
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
  const std::string& name = arguments.command.front();
  if (std::find(kCommandsOfRanks.begin(), kCommandsOfRanks.end(), name) == kCommandsOfRanks.end())
    user_error("brisk launch starts ranks of brisk train, bench or machine; '{}' runs in one process", name);
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
    Launch launch(arguments, ranks, attempt > 0, resumes);
    const std::optional<int> failed = launch.wait();
    if (!failed) return launch.rank(0).was_interrupted() || launch.was_interrupted() ? kExitInterrupted : kExitDone;
    const Rank& rank = launch.rank(*failed);
    const std::optional<SharedSegment::Lost> lost = rank.misses_another() ? launch.lost() : std::nullopt;
    if (launch.was_interrupted() && launch.ended_as_asked(rank, lost)) return kExitInterrupted;
    // One that was refused, or could not save what it had when it was interrupted, has said why; it would be so again.
    if (!rank.was_killed() && !lost) return rank.exit_code();
    const int64_t step = launch.step_of(*failed);
    const std::string what = lost ? lost->reason
                                  : fmt::format("rank {} of {} on {} (process {}) {} {}", *failed, ranks, host_name(),
                                                rank.process, rank.how(),
                                                step > 0    ? fmt::format("after step {}", step)
                                                : ranks > 1 ? std::string("before its first step")
                                                            : std::string("on its own"));
    if (attempt >= arguments.restarts || launch.was_interrupted()) {
      say("brisk launch: {}; the others were ended. Continue from the last checkpoint with --resume{}", what,
          arguments.restarts > 0 ? fmt::format("; {} made", plural(attempt, "restart was", "restarts were")) : "");
      return rank.exit_code();
    }
    ranks = ranks_after(ranks, launch.parts());
    // Before the first step there is nothing to go on from: it is the same command again.
    for (int number = 0; number < launch.ranks(); ++number) resumes = resumes || launch.step_of(number) > 0;
    say("brisk launch: {}; restart {} of {}, {} with {}", what, attempt + 1, arguments.restarts,
        resumes || launch.ranks() == 1 ? "from the last checkpoint" : "from the beginning", plural(ranks, "rank"));
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
  command->add_option("command", arguments->command, "The command of each rank: train JOB ..., bench ... or machine")
      ->required();
  command->prefix_command();
  command->positionals_at_end();
  command->footer(
      "Ctrl-C and SIGTERM reach every rank: they save a checkpoint together. When a rank dies, the others are ended and the\n"
      "message says which one, and why. Between machines: mpirun or srun (docs/distributed.md).\n\n"
      "Examples:\n"
      "  brisk launch -n 4 train examples/prototype.json --data book.txt\n"
      "  brisk launch -n 8 --threads-per-rank 2 --restarts 3 train job.json\n"
      "  brisk launch -n 4 machine                       # latency and bandwidth between them");
  command->callback([arguments, &exit_code, command] {
    for (const std::string& word : command->remaining()) arguments->command.push_back(word);
    exit_code = run_launch(*arguments);
  });
}

}  // namespace brisk
