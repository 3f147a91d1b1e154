#include "ops/optimizer/parts.h"

#include "ops/backend.h"
#include "ops/optimizer/update.h"

namespace brisk {

void sum_parts(Device& device, const float* values, int64_t parts, int64_t count, float* sum) {
  if (device.is_cuda()) return BRISK_RUN_ON_GPU(sum_parts, values, parts, count, sum);
  const DeviceAccess access(device);
  ref::sum_parts(values, parts, count, sum);
}

void sum_parts(Device& device, const double* values, int64_t parts, int64_t count, double* sum) {
  if (device.is_cuda()) return BRISK_RUN_ON_GPU(sum_parts, values, parts, count, sum);
  const DeviceAccess access(device);
  ref::sum_parts(values, parts, count, sum);
}

void add_floats(Device& device, const float* values, float* sum, int64_t count) {
  if (device.is_cuda()) return BRISK_RUN_ON_GPU(add_floats, values, sum, count);
  const DeviceAccess access(device);
  cpu::add_floats(values, sum, count);
}

void copy_floats(Device& device, const float* from, float* to, int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
  if (device.is_cuda()) return BRISK_RUN_ON_GPU(copy_bytes, from, to, bytes);
  const DeviceAccess access(device);
  device.copy_in(to, from, bytes);
}

void clear_floats(Device& device, float* values, int64_t count) {
  if (device.is_cuda()) {
    return BRISK_RUN_ON_GPU(clear_bytes, values, count * static_cast<int64_t>(sizeof(float)));
  }
  const DeviceAccess access(device);
  cpu::clear_floats(values, count);
}

}  // namespace brisk
