// Whether it pays to compute beforehand what frozen layers make of the data, and whether there is room for it.
#pragma once

#include <cstdint>
#include <string>

#include "data/batch/sequences.h"
#include "job/job.h"
#include "train/engine/process_group.h"

namespace brisk {

// By the job alone, and not by what lies in the cache: a resumed run does as it did.
bool is_worth_caching(const Job& job, const Sequences& train);

// A line for the user where `bytes` more do not fit into the folder; all processes say the same.
std::string no_room_to_cache(int64_t bytes, const std::string& directory, const std::string& what,
                             ProcessGroup& processes);

}  // namespace brisk
