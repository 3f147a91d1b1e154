// norm: layer norm or RMS norm of every row, with gain and (layer norm) bias, then dropout. Saved for backward: x,
// mean, inverse deviation.
//
//   Value h = norm(tape, x, NormKind::rms, gain, /*bias=*/nullptr, /*epsilon=*/1e-5);         // on the tape
//   cpu::norm_forward({.kind = NormKind::rms, .x = x, .gain = gain, .y = y});                 // or directly
#pragma once

#include "ops/dropout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

enum class NormKind : uint8_t { layer, rms };

struct NormForward {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  Tensor x;     // [N, D] f32 or bf16
  Tensor gain;  // [1, D] f32
  Tensor bias;  // [1, D] f32, or none
  Tensor y;     // [N, D] f32 or bf16
  Tensor mean;  // [N, 1] f32 out, or none (RMS norm, or no gradient)
  Tensor rstd;  // [N, 1] f32 out, or none (no gradient)
  Dropout dropout;
  RowSet rows;  // for dropout's draws
};

// On a GPU: the gradient of x as the linear layer that produced x starts its backward with it (Op::prepares_gradient):
// dx with the layer's dropout applied, in the type of its matrix products, and its sum over the rows, the gradient of
// the layer's bias.
struct PreparedGradient {
  Tensor du;  // [N, D] out, or none: nothing is prepared
  Dropout dropout;
  Tensor dbias;  // [1, D] f32 out, or none
  bool dbias_adds = false;
};

struct NormBackward {
  NormKind kind = NormKind::layer;
  Tensor x, gain, mean, rstd;
  Tensor dy;             // [N, D]
  Tensor dx;             // [N, D], or none
  bool dx_adds = false;  // the residual stream's gradient is added to in place
  Tensor dgain;          // [1, D] f32, or none
  bool dgain_adds = false;
  Tensor dbias;  // [1, D] f32, or none
  bool dbias_adds = false;
  Dropout dropout;
  RowSet rows;
  PreparedGradient prepared = {};
};

namespace ref {
void norm_forward(const NormForward& op);
void norm_backward(const NormBackward& op);
}  // namespace ref
namespace cpu {
void norm_forward(const NormForward& op);
void norm_backward(const NormBackward& op);
}  // namespace cpu
namespace cuda {
void norm_forward(const NormForward& op);
void norm_backward(const NormBackward& op);
}  // namespace cuda

}  // namespace brisk
