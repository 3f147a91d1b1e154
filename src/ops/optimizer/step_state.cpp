#include "ops/optimizer/step_state.h"

#include "ops/backend.h"
#include "ops/optimizer/parts.h"
#include "ops/optimizer/update.h"

namespace brisk {

StepState::StepState(Device& device) : device_(device), numbers_(device, sizeof(StepNumbers)) {
  if (!device.is_cuda()) return;
  staging_ = static_cast<StepNumbers*>(device.allocate_staging(sizeof(StepNumbers)));
  done_ = device.mark();
}

StepState::~StepState() {
  if (staging_ != nullptr) device_.release_staging(staging_);
}

void StepState::begin_pass(float loss_scale, uint64_t step_key) {
  if (device_.is_cuda()) return BRISK_RUN_ON_GPU(set_pass, loss_scale, step_key, numbers());
  DeviceAccess access(device_);
  numbers()->loss_scale = loss_scale;
  numbers()->step_key = step_key;
}

void StepState::begin_update(const StepNumbers& settings) {
  if (device_.is_cuda()) return BRISK_RUN_ON_GPU(set_update, settings, numbers());
  DeviceAccess access(device_);
  numbers()->set_update(settings);
}

void StepState::add_loss(const Tensor& sums, bool first) {
  if (device_.is_cuda()) return BRISK_RUN_ON_GPU(add_loss_sums, sums.f32(), first, numbers());
  DeviceAccess access(device_);
  numbers()->add_loss(sums.f32(), first);
}

void StepState::measure(const Tensor& gradient) {
  if (device_.is_cuda()) {
    return BRISK_RUN_ON_GPU(squared_norm, gradient.f32(), gradient.cols, &numbers()->squared_norm);
  }
  DeviceAccess access(device_);
  numbers()->squared_norm = cpu::squared_norm(gradient.f32(), gradient.cols);
}

void StepState::measure(const Tensor& gradient, std::span<const int64_t> bounds) {
  const auto shards = std::ssize(bounds) - 1;
  BRISK_CHECK(parts_.bytes() >= shards * StepNumbers::kSums * static_cast<int64_t>(sizeof(double)), "{} shards",
              shards);
  auto* norms = static_cast<double*>(parts_.data());
  for (int64_t shard = 0; shard < shards; ++shard) {
    const int64_t begin = bounds[static_cast<size_t>(shard)], count = bounds[static_cast<size_t>(shard) + 1] - begin;
    if (device_.is_cuda()) {
      BRISK_RUN_ON_GPU(squared_norm, gradient.f32() + begin, count, norms + shard);
    } else {
      const DeviceAccess access(device_);
      norms[shard] = count > 0 ? cpu::squared_norm(gradient.f32() + begin, count) : 0;
    }
  }
  brisk::sum_parts(device_, norms, shards, 1, &numbers()->squared_norm);
}

void StepState::reserve_parts(int64_t parts) {
  const int64_t bytes = parts * StepNumbers::kSums * static_cast<int64_t>(sizeof(double));
  if (parts_.bytes() < bytes) parts_ = Buffer(device_, bytes);
}

double* StepState::part(int64_t part) const { return static_cast<double*>(parts_.data()) + part * StepNumbers::kSums; }

void StepState::keep_part(int64_t part) {
  constexpr int64_t kFloats = StepNumbers::kSums * sizeof(double) / sizeof(float);
  copy_floats(device_, reinterpret_cast<const float*>(numbers()), reinterpret_cast<float*>(this->part(part)), kFloats);
}

void StepState::sum_parts(int64_t parts) {
  brisk::sum_parts(device_, part(0), parts, StepNumbers::kSums, &numbers()->squared_norm);
}

void StepState::clear_sums() {
  clear_floats(device_, reinterpret_cast<float*>(numbers()), StepNumbers::kSums * sizeof(double) / sizeof(float));
}

void StepState::decide() {
  if (device_.is_cuda()) return BRISK_RUN_ON_GPU(decide_step, numbers());
  DeviceAccess access(device_);
  numbers()->decide();
}

void StepState::publish() {
  if (device_.is_cuda()) BRISK_RUN_ON_GPU(publish_step, numbers(), staging_);
}

void StepState::finish() {
  if (done_) done_->set();
}

bool StepState::is_done() { return !done_ || done_->reached(); }

StepNumbers StepState::result() {
  if (done_) {
    done_->wait();
    return *staging_;
  }
  DeviceAccess access(device_);
  return *numbers();
}

}  // namespace brisk
