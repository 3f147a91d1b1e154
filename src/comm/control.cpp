#include "comm/control.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/machine/process.h"
#include "base/runtime.h"
#include "comm/control_link.h"

namespace brisk {

namespace {

constexpr size_t kMostOfText = size_t{1} << 16;
constexpr double kBeatSeconds = 0.5;
// A launcher that ends the ranks itself, or a signal to all, comes first.
constexpr double kGraceSeconds = 0.3;
constexpr double kSecondsForSameReason = 1;  // rank 0 mostly fails for the reason that the others have
constexpr double kSecondsForTheFirst = 3;    // rank 0 ends first: its message is the one that is read

constexpr int kExitRankFailed = 2;

std::atomic<EndHook> end_hook = nullptr;

void end_process(int exit_code, const std::string& message) {
  if (const EndHook hook = end_hook) hook();
  if (!message.empty()) {
    const std::string line =
        fmt::format("{}brisk: {}\n", ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "", message_text(message, false));
    const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(written);
  }
  ::_exit(exit_code);
}

// mpirun waits for its daemon on a machine that cannot be reached, and the daemon there for mpirun: for many minutes, in which
// the allocation lasts. A process of its own asks the launcher of this rank to end, should it still be there in a while.
void end_launcher_that_lingers() {
  const pid_t launcher = ::getppid();
  const std::string name = name_of_process(launcher);
  constexpr std::string_view kLaunchers[] = {"mpirun", "mpiexec", "orte", "prte", "hydra"};
  if (std::ranges::none_of(kLaunchers, [&](std::string_view begin) { return name.starts_with(begin); })) return;
  if (::fork() != 0) return;
  // Nothing here may allocate.
  ::setsid();
  ::close_range(0, ~0u, 0);
  // It takes a while to end a rank that is stopped. Open MPI ends at once at the third SIGTERM.
  constexpr int kSignals[] = {0, 0, 0, 0, 0, SIGTERM, SIGTERM, SIGTERM, SIGKILL};
  for (const int number : kSignals) {
    if (::kill(launcher, number) != 0) break;
    ::sleep(1);
  }
  ::_exit(0);
}

constexpr const char* kHowToGoOn = ". Continue from the last checkpoint with --resume";

}  // namespace

struct Control::Content {
  Content(ControlOptions what, std::unique_ptr<ControlListener> where)
      : options(std::move(what)), listener(std::move(where)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const auto ranks = static_cast<size_t>(options.size);
    hosts.resize(ranks);
    machines.resize(ranks);
    hosts[own()] = host_name();
    machines[own()] = place_of_this_process();
    ends_process = !options.end;
    if (ends_process) options.end = end_process;
  }

  bool is_first() const { return options.rank == 0; }
  size_t own() const { return static_cast<size_t>(options.rank); }
  std::string named(int rank) const {
    return fmt::format("rank {} of {} on {}", rank, options.size, hosts[static_cast<size_t>(rank)]);
  }

  // ---- the main thread

  void start() {
    const SocketTime::time_point until = in_seconds(options.patience_seconds);
    if (!is_first()) connect(until);
    all_here_until = until;
    thread = std::thread([this] { watch(); });
    std::unique_lock lock(mutex);
    while (!begun && problem.empty()) {
      changed.wait_for(lock, std::chrono::milliseconds(200));
      throw_if_cancelled();
    }
    if (!problem.empty()) throw UserError(problem);
  }

  void connect(SocketTime::time_point until) {
    const Hello hello{.key = options.key, .rank = options.rank, .size = options.size};
    const std::string text = bytes_of(hello) + join_texts({hosts[own()], machines[own()]});
    const SocketTime::time_point resolved_until = std::min(until, in_seconds(30));
    std::string reason;
    while (true) {
      bool resolves = false;
      for (const std::string& address : options.addresses) {
        const Addresses found = look_up(address, options.port, reason);
        if (!found) reason = fmt::format("\"{}\" does not resolve: {}", address, reason);
        for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
          resolves = true;
          if (auto link = connect_to(*each, text, reason)) {
            link->rank = 0;
            links.push_back(std::move(*link));
            return;
          }
        }
      }
      if (SocketTime::now() >= (resolves ? until : resolved_until)) break;
      throw_if_cancelled();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    user_error(
        "rank 0 cannot be reached at {}, port {} ({}): {}; was it started, and may the machines talk on this port?",
        fmt::format("{}", fmt::join(options.addresses, ", ")), options.port, options.name, reason);
  }

  void order(Frame kind, std::string content) {
    orders.emplace_back(kind, std::move(content));
    const uint64_t one = 1;
    const ssize_t written = ::write(wake.get(), &one, sizeof(one));
    static_cast<void>(written);
  }

  bool fail(const std::string& reason) {
    std::unique_lock lock(mutex);
    if (failing || over) return true;
    failing = true;
    order(is_first() ? Frame::end : Frame::failed, reason.substr(0, kMostOfText));
    constexpr auto kPatience = std::chrono::seconds(5);
    changed.wait_for(lock, kPatience, [&] { return over || first_is_gone; });
    if (is_first()) return true;
    const bool told = over;
    // A launcher that sees this rank end first would end rank 0 before it has told why.
    changed.wait_for(lock, std::chrono::duration<double>(kSecondsForTheFirst), [&] { return first_is_gone; });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::duration<double>(kGraceSeconds));
    return told;
  }

  // ---- the thread

  void watch() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    SocketTime::time_point last_beat = SocketTime::now(), last_turn = last_beat;
    std::unique_lock lock(mutex);
    while (true) {
      follow_orders();
      if (quits && std::ranges::all_of(links, [](const Link& link) { return link.out.empty() || link.broken; })) return;
      if (quits && SocketTime::now() > quit_until) return;
      lock.unlock();
      std::vector<pollfd> waits = {{.fd = wake.get(), .events = POLLIN, .revents = 0}};
      if (listener) waits.push_back({.fd = listener->descriptor(), .events = POLLIN, .revents = 0});
      for (const Link& link : links) {
        const short events = static_cast<short>(POLLIN | (link.out.empty() ? 0 : POLLOUT));
        waits.push_back({.fd = link.closed || link.broken ? -1 : link.socket.get(), .events = events, .revents = 0});
      }
      ::poll(waits.data(), waits.size(), 100);
      uint64_t ignored = 0;
      const ssize_t got = ::read(wake.get(), &ignored, sizeof(ignored));
      static_cast<void>(got);
      lock.lock();
      const SocketTime::time_point now = SocketTime::now();
      // This process was stopped itself, as Slurm does with all ranks of a job that it suspends: that is no silence of others.
      constexpr auto kStopped = std::chrono::seconds(2);
      if (now - last_turn > kStopped) {
        for (Link& link : links) link.heard += now - last_turn;
      }
      last_turn = now;
      take_comers();
      for (Link& link : links) talk_with(link);
      links.remove_if([&](const Link& link) {
        constexpr auto kPatienceWithStrangers = std::chrono::seconds(5);
        return link.rank < 0 && (link.closed || link.broken || now - link.since > kPatienceWithStrangers);
      });
      if (is_first() && !begun && problem.empty()) see_who_is_here(now);
      if (now - last_beat >= std::chrono::duration<double>(kBeatSeconds)) {
        last_beat = now;
        for (Link& link : links) {
          if (link.rank >= 0 && link.out.empty() && !link.left) link.send(Frame::beat, bytes_of(step.load()));
        }
      }
      if (!begun) {
        if (!is_first() && links.front().closed && problem.empty())
          give_up_start(fmt::format("rank 0 at {} went away while the ranks started", options.name));
        continue;
      }
      if (!quits && !ending && !over && !failing) look_for_losses(now);
      if (!is_first() && links.front().closed) {
        first_is_gone = true;
        changed.notify_all();
        // It has told why.
        if (ending && ending->message.empty()) ending->at = std::min(ending->at, in_seconds(kGraceSeconds));
      }
      if (ending && now >= ending->at && !quits) finish(lock);
    }
  }

  void follow_orders() {
    for (auto& [kind, content] : std::exchange(orders, {})) {
      for (Link& link : links) link.send(kind, content);
      if (kind == Frame::end) become_over();
      if (kind == Frame::bye) {
        quits = true;
        quit_until = in_seconds(1);
      }
    }
  }

  void take_comers() {
    if (!listener) return;
    while (true) {
      const int descriptor = ::accept4(listener->descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor < 0) return;
      links.emplace_back(Socket(descriptor));
    }
  }

  void talk_with(Link& link) {
    if (link.closed || link.broken) return;
    link.flush();
    link.closed = !link.receive() || link.broken;
    while (const auto frame = link.take()) {
      link.heard = SocketTime::now();
      if (link.rank < 0) {
        if (frame->first != Frame::hello || !meet_comer(link, frame->second)) link.closed = true;
        if (link.closed) return;
      } else {
        hear(link, frame->first, frame->second);
      }
    }
    link.closed = link.closed || link.broken;
  }

  bool meet_comer(Link& link, const std::string& content) {
    const auto hello = value_of<Hello>(content);
    if (!hello || hello->mark != kControlMark) return false;
    const std::vector<std::string> texts = split_texts(std::string_view(content).substr(sizeof(Hello)));
    if (texts.size() != 2) return false;
    const auto refuse = [&](const std::string& reason) {
      link.send(Frame::refused, reason);
      return false;
    };
    const std::string who = fmt::format("rank {} of {} on {}", hello->rank, hello->size, texts[0]);
    if (hello->key != options.key || begun) {
      return refuse(fmt::format("{} came to rank 0 of another job on {}: two jobs use the same {}; give each its own",
                                who, hosts[0], options.name));
    }
    const bool fits = hello->size == options.size && hello->rank > 0 && hello->rank < options.size;
    if (!fits || !hosts[static_cast<size_t>(hello->rank)].empty()) {
      const std::string reason = fmt::format(
          "{} came to {} on {}, where ranks 1 to {} of {} are expected, each once: the ranks are not of one start", who,
          options.name, hosts[0], options.size - 1, options.size);
      refuse(reason);
      give_up_start(reason);
      return false;
    }
    link.rank = hello->rank;
    hosts[static_cast<size_t>(link.rank)] = texts[0];
    machines[static_cast<size_t>(link.rank)] = texts[1];
    link.send(Frame::welcome, bytes_of(kControlMark));
    return true;
  }

  void see_who_is_here(SocketTime::time_point now) {
    std::string missing;
    for (size_t rank = 1; rank < hosts.size(); ++rank) {
      if (hosts[rank].empty()) missing += fmt::format(" {}", rank);
    }
    for (const Link& link : links) {
      if (link.rank > 0 && link.closed)
        return give_up_start(fmt::format("{} went away while it started", named(link.rank)));
    }
    if (!missing.empty()) {
      if (now < all_here_until) return;
      return give_up_start(fmt::format("of {} ranks these did not come to {} ({}, port {}) within {:.0f} s:{}",
                                       options.size, hosts[0], options.name, listener->port(), options.patience_seconds,
                                       missing));
    }
    begun = true;
    const std::string all = join_texts(hosts), of_machines = join_texts(machines);
    for (Link& link : links) {
      if (link.rank > 0) link.send(Frame::begin, join_texts({all, of_machines}));
    }
    changed.notify_all();
  }

  void give_up_start(const std::string& reason) {
    problem = reason;
    for (Link& link : links) {
      if (is_first() && link.rank > 0) link.send(Frame::refused, reason);
    }
    changed.notify_all();
  }

  void hear(Link& link, Frame kind, const std::string& content) {
    switch (kind) {
      case Frame::beat: link.step = value_of<int64_t>(content).value_or(link.step); break;
      case Frame::bye: link.left = true; break;
      case Frame::refused:
        if (!begun) give_up_start(content);
        break;
      case Frame::begin: {
        const std::vector<std::string> texts = split_texts(content);
        if (texts.size() != 2) break;
        hosts = split_texts(texts[0]);
        machines = split_texts(texts[1]);
        hosts.resize(static_cast<size_t>(options.size));
        machines.resize(static_cast<size_t>(options.size));
        begun = true;
        changed.notify_all();
        break;
      }
      case Frame::failed:  // a launcher ends the others: the reason is told here, unless rank 0 has its own
        if (!failing && !ending) ends_in(kSecondsForSameReason, kExitRankFailed, named(link.rank) + ": " + content);
        break;
      case Frame::end:
        if (failing) {
          become_over();
        } else if (!ending) {
          const bool lost = content.starts_with('!');
          // To rank 0: this other has missed it, and told so.
          ends_in(is_first() ? 0 : kSecondsForTheFirst, lost ? kExitRankLost : kExitRankFailed, "");
        }
        break;
      case Frame::hello:
      case Frame::welcome: break;
    }
  }

  void look_for_losses(SocketTime::time_point now) {
    const auto limit = std::chrono::duration<double>(options.silence_seconds);
    // A machine that is gone takes several ranks with it: those that fell silent at the same time are named together.
    constexpr auto kSameTime = std::chrono::seconds(2);
    const auto is_silent = [&](const Link& link, auto limits) {
      return !link.left && !link.closed && now - link.heard > limits;
    };
    std::string gone;
    for (const Link& link : links) {
      if (link.rank < 0 || link.left || !link.closed) continue;
      gone += fmt::format("{}{} has ended after step {}", gone.empty() ? "" : "; ", named(link.rank), link.step);
    }
    // A signal to all ends those that have not begun yet: that is no loss.
    if (!gone.empty())
      return ends_in((step.load() == 0 ? kGraceSeconds : 0) + delay(), kExitRankLost, gone + kHowToGoOn);
    if (std::ranges::none_of(links, [&](const Link& link) { return link.rank >= 0 && is_silent(link, limit); })) return;
    for (const Link& link : links) {
      if (link.rank < 0 || !is_silent(link, std::max(limit - kSameTime, limit / 2))) continue;
      gone += fmt::format(
          "{}{} has given no sign of life for {:.0f} s (it is stopped, or its machine or network is); its last "
          "step was {}",
          gone.empty() ? "" : "; ", named(link.rank), std::chrono::duration<double>(now - link.heard).count(),
          link.step);
    }
    ends_in(delay(), kExitRankLost, gone + kHowToGoOn);
    ending->unreachable = true;
  }

  // Where rank 0 is gone, every other sees it: the first of them tells, and a launcher ends the others meanwhile.
  double delay() const {
    constexpr double kEach = 0.3;
    constexpr int kMost = 10;
    return is_first() ? 0 : kEach * std::min(options.rank - 1, kMost);
  }

  struct Ending {
    SocketTime::time_point at;
    int exit_code;
    std::string message;
    bool unreachable = false;
  };
  void ends_in(double seconds, int exit_code, const std::string& message) {
    ending = Ending{in_seconds(seconds), exit_code, message};
  }

  void become_over() {
    over = true;
    changed.notify_all();
  }

  void finish(std::unique_lock<std::mutex>& lock) {
    const Ending what = *std::exchange(ending, std::nullopt);
    if (failing || over) return;                // the main thread ends it
    if (is_first() || !what.message.empty()) {  // rank 0 that was stopped, and wakes up, knows that it was missed
      for (Link& link : links) link.send(Frame::end, (what.exit_code == kExitRankLost ? "!" : "") + what.message);
    }
    become_over();
    if (what.unreachable && ends_process) end_launcher_that_lingers();
    lock.unlock();
    options.end(what.exit_code, what.message);
    lock.lock();
  }

  ControlOptions options;
  bool ends_process = false;
  std::unique_ptr<ControlListener> listener;
  Socket wake;
  std::thread thread;
  std::atomic<int64_t> step = 0;
  SocketTime::time_point all_here_until, quit_until;
  std::list<Link> links;  // of rank 0 to all, else to rank 0; once it runs, of the thread

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool begun = false, quits = false, failing = false;
  bool over = false;  // the job has ended: whoever waits goes on
  bool first_is_gone = false;
  std::string problem;
  std::vector<std::string> hosts, machines;  // empty: it is not here yet
  std::vector<std::pair<Frame, std::string>> orders;
  std::optional<Ending> ending;
};

Control::Control(ControlOptions options, std::unique_ptr<ControlListener> listener)
    : content_(std::make_unique<Content>(std::move(options), std::move(listener))) {
  try {
    content_->start();
  } catch (...) {
    if (content_->thread.joinable()) {
      {
        const std::lock_guard lock(content_->mutex);
        content_->order(Frame::bye, "");
      }
      content_->thread.join();
    }
    throw;
  }
}

Control::~Control() {
  {
    const std::lock_guard lock(content_->mutex);
    content_->order(Frame::bye, "");
  }
  content_->thread.join();
}

void set_end_hook(EndHook hook) { end_hook = hook; }

const std::vector<std::string>& Control::hosts() const { return content_->hosts; }
bool Control::is_one_machine() const {
  return std::ranges::all_of(content_->machines,
                             [&](const std::string& each) { return each == content_->machines[0]; });
}
void Control::at_step(int64_t step) { content_->step.store(step, std::memory_order_relaxed); }
bool Control::fail(const std::string& reason) noexcept {
  try {
    return content_->fail(reason);
  } catch (...) {
    return false;
  }
}

}  // namespace brisk
