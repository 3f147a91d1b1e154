// How ranks of one machine that nobody gave a common memory to find it: rank 0 makes it and hands it to the others, over a
// socket that other users and other machines cannot reach.
//
//   SharedSegment segment = meet(world);      // torchrun-style: by MASTER_ADDR and MASTER_PORT; Slurm: by job and step
#pragma once

#include "comm/shared_memory.h"
#include "comm/world.h"

namespace brisk {

// Waits for the others, but not for longer than this.
constexpr double kMeetingSeconds = 120;

// UserError where another training has the same name, or not all ranks come.
SharedSegment meet(const World& world);

}  // namespace brisk
