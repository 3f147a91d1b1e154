// Load, power, temperature and clocks of a GPU, from NVIDIA's management library (NVML), which comes with the driver.
// The library is loaded on first use, so neither it nor its header is needed to build or start brisk.
//
//   std::unique_ptr<GpuSensor> sensor = open_gpu_sensor("0000:1b:00.0");   // null if there is no such library
//   const GpuReading now = sensor->read();                                  // takes up to a few milliseconds
//   if (now.watts >= 0) say("{:.0f} W", now.watts);
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace brisk {

// Negative values are unknown: the GPU does not report them, or the container may not read them.
struct GpuReading {
  double busy_share = -1;          // share of NVML's last sample period (1/6 s to 1 s) in which a kernel ran
  double watts = -1;               // mean over about a second
  double celsius = -1;             // of the chip
  double sm_mhz = -1;              // clock of the multiprocessors
  double memory_mhz = -1;          // memory clock
  double joules = -1;              // since the driver was loaded
  int64_t memory_used_bytes = -1;  // by all processes
  int64_t memory_bytes = -1;       // total memory of the GPU
  double max_sm_mhz = -1;          // the highest clock it may have
  double watt_limit = -1;          // that is enforced now
  int64_t lowered_by = -1;         // why its clocks are lower than they might be: bits of GpuReading::Lowered
  enum Lowered : int64_t { power_cap = 1, thermal = 2, hardware_slowdown = 4 };
};

class GpuSensor {
 public:
  virtual ~GpuSensor() = default;
  virtual GpuReading read() = 0;  // from one thread at a time
};

constexpr const char* kManagementLibrary = "libnvidia-ml.so.1";

// Finds the GPU by its bus id, since CUDA_VISIBLE_DEVICES renumbers GPUs. Null if the library is missing, does not
// start, or does not know such a GPU.
std::unique_ptr<GpuSensor> open_gpu_sensor(const std::string& pci_bus_id, const char* library = kManagementLibrary);

}  // namespace brisk
