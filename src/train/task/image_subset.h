// A subset of a job's own images for its smoke test (train/task/smoke_subset.h).
#pragma once

#include <string>

#include "job/job.h"
#include "train/task/smoke_subset.h"

namespace brisk {

// A few images with their texts, or some of each class, as a .jsonl file that names them where they are.
SmokeSubset take_image_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small);

}  // namespace brisk
