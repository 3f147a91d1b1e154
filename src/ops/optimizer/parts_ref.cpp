#include "ops/optimizer/parts.h"

namespace brisk::ref {

namespace {

template <typename Number>
void sum_of(const Number* values, int64_t parts, int64_t count, Number* sum) {
  for (int64_t i = 0; i < count; ++i) {
    CountedSum<Number> total;
    for (int64_t part = 0; part < parts; ++part) total.add(values[part * count + i]);
    sum[i] = total.total();
  }
}

}  // namespace

void sum_parts(const float* values, int64_t parts, int64_t count, float* sum) { sum_of(values, parts, count, sum); }
void sum_parts(const double* values, int64_t parts, int64_t count, double* sum) { sum_of(values, parts, count, sum); }

}  // namespace brisk::ref
