#include "ops/grid_attention/window_bias.h"

namespace brisk {

namespace ref {

void window_bias_forward(const WindowBiasForward& op) {
  const int32_t places = op.windows.places();
  for (int64_t head = 0; head < op.y.rows; ++head) {
    float* y = op.y.f32() + head * op.y.stride;
    for (int32_t i = 0; i < places; ++i) {
      for (int32_t j = 0; j < places; ++j) {
        y[i * places + j] = op.table.f32()[window_bias_row(op.windows, i, j) * op.table.stride + head];
      }
    }
  }
}

void window_bias_backward(const WindowBiasBackward& op) {
  const int32_t places = op.windows.places();
  for (int64_t row = 0; row < op.dtable.rows && !op.dtable_adds; ++row) {
    for (int64_t head = 0; head < op.dtable.cols; ++head) op.dtable.f32()[row * op.dtable.stride + head] = 0;
  }
  for (int64_t head = 0; head < op.dy.rows; ++head) {
    const float* dy = op.dy.f32() + head * op.dy.stride;
    for (int32_t i = 0; i < places; ++i) {
      for (int32_t j = 0; j < places; ++j) {
        op.dtable.f32()[window_bias_row(op.windows, i, j) * op.dtable.stride + head] += dy[i * places + j];
      }
    }
  }
}

}  // namespace ref

namespace cpu {  // a few thousand numbers: the reference's loops
void window_bias_forward(const WindowBiasForward& op) { ref::window_bias_forward(op); }
void window_bias_backward(const WindowBiasBackward& op) { ref::window_bias_backward(op); }
}  // namespace cpu

}  // namespace brisk
