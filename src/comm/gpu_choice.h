// Which GPU a rank computes on: one each. Ranks of a machine that see the same GPUs take them in their order (LOCAL_RANK); one
// whose launcher shows it a single GPU takes that.
//
//   const GpuPlace own{.machine = boot_id(), .local_rank = world.local_rank, .gpus = {"0000:1b:00.0", "0000:43:00.0"}};
//   const int number = choose_gpu(gather_places(own, ranks), ranks.rank());       // "cuda:1"
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace brisk {

// What a rank says of itself.
struct GpuPlace {
  std::string machine;            // the same for all ranks of a machine
  int local_rank = 0;             // as its launcher says it
  std::vector<std::string> gpus;  // that it sees, in its own order, by their place on the bus
  std::string nccl_host_id;       // NCCL_HOSTID: ranks whose own differ may share a GPU
};

std::vector<GpuPlace> gather_places(const GpuPlace& own, Communicator& ranks);

// The number of that rank's GPU among those that it sees. UserError, the same in all ranks, where a rank sees none while
// others do, or where several would share one and are not told to.
int choose_gpu(std::span<const GpuPlace> ranks, int rank);

}  // namespace brisk
