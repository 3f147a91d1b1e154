// relative_bias: what attention adds to the score of a key for its distance from the query, from a table with a row for each
// bucket of distances and a column for each head (T5). Near distances have a bucket each; farther ones share buckets that grow
// with their logarithm, and from `distance` on all share the last. A causal table has buckets for the keys before a query
// alone, another half for those before and half for those after it.
//
//   y[h, T - 1 + d] = table[bucket of d, h]     d = position of the key - position of the query, -T < d < T
//
//   Value bias = relative_bias(tape, table, {.distance = 128, .causal = true}, T);            // on the tape
//   y = self_attention(tape, qkv, shape, dropout, bias);                                      // in every layer
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace brisk {

struct RelativeBuckets {
  static constexpr int kMost = 256;  // of one direction
  int32_t first[kMost] = {};         // the nearest distance in each; ascending, the first is 0
  int32_t count = 0;                 // of one direction
  bool causal = false;

  BRISK_HOST_DEVICE int32_t bucket(int64_t d) const {
    const int64_t distance = d < 0 ? -d : causal ? 0 : d;
    int32_t low = 0, high = count;  // first[low] <= distance < first[high]
    while (high - low > 1) {
      const int32_t middle = (low + high) / 2;
      (first[middle] <= distance ? low : high) = middle;
    }
    return !causal && d > 0 ? count + low : low;
  }
};

// `buckets`: rows of the table. `distance` must be more than half of the buckets of one direction.
RelativeBuckets relative_buckets(int64_t buckets, int64_t distance, bool causal);

struct RelativeBiasForward {
  RelativeBuckets buckets;
  Tensor table;  // [buckets, H] f32
  Tensor y;      // [H, 2 T - 1] f32
};

struct RelativeBiasBackward {
  RelativeBuckets buckets;
  Tensor dy;      // [H, 2 T - 1] f32
  Tensor dtable;  // [buckets, H] f32
  bool dtable_adds = false;
};

namespace ref {
void relative_bias_forward(const RelativeBiasForward& op);
void relative_bias_backward(const RelativeBiasBackward& op);
}  // namespace ref
namespace cpu {  // a few thousand numbers: the reference's loops
void relative_bias_forward(const RelativeBiasForward& op);
void relative_bias_backward(const RelativeBiasBackward& op);
}  // namespace cpu
namespace cuda {
void relative_bias_forward(const RelativeBiasForward& op);
void relative_bias_backward(const RelativeBiasBackward& op);
}  // namespace cuda

}  // namespace brisk
