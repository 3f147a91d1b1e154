// What the op tests share: random matrices with ragged row sets, and comparisons that say where and by how much.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/machine/isa.h"
#include "base/random.h"
#include "base/runtime.h"
#include "ops/activation/activation.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk::testing {

// A matrix that owns its memory, filled with reproducible normal draws (or zeros with scale 0).
class Matrix {
 public:
  Matrix(int64_t rows, int64_t cols, DType type = DType::f32, uint64_t seed = 1, double scale = 1.0, int64_t stride = 0)
      : rows_(rows), cols_(cols), stride_(stride == 0 ? cols : stride), type_(type) {
    bytes_.resize(static_cast<size_t>(std::max<int64_t>(1, rows * stride_) * size_of(type)) + 64);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        set(r, c,
            scale == 0
                ? 0.0f
                : static_cast<float>(scale * random_normal(random_key({seed}), static_cast<uint64_t>(r * cols + c))));
      }
    }
  }
  Matrix(const Matrix&) = delete;  // a copy would be aligned elsewhere
  Matrix& operator=(const Matrix&) = delete;
  Tensor view() const {
    auto address = reinterpret_cast<uintptr_t>(bytes_.data());
    address = (address + 63) / 64 * 64;
    return {reinterpret_cast<void*>(address), type_, rows_, cols_, stride_};
  }
  operator Tensor() const { return view(); }
  float get(int64_t r, int64_t c) const {
    const Tensor t = view();
    return type_ == DType::f32    ? t.f32()[r * stride_ + c]
           : type_ == DType::bf16 ? to_float(t.bf16()[r * stride_ + c])
           : type_ == DType::f16  ? to_float(t.f16()[r * stride_ + c])
                                  : static_cast<float>(t.i32()[r * stride_ + c]);
  }
  void set(int64_t r, int64_t c, float value) {
    const Tensor t = view();
    if (type_ == DType::f32) t.f32()[r * stride_ + c] = value;
    if (type_ == DType::bf16) t.bf16()[r * stride_ + c] = to_bf16(value);
    if (type_ == DType::f16) t.f16()[r * stride_ + c] = to_f16(value);
    if (type_ == DType::i32) t.i32()[r * stride_ + c] = static_cast<int32_t>(value);
  }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

 private:
  std::vector<char> bytes_;
  int64_t rows_, cols_, stride_;
  DType type_;
};

// Sequences of the given lengths, one after the other.
class Ragged {
 public:
  explicit Ragged(const std::vector<int>& lengths) {
    starts_.push_back(0);
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (int p = 0; p < lengths[s]; ++p) {
        position_.push_back(p);
        sequence_.push_back(static_cast<int32_t>(s));
      }
      starts_.push_back(starts_.back() + lengths[s]);
      longest_ = std::max<int64_t>(longest_, lengths[s]);
    }
  }
  RowSet view() const {
    const int64_t sequences = static_cast<int64_t>(starts_.size()) - 1;
    return {starts_.back(),
            sequences,
            longest_,
            starts_.data(),
            position_.data(),
            sequence_.data(),
            sequences * longest_ == starts_.back()};
  }
  const std::vector<int32_t>& starts() const { return starts_; }

 private:
  std::vector<int32_t> starts_, position_, sequence_;
  int64_t longest_ = 0;
};

constexpr Activation kEveryActivation[] = {Activation::none,   Activation::gelu_tanh, Activation::gelu_erf,
                                           Activation::relu,   Activation::silu,      Activation::tanh,
                                           Activation::sigmoid};

// A loss whose gradient with respect to y is dy.
inline double product_sum(const Matrix& y, const Matrix& dy) {
  double sum = 0;
  for (int64_t r = 0; r < y.rows(); ++r) {
    for (int64_t c = 0; c < y.cols(); ++c) sum += double{y.get(r, c)} * dy.get(r, c);
  }
  return sum;
}

// How fast `loss()` changes with one element, which is put back afterwards.
template <typename Loss>
double slope_of(Matrix& of, int64_t r, int64_t c, float step, const Loss& loss) {
  const float value = of.get(r, c);
  of.set(r, c, value + step);
  const double above = loss();
  of.set(r, c, value - step);
  const double below = loss();
  of.set(r, c, value);
  return (above - below) / (2 * double{step});
}

// dx is the gradient of `loss()` with respect to x, which goes through an activation; at ReLU's corner there is none.
template <typename Loss>
void expect_slopes(Matrix& x, const Matrix& dx, Activation kind, double tolerance, const Loss& loss) {
  constexpr float kStep = 4e-3f;
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < x.cols(); ++c) {
      if (kind == Activation::relu && std::fabs(x.get(r, c)) < kStep) continue;
      ASSERT_NEAR(dx.get(r, c), slope_of(x, r, c, kStep, loss), tolerance) << r << " " << c;
    }
  }
}

// max |a - b| <= tolerance * (1 + max |b|)
inline void expect_close(const Matrix& a, const Matrix& b, double tolerance, const char* what) {
  ASSERT_EQ(a.rows(), b.rows()) << what;
  ASSERT_EQ(a.cols(), b.cols()) << what;
  double largest = 0, worst = 0;
  int64_t worst_row = 0, worst_col = 0;
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < a.cols(); ++c) {
      largest = std::max<double>(largest, std::fabs(b.get(r, c)));
      const double gap = std::fabs(a.get(r, c) - b.get(r, c));
      if (std::isnan(gap)) {  // no comparison sees it
        ADD_FAILURE() << what << " at (" << r << ", " << c << "): " << a.get(r, c) << " against " << b.get(r, c);
        return;
      }
      if (gap > worst) {
        worst = gap;
        worst_row = r;
        worst_col = c;
      }
    }
  }
  EXPECT_LE(worst, tolerance * (1 + largest))
      << what << " at (" << worst_row << ", " << worst_col << "): " << a.get(worst_row, worst_col) << " against "
      << b.get(worst_row, worst_col);
}

// Runs the body once under every instruction set this machine has (baseline included), then restores the active one.
template <typename Body>
void for_each_isa(const Body& body) {
  const Isa active = active_isa();
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(std::string(isa_name(isa)));
    Runtime::current().set_isa(isa);
    body(isa);
  }
  Runtime::current().set_isa(active);
}

}  // namespace brisk::testing
