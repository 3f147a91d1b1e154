// parts: what several ranks, or one rank several times, compute of one sum, added neighbours first (base/sum_tree.h). So the
// sum's bits depend on the number of the parts and on nothing else.
//
//   sum_parts(device, parts, 4, count, sum);        // sum[i] = (parts[0][i] + parts[1][i]) + (parts[2][i] + parts[3][i])
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "tensor/device.h"

namespace brisk {

// The sum of sum_tree() of numbers that come one after the other, in memory for the logarithm of how many there are: as a
// binary counter adds one.
template <typename Number>
class CountedSum {
 public:
  BRISK_HOST_DEVICE void add(Number number) {
    int level = 0;
    for (; ((count_ >> level) & 1) != 0; ++level) number = waiting_[level] + number;
    waiting_[level] = number;
    ++count_;
  }
  BRISK_HOST_DEVICE Number total() const {
    Number sum = 0;
    bool has_any = false;
    for (int level = 0; level < kLevels; ++level) {
      if (((count_ >> level) & 1) == 0) continue;
      sum = has_any ? waiting_[level] + sum : waiting_[level];
      has_any = true;
    }
    return sum;
  }

 private:
  static constexpr int kLevels = 16;  // 65,535 numbers
  Number waiting_[kLevels];
  int64_t count_ = 0;
};

// In memory of the device; on a GPU they are queued and can be recorded. `values` [parts, count]; `sum` [count] may be one of
// its rows.
void sum_parts(Device& device, const float* values, int64_t parts, int64_t count, float* sum);
void sum_parts(Device& device, const double* values, int64_t parts, int64_t count, double* sum);
// Of gradients that are summed in parts: sum = values + sum; to = from; values = 0.
void add_floats(Device& device, const float* values, float* sum, int64_t count);
void copy_floats(Device& device, const float* from, float* to, int64_t count);
void clear_floats(Device& device, float* values, int64_t count);

namespace ref {
void sum_parts(const float* values, int64_t parts, int64_t count, float* sum);
void sum_parts(const double* values, int64_t parts, int64_t count, double* sum);
}  // namespace ref
namespace cuda {
void sum_parts(const float* values, int64_t parts, int64_t count, float* sum);
void sum_parts(const double* values, int64_t parts, int64_t count, double* sum);
void add_floats(const float* values, float* sum, int64_t count);
void copy_bytes(const void* from, void* to, int64_t bytes);
void clear_bytes(void* data, int64_t bytes);
}  // namespace cuda

}  // namespace brisk
