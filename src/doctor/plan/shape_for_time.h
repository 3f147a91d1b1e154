// A rule of thumb: which shape of a language model makes the most of a given time.
//
//   ShapeForTime shape = shape_for_time(candidates, 3600, unique_tokens);
//
// Training a decoder from new weights gets the most out of a fixed number of FLOP with about 20 tokens for each parameter
// (Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022), counted on models of 70M parameters and more,
// on data that does not repeat. Tokens that come again teach nearly as much as new ones for about four epochs (Muennighoff
// et al., "Scaling Data-Constrained Language Models", 2023); what comes later is not counted here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "doctor/planning.h"

namespace brisk {

constexpr double kTokensPerParameter = 20, kUsefulEpochs = 4;

struct ShapeCandidate {
  int64_t layers = 0, width = 0, parameters = 0;
  double tokens_per_second = 0;
};

// The candidate whose useful tokens in this time are nearest to that rule; none without candidates.
std::optional<ShapeForTime> shape_for_time(const std::vector<ShapeCandidate>& candidates, double seconds,
                                           double tokens_per_epoch);

// Widths with a layer for every 64 of them, as GPT-2 has them: 12 layers of 768.
struct LayersOfWidth {
  int64_t layers, width;
};
std::vector<LayersOfWidth> usual_shapes();

}  // namespace brisk
