// The numbers of an optimizer step in device memory, from the loss's sums to whether the step is applied. On a GPU
// everything but result() is queued, so that the host waits once for a step; what the comments mark can be recorded in
// a graph.
//
//   StepState step(store.device());
//   step.begin_pass(1 / targets, random_key({seed, 7}));
//   ... forward and backward of each micro-batch; step.add_loss(sums, first)
//   step.begin_update(settings);                  // what depends on how step 6 went
//   step.measure(store.flat_gradient());
//   step.decide();
//   optimizer.update(step.numbers());
//   step.publish();
//   step.finish();
//   ... the pass of step 8 may be queued here
//   const StepNumbers numbers = step.result();    // of step 7
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ops/optimizer/step_numbers.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace brisk {

class StepState {
 public:
  explicit StepState(Device& device);
  ~StepState();
  StepState(const StepState&) = delete;
  StepState& operator=(const StepState&) = delete;

  void begin_pass(float loss_scale, uint64_t step_key);
  void begin_update(const StepNumbers& settings);  // StepNumbers::set_update
  void add_loss(const Tensor& sums, bool first);   // of a micro-batch; `first` of its step. Can be recorded
  void measure(const Tensor& gradient);            // its squared norm. Can be recorded
  // The same of the shards of a gradient between these places: of each by itself, then added neighbours first. Can be recorded.
  void measure(const Tensor& gradient, std::span<const int64_t> bounds);
  void decide();         // Can be recorded
  void publish();        // starts the way back of the numbers. Can be recorded
  void finish();         // marks where result() waits
  bool is_done();        // what was marked so
  StepNumbers result();  // of the step that was finished last; waits for it

  // Of a step whose parts are summed apart, or by several ranks: room for the sums of so many.
  void reserve_parts(int64_t parts);
  void keep_part(int64_t part);      // the sums as they are now are those of this part
  void sum_parts(int64_t parts);     // they are those of the kept parts, neighbours first
  double* part(int64_t part) const;  // [StepNumbers::kSums] in device memory, for who brings it from another rank
  void clear_sums();                 // of a part that has nothing in it

  StepNumbers* numbers() const { return static_cast<StepNumbers*>(numbers_.data()); }  // in device memory
  Device& device() const { return device_; }

 private:
  Device& device_;
  Buffer numbers_, parts_;  // parts_: [parts, StepNumbers::kSums]
  // Of a GPU:
  StepNumbers* staging_ = nullptr;
  std::unique_ptr<DeviceMark> done_;
};

}  // namespace brisk
