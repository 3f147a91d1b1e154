#include "ops/cpu/simd.h"
#include "ops/elementwise/elementwise_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

template <typename T>
const T* row_of(const Tensor& t, int64_t row) {
  return t.as<T>() + row * t.stride;
}

}  // namespace

void combine_rows(const Combine& op, int64_t begin, int64_t end) {
  const int64_t width = op.y.cols / op.b.cols;
  const bool adds = op.y_adds, multiplies = op.kind == Combine::Kind::multiply;
  with_element(op.a.type, [&](auto of_a) {
    with_element(op.b.type, [&](auto of_b) {
      with_element(op.y.type, [&](auto of_y) {
        for (int64_t row = begin; row < end; ++row) {
          const auto* a = row_of<decltype(of_a)>(op.a, row);
          const auto* b = row_of<decltype(of_b)>(op.b, op.b.rows == 1 ? 0 : row);
          auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride;
          const auto put = [&](int64_t c, int64_t lanes, Vec value)
                               BRISK_INLINE { store(y + c, adds ? load(y + c, lanes) + value : value, lanes); };
          // Columns [first, first + count), with b's numbers for them.
          const auto combine_columns = [&](int64_t first, int64_t count, const auto& b_at) BRISK_INLINE {
            if (!op.a) {
              for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE { put(first + c, lanes, b_at(c, lanes)); });
            } else if (multiplies) {
              for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
                put(first + c, lanes, load(a + first + c, lanes) * b_at(c, lanes));
              });
            } else {
              for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
                put(first + c, lanes, load(a + first + c, lanes) + b_at(c, lanes));
              });
            }
          };
          if (width == 1) {
            combine_columns(0, op.y.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE { return load(b + c, lanes); });
            continue;
          }
          for (int64_t g = 0; g < op.b.cols; ++g) {
            const Vec all = set1(load(b + g, 1)[0]);
            combine_columns(g * width, width, [&](int64_t, int64_t) BRISK_INLINE { return all; });
          }
        }
      });
    });
  });
}

void sum_columns_rows(const SumColumns& op, int64_t begin, int64_t end) {
  const int64_t width = op.a.cols / op.y.cols;
  with_element(op.a.type, [&](auto of_a) {
    with_element(op.b.type, [&](auto of_b) {
      with_element(op.y.type, [&](auto of_y) {
        for (int64_t row = begin; row < end; ++row) {
          auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride;
          for (int64_t g = 0; g < op.y.cols; ++g) {
            const auto* a = row_of<decltype(of_a)>(op.a, row) + g * width;
            Vec sum = zero();
            if (op.b) {
              const auto* b = row_of<decltype(of_b)>(op.b, row) + g * width;
              for_columns(width, [&](int64_t c, int64_t lanes)
                                     BRISK_INLINE { sum = fma(load(a + c, lanes), load(b + c, lanes), sum); });
            } else {
              for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { sum = sum + load(a + c, lanes); });
            }
            const Vec total = set1(reduce_add(sum));
            store(y + g, op.y_adds ? load(y + g, 1) + total : total, 1);
          }
        }
      });
    });
  });
}

void sum_rows_part(const SumRows& op, int64_t begin, int64_t end, float* sum) {
  for_columns(op.a.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE { store(sum + c, zero(), lanes); });
  with_element(op.a.type, [&](auto of_a) {
    with_element(op.b.type, [&](auto of_b) {
      for (int64_t row = begin; row < end; ++row) {
        const auto* a = row_of<decltype(of_a)>(op.a, row);
        if (op.b) {
          const auto* b = row_of<decltype(of_b)>(op.b, row);
          for_columns(op.a.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE {
            store(sum + c, fma(load(a + c, lanes), load(b + c, lanes), load(sum + c, lanes)), lanes);
          });
        } else {
          for_columns(op.a.cols, [&](int64_t c, int64_t lanes) BRISK_INLINE {
            store(sum + c, load(sum + c, lanes) + load(a + c, lanes), lanes);
          });
        }
      }
    });
  });
}

}  // namespace brisk::BRISK_ISA
