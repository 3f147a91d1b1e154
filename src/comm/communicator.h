// What processes that train one model together tell each other: few collective operations on bytes and on floats, the same
// for every transport. All ranks call the same operations in the same order; each returns when this rank may go on.
//
//   Communicator& ranks = ...;                            // threads, shared memory, MPI
//   ranks.sum_ranges(gradient, bounds);                   // range r of rank r holds the sum over all ranks
//   ranks.share_ranges(weights, byte_bounds);             // every rank has the ranges of all
//
// Floats are added in an order that is fixed by the number of ranks alone: neighbours first, then pairs of neighbours, and so
// on (base/sum_tree.h). So a sum has the same bits whatever carries it, and 2 ranks add what 4 would have added first.
#pragma once

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

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::string transport() const = 0;  // "shared memory", "Open MPI 4.1.4"

  virtual void barrier() = 0;
  // Every rank's `bytes` bytes, in the order of the ranks. For what is small.
  virtual void all_gather(const void* own, void* all, int64_t bytes) = 0;
  // `bounds`: size() + 1 places in `data`, ascending; range r is [bounds[r], bounds[r + 1]). Afterwards the range of this
  // rank holds the sum of what all ranks had there; the other ranges are unspecified.
  virtual void sum_ranges(float* data, std::span<const int64_t> bounds) = 0;
  // Every rank's range, in bytes, goes to all others.
  virtual void share_ranges(void* data, std::span<const int64_t> bounds) = 0;
  // Every rank's range goes to `root` alone.
  virtual void collect_ranges(void* data, std::span<const int64_t> bounds, int root) = 0;

  // For messages about a rank that is gone, and for whoever starts the ranks again: how far it came, in how many parts.
  virtual void at_step(int64_t /*step*/) {}
  virtual void has_parts(int64_t /*parts*/) {}
  // This rank ends early: the others, which wait for it or will, end with this reason.
  virtual void fail(const std::string& /*reason*/) noexcept {}

  // Those of one number of each rank, the same bits in all.
  std::vector<double> gather(double own);
  double sum(double own);
  void sum(std::span<double> numbers);  // each over the ranks
  double first(double own);             // that of rank 0
  std::vector<std::string> gather(const std::string& own);

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

}  // namespace brisk
