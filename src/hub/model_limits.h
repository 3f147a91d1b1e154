// What the sizes and numbers of a model that others wrote may be. They are those of a job's model section
// (job/job_model_options.cpp), since a model that is read becomes one; a test compares the two.
//
//   model.num_layers = reader.size("n_layer", model_limits::kMostLayers);
#pragma once

#include <cstdint>

namespace brisk::model_limits {

inline constexpr int64_t kWidest = 65536;               // model.d_model
inline constexpr int64_t kMostLayers = 1000;            // model.num_layers
inline constexpr int64_t kMostHeads = 4096;             // model.num_heads, model.num_kv_heads
inline constexpr int64_t kWidestInside = 1 << 20;       // model.d_ff
inline constexpr int64_t kLargestVocabulary = 1 << 24;  // model.vocab_size
inline constexpr int64_t kLongestContext = 1 << 24;     // model.context
inline constexpr int64_t kMostTokenTypes = 16;          // model.token_types
inline constexpr int64_t kMostLabels = 1 << 20;         // model.num_labels
inline constexpr double kLargestEpsilon = 1;            // model.norm_epsilon, above 0
inline constexpr double kLeastRopeTheta = 1;            // model.rope_theta is above this

}  // namespace brisk::model_limits
