// Published encoders that a classifier can start from, by the shapes in their configurations (config.json of each).
//
//   for (const KnownModel& model : known_models()) training_config(job_with(model, job));
#pragma once

#include <cstdint>
#include <span>

#include "job/job.h"

namespace brisk {

struct KnownModel {
  const char* name;
  const char* download;  // for `hf download`
  const char* type;      // model.type
  int64_t layers, width, heads, feed_forward, vocabulary;
};

std::span<const KnownModel> known_models();  // the smallest first

// The job with a model of this shape and new weights. `layers` and `vocabulary`: of the model, or as told.
Job job_with(const KnownModel& model, const Job& job, int64_t layers, int64_t vocabulary);

}  // namespace brisk
