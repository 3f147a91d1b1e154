#include "optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/backend.h"

namespace brisk {

namespace {

// Neighbours that decay alike are one run; the alignment gaps between them stay zero.
std::vector<AdamWRun> runs_of(const ParameterStore& store, const ParameterShard& shard, double weight_decay) {
  std::vector<AdamWRun> runs;
  const std::vector<Parameter*>& order = store.flat_order();
  for (size_t first = 0; first < order.size();) {
    const Parameter& parameter = *order[first];
    if (!shard.has(parameter.spec)) {
      ++first;
      continue;
    }
    BRISK_CHECK(parameter.second_moment, "{}: AdamW needs two moments", parameter.spec.name);
    size_t end = first + 1;
    const auto alike = [&](const Parameter& p) {
      return shard.has(p.spec) && p.spec.decays == parameter.spec.decays &&
             static_cast<bool>(p.master) == static_cast<bool>(parameter.master);
    };
    while (end < order.size() && alike(*order[end])) ++end;
    const int64_t stop = end < order.size() ? order[end]->offset : store.flat_gradient().cols;
    const int64_t begin = std::max(parameter.offset, shard.begin), skipped = begin - parameter.offset;
    first = end;
    if (begin >= std::min(stop, shard.end)) continue;
    AdamWRun run;
    run.begin = begin;
    run.count = std::min(stop, shard.end) - begin;
    run.second_moment_begin = parameter.second_moment.f32() - store.flat_second_moment().f32() + skipped;
    run.decay = parameter.spec.decays ? static_cast<float>(weight_decay) : 0.0f;
    run.has_master = static_cast<bool>(parameter.master);
    if (run.has_master) run.master_begin = parameter.master.f32() - store.flat_master().f32() + skipped;
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

AdamW::AdamW(const ParameterStore& store, const AdamWOptions& options, const ParameterShard& shard)
    : store_(store), options_(options), shard_(shard) {
  if (!store.flat_gradient()) return;  // no memory yet
  runs_ = runs_of(store, shard, options.weight_decay);
  if (!store.device().is_cuda() || runs_.empty()) return;
  const auto bytes = static_cast<int64_t>(runs_.size() * sizeof(AdamWRun));
  gpu_runs_ = Buffer(store.device(), bytes);
  store.device().copy_in(gpu_runs_.data(), runs_.data(), bytes);
}

int64_t AdamW::state_bytes() const {
  int64_t elements = 0;
  for (const auto& parameter : store_.all()) {
    if (!shard_.has(parameter->spec)) continue;
    const int64_t begin = std::max(parameter->offset, shard_.begin);
    elements += std::max<int64_t>(0, std::min(parameter->offset + parameter->count(), shard_.end) - begin);
  }
  return 2 * elements * size_of(DType::f32);
}

void AdamW::set_rates(int64_t step, double rate, StepNumbers& numbers) const {
  const auto steps = static_cast<double>(step);
  numbers.rate = static_cast<float>(rate);
  numbers.correction1 = static_cast<float>(1.0 - std::pow(options_.beta1, steps));
  numbers.correction2 = static_cast<float>(1.0 - std::pow(options_.beta2, steps));
}

void AdamW::update(const StepNumbers* numbers) {
  if (runs_.empty()) return;
  if (store_.device().is_cuda()) return update_on_gpu(numbers);
  DeviceAccess access(store_.device());
  if (numbers->applied > 0) update_on_cpu(*numbers);
}

void AdamW::update_on_cpu(const StepNumbers& numbers) const {
  AdamWUpdate update;
  update.rate = numbers.rate;
  update.beta1 = static_cast<float>(options_.beta1);
  update.beta2 = static_cast<float>(options_.beta2);
  update.epsilon = static_cast<float>(options_.epsilon);
  update.correction1 = numbers.correction1;
  update.correction2 = numbers.correction2;
  update.gradient_scale = numbers.gradient_scale;
  for (const AdamWRun& run : runs_) {
    update.parameters = store_.flat_master().f32() + run.master_begin;
    update.gradient = store_.flat_gradient().f32() + run.begin;
    update.m = store_.flat_first_moment().f32() + run.begin;
    update.v = store_.flat_second_moment().f32() + run.second_moment_begin;
    update.copy = store_.flat_copy() ? store_.flat_copy().bf16() + run.begin : nullptr;
    update.count = run.count;
    update.decay = run.decay;
    cpu::adamw_update(update);
  }
}

void AdamW::update_on_gpu(const StepNumbers* numbers) const {
  AdamWRuns update;
  update.parameters = store_.flat_master().f32();
  update.gradient = store_.flat_gradient().f32();
  update.m = store_.flat_first_moment().f32();
  update.v = store_.flat_second_moment().f32();
  const Tensor copy = store_.flat_copy();
  if (copy && copy.type == DType::bf16) update.copy = copy.bf16();
  if (copy && copy.type == DType::f16) update.half_copy = copy.f16();
  update.runs = static_cast<const AdamWRun*>(gpu_runs_.data());
  update.run_count = std::ssize(runs_);
  for (const AdamWRun& run : runs_) update.elements += run.count;
  update.beta1 = static_cast<float>(options_.beta1);
  update.beta2 = static_cast<float>(options_.beta2);
  update.epsilon = static_cast<float>(options_.epsilon);
  update.step = numbers;
  BRISK_RUN_ON_GPU(adamw_update, update);
}

}  // namespace brisk
