// Latency and bandwidth between ranks, by the operations that a training step uses.
//
//   const RankTransfers measured = measure_transfers(communicator);     // all ranks call it; under a second a gigabyte
//   measured.sum.back().bytes_per_second;                               // of gradients, 64 MiB of them
//
// An operation's time is that of the slowest rank, from a barrier on; the median of several. Its bytes are those of the whole
// array that the ranks hold (gradients, weights), of which each sends all but its own range.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brisk {

class Communicator;

struct TransferTime {
  int64_t bytes = 0;
  double seconds = 0;
  double bytes_per_second = 0;  // that each rank sends
};

struct RankTransfers {
  int ranks = 1;
  std::string transport;
  double barrier_seconds = 0;
  double gather_seconds = 0;        // 8 bytes of each rank to all: what a decision costs
  std::vector<TransferTime> sum;    // Communicator::sum_ranges, from 4 KiB to 64 MiB
  std::vector<TransferTime> share;  // Communicator::share_ranges, likewise
};

constexpr int64_t kMostTransferBytes = int64_t{64} << 20;

RankTransfers measure_transfers(Communicator& ranks, int64_t most_bytes = kMostTransferBytes);

}  // namespace brisk
