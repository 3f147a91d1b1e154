// interpolate: y = x + share * (target - x), a share for each of G groups of neighbouring columns.
//
//   Value next = interpolate(tape, x, target, share);          // share: [N, 16] for 64 columns, say
//
// A gate that moves a state towards a new one. Types may differ; the arithmetic is f32. Saved for backward: x, target and
// share.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace brisk {

struct InterpolateForward {
  Tensor x, target;  // [N, D]
  Tensor share;      // [N, G]
  Tensor y;          // [N, D]
};

struct InterpolateBackward {
  Tensor x, target, share;
  Tensor dy;                   // [N, D]
  Tensor dx, dtarget, dshare;  // as x, target and share; or none
  bool dx_adds = false, dtarget_adds = false, dshare_adds = false;
};

namespace ref {
void interpolate_forward(const InterpolateForward& op);
void interpolate_backward(const InterpolateBackward& op);
}  // namespace ref
namespace cpu {
void interpolate_forward(const InterpolateForward& op);
void interpolate_backward(const InterpolateBackward& op);
}  // namespace cpu
namespace cuda {
void interpolate_forward(const InterpolateForward& op);
void interpolate_backward(const InterpolateBackward& op);
}  // namespace cuda

}  // namespace brisk
