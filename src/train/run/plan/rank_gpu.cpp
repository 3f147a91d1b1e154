#include "train/run/plan/rank_gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/machine/process.h"
#include "base/runtime.h"
#include "comm/gpu_choice.h"
#include "train/engine/shard_transport.h"

namespace brisk {

std::string device_of_rank(const std::string& asked, const std::vector<CudaGpu>& gpus, ProcessGroup& processes) {
  if (asked.starts_with("cuda:")) {
    user_error(
        "device: \"{}\" is one GPU, and there are {} ranks, which have one each: say \"cuda\"; CUDA_VISIBLE_DEVICES chooses "
        "which",
        asked, processes.size());
  }
  if (asked != "auto" && asked != "cuda" && asked != "gpu") return asked;
  GpuPlace own{.machine = boot_id(),
               .local_rank = processes.local_rank(),
               .nccl_host_id = std::string(Runtime::current().environment("NCCL_HOSTID"))};
  for (const CudaGpu& gpu : gpus) own.gpus.push_back(gpu.bus_id);
  const std::vector<GpuPlace> places = gather_places(own, *processes.communicator());
  const bool nobody_has_one =
      std::all_of(places.begin(), places.end(), [](const GpuPlace& place) { return place.gpus.empty(); });
  if (nobody_has_one) return asked == "auto" ? "cpu" : asked;  // which says why there is none
  return fmt::format("cuda:{}", choose_gpu(places, processes.rank()));
}

void connect_gpus(Device& gpu, ProcessGroup& processes) {
  processes.connect_gpus();
  try_nccl(gpu, *processes.gpus());
}

}  // namespace brisk
