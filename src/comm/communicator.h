// What processes that train one model together tell each other: few collective operations on bytes and on floats, the same
// for every transport. All ranks call the same operations in the same order; each returns when this rank may go on.
//
//   Communicator& ranks = ...;                            // threads, shared memory, MPI
//   ranks.sum_ranges(gradient, bounds);                   // range r of rank r holds the sum over all ranks
//   ranks.share_ranges(weights, byte_bounds);             // every rank has the ranges of all
//
// Floats are added in an order that is fixed by the number of ranks alone: neighbours first, then pairs of neighbours, and so
// on (base/sum_tree.h). So a sum has the same bits whatever carries it, and 2 ranks add what 4 would have added first.
// One thread at a time calls them, any thread: another that calls meanwhile is an internal error.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace brisk {

// Another rank is gone, or ended with this reason, which it has told itself if it could.
class RankFailed : public UserError {
 public:
  using UserError::UserError;
};
// Its process has ended, is stopped, or cannot be reached: the job can go on from its last checkpoint.
class RankLost : public RankFailed {
 public:
  // `untold`: this rank is the one of all to say it.
  explicit RankLost(const std::string& reason, bool untold = false) : RankFailed(reason), untold_(untold) {}
  bool is_untold() const { return untold_; }

 private:
  bool untold_;
};

constexpr int kExitRankLost = 3;  // brisk's exit code for it

// While it lives, this thread sleeps whenever it waits for other ranks: another thread computes on its core. Otherwise it
// looks out for them for a while first, since ranks that compute the same arrive together.
class BackgroundCollectives {
 public:
  BackgroundCollectives() : outer_(on_this_thread_) { on_this_thread_ = true; }
  ~BackgroundCollectives() { on_this_thread_ = outer_; }
  BackgroundCollectives(const BackgroundCollectives&) = delete;
  BackgroundCollectives& operator=(const BackgroundCollectives&) = delete;

  static bool on_this_thread() { return on_this_thread_; }

 private:
  static constinit thread_local bool on_this_thread_;
  bool outer_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::string transport() const = 0;  // "shared memory", "Open MPI 4.1.4"

  void barrier();
  // Every rank's `bytes` bytes, in the order of the ranks. For what is small.
  void all_gather(const void* own, void* all, int64_t bytes);
  // `bounds`: size() + 1 places in `data`, ascending; range r is [bounds[r], bounds[r + 1]). Afterwards the range of this
  // rank holds the sum of what all ranks had there; the other ranges are unspecified.
  void sum_ranges(float* data, std::span<const int64_t> bounds);
  // Every rank's range, in bytes, goes to all others.
  void share_ranges(void* data, std::span<const int64_t> bounds);
  // Every rank's range goes to `root` alone.
  void collect_ranges(void* data, std::span<const int64_t> bounds, int root);

  // What other ranks got from this one so far, in all of these.
  int64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  // Whether threads other than that of main() may call them; false: an MPI that allows it no other.
  virtual bool serves_any_thread() const { return true; }
  // How many bytes at once are best summed by a thread beside one that computes; 0: it is faster to do it all afterwards.
  virtual int64_t background_bytes() const { return 0; }

  // For messages about a rank that is gone, and for whoever starts the ranks again: how far it came, in how many parts.
  virtual void at_step(int64_t /*step*/) {}
  virtual void has_parts(int64_t /*parts*/) {}
  // This rank ends early: the others, which wait for it or will, end with this reason.
  virtual void fail(const std::string& /*reason*/) noexcept {}
  // For a wait that is not for a collective of this one, such as that for a GPU: RankFailed where another rank is known to be
  // gone or to have failed.
  virtual void throw_if_rank_failed() {}

  // Those of one number of each rank, the same bits in all.
  std::vector<double> gather(double own);
  double sum(double own);
  void sum(std::span<double> numbers);  // each over the ranks
  double first(double own);             // that of rank 0
  std::vector<std::string> gather(const std::string& own);

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  virtual void do_barrier() = 0;
  virtual void do_all_gather(const void* own, void* all, int64_t bytes) = 0;
  virtual void do_sum_ranges(float* data, std::span<const int64_t> bounds) = 0;
  virtual void do_share_ranges(void* data, std::span<const int64_t> bounds) = 0;
  virtual void do_collect_ranges(void* data, std::span<const int64_t> bounds, int root) = 0;

  class Call;

  int rank_, size_;
  std::atomic<bool> is_called_ = false;
  std::atomic<int64_t> bytes_sent_ = 0;
};

}  // namespace brisk
