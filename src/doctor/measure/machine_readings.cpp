#include "doctor/measure/machine_readings.h"

#include <cstdlib>

#include "base/machine/counters.h"
#include "base/machine/isa.h"
#include "base/machine/machine.h"
#include "base/runtime.h"
#include "infer/device_choice.h"
#include "ops/peak/peak.h"
#include "tensor/device.h"

namespace brisk {

MachineReadings measure_machine(const Job& job) {
  const Machine machine = read_machine();
  MachineReadings readings{.cpu_model = machine.cpu_model,
                           .isa = std::string(isa_name(active_isa())),
                           .cores = machine.cores,
                           .logical_processors = machine.logical_processors,
                           .quota_cores = cgroup_cores(),
                           .memory_total_bytes = machine.memory_total_bytes,
                           .memory_available_bytes = machine.memory_available_bytes};
  for (const CudaGpu& gpu : cuda_gpus(&readings.no_gpu)) readings.gpus.push_back(gpu.name);
  const std::string_view visible = Runtime::current().environment("CUDA_VISIBLE_DEVICES");
  readings.visible_devices = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr ? std::string(visible) : "unset";
  Device& device = *choose_device(job.device, "device").device;
  const auto rate = [&](const char* name, Arithmetic arithmetic) {
    if (device.is_cuda()) {
      const double gflops = gpu_product_gflops(device, arithmetic);
      if (gflops > 0) readings.product_gflops[name] = readings.peak_gflops[name] = gflops;
      return;
    }
    const double peak = measured_peak_gflops(arithmetic);
    if (peak <= 0) return;
    readings.peak_gflops[name] = peak;
    readings.product_gflops[name] = measured_product_gflops(arithmetic);
  };
  rate("fp32", Arithmetic::f32);
  rate("bf16", Arithmetic::bf16);
  if (device.is_cuda()) {
    rate("tf32", Arithmetic::tf32);
    readings.gpu_launch_seconds = gpu_launch_seconds(device);
  }
  readings.has_bf16 = readings.product_gflops.contains("bf16");
  readings.memory_gb_per_second =
      device.is_cuda() ? gpu_copy_gb_per_second(device) : measure_memory_bandwidth().copy_gb_per_second;
  return readings;
}

}  // namespace brisk
