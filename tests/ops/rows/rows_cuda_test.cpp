// norm, gated, pointwise, rotary, pick_rows and movements of rows on a GPU, against the reference.
#include <gtest/gtest.h>

#include "ops/activation/gated.h"
#include "ops/activation/pointwise.h"
#include "ops/element.h"
#include "ops/norm/norm.h"
#include "ops/rotary/rotary.h"
#include "ops/rows/pick_rows.h"
#include "ops/rows/rows_copy.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::GpuNumbers;
using testing::GpuRows;
using testing::kEveryActivation;
using testing::OnGpu;
using testing::Side;

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};

double tolerance_of(DType type) { return type == DType::f32 ? 2e-5 : type == DType::f16 ? 3e-3 : 1e-2; }

// f16 goes with f32 and with itself.
bool go_together(DType a, DType b) { return a == b || a == DType::f32 || b == DType::f32; }

using CudaNorm = OnGpu;

struct NormProblem {
  std::vector<int> lengths;
  int64_t width = 64;
  NormKind kind = NormKind::layer;
  DType x_type = DType::f32, y_type = DType::f32;
  float dropout = 0;
  bool adds = false;
  int64_t stride = 0;  // of x, where its rows are farther apart
  bool prepares = false;
  float prepared_dropout = 0;
};

void expect_norm_as_reference(const NormProblem& p) {
  SCOPED_TRACE(p.width);
  GpuRows rows(p.lengths);
  const int64_t n = rows.rows();
  const bool layer = p.kind == NormKind::layer;
  const double tolerance = std::max(tolerance_of(p.x_type), tolerance_of(p.y_type));
  GpuMatrix x(n, p.width, p.x_type, 1, 2, p.stride), gain(1, p.width, DType::f32, 2), bias(1, p.width, DType::f32, 3);
  GpuMatrix y(n, p.width, p.y_type, 0, 0), mean(n, 1), rstd(n, 1);
  const Dropout dropout{p.dropout, 77};
  const auto forward = [&](Side side) {
    NormForward op{.kind = p.kind, .x = x.at(side), .gain = gain.at(side), .y = y.at(side), .rstd = rstd.at(side)};
    if (layer) op.bias = bias.at(side);
    if (layer) op.mean = mean.at(side);
    op.dropout = dropout;
    op.rows = rows.at(side);
    return op;
  };
  ref::norm_forward(forward(Side::host));
  cuda::norm_forward(forward(Side::gpu));
  y.expect_close(tolerance, "y");
  rstd.expect_close(2e-5, "rstd");
  if (layer) mean.expect_close(2e-5, "mean");

  GpuMatrix dy(n, p.width, p.y_type, 4), dx(n, p.width, p.x_type, 5);
  GpuMatrix dgain(1, p.width, DType::f32, 6), dbias(1, p.width, DType::f32, 7);
  GpuMatrix du(n, p.width, p.y_type, 8), dbias_before(1, p.width, DType::f32, 9);
  const auto backward = [&](Side side) {
    NormBackward op{.kind = p.kind, .x = x.at(side), .gain = gain.at(side), .rstd = rstd.at(side), .dy = dy.at(side)};
    if (layer) op.mean = mean.at(side);
    op.dx = dx.at(side);
    op.dgain = dgain.at(side);
    if (layer) op.dbias = dbias.at(side);
    op.dx_adds = op.dgain_adds = op.dbias_adds = p.adds;
    op.dropout = dropout;
    op.rows = rows.at(side);
    if (p.prepares) op.prepared = {du.at(side), {p.prepared_dropout, 78}, dbias_before.at(side), p.adds};
    return op;
  };
  ref::norm_backward(backward(Side::host));
  cuda::norm_backward(backward(Side::gpu));
  dx.expect_close(tolerance, "dx");
  dgain.expect_close(1e-4, "dgain");
  if (layer) dbias.expect_close(1e-4, "dbias");
  if (!p.prepares) return;
  du.expect_close(tolerance, "the prepared gradient");
  dbias_before.expect_close(1e-4, "its sums");
}

TEST_F(CudaNorm, IsTheReferencesForEveryWidth) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    for (const int64_t width : {8, 64, 72, 128, 256, 384, 768, 1000, 1024, 1536, 4096, 1, 5, 100}) {
      expect_norm_as_reference({.lengths = {3, 1, 37}, .width = width, .kind = kind});
    }
  }
}

TEST_F(CudaNorm, IsTheReferencesForEveryTypeWithDropoutAndAdding) {
  for (const DType x : kTypes) {
    for (const DType y : kTypes) {
      if ((x == DType::f16 || y == DType::f16) && y != DType::f16) continue;  // a norm gives f16, or takes none
      if (!go_together(x, y)) continue;
      for (const bool adds : {false, true}) {
        expect_norm_as_reference(
            {.lengths = {20, 1}, .width = 96, .x_type = x, .y_type = y, .dropout = 0.25f, .adds = adds});
        expect_norm_as_reference(
            {.lengths = {20, 1}, .width = 99, .x_type = x, .y_type = y, .dropout = 0.25f, .adds = adds});
      }
    }
  }
}

TEST_F(CudaNorm, HandsItsGradientOnInTheTypeOfProducts) {
  for (const int64_t width : {64, 128, 256, 512, 768, 1024, 1536, 100}) {
    for (const float dropped : {0.0f, 0.25f}) {
      expect_norm_as_reference({.lengths = {20, 1, 300},
                                .width = width,
                                .y_type = DType::bf16,
                                .adds = width % 3 == 0,
                                .prepares = true,
                                .prepared_dropout = dropped});
    }
  }
  expect_norm_as_reference({.lengths = {20}, .width = 64, .prepares = true});
  expect_norm_as_reference({.lengths = {}, .width = 64, .y_type = DType::bf16, .prepares = true});
}

TEST_F(CudaNorm, SumsManyRowsAndTakesNone) {
  expect_norm_as_reference({.lengths = {5000}, .width = 128, .y_type = DType::bf16});
  expect_norm_as_reference({.lengths = {300}, .width = 768, .y_type = DType::bf16, .adds = true});
  expect_norm_as_reference({.lengths = {4}, .width = 64, .stride = 192});
  expect_norm_as_reference({.lengths = {}, .width = 64});
}

// A captured graph is replayed for every step: seed and step lie in device memory, and the bits are the same.
TEST_F(CudaNorm, DrawsTheSameBitsFromAKeyInDeviceMemory) {
  GpuRows rows({20, 1});
  GpuMatrix x(21, 64, DType::f32, 1), gain(1, 64, DType::f32, 2), y(21, 64);
  const uint64_t step_key = random_key({42, 1000}), site = 3;
  Buffer gpu_key(cuda_device(), sizeof(step_key));
  cuda_device().copy_in(gpu_key.data(), &step_key, sizeof(step_key));
  const auto op = [&](Side side) {
    NormForward forward{.kind = NormKind::rms, .x = x.at(side), .gain = gain.at(side), .y = y.at(side)};
    forward.dropout = {0.5f, site, static_cast<const uint64_t*>(gpu_key.data())};
    if (side == Side::host) forward.dropout = {0.5f, random_key({42, 1000, site})};
    forward.rows = rows.at(side);
    return forward;
  };
  ref::norm_forward(op(Side::host));
  cuda::norm_forward(op(Side::gpu));
  y.expect_close(2e-5, "y");
}

using CudaGated = OnGpu;

TEST_F(CudaGated, IsTheReferencesForEveryActivation) {
  for (const Activation kind : kEveryActivation) {
    for (const DType type : kTypes) {
      for (const int64_t width : {64, 13}) {
        const int64_t n = 17;
        GpuMatrix x(n, 2 * width, type, 1, 2), y(n, width, type, 0, 0);
        GpuMatrix dy(n, width, type, 3), dx(n, 2 * width, type, 4);
        const auto forward = [&](Side side) { return GatedForward{kind, x.at(side), y.at(side)}; };
        const auto backward = [&](Side side) { return GatedBackward{kind, x.at(side), dy.at(side), dx.at(side)}; };
        ref::gated_forward(forward(Side::host));
        cuda::gated_forward(forward(Side::gpu));
        y.expect_close(tolerance_of(type), "y");
        ref::gated_backward(backward(Side::host));
        cuda::gated_backward(backward(Side::gpu));
        dx.expect_close(tolerance_of(type), "dx");
      }
    }
  }
}

using CudaPointwise = OnGpu;

TEST_F(CudaPointwise, IsTheReferencesForEveryActivation) {
  for (const Activation kind : kEveryActivation) {
    for (const DType type : kTypes) {
      for (const int64_t width : {40, 7}) {
        GpuMatrix x(9, width, type, 1, 3), y(9, width, type, 0, 0), dy(9, width, type, 2), dx(9, width, type, 3);
        const auto forward = [&](Side side) { return PointwiseForward{kind, 0.7f, x.at(side), y.at(side)}; };
        const auto backward = [&](Side side) {
          return PointwiseBackward{kind, 0.7f, kind == Activation::none ? Tensor{} : x.at(side), dy.at(side),
                                   dx.at(side)};
        };
        ref::pointwise_forward(forward(Side::host));
        cuda::pointwise_forward(forward(Side::gpu));
        y.expect_close(tolerance_of(type), "y");
        ref::pointwise_backward(backward(Side::host));
        cuda::pointwise_backward(backward(Side::gpu));
        dx.expect_close(tolerance_of(type), "dx");
      }
    }
  }
}

// Where tanh and the logistic function have long reached their ends, nothing overflows.
TEST_F(CudaPointwise, HugeValuesStayFinite) {
  for (const Activation kind : kEveryActivation) {
    GpuMatrix x(2, 64, DType::bf16, 1, 1e6), y(2, 64, DType::bf16, 0, 0), dx(2, 64, DType::bf16, 0, 0);
    const auto forward = [&](Side side) { return PointwiseForward{kind, 1, x.at(side), y.at(side)}; };
    const auto backward = [&](Side side) { return PointwiseBackward{kind, 1, x.at(side), x.at(side), dx.at(side)}; };
    ref::pointwise_forward(forward(Side::host));
    cuda::pointwise_forward(forward(Side::gpu));
    y.expect_close(1e-2, "y");
    cuda::pointwise_backward(backward(Side::gpu));
    for (int64_t c = 0; c < 64; ++c) EXPECT_TRUE(std::isfinite(dx.gpu().get(1, c))) << c;
  }
}

using CudaRotary = OnGpu;

TEST_F(CudaRotary, IsTheReferencesAtEveryPosition) {
  for (const DType type : kTypes) {
    for (const int64_t head_width : {2, 6, 64, 128}) {
      for (const bool inverse : {false, true}) {
        GpuRows rows({1, 4, 1500});
        const int64_t cols = 3 * 2 * head_width;
        GpuMatrix x(rows.rows(), cols, type, 1), y(rows.rows(), cols, type, 0, 0);
        const auto op = [&](Side side) {
          return Rotary{x.at(side), y.at(side), rows.at(side), 2 * 2 * head_width, head_width, 10000.0f, inverse};
        };
        ref::rotary(op(Side::host));
        cuda::rotary(op(Side::gpu));
        y.expect_close(type == DType::f32 ? 1e-6 : tolerance_of(type), "y");
      }
    }
  }
}

TEST_F(CudaRotary, TurnsInPlace) {
  GpuRows rows({70});
  GpuMatrix x(70, 128, DType::f32, 1);
  const auto op = [&](Side side) {
    return Rotary{.x = x.at(side), .y = x.at(side), .rows = rows.at(side), .rotated = 64, .head_width = 32};
  };
  ref::rotary(op(Side::host));
  cuda::rotary(op(Side::gpu));
  x.expect_close(1e-6, "x");
}

using CudaPickRows = OnGpu;

TEST_F(CudaPickRows, TakesAndGivesBackRowsPickedOnceTwiceAndNever) {
  for (const DType type : kTypes) {
    for (const int64_t width : {64, 9}) {
      for (const bool adds : {false, true}) {
        GpuNumbers source({3, 0, 7, 3, 9, 3});
        GpuMatrix x(11, width, type, 1), y(6, width, type, 0, 0), dy(6, width, type, 2), dx(11, width, type, 3);
        const auto forward = [&](Side side) { return PickRowsForward{x.at(side), source.at(side), y.at(side)}; };
        const auto backward = [&](Side side) {
          return PickRowsBackward{dy.at(side), source.at(side), dx.at(side), adds};
        };
        ref::pick_rows_forward(forward(Side::host));
        cuda::pick_rows_forward(forward(Side::gpu));
        y.expect_equal("y");
        ref::pick_rows_backward(backward(Side::host));
        cuda::pick_rows_backward(backward(Side::gpu));
        dx.expect_close(tolerance_of(type), "dx");
      }
    }
  }
}

using CudaRowsCopy = OnGpu;

TEST_F(CudaRowsCopy, CopiesAndAddsAcrossTypes) {
  for (const DType from_type : kTypes) {
    for (const DType to_type : kTypes) {
      if (!go_together(from_type, to_type)) continue;
      for (const int64_t width : {64, 3}) {
        for (const bool adds : {false, true}) {
          GpuMatrix from(5, width, from_type, 1, 1.0, width == 64 ? 192 : 0), to(5, width, to_type, 2);
          cpu::copy_rows(from.at(Side::host), to.at(Side::host), adds);
          cuda::copy_rows(from.at(Side::gpu), to.at(Side::gpu), adds);
          to.expect_equal("to ");
        }
      }
    }
  }
}

TEST_F(CudaRowsCopy, FillsACacheAndGathersLastRows) {
  for (const DType type : kTypes) {
    GpuRows rows({2, 1, 5}, /*spare=*/3);
    GpuNumbers begin({4, 0, 10});
    GpuMatrix from(rows.rows(), 24, type, 1), cache(20, 24, type, 2), last(3, 24, type, 3);
    cpu::append_to_cache(from.at(Side::host), rows.at(Side::host), begin.at(Side::host), cache.at(Side::host));
    cuda::append_to_cache(from.at(Side::gpu), rows.at(Side::gpu), begin.at(Side::gpu), cache.at(Side::gpu));
    cache.expect_equal("cache ");
    cpu::gather_last_rows(from.at(Side::host), rows.at(Side::host), last.at(Side::host));
    cuda::gather_last_rows(from.at(Side::gpu), rows.at(Side::gpu), last.at(Side::gpu));
    last.expect_equal("last ");
  }
}

}  // namespace
}  // namespace brisk
