#include "optim/gpu_step.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "ops/backend.h"

namespace brisk {

namespace {

// Neighbours that decay alike are one run; the alignment gaps between them stay zero.
std::vector<AdamWRun> runs_of(const ParameterStore& store, double weight_decay) {
  std::vector<AdamWRun> runs;
  const std::vector<Parameter*>& order = store.flat_order();
  for (size_t first = 0; first < order.size();) {
    if (!order[first]->second_moment) {  // Muon's, or frozen
      ++first;
      continue;
    }
    size_t end = first + 1;
    const auto alike = [&](const Parameter& p) {
      return p.second_moment && p.spec.decays == order[first]->spec.decays &&
             static_cast<bool>(p.master) == static_cast<bool>(order[first]->master);
    };
    while (end < order.size() && alike(*order[end])) ++end;
    AdamWRun run;
    run.begin = order[first]->offset;
    run.count = (end < order.size() ? order[end]->offset : store.flat_gradient().cols) - run.begin;
    run.second_moment_begin = order[first]->second_moment.f32() - store.flat_second_moment().f32();
    run.decay = order[first]->spec.decays ? static_cast<float>(weight_decay) : 0.0f;
    run.has_master = static_cast<bool>(order[first]->master);
    if (run.has_master) run.master_begin = order[first]->master.f32() - store.flat_master().f32();
    runs.push_back(run);
    first = end;
  }
  return runs;
}

}  // namespace

GpuStep::GpuStep(const ParameterStore& store, const AdamWOptions& adamw, Muon* muon, double max_norm)
    : store_(store),
      adamw_(adamw),
      muon_(muon),
      max_norm_(max_norm),
      numbers_(store.device(), sizeof(StepNumbers)),
      staging_(static_cast<StepNumbers*>(store.device().allocate_staging(sizeof(StepNumbers)))),
      done_(store.device().mark()) {
  const std::vector<AdamWRun> runs = runs_of(store, adamw.weight_decay);
  const auto bytes = static_cast<int64_t>(runs.size() * sizeof(AdamWRun));
  runs_ = Buffer(store.device(), bytes);
  if (!runs.empty()) store.device().copy_in(runs_.data(), runs.data(), bytes);
  store.device().wait();  // `runs` goes
  update_.parameters = store.flat_master().f32();
  update_.gradient = store.flat_gradient().f32();
  update_.m = store.flat_first_moment().f32();
  update_.v = store.flat_second_moment().f32();
  const Tensor copy = store.flat_copy();
  if (copy && copy.type == DType::bf16) update_.copy = copy.bf16();
  if (copy && copy.type == DType::f16) update_.half_copy = copy.f16();
  update_.runs = static_cast<const AdamWRun*>(runs_.data());
  update_.run_count = std::ssize(runs);
  for (const AdamWRun& run : runs) update_.elements += run.count;
  update_.beta1 = static_cast<float>(adamw.beta1);
  update_.beta2 = static_cast<float>(adamw.beta2);
  update_.epsilon = static_cast<float>(adamw.epsilon);
  update_.step = numbers();
}

GpuStep::~GpuStep() { store_.device().release_staging(staging_); }

void GpuStep::begin_pass(int64_t step, double loss_scale, uint64_t seed) {
  BRISK_RUN_ON_GPU(set_pass, static_cast<float>(loss_scale), random_key({seed, static_cast<uint64_t>(step)}),
                   static_cast<StepNumbers*>(numbers_.data()));
}

void GpuStep::begin_update(const Settings& settings) {
  StepNumbers numbers;
  const auto steps = static_cast<double>(settings.step);
  numbers.rate = static_cast<float>(settings.rate);
  if (muon_ != nullptr) numbers.muon_rate = static_cast<float>(muon_->options().rate_ratio * settings.rate);
  numbers.correction1 = static_cast<float>(1.0 - std::pow(adamw_.beta1, steps));
  numbers.correction2 = static_cast<float>(1.0 - std::pow(adamw_.beta2, steps));
  numbers.scaling = static_cast<float>(settings.scaling);
  numbers.max_norm = static_cast<float>(max_norm_);
  numbers.norm_limit = static_cast<float>(settings.norm_limit);
  numbers.loss_limit = static_cast<float>(settings.loss_limit);
  BRISK_RUN_ON_GPU(set_update, numbers, static_cast<StepNumbers*>(numbers_.data()));
}

void GpuStep::add_loss(const Tensor& sums, bool first) {
  BRISK_RUN_ON_GPU(add_loss_sums, sums.f32(), first, static_cast<StepNumbers*>(numbers_.data()));
}

void GpuStep::decide() {
  auto* numbers = static_cast<StepNumbers*>(numbers_.data());
  const Tensor gradient = store_.flat_gradient();
  BRISK_RUN_ON_GPU(squared_norm, gradient.f32(), gradient.cols, &numbers->squared_norm);
  BRISK_RUN_ON_GPU(decide_step, numbers);
}

void GpuStep::update() {
  if (update_.run_count > 0) BRISK_RUN_ON_GPU(adamw_update, update_);
  if (muon_ != nullptr) muon_->step_on_gpu(numbers());
}

void GpuStep::publish() { BRISK_RUN_ON_GPU(publish_step, numbers(), staging_); }

void GpuStep::finish() { done_->set(); }

bool GpuStep::is_done() { return done_->reached(); }

StepNumbers GpuStep::result() {
  done_->wait();
  return *staging_;
}

}  // namespace brisk
