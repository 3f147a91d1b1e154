#include "base/gpu/gpu_sensor.h"

#include <dlfcn.h>

#include <utility>

namespace brisk {

namespace {

// As NVML declares them (nvml.h); the numbers and layouts are part of its binary interface.
using NvmlStatus = int;
using NvmlDevice = void*;
constexpr NvmlStatus kNvmlSuccess = 0;
constexpr unsigned kNvmlChip = 0;         // NVML_TEMPERATURE_GPU
constexpr unsigned kNvmlSmClock = 1;      // NVML_CLOCK_SM
constexpr unsigned kNvmlMemoryClock = 2;  // NVML_CLOCK_MEM
// NVML_CLOCKS_EVENT_REASON_*, once called throttle reasons.
constexpr unsigned long long kNvmlPowerCap = 0x4, kNvmlHardwareSlowdown = 0x8, kNvmlSoftwareThermal = 0x20,
                             kNvmlHardwareThermal = 0x40, kNvmlPowerBrake = 0x80;
struct NvmlUtilization {
  unsigned gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;
};

struct Nvml {
  NvmlStatus (*init)() = nullptr;
  NvmlStatus (*shutdown)() = nullptr;
  NvmlStatus (*device_by_pci)(const char*, NvmlDevice*) = nullptr;
  // Any of these may be missing.
  NvmlStatus (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  NvmlStatus (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlStatus (*power)(NvmlDevice, unsigned*) = nullptr;
  NvmlStatus (*temperature)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlStatus (*clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlStatus (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlStatus (*max_clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlStatus (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  NvmlStatus (*clock_reasons)(NvmlDevice, unsigned long long*) = nullptr;
};

int64_t lowered_by(unsigned long long reasons) {
  int64_t bits = 0;
  if ((reasons & kNvmlPowerCap) != 0) bits |= GpuReading::power_cap;
  if ((reasons & (kNvmlSoftwareThermal | kNvmlHardwareThermal)) != 0) bits |= GpuReading::thermal;
  // The hardware slows down when it is hot as well: then that is why.
  const bool is_hot = (reasons & kNvmlHardwareThermal) != 0;
  if ((reasons & kNvmlPowerBrake) != 0 || (!is_hot && (reasons & kNvmlHardwareSlowdown) != 0))
    bits |= GpuReading::hardware_slowdown;
  return bits;
}

class NvmlSensor final : public GpuSensor {
 public:
  NvmlSensor(void* library, const Nvml& nvml, NvmlDevice device) : library_(library), nvml_(nvml), device_(device) {}
  ~NvmlSensor() override {
    nvml_.shutdown();
    dlclose(library_);
  }
  NvmlSensor(const NvmlSensor&) = delete;
  NvmlSensor& operator=(const NvmlSensor&) = delete;

  GpuReading read() override {
    GpuReading reading;
    NvmlUtilization utilization{};
    if (says(nvml_.utilization, &utilization)) reading.busy_share = 0.01 * utilization.gpu;
    NvmlMemory memory{};
    if (says(nvml_.memory, &memory)) {
      reading.memory_used_bytes = static_cast<int64_t>(memory.used);
      reading.memory_bytes = static_cast<int64_t>(memory.total);
    }
    unsigned value = 0;
    if (says(nvml_.power, &value)) reading.watts = 1e-3 * value;
    if (says(nvml_.temperature, kNvmlChip, &value)) reading.celsius = value;
    if (says(nvml_.clock, kNvmlSmClock, &value)) reading.sm_mhz = value;
    if (says(nvml_.clock, kNvmlMemoryClock, &value)) reading.memory_mhz = value;
    if (says(nvml_.max_clock, kNvmlSmClock, &value)) reading.max_sm_mhz = value;
    if (says(nvml_.power_limit, &value)) reading.watt_limit = 1e-3 * value;
    unsigned long long reasons = 0;
    if (says(nvml_.clock_reasons, &reasons)) reading.lowered_by = lowered_by(reasons);
    unsigned long long millijoules = 0;
    if (says(nvml_.energy, &millijoules)) reading.joules = 1e-3 * static_cast<double>(millijoules);
    return reading;
  }

 private:
  template <typename Function, typename... Arguments>
  bool says(Function function, Arguments... arguments) const {
    return function != nullptr && function(device_, arguments...) == kNvmlSuccess;
  }

  void* library_;
  Nvml nvml_;
  NvmlDevice device_;
};

template <typename Function>
void find_in(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::unique_ptr<GpuSensor> open_gpu_sensor(const std::string& pci_bus_id, const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  Nvml nvml;
  find_in(library, "nvmlInit_v2", nvml.init);
  find_in(library, "nvmlShutdown", nvml.shutdown);
  find_in(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.device_by_pci);
  find_in(library, "nvmlDeviceGetUtilizationRates", nvml.utilization);
  find_in(library, "nvmlDeviceGetMemoryInfo", nvml.memory);
  find_in(library, "nvmlDeviceGetPowerUsage", nvml.power);
  find_in(library, "nvmlDeviceGetTemperature", nvml.temperature);
  find_in(library, "nvmlDeviceGetClockInfo", nvml.clock);
  find_in(library, "nvmlDeviceGetTotalEnergyConsumption", nvml.energy);
  find_in(library, "nvmlDeviceGetMaxClockInfo", nvml.max_clock);
  find_in(library, "nvmlDeviceGetEnforcedPowerLimit", nvml.power_limit);
  find_in(library, "nvmlDeviceGetCurrentClocksEventReasons", nvml.clock_reasons);
  if (nvml.clock_reasons == nullptr)  // as drivers before 535 call it
    find_in(library, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml.clock_reasons);
  const bool complete = nvml.init != nullptr && nvml.shutdown != nullptr && nvml.device_by_pci != nullptr;
  if (complete && nvml.init() == kNvmlSuccess) {
    NvmlDevice device = nullptr;
    if (nvml.device_by_pci(pci_bus_id.c_str(), &device) == kNvmlSuccess)
      return std::make_unique<NvmlSensor>(library, nvml, device);
    nvml.shutdown();
  }
  dlclose(library);
  return nullptr;
}

}  // namespace brisk
