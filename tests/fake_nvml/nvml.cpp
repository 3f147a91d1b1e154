// A management library with two GPUs of our own making, for tests of base/gpu/gpu_sensor.h where there is no driver. The
// second GPU knows neither energy nor power. BRISK_FAKE_NVML_INIT=1 makes it fail to start.
#include <cstdlib>
#include <cstring>

namespace {
int gpus[2];
bool started = false;
unsigned reads = 0;
constexpr int kOk = 0, kNotSupported = 3, kUninitialized = 1, kNotFound = 6;
}  // namespace

extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() {
  if (std::getenv("BRISK_FAKE_NVML_INIT") != nullptr) return kUninitialized;
  started = true;
  return kOk;
}

int nvmlShutdown() {
  started = false;
  return kOk;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (!started) return kUninitialized;
  if (std::strcmp(id, "0000:17:00.0") == 0) {
    *device = &gpus[0];
  } else if (std::strcmp(id, "0000:65:00.0") == 0) {
    *device = &gpus[1];
  } else {
    return kNotFound;
  }
  return kOk;
}

int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  *utilization = device == &gpus[0] ? Utilization{87, 40} : Utilization{12, 3};
  return kOk;
}

int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {1000, 700, 300};
  return kOk;
}

// 400 W, 410 W, 420 W, ...
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (device == &gpus[1]) return kNotSupported;
  *milliwatts = 400000 + 10000 * reads++;
  return kOk;
}

int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* celsius) {
  *celsius = sensor == 0 ? 61 : 0;
  return kOk;
}

int nvmlDeviceGetClockInfo(void*, unsigned type, unsigned* mhz) {
  *mhz = type == 1 ? 1965 : type == 2 ? 3201 : 0;
  return kOk;
}

int nvmlDeviceGetMaxClockInfo(void*, unsigned type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 0;
  return kOk;
}

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  if (device == &gpus[1]) return kNotSupported;
  *milliwatts = 700000;
  return kOk;
}

// The first at its power cap; the second hot, which its hardware answers by slowing down.
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = device == &gpus[0] ? 0x4 : 0x40 | 0x8 | 0x1;
  return kOk;
}

// 50 J more at every look.
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (device == &gpus[1]) return kNotSupported;
  static unsigned long long counted = 7000000;
  *millijoules = counted += 50000;
  return kOk;
}
}
