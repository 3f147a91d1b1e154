#include "comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/log.h"
#include "base/machine/process.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/sum_tree.h"
#include "base/threads.h"
#include "comm/ranges.h"

namespace brisk {

namespace {

constexpr uint64_t kMark = 0x62726973'6B736831;  // "brisksh1"
constexpr int kMostRanks = 1024;
constexpr int64_t kWindowBytes = int64_t{1}
                                 << 20;  // of a rank, in each of two windows: between them, one barrier a turn
constexpr int64_t kCacheLine = 64;
constexpr size_t kReasonBytes = 400;
constexpr uint32_t kWriting = 0x80000000;  // the reason is not there yet
constexpr auto kHeartbeat = std::chrono::milliseconds(500);

struct alignas(kCacheLine) RankState {
  std::atomic<int64_t> heartbeat;  // milliseconds, of the machine's monotonic clock; 0: it is not there yet
  std::atomic<int64_t> process;
  std::atomic<uint64_t> pid_namespace;  // in which it has that number; 0: not known
  std::atomic<int64_t> step;
  std::atomic<uint32_t> arrived_at;  // the barrier that it has reached last
  std::atomic<uint32_t> left;        // it ended as it should
};

struct Header {
  uint64_t mark;
  int64_t ranks;
  std::atomic<int64_t> parts;  // of a step (Communicator::has_parts)
  alignas(kCacheLine) std::atomic<uint32_t> arrived;
  alignas(kCacheLine) std::atomic<uint32_t> turn;    // of the barrier; what waiters sleep on
  alignas(kCacheLine) std::atomic<uint32_t> failed;  // 1 + the rank that did; its reason is written before
  std::atomic<uint32_t> lost;                        // 1 + the rank that is missed, which that reason is about
  std::array<char, kReasonBytes> reason;
};

int64_t header_bytes() { return round_up(static_cast<int64_t>(sizeof(Header)), kCacheLine); }
int64_t windows_at(int64_t ranks) {
  return round_up(header_bytes() + ranks * static_cast<int64_t>(sizeof(RankState)), 4096);
}
int64_t segment_bytes(int64_t ranks) { return windows_at(ranks) + 2 * ranks * kWindowBytes; }

Header& header_of(std::byte* data) { return *reinterpret_cast<Header*>(data); }
RankState& state_of(std::byte* data, int rank) { return reinterpret_cast<RankState*>(data + header_bytes())[rank]; }

void begin_segment(std::byte* data, int ranks) {
  header_of(data).ranks = ranks;
  header_of(data).mark = kMark;
}

int64_t monotonic_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // the same for all processes of a machine
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

void sleep_while(std::atomic<uint32_t>& word, uint32_t value, int milliseconds) {
  const timespec limit{milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, value, &limit, nullptr, 0);
}
void wake_all(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Tells the others that this rank's process is not stopped, whatever it is busy with.
class Heartbeat {
 public:
  explicit Heartbeat(RankState& state) : state_(state) {
    state_.heartbeat.store(monotonic_milliseconds());
    thread_ = std::thread([this] { beat(); });
  }
  ~Heartbeat() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kHeartbeat, [&] { return quit_; })) state_.heartbeat.store(monotonic_milliseconds());
  }

  RankState& state_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool quit_ = false;
  std::thread thread_;
};

// Adds in the order of sum_tree: `parts` are the floats of each rank, and the sum replaces the first.
void add_in_tree(const std::vector<const float*>& parts, float* sum, int64_t count) {
  constexpr int64_t kPiece = 1024;  // of all ranks, in the first-level cache
  thread_local std::vector<float> sums;
  const auto ranks = std::ssize(parts);
  sums.resize(static_cast<size_t>(ranks * kPiece));
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t size = std::min(kPiece, count - begin);
    for (int64_t rank = 0; rank < ranks; ++rank)
      std::copy_n(parts[static_cast<size_t>(rank)] + begin, size, sums.data() + rank * kPiece);
    sum_tree(ranks, [&](int64_t i, int64_t j) {
      float* to = sums.data() + i * kPiece;
      const float* from = sums.data() + j * kPiece;
      for (int64_t k = 0; k < size; ++k) to[k] += from[k];
    });
    std::copy_n(sums.data(), size, sum + begin);
  }
}

void copy_in_parallel(void* to, const void* from, int64_t bytes) {
  constexpr int64_t kGrain = int64_t{1} << 16;
  thread_pool().for_range(bytes, kGrain, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

class SharedMemory final : public Communicator {
 public:
  // `data` stays until all ranks are gone: `owner` holds it.
  SharedMemory(std::byte* data, std::shared_ptr<void> owner, int rank, bool is_process, double silence_seconds)
      : Communicator(rank, static_cast<int>(header_of(data).ranks)),
        owner_(std::move(owner)),
        data_(data),
        silence_(static_cast<int64_t>(1000 * silence_seconds)),
        is_process_(is_process) {
    if (is_process) {
      own().pid_namespace.store(pid_namespace_of_this_process());
      own().process.store(::getpid());
    }
    heartbeat_.emplace(own());
  }
  ~SharedMemory() override {
    own().left.store(1);
    heartbeat_.reset();
  }

  std::string transport() const override { return is_process_ ? "shared memory" : "threads"; }

  void do_barrier() override {
    Header& header = header_of(data_);
    const uint32_t turn = header.turn.load(std::memory_order_acquire);
    own().arrived_at.store(turn + 1, std::memory_order_relaxed);
    if (header.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size())) {
      header.arrived.store(0, std::memory_order_relaxed);
      header.turn.store(turn + 1, std::memory_order_release);
      wake_all(header.turn);
      return;
    }
    constexpr int kSpins = 4000;  // some 10 us: ranks that compute the same arrive together
    for (int i = 0; i < kSpins && !BackgroundCollectives::on_this_thread(); ++i) {
      if (header.turn.load(std::memory_order_acquire) != turn) return;
      __builtin_ia32_pause();
    }
    const int64_t since = monotonic_milliseconds();
    int64_t looked = since, excused = 0;
    while (header.turn.load(std::memory_order_acquire) == turn) {
      constexpr int kLook = 100;  // milliseconds between two looks at the others
      sleep_while(header.turn, turn, kLook);
      // Stopped itself, as Slurm does with all ranks of a job that it suspends: that is no silence of others.
      const int64_t now = monotonic_milliseconds();
      const int64_t gap = now - std::exchange(looked, now);
      if (gap > kStopped) excused += gap;
      if (header.turn.load(std::memory_order_acquire) == turn) look_for_the_missing(turn + 1, since, excused);
    }
  }

  void do_all_gather(const void* own_bytes, void* all, int64_t bytes) override {
    for (int64_t begin = 0; begin < bytes; begin += kWindowBytes) {
      const int64_t count = std::min(kWindowBytes, bytes - begin);
      std::memcpy(window(rank()), static_cast<const char*>(own_bytes) + begin, static_cast<size_t>(count));
      do_barrier();
      for (int other = 0; other < size(); ++other)
        std::memcpy(static_cast<char*>(all) + other * bytes + begin, window(other), static_cast<size_t>(count));
      turn_windows();
    }
  }

  // A turn moves as much as the windows hold of the ranges that have something left: in a bucket of a gradient that is
  // often one rank's alone.
  void do_sum_ranges(float* data, std::span<const int64_t> bounds) override {
    const int64_t longest = longest_range(bounds);
    std::vector<int64_t> slots;  // of each rank's range in every window
    int64_t used = 0;
    for (int rank = 0; rank < size(); ++rank) slots.push_back(piece_of(bounds, rank, 0, 1).count > 0 ? used++ : -1);
    const int64_t piece = kWindowBytes / size_of_float / std::max<int64_t>(used, 1) / kFloatsOfLine * kFloatsOfLine;
    for (int64_t begin = 0; begin < longest; begin += piece) {
      auto* mine = reinterpret_cast<float*>(window(rank()));
      for (int other = 0; other < size(); ++other) {
        if (other == rank()) continue;
        const auto [from, count] = piece_of(bounds, other, begin, piece);
        float* to = mine + slots[static_cast<size_t>(other)] * piece;
        if (count > 0) copy_in_parallel(to, data + from, count * size_of_float);
      }
      do_barrier();
      const auto [to, count] = piece_of(bounds, rank(), begin, piece);
      const int64_t slot = slots[static_cast<size_t>(rank())] * piece;
      thread_pool().for_range(count, kGrain, [&, to = to](int64_t first, int64_t last, int) {
        std::vector<const float*> parts;
        for (int other = 0; other < size(); ++other) {
          const float* of_other = reinterpret_cast<const float*>(window(other)) + slot;
          parts.push_back((other == rank() ? data + to : of_other) + first);
        }
        add_in_tree(parts, data + to + first, last - first);
      });
      turn_windows();
    }
  }

  void do_share_ranges(void* data, std::span<const int64_t> bounds) override { pass_ranges(data, bounds, kAll); }
  void do_collect_ranges(void* data, std::span<const int64_t> bounds, int root) override {
    pass_ranges(data, bounds, root);
  }

  void at_step(int64_t step) override { own().step.store(step, std::memory_order_relaxed); }
  void has_parts(int64_t parts) override { header_of(data_).parts.store(parts, std::memory_order_relaxed); }

  void fail(const std::string& reason) noexcept override { tell(reason, 0); }

  void throw_if_rank_failed() override {
    throw_if_told();
    const int64_t now = monotonic_milliseconds();
    // Who has not looked for a while may have been stopped itself, and the others with it.
    if (now - std::exchange(looked_, now) > kStopped) excused_ = now;
    for (int other = 0; other < size(); ++other) {
      const RankState& state = state_of(data_, other);
      const int64_t heard = state.heartbeat.load(), beat = std::max(heard, excused_);
      if (other == rank() || heard == 0 || state.left.load() != 0) continue;
      const bool ended = process_is_gone(state);
      if (ended || now - beat >= silence_) throw lost(other, ended ? "has ended" : silent_for(now - beat));
    }
  }

 private:
  // False where another rank has told a reason before: the first one counts. `lost`: 1 + the rank that it is about.
  bool tell(const std::string& reason, uint32_t lost) noexcept {
    Header& header = header_of(data_);
    uint32_t nobody = 0;
    const auto mine = static_cast<uint32_t>(rank() + 1) | kWriting;
    if (!header.failed.compare_exchange_strong(nobody, mine)) return false;
    const size_t length = std::min(reason.size(), kReasonBytes - 1);
    std::memcpy(header.reason.data(), reason.data(), length);
    header.reason[length] = '\0';
    header.lost.store(lost);
    header.failed.store(static_cast<uint32_t>(rank() + 1), std::memory_order_release);
    wake_all(header.turn);
    return true;
  }

  static constexpr int kAll = -1;
  static constexpr int64_t kStopped = 2000;  // milliseconds between two looks that take a tenth of a second
  static constexpr int64_t size_of_float = 4, kFloatsOfLine = kCacheLine / size_of_float, kGrain = 4096;

  RankState& own() { return state_of(data_, rank()); }
  std::byte* window(int of_rank) const {
    return data_ + windows_at(size()) + (parity_ * size() + of_rank) * kWindowBytes;
  }
  // The other window may be written: whoever is past this turn's barrier has read it.
  void turn_windows() { parity_ = 1 - parity_; }

  void pass_ranges(void* data, std::span<const int64_t> bounds, int root) {
    auto* bytes = static_cast<char*>(data);
    const int64_t longest = longest_range(bounds);
    for (int64_t begin = 0; begin < longest; begin += kWindowBytes) {
      const auto [from, count] = piece_of(bounds, rank(), begin, kWindowBytes);
      if (count > 0) copy_in_parallel(window(rank()), bytes + from, count);
      do_barrier();
      for (int other = 0; other < size(); ++other) {
        if (other == rank() || (root != kAll && root != rank())) continue;
        const auto [to, size_of_piece] = piece_of(bounds, other, begin, kWindowBytes);
        if (size_of_piece > 0) copy_in_parallel(bytes + to, window(other), size_of_piece);
      }
      turn_windows();
    }
  }

  void throw_if_told() const {
    const Header& header = header_of(data_);
    if (const uint32_t failed = header.failed.load(std::memory_order_acquire);
        failed != 0 && (failed & kWriting) == 0) {
      if (header.lost.load() != 0) throw RankLost(header.reason.data());
      throw RankFailed(fmt::format("rank {} ended: {}", failed - 1, header.reason.data()));
    }
  }
  static std::string silent_for(int64_t milliseconds) {
    return fmt::format("has given no sign of life for {} s: it is stopped, or its machine is", milliseconds / 1000);
  }
  // In another pid namespace the number is another process's, or nobody's.
  bool process_is_gone(const RankState& state) {
    const bool is_seen = state.process.load() > 0 && state.pid_namespace.load() == own().pid_namespace.load();
    return is_seen && process_has_ended(state.process.load());
  }
  RankLost lost(int other, const std::string& reason) {
    const RankState& state = state_of(data_, other);
    const std::string what = fmt::format("rank {} of {} on {} (process {}) {}; its last step was {}", other, size(),
                                         host_name(), state.process.load(), reason, state.step.load());
    const bool first = tell(what, static_cast<uint32_t>(other + 1));
    return RankLost(what, first);
  }

  // Who has not come to a barrier, and whether it ever will.
  void look_for_the_missing(uint32_t turn, int64_t since, int64_t excused) {
    const Header& header = header_of(data_);
    throw_if_told();
    const int64_t now = monotonic_milliseconds();
    for (int other = 0; other < size(); ++other) {
      RankState& state = state_of(data_, other);
      if (other == rank() || state.arrived_at.load(std::memory_order_relaxed) == turn) continue;
      const int64_t heard = state.heartbeat.load(), beat = (heard != 0 ? heard : since) + excused;
      const bool ended = process_is_gone(state) || state.left.load() != 0;
      if (!ended && now - beat < silence_) continue;
      const bool came = heard != 0;
      const std::string reason = ended  ? "has ended"
                                 : came ? silent_for(now - beat)
                                        : fmt::format("has not started within {} s", (now - since) / 1000);
      if (header.turn.load(std::memory_order_acquire) != turn - 1) return;  // it came after all, and went on
      throw lost(other, reason);
    }
  }

  std::shared_ptr<void> owner_;
  std::byte* data_;
  int64_t silence_;
  bool is_process_;
  int parity_ = 0;
  int64_t looked_ = 0, excused_ = 0;  // throw_if_rank_failed()
  std::optional<Heartbeat> heartbeat_;
};

}  // namespace

SharedSegment::SharedSegment(int descriptor, int64_t bytes) : descriptor_(descriptor), bytes_(bytes) {
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    const int reason = errno;
    ::close(descriptor);
    user_error("shared memory of {} for the ranks of this machine: {}", format_bytes(static_cast<double>(bytes)),
               explain_errno(reason));
  }
  data_ = static_cast<std::byte*>(data);
}

SharedSegment SharedSegment::create(int ranks) {
  BRISK_CHECK(ranks > 0 && ranks <= kMostRanks, "{} ranks", ranks);
  const int descriptor = ::memfd_create("brisk-ranks", 0);  // inherited
  if (descriptor < 0) user_error("shared memory for the ranks of this machine: {}", explain_errno(errno));
  const int64_t bytes = segment_bytes(ranks);
  if (::ftruncate(descriptor, bytes) != 0) {
    const int reason = errno;
    ::close(descriptor);
    user_error("shared memory of {}: {}", format_bytes(static_cast<double>(bytes)), explain_errno(reason));
  }
  SharedSegment segment(descriptor, bytes);
  begin_segment(segment.data_, ranks);
  return segment;
}

namespace {
int64_t size_of_file(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_size : 0;
}
}  // namespace

SharedSegment SharedSegment::inherited(int descriptor) {
  const int64_t bytes = size_of_file(descriptor);
  if (bytes < segment_bytes(1)) user_error("descriptor {} is no shared memory of ranks", descriptor);
  SharedSegment segment(descriptor, bytes);
  const Header& header = header_of(segment.data_);
  if (header.mark != kMark || header.ranks < 1 || header.ranks > kMostRanks || segment_bytes(header.ranks) != bytes)
    user_error("descriptor {} is no shared memory of ranks", descriptor);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(bytes_));
  if (descriptor_ >= 0) ::close(descriptor_);
}

int SharedSegment::ranks() const { return static_cast<int>(header_of(data_).ranks); }
int64_t SharedSegment::parts() const { return header_of(data_).parts.load(); }
std::optional<SharedSegment::Lost> SharedSegment::lost() const {
  const Header& header = header_of(data_);
  const uint32_t failed = header.failed.load(std::memory_order_acquire), lost = header.lost.load();
  if (failed == 0 || (failed & kWriting) != 0 || lost == 0) return {};
  return Lost{static_cast<int>(lost) - 1, header.reason.data()};
}
int64_t SharedSegment::step_of(int rank) const { return state_of(data_, rank).step.load(); }

std::unique_ptr<Communicator> open_shared_memory(SharedSegment segment, int rank) {
  BRISK_CHECK(rank >= 0 && rank < segment.ranks(), "rank {} of {}", rank, segment.ranks());
  std::byte* data = segment.data();
  return std::make_unique<SharedMemory>(data, std::make_shared<SharedSegment>(std::move(segment)), rank, true,
                                        kSilenceSeconds);
}

std::vector<std::unique_ptr<Communicator>> make_thread_group(int ranks, double silence_seconds) {
  auto segment = std::make_shared<SharedSegment>(SharedSegment::create(ranks));
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < ranks; ++rank)
    group.push_back(std::make_unique<SharedMemory>(segment->data(), segment, rank, false, silence_seconds));
  return group;
}

}  // namespace brisk
