// Ranks on one machine: a segment of memory that all of them see. Data passes through a window of it that stays in the
// processors' cache, so that a sum over ranks reads each rank's floats from memory once.
//
//   SharedSegment segment = SharedSegment::create(4);                       // `brisk launch`: inherited by its ranks
//   auto ranks = open_shared_memory(SharedSegment::inherited(fd), rank);    // in each of them
//
//   auto all = make_thread_group(4);                                        // the same between threads: for tests
//
// A rank that is gone or stopped is noticed by the others while they wait for it: it writes a heartbeat from a thread of its
// own, and after kSilenceSeconds without one (at once, where its process has ended) they end with a RankLost that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace brisk {

constexpr double kSilenceSeconds = 20;  // so that the job has ended within 30

class SharedSegment {
 public:
  // For so many ranks, in memory that no file has; inherited by processes that are started from here (descriptor()).
  static SharedSegment create(int ranks);
  // By a descriptor that another process gave. UserError where it is no such segment.
  static SharedSegment inherited(int descriptor);
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  int descriptor() const { return descriptor_; }
  int ranks() const;
  std::byte* data() const { return data_; }

  // For whoever started the ranks: the step that a rank has reached, and the parts of a step (Communicator::at_step).
  int64_t step_of(int rank) const;
  int64_t parts() const;  // 0: not known yet
  // The rank that the others miss, and what they say of it.
  struct Lost {
    int rank;
    std::string reason;
  };
  std::optional<Lost> lost() const;

 private:
  SharedSegment(int descriptor, int64_t bytes);

  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

std::unique_ptr<Communicator> open_shared_memory(SharedSegment segment, int rank);

// Ranks that are threads of this process. Each is used by one thread.
std::vector<std::unique_ptr<Communicator>> make_thread_group(int ranks, double silence_seconds = kSilenceSeconds);

}  // namespace brisk
