// Where a job runs.
//
//   const DeviceChoice choice = choose_device(job.device, "device");      // UserError where it cannot be
//   say("device: {}", choice.reason);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/gpu/gpu_watch.h"
#include "tensor/device.h"

namespace brisk {

struct DeviceChoice {
  Device* device = nullptr;
  std::string name;    // "cpu", "cuda:0"
  std::string reason;  // for the user; empty where there is nothing to say: a CPU, and no CUDA in this brisk
};

// What computes there, for people and summaries: "avx512", "NVIDIA H200 (compute capability 9.0)".
std::string arithmetic_unit(const Device& device);

// A watch on a GPU, where its driver tells something; else null.
std::unique_ptr<GpuWatch> watch_gpu(const Device& device);

// `asked`: auto, cpu, cuda (or gpu) or cuda:1. auto is a GPU where there is one. `place` names the key or flag in
// messages.
DeviceChoice choose_device(const std::string& asked, const std::string& place);

// Where a process computes on GPU `used` and others of this machine do next to nothing: which, and how to use them. Else empty.
std::string idle_gpus_text(const std::vector<CudaGpu>& gpus, int used, const char* library = kManagementLibrary);

}  // namespace brisk
