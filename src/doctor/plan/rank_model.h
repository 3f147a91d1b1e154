// What a step takes on several ranks: a model of bytes, latency and overlap, of the step that train/engine makes.
//
//   const RankStep step = step_on_ranks(work, network);
//   step.seconds(), step.exposed();
//
// A rank computes its part of the sequences, then the gradient is summed (each rank gets the sum of the range that it
// updates), each updates its range, and the new weights go to all. What of the sum is done while the backward pass still
// runs, and of the weights while the next forward pass does, is hidden.
//
//   step = compute + (sum - hidden) + update / ranks + (weights - hidden) + decisions
#pragma once

#include <cstdint>
#include <span>

#include "doctor/planning.h"

namespace brisk {

// Of one rank's step.
struct RankWork {
  double compute_seconds = 0;  // forward and backward of its sequences, while the other ranks compute, too
  double update_seconds = 0;   // of the whole model, by this rank alone
  double gradient_bytes = 0, weight_bytes = 0;  // of the whole model; weights with their 16-bit copies
};

struct RankStep {
  double compute = 0, update = 0;              // seconds
  double sum = 0, weights = 0, decisions = 0;  // of communication
  double hidden = 0;                           // of it, behind computing
  double exposed() const { return sum + weights + decisions - hidden; }
  double seconds() const { return compute + update + exposed(); }
};

RankStep step_on_ranks(const RankWork& work, const RankNetwork& network);

// Of an array of so many bytes that all ranks hold: by straight lines between what was measured, in proportion beyond it;
// without measurements a message a rank and all but its own range at the network's bandwidth.
double transfer_seconds(double bytes, std::span<const RankNetwork::Transfer> measured, const RankNetwork& network);

// What each rank sends in a step.
double bytes_sent(const RankWork& work, int64_t ranks);

// The work of a rank whose part of a step was timed, `part` being the size of the job with that part alone.
RankWork work_of_rank(const JobSize& part, const StepTimes& times);

// A network that nobody measured.
RankNetwork made_up_network(int64_t ranks, double gigabits_a_second, double latency_seconds);

}  // namespace brisk
