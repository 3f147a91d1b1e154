#include <type_traits>

#include "ops/cpu/simd.h"
#include "ops/gemm/gemm_epilogue_simd.h"
#include "ops/norm/norm_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// Rows taken together: their sums are independent chains, and gain and the gradients of gain and bias are read once for
// all.
constexpr int kRowsAtOnce = 4;

// Asks for the same column of a row of the next block, which is read or written next: forward is a seventh faster for
// it.
template <typename Element>
inline void ask_for_column(const Element* row, int64_t c) {
  _mm_prefetch(reinterpret_cast<const char*>(row + c), _MM_HINT_T0);
}

// Dropout of one row.
struct NormDropout {
  NormDropout(const Dropout& dropout, const RowSet& rows, int64_t row)
      : key(dropout.row_key(rows, row)), threshold(int_set1(dropout.threshold())), scale(set1(dropout.scale())) {}
  Vec operator()(Vec x, int64_t c) const { return drop(x, key, c, threshold, scale); }
  uint32_t key;
  IntVec threshold;
  Vec scale;
};
struct NoDropout {
  NoDropout(const Dropout&, const RowSet&, int64_t) {}
  Vec operator()(Vec x, int64_t) const { return x; }
};

template <typename X, typename Y, int kRows, typename Drop = NoDropout>
void forward_block(const NormForward& op, int64_t row) {
  static_assert(kRows == 1 || std::is_same_v<Drop, NoDropout>);
  const Drop dropped(op.dropout, op.rows, row);
  const int64_t width = op.x.cols, xs = op.x.stride, ys = op.y.stride;
  const X* x = op.x.as<X>() + row * xs;
  Y* y = op.y.as<Y>() + row * ys;
  const float* gain = op.gain.f32();
  const float* bias = op.bias.f32();
  const float inverse_width = 1.0f / static_cast<float>(width);

  float mean[kRows] = {}, rstd[kRows];
  if (op.kind == NormKind::layer) {
    Vec sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = zero();
    for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
      for (int r = 0; r < kRows; ++r) {
        sum[r] = sum[r] + load(x + r * xs + c, lanes);
        ask_for_column(x + (kRows + r) * xs, c);
      }
    });
    for (int r = 0; r < kRows; ++r) mean[r] = reduce_add(sum[r]) * inverse_width;
  }
  Vec square[kRows];
  for (int r = 0; r < kRows; ++r) square[r] = zero();
  for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
    for (int r = 0; r < kRows; ++r) {
      const Vec d = first_lanes(load(x + r * xs + c, lanes) - set1(mean[r]), lanes);
      square[r] = fma(d, d, square[r]);
    }
  });
  for (int r = 0; r < kRows; ++r) {
    rstd[r] = 1.0f / __builtin_sqrtf(reduce_add(square[r]) * inverse_width + op.epsilon);
    if (op.mean) op.mean.f32()[(row + r) * op.mean.stride] = mean[r];
    if (op.rstd) op.rstd.f32()[(row + r) * op.rstd.stride] = rstd[r];
  }
  for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
    const Vec g = load(gain + c, lanes);
    const Vec b = bias != nullptr ? load(bias + c, lanes) : zero();
    for (int r = 0; r < kRows; ++r) {
      const Vec normal = (load(x + r * xs + c, lanes) - set1(mean[r])) * set1(rstd[r]);
      store(y + r * ys + c, dropped(fma(normal, g, b), c), lanes);
      ask_for_column(y + (kRows + r) * ys, c);
    }
  });
}

// dx = rstd (g - mean(g) - n mean(g n)) with g = gain dy, n = (x - mean) rstd
template <typename X, typename Dy, typename Dx, int kRows, typename Drop = NoDropout>
void backward_block(const NormBackward& op, int64_t row, float* dgain, float* dbias) {
  static_assert(kRows == 1 || std::is_same_v<Drop, NoDropout>);
  const Drop dropped(op.dropout, op.rows, row);
  const int64_t width = op.x.cols, xs = op.x.stride, dys = op.dy.stride, dxs = op.dx.stride;
  const X* x = op.x.as<X>() + row * xs;
  const Dy* dy = op.dy.as<Dy>() + row * dys;
  Dx* dx = op.dx.as<Dx>() + row * dxs;
  const float* gain = op.gain.f32();
  const float inverse_width = 1.0f / static_cast<float>(width);
  const bool centred = op.kind == NormKind::layer;

  Vec mean[kRows], rstd[kRows], sum_g[kRows], sum_gn[kRows];
  for (int r = 0; r < kRows; ++r) {
    mean[r] = set1(centred ? op.mean.f32()[(row + r) * op.mean.stride] : 0.0f);
    rstd[r] = set1(op.rstd.f32()[(row + r) * op.rstd.stride]);
    sum_g[r] = sum_gn[r] = zero();
  }
  for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
    const Vec scale = load(gain + c, lanes);
    for (int r = 0; r < kRows; ++r) {
      const Vec g = scale * dropped(load(dy + r * dys + c, lanes), c);  // 0 in the lanes past the end
      sum_g[r] = sum_g[r] + g;
      sum_gn[r] = fma(g, load(x + r * xs + c, lanes) - mean[r], sum_gn[r]);
    }
  });
  Vec shift[kRows], pull[kRows];  // rstd mean(g), rstd mean(g n)
  for (int r = 0; r < kRows; ++r) {
    shift[r] = centred ? rstd[r] * set1(reduce_add(sum_g[r]) * inverse_width) : zero();
    pull[r] = rstd[r] * rstd[r] * set1(reduce_add(sum_gn[r]) * inverse_width);
  }
  const auto columns = [&](int64_t c, int64_t lanes, bool add_dx, bool want_dbias, bool want_dx) BRISK_INLINE {
    const Vec scale = load(gain + c, lanes);
    Vec gain_sum = load(dgain + c, lanes), bias_sum = want_dbias ? load(dbias + c, lanes) : zero();
    for (int r = 0; r < kRows; ++r) {
      const Vec d = dropped(load(dy + r * dys + c, lanes), c);
      const Vec normal = (load(x + r * xs + c, lanes) - mean[r]) * rstd[r];
      gain_sum = fma(d, normal, gain_sum);
      bias_sum = bias_sum + d;
      Vec result = fma(scale * d, rstd[r], zero() - fma(normal, pull[r], shift[r]));
      if (add_dx) result = result + load(dx + r * dxs + c, lanes);
      if (want_dx) store(dx + r * dxs + c, result, lanes);
    }
    store(dgain + c, gain_sum, lanes);
    if (want_dbias) store(dbias + c, bias_sum, lanes);
  };
  if (op.dx_adds && dbias != nullptr) {
    for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { columns(c, lanes, true, true, true); });
  } else if (op.dx_adds) {
    for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { columns(c, lanes, true, false, true); });
  } else {
    const bool want_dbias = dbias != nullptr, want_dx = static_cast<bool>(op.dx);
    for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE { columns(c, lanes, false, want_dbias, want_dx); });
  }
}

}  // namespace

void norm_forward_rows(const NormForward& op, int64_t begin, int64_t end) {
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.y.type, [&](auto of_y) {
      int64_t row = begin;
      for (; op.dropout.active() && row < end; ++row) {
        forward_block<decltype(of_x), decltype(of_y), 1, NormDropout>(op, row);
      }
      for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) {
        forward_block<decltype(of_x), decltype(of_y), kRowsAtOnce>(op, row);
      }
      for (; row < end; ++row) forward_block<decltype(of_x), decltype(of_y), 1>(op, row);
    });
  });
}

void norm_backward_rows(const NormBackward& op, int64_t begin, int64_t end, float* dgain, float* dbias) {
  for (int64_t c = 0; c < op.x.cols; ++c) dgain[c] = 0;
  for (int64_t c = 0; dbias != nullptr && c < op.x.cols; ++c) dbias[c] = 0;
  with_element(op.x.type, [&](auto of_x) {
    with_element(op.dy.type, [&](auto of_dy) {
      with_element(op.dx.type, [&](auto of_dx) {
        using X = decltype(of_x);
        using Dy = decltype(of_dy);
        using Dx = decltype(of_dx);
        int64_t row = begin;
        for (; op.dropout.active() && row < end; ++row)
          backward_block<X, Dy, Dx, 1, NormDropout>(op, row, dgain, dbias);
        for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) {
          backward_block<X, Dy, Dx, kRowsAtOnce>(op, row, dgain, dbias);
        }
        for (; row < end; ++row) backward_block<X, Dy, Dx, 1>(op, row, dgain, dbias);
      });
    });
  });
}

}  // namespace brisk::BRISK_ISA
