#include "doctor/plan/rank_model.h"

#include <algorithm>
#include <cmath>

namespace brisk {

namespace {

// Small exchanges of a step: the targets it is divided by, what it computed, and the numbers that decide on the update.
constexpr double kDecisions = 5;

double share_of_others(int64_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

double decision_seconds(const RankNetwork& network) {
  if (network.gather_seconds > 0) return network.gather_seconds;
  return std::ceil(std::log2(static_cast<double>(network.size))) * network.latency_seconds;
}

}  // namespace

double transfer_seconds(double bytes, std::span<const RankNetwork::Transfer> measured, const RankNetwork& network) {
  if (network.size < 2 || bytes <= 0) return 0;
  if (measured.empty()) {
    return static_cast<double>(network.size - 1) * network.latency_seconds +
           share_of_others(network.size) * bytes / network.bytes_per_second;
  }
  if (bytes <= measured.front().bytes) return measured.front().seconds;
  for (size_t i = 1; i < measured.size(); ++i) {
    const auto &below = measured[i - 1], &above = measured[i];
    if (bytes > above.bytes) continue;
    return below.seconds + (above.seconds - below.seconds) * (bytes - below.bytes) / (above.bytes - below.bytes);
  }
  return measured.back().seconds * bytes / measured.back().bytes;
}

RankStep step_on_ranks(const RankWork& work, const RankNetwork& network) {
  RankStep step{.compute = work.compute_seconds, .update = work.update_seconds / static_cast<double>(network.size)};
  if (network.size < 2) return step;
  step.sum = transfer_seconds(work.gradient_bytes, network.sum, network);
  step.weights = transfer_seconds(work.weight_bytes, network.share, network);
  step.decisions = kDecisions * decision_seconds(network);
  // The backward pass is about two thirds of computing, the forward pass a third.
  const double backward = work.compute_seconds * 2 / 3, forward = work.compute_seconds / 3;
  step.hidden =
      std::min(network.sum_overlap * step.sum, backward) + std::min(network.share_overlap * step.weights, forward);
  return step;
}

double bytes_sent(const RankWork& work, int64_t ranks) {
  return share_of_others(ranks) * (work.gradient_bytes + work.weight_bytes);
}

RankWork work_of_rank(const JobSize& part, const StepTimes& times) {
  const auto trained = static_cast<double>(part.trained_parameters);
  const bool has_copies = times.precision == "bf16" || times.precision == "fp16" || times.precision == "fp8";
  return {.compute_seconds = part.tokens_per_step() * times.per_token(),
          .update_seconds = times.update,
          .gradient_bytes = static_cast<double>(sizeof(float)) * trained,
          .weight_bytes = (has_copies ? 6 : 4) * trained};
}

RankNetwork made_up_network(int64_t ranks, double gigabits_a_second, double latency_seconds) {
  return {.size = ranks, .latency_seconds = latency_seconds, .bytes_per_second = 1e9 / 8 * gigabits_a_second};
}

}  // namespace brisk
