// The tensors of a checkpoint: masters and moments of the trained parameters, read from the store block by block, or from
// a copy of them in host memory that another thread may write while training goes on.
//
//   save_checkpoint(run, tensors_of(store), state);         // from the store
//
//   CheckpointCopy copy(store);                             // takes the memory; UserError where there is none
//   copy.take(store);                                       // the store may change from here on
//   save_checkpoint(run, copy.tensors(), state);            // by any thread
//
// Of several processes each has, and writes, its own range of the flat arrays (checkpoint/shared_checkpoint.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tensor/parameter.h"

namespace brisk {

// Elements of the flat arrays of a store (tensor/parameter.h); by default all.
struct FlatRange {
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();

  // Those of a parameter: [first, first + count) of its elements.
  struct Elements {
    int64_t first = 0, count = 0;
  };
  Elements of(const Parameter& parameter) const {
    const int64_t first = std::clamp<int64_t>(begin - parameter.offset, 0, parameter.count());
    return {first, std::clamp<int64_t>(end - parameter.offset, first, parameter.count()) - first};
  }
};

struct CheckpointTensor {
  std::string name;
  int64_t rows = 1, cols = 1;  // of f32
  // Writes bytes [offset, offset + block.size()) of it into `block`; not needed where its own ones lie in host memory.
  std::function<void(int64_t offset, std::span<std::byte> block)> read;
  const void* host = nullptr;
  int64_t own_offset = 0, own_bytes = 0;  // that this process has; of one alone, all

  int64_t bytes() const { return rows * cols * size_of(DType::f32); }
};

struct CheckpointTensors {
  std::vector<CheckpointTensor> model;
  bool has_optimizer = false;  // false: of a store for inference
  std::vector<CheckpointTensor> optimizer;

  int64_t own_bytes() const;
};

constexpr const char* kFirstMomentPrefix = "first_moment.";
constexpr const char* kSecondMomentPrefix = "second_moment.";

using TensorOfParameter = Tensor Parameter::*;  // the master or a moment

// What is frozen is not in checkpoints: checkpoint/fine_tuned.h saves it once.
bool is_saved(const Parameter& parameter, TensorOfParameter which);

// Read from the store, which must outlive them and stay as it is while they are read. `own`: what this process has of them.
CheckpointTensors tensors_of(const ParameterStore& store, const FlatRange& own = {});

class CheckpointCopy {
 public:
  // In pinned memory where the store is on a GPU, so that the copy takes the bus's full speed.
  explicit CheckpointCopy(const ParameterStore& store, const FlatRange& own = {});
  ~CheckpointCopy();
  CheckpointCopy(const CheckpointCopy&) = delete;
  CheckpointCopy& operator=(const CheckpointCopy&) = delete;

  void take(const ParameterStore& store);  // of the same parameters, of this process's own
  const CheckpointTensors& tensors() const { return tensors_; }

 private:
  Device& device_;
  FlatRange own_;
  int64_t bytes_ = 0;
  std::byte* data_ = nullptr;
  CheckpointTensors tensors_;
};

}  // namespace brisk
