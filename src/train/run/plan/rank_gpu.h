// The GPUs of ranks that train together: one each, chosen by all of them (comm/gpu_choice.h).
//
//   job.device = device_of_rank(job.device, cuda_gpus(), processes);            // "auto" becomes "cuda:1", or "cpu"
//   connect_gpus(*choose_device(job.device, "device").device, processes);       // where it is a GPU
#pragma once

#include <string>
#include <vector>

#include "tensor/device.h"
#include "train/engine/process_group.h"

namespace brisk {

// Collective. `asked`: the job's device, the same in all; `gpus`: those that this rank sees. UserError, the same in all, where they
// cannot have one each.
std::string device_of_rank(const std::string& asked, const std::vector<CudaGpu>& gpus, ProcessGroup& processes);
// Collective, of ranks that compute on the GPU they have: connects these, and tries whether what they send arrives. UserError
// where it does not.
void connect_gpus(Device& gpu, ProcessGroup& processes);

}  // namespace brisk
