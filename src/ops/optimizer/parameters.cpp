#include "ops/optimizer/parameters.h"

#include <cmath>
#include <vector>

#include "ops/backend.h"
#include "ops/optimizer/update.h"

namespace brisk {

void refresh_compute_copies(const ParameterStore& store) {
  const Tensor copy = store.flat_copy();
  if (!copy) return;
  DeviceAccess access(store.device());
  if (!store.has_all_masters()) {
    for (const auto& parameter : store.all()) {
      if (!parameter->master) continue;
      BRISK_RUN_ON_GPU(convert_to_bf16, parameter->master.f32(), parameter->copy.bf16(), parameter->count());
    }
  } else {
    refresh_compute_copies(store, 0, copy.cols);
  }
}

void refresh_compute_copies(const ParameterStore& store, int64_t begin, int64_t end) {
  const Tensor copy = store.flat_copy();
  if (!copy || begin >= end) return;
  BRISK_CHECK(store.has_all_masters(), "copies of a range of which not all have masters");
  const DeviceAccess access(store.device());
  const float* masters = store.flat_master().f32() + begin;
  if (copy.type == DType::f16) {
    BRISK_RUN_ON_GPU(convert_to_f16, masters, copy.f16() + begin, end - begin);
  } else if (store.device().is_cuda()) {
    BRISK_RUN_ON_GPU(convert_to_bf16, masters, copy.bf16() + begin, end - begin);
  } else {
    cpu::convert_to_bf16(masters, copy.bf16() + begin, end - begin);
  }
}

std::string first_not_finite(const ParameterStore& store, bool gradients) {
  DeviceAccess access(store.device());
  std::vector<float> host;
  for (const auto& parameter : store.all()) {
    const Tensor& tensor = gradients ? parameter->gradient : parameter->master;
    if (gradients && !tensor) continue;
    const float* values = tensor.f32();
    if (store.device().is_cuda()) {  // rare: a step has failed, and the message names why
      host.resize(static_cast<size_t>(parameter->count()));
      if (gradients) {
        store.device().copy_out(host.data(), tensor.data, parameter->count() * size_of(DType::f32));
      } else {
        store.read(*parameter, 0, host);
      }
      values = host.data();
    }
    if (!std::isfinite(cpu::squared_norm(values, parameter->count()))) return parameter->spec.name;
  }
  return "";
}

}  // namespace brisk
