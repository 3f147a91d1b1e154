#include "optim/adamw.h"

#include <cmath>

#include "ops/optimizer/update.h"

namespace brisk {

void adamw_step(const ParameterStore& store, const AdamWOptions& options, int64_t step, double rate,
                double gradient_scale) {
  DeviceAccess access(store.device());
  const std::vector<Parameter*>& order = store.flat_order();
  const double steps = static_cast<double>(step);
  AdamWUpdate update;
  update.rate = static_cast<float>(rate);
  update.beta1 = static_cast<float>(options.beta1);
  update.beta2 = static_cast<float>(options.beta2);
  update.epsilon = static_cast<float>(options.epsilon);
  update.correction1 = static_cast<float>(1.0 - std::pow(options.beta1, steps));
  update.correction2 = static_cast<float>(1.0 - std::pow(options.beta2, steps));
  update.gradient_scale = static_cast<float>(gradient_scale);
  // Neighbours that decay alike are one run; the alignment gaps between them stay zero.
  for (size_t first = 0; first < order.size();) {
    if (!order[first]->second_moment) {  // Muon's, or frozen
      ++first;
      continue;
    }
    size_t end = first + 1;
    while (end < order.size() && order[end]->second_moment && order[end]->spec.decays == order[first]->spec.decays)
      ++end;
    const int64_t begin = order[first]->offset;
    const int64_t stop = end < order.size() ? order[end]->offset : store.flat_gradient().cols;
    update.parameters = store.flat_master().f32() + begin;
    update.gradient = store.flat_gradient().f32() + begin;
    update.m = store.flat_first_moment().f32() + begin;
    update.v = order[first]->second_moment.f32();
    update.copy = store.flat_copy() ? store.flat_copy().bf16() + begin : nullptr;
    update.count = stop - begin;
    update.decay = order[first]->spec.decays ? static_cast<float>(options.weight_decay) : 0.0f;
    cpu::adamw_update(update);
    first = end;
  }
}

double gradient_norm(const ParameterStore& store) {
  DeviceAccess access(store.device());
  return std::sqrt(cpu::squared_norm(store.flat_gradient().f32(), store.flat_gradient().cols));
}

}  // namespace brisk
