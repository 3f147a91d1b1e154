// What a GPU says of itself while it works: NVIDIA's management library (NVML), which comes with the driver. It is
// loaded when it is first asked for, so neither its header nor the library is needed to build or to start brisk.
//
//   std::unique_ptr<GpuSensor> sensor = open_gpu_sensor("0000:1b:00.0");   // null where there is no such library
//   const GpuReading now = sensor->read();                                  // takes up to a few milliseconds
//   if (now.watts >= 0) say("{:.0f} W", now.watts);
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace brisk {

// Negative: the GPU, or a container's rights, do not tell it.
struct GpuReading {
  double busy_share = -1;          // of the library's last sample period (1/6 s to 1 s) in which a kernel ran
  double watts = -1;               // mean over about a second
  double celsius = -1;             // of the chip
  double sm_mhz = -1;              // clock of the multiprocessors
  double memory_mhz = -1;          // of the memory
  double joules = -1;              // since the driver was loaded
  int64_t memory_used_bytes = -1;  // by all processes
  int64_t memory_bytes = -1;       // of the GPU
};

class GpuSensor {
 public:
  virtual ~GpuSensor() = default;
  virtual GpuReading read() = 0;  // from one thread at a time
};

constexpr const char* kManagementLibrary = "libnvidia-ml.so.1";

// Of the GPU at this place on the bus, whatever its number is to CUDA (CUDA_VISIBLE_DEVICES renumbers GPUs). Null
// where the library is missing, does not start, or knows no such GPU.
std::unique_ptr<GpuSensor> open_gpu_sensor(const std::string& pci_bus_id, const char* library = kManagementLibrary);

}  // namespace brisk
