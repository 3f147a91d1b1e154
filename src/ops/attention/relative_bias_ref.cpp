#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/attention/relative_bias.h"

namespace brisk {

RelativeBuckets relative_buckets(int64_t buckets, int64_t distance, bool causal) {
  const int64_t count = causal ? buckets : buckets / 2, exact = count / 2;
  BRISK_CHECK(exact > 0 && count <= RelativeBuckets::kMost && distance > exact, "{} buckets of distances up to {}",
              buckets, distance);
  RelativeBuckets result{.count = static_cast<int32_t>(count), .causal = causal};
  int64_t filled = 0;
  for (int64_t d = 0; filled < count; ++d) {
    int64_t bucket = d;
    if (d >= exact) {  // in f32, as the models that were trained with it computed it
      const float steps = std::log(static_cast<float>(d) / static_cast<float>(exact)) /
                          static_cast<float>(std::log(static_cast<double>(distance) / static_cast<double>(exact)));
      bucket = std::min(count - 1, exact + static_cast<int64_t>(steps * static_cast<float>(count - exact)));
    }
    while (filled <= bucket) result.first[filled++] = static_cast<int32_t>(d);
  }
  return result;
}

namespace ref {

namespace {
float& at(const Tensor& t, int64_t row, int64_t col) { return t.f32()[row * t.stride + col]; }
}  // namespace

void relative_bias_forward(const RelativeBiasForward& op) {
  const int64_t middle = op.y.cols / 2;
  for (int64_t c = 0; c < op.y.cols; ++c) {
    const int32_t bucket = op.buckets.bucket(c - middle);
    for (int64_t head = 0; head < op.y.rows; ++head) at(op.y, head, c) = at(op.table, bucket, head);
  }
}

void relative_bias_backward(const RelativeBiasBackward& op) {
  const int64_t middle = op.dy.cols / 2;
  for (int64_t row = 0; row < op.dtable.rows && !op.dtable_adds; ++row) {
    for (int64_t head = 0; head < op.dtable.cols; ++head) at(op.dtable, row, head) = 0;
  }
  for (int64_t c = 0; c < op.dy.cols; ++c) {
    const int32_t bucket = op.buckets.bucket(c - middle);
    for (int64_t head = 0; head < op.dy.rows; ++head) at(op.dtable, bucket, head) += at(op.dy, head, c);
  }
}

}  // namespace ref

namespace cpu {
void relative_bias_forward(const RelativeBiasForward& op) { ref::relative_bias_forward(op); }
void relative_bias_backward(const RelativeBiasBackward& op) { ref::relative_bias_backward(op); }
}  // namespace cpu

}  // namespace brisk
