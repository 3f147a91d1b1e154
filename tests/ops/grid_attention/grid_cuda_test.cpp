// grid_attention, window_bias, pixel_rows, merge_grid and mean_rows on a GPU, against the reference.
#include <gtest/gtest.h>

#include "ops/grid_attention/grid_attention.h"
#include "ops/grid_attention/window_bias.h"
#include "ops/pixels/pixel_rows.h"
#include "ops/rows/mean_rows.h"
#include "ops/rows/merge_grid.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::GpuRows;
using testing::OnGpu;
using testing::Side;

constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};
double tolerance_of(DType type) { return type == DType::f32 ? 2e-5 : type == DType::f16 ? 3e-3 : 1e-2; }

using CudaGridAttention = OnGpu;

void expect_grid_attention(const GridWindows& windows, int64_t heads, int64_t width, DType type, float dropout) {
  const GridAttentionShape shape{windows, heads, width};
  const int64_t places = windows.places(), parts = grid_bias_parts(shape, 2);
  GpuRows rows({windows.rows(), windows.rows()}, /*spare=*/3);
  GpuMatrix qkv(rows.rows(), 3 * heads * width, type, 1), bias(heads, places * places, DType::f32, 2);
  GpuMatrix y(rows.rows(), heads * width, type, 3), log_sum_exp(rows.rows(), heads, DType::f32, 0, 0);
  GpuMatrix dy(rows.rows(), heads * width, type, 4), dqkv(rows.rows(), 3 * heads * width, type, 5);
  GpuMatrix dbias(heads, places * places, DType::f32, 6), dbias_parts(parts * heads, places * places, DType::f32, 7);
  const auto forward = [&](Side side) {
    return GridAttentionForward{.shape = shape,
                                .qkv = qkv.at(side),
                                .rows = rows.at(side),
                                .bias = bias.at(side),
                                .dropout = {dropout, 77},
                                .y = y.at(side),
                                .log_sum_exp = log_sum_exp.at(side)};
  };
  const auto backward = [&](Side side) {
    return GridAttentionBackward{forward(side), dy.at(side), dqkv.at(side), dbias.at(side), dbias_parts.at(side)};
  };
  ref::grid_attention_forward(forward(Side::host));
  cuda::grid_attention_forward(forward(Side::gpu));
  y.expect_close(tolerance_of(type), "y");
  log_sum_exp.expect_close(tolerance_of(type), "log_sum_exp");
  ref::grid_attention_backward(backward(Side::host));
  cuda::grid_attention_backward(backward(Side::gpu));
  dqkv.expect_close(2 * tolerance_of(type), "dqkv");
  dbias.expect_close(2 * tolerance_of(type), "dbias");
}

TEST_F(CudaGridAttention, IsTheReferences) {
  for (const DType type : kTypes) {
    expect_grid_attention(GridWindows::of(14, 21, 7, 0), 2, 32, type, 0);
    expect_grid_attention(GridWindows::of(14, 14, 7, 3), 3, 8, type, 0.2f);
    expect_grid_attention(GridWindows::whole(10, 9, true), 2, 20, type, 0.1f);
  }
}

using CudaWindowBias = OnGpu;

TEST_F(CudaWindowBias, IsTheReferences) {
  for (const GridWindows& windows : {GridWindows::of(14, 14, 7, 3), GridWindows::whole(3, 5, true)}) {
    const int64_t places = windows.places();
    GpuMatrix table(window_bias_rows(windows), 3, DType::f32, 1), y(3, places * places, DType::f32, 2);
    GpuMatrix dtable(window_bias_rows(windows), 3, DType::f32, 3);
    const auto forward = [&](Side side) { return WindowBiasForward{windows, table.at(side), y.at(side)}; };
    ref::window_bias_forward(forward(Side::host));
    cuda::window_bias_forward(forward(Side::gpu));
    y.expect_equal("y ");
    for (const bool adds : {true, false}) {
      const auto backward = [&](Side side) { return WindowBiasBackward{windows, y.at(side), dtable.at(side), adds}; };
      ref::window_bias_backward(backward(Side::host));
      cuda::window_bias_backward(backward(Side::gpu));
      dtable.expect_close(1e-5, "dtable");
    }
  }
}

using CudaGridRows = OnGpu;

TEST_F(CudaGridRows, AreMergedAndAveraged) {
  for (const DType type : kTypes) {
    for (const bool adds : {false, true}) {
      GpuRows rows({24, 24}, /*spare=*/2), merged({6, 6}, /*spare=*/3);
      GpuMatrix x(50, 5, type, 1), y(15, 20, type, 2), dx(50, 5, type, 3), means(4, 5, type, 4);
      const auto merge = [&](Side side) { return MergeGridForward{{4, 6}, x.at(side), merged.at(side), y.at(side)}; };
      const auto split = [&](Side side) {
        return MergeGridBackward{{4, 6}, y.at(side), rows.at(side), dx.at(side), adds};
      };
      ref::merge_grid_forward(merge(Side::host));
      cuda::merge_grid_forward(merge(Side::gpu));
      y.expect_equal("y ");
      ref::merge_grid_backward(split(Side::host));
      cuda::merge_grid_backward(split(Side::gpu));
      dx.expect_close(tolerance_of(type), "dx of merged rows");
      const auto mean = [&](Side side) { return MeanRowsForward{1, x.at(side), rows.at(side), means.at(side)}; };
      const auto spread = [&](Side side) {
        return MeanRowsBackward{1, means.at(side), rows.at(side), dx.at(side), adds};
      };
      ref::mean_rows_forward(mean(Side::host));
      cuda::mean_rows_forward(mean(Side::gpu));
      means.expect_close(tolerance_of(type), "means");
      ref::mean_rows_backward(spread(Side::host));
      cuda::mean_rows_backward(spread(Side::gpu));
      dx.expect_close(tolerance_of(type), "dx of means");
    }
  }
}

using CudaPixelRows = OnGpu;

TEST_F(CudaPixelRows, AreTheReferences) {
  std::vector<uint8_t> pixels(8 * 48);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(37 * i);
  Buffer gpu_pixels(cuda_device(), 8 * 48);
  cuda_device().copy_in(gpu_pixels.data(), pixels.data(), 8 * 48);
  const PixelRowsOptions options{.patch = 4, .mean = {0.5f, 0.25f, 0}, .std = {0.5f, 0.25f, 2}, .class_row = true};
  for (const DType type : kTypes) {
    GpuRows rows({3, 3}, /*spare=*/2);
    GpuMatrix y(8, 48, type, 1);
    const auto op = [&](Side side) {
      return PixelRowsForward{options,
                              side == Side::host ? pixels.data() : static_cast<const uint8_t*>(gpu_pixels.data()),
                              rows.at(side), y.at(side)};
    };
    ref::pixel_rows(op(Side::host));
    cuda::pixel_rows(op(Side::gpu));
    y.expect_close(tolerance_of(type), "y");
  }
}

}  // namespace
}  // namespace brisk
