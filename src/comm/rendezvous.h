// How ranks of one machine that nobody gave a common memory to find it: rank 0 makes it and tells its name to the others.
//
//   SharedSegment segment = meet(world);      // torchrun-style: over MASTER_PORT; Slurm: by the name of job and step
#pragma once

#include "comm/shared_memory.h"
#include "comm/world.h"

namespace brisk {

// Waits for the others, but not for longer than this.
constexpr double kMeetingSeconds = 120;

// UserError where the port is taken, nobody answers, or the ranks are not on one machine.
SharedSegment meet(const World& world);

}  // namespace brisk
