#include "ops/parameters.h"

#include <cmath>

#include "ops/update.h"

namespace brisk {

void refresh_compute_copies(const ParameterStore& store) {
  const Tensor copy = store.flat_copy();
  if (!copy) return;
  DeviceAccess access(store.device());
  cpu::convert_to_bf16(store.flat_master().f32(), copy.bf16(), copy.cols);
}

std::string first_not_finite(const ParameterStore& store, bool gradients) {
  DeviceAccess access(store.device());
  for (const auto& parameter : store.all()) {
    const Tensor& tensor = gradients ? parameter->gradient : parameter->master;
    if (tensor && !std::isfinite(cpu::squared_norm(tensor.f32(), parameter->count()))) return parameter->spec.name;
  }
  return "";
}

}  // namespace brisk
