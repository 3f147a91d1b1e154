// Norms on the GPU: a row belongs to 8, 16 or 32 lanes that hold it in registers, so that x is read once. The sums
// over rows of gain and bias are taken in two stages of fixed order.
#include <algorithm>
#include <type_traits>

#include "base/rounding.h"
#include "ops/cuda/column_sums_cuda.cuh"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/linear/linear_elementwise_cuda.h"
#include "ops/norm/norm.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;
// Backward has small blocks, as many on a multiprocessor as the registers of a row allow.
constexpr int kBackwardThreads = 128;
constexpr int backward_blocks(int passes) { return passes == 1 ? 6 : passes == 2 ? 4 : 2; }
// Rows of this many passes leave registers for the next row, which comes while this one is worked on.
constexpr bool reads_ahead(int passes) { return passes == 3; }
// Wider rows, and rows that are no whole eights, are read once per sum by the kernels named `any`.
constexpr int64_t kWidestInRegisters = 1024;

struct NormArguments {
  bool centred;
  float epsilon;
  int64_t rows, width;
  Tensor x, gain, bias, y, mean, rstd, dy, dx;
  bool dx_adds;
  Draws draws;
  Tensor du;  // the prepared gradient
  Draws du_draws;
};

template <typename X, typename Y, int kLanes, int kPasses>
__global__ void __launch_bounds__(kThreads) norm_forward_kernel(NormArguments op) {
  const int lane = threadIdx.x % kLanes;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
  const bool exists = row < op.rows;
  const X* x = static_cast<const X*>(op.x.data) + row * op.x.stride;
  Floats<8> values[kPasses];
  float sum = 0;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int column = (pass * kLanes + lane) * 8;
    if (exists && column < op.width) {
      values[pass] = load<8>(x + column);
    } else {
      values[pass] = {};
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) sum += values[pass].v[i];
  }
  const float mean = op.centred ? sum_of_lanes<kLanes>(sum) / static_cast<float>(op.width) : 0.0f;
  float square = 0;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    if ((pass * kLanes + lane) * 8 < op.width) {
#pragma unroll
      for (int i = 0; i < 8; ++i) square += (values[pass].v[i] - mean) * (values[pass].v[i] - mean);
    }
  }
  const float rstd = rsqrtf(sum_of_lanes<kLanes>(square) / static_cast<float>(op.width) + op.epsilon);
  if (!exists) return;
  if (lane == 0 && op.mean.data != nullptr) static_cast<float*>(op.mean.data)[row * op.mean.stride] = mean;
  if (lane == 0 && op.rstd.data != nullptr) static_cast<float*>(op.rstd.data)[row * op.rstd.stride] = rstd;
  const uint32_t row_key = op.draws.row_key(row);
  Y* y = static_cast<Y*>(op.y.data) + row * op.y.stride;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int column = (pass * kLanes + lane) * 8;
    if (column >= op.width) continue;
    const Floats<8> gain = load<8>(static_cast<const float*>(op.gain.data) + column);
    Floats<8> out;
    for (int i = 0; i < 8; ++i) out.v[i] = (values[pass].v[i] - mean) * rstd * gain.v[i];
    if (op.bias.data != nullptr) {
      const Floats<8> bias = load<8>(static_cast<const float*>(op.bias.data) + column);
      for (int i = 0; i < 8; ++i) out.v[i] += bias.v[i];
    }
    if (op.draws.threshold > 0) {
      for (int i = 0; i < 8; ++i) out.v[i] *= op.draws.factor(row_key, column + i);
    }
    store(y + column, out);
  }
}

// A warp a row, any width.
template <typename X, typename Y>
__global__ void norm_forward_any_kernel(NormArguments op) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= op.rows) return;
  const X* x = static_cast<const X*>(op.x.data) + row * op.x.stride;
  float mean = 0, square = 0;
  if (op.centred) {
    for (int64_t c = lane; c < op.width; c += 32) mean += load_one(x + c);
    mean = sum_of_lanes<32>(mean) / static_cast<float>(op.width);
  }
  for (int64_t c = lane; c < op.width; c += 32) square += (load_one(x + c) - mean) * (load_one(x + c) - mean);
  const float rstd = rsqrtf(sum_of_lanes<32>(square) / static_cast<float>(op.width) + op.epsilon);
  if (lane == 0 && op.mean.data != nullptr) static_cast<float*>(op.mean.data)[row * op.mean.stride] = mean;
  if (lane == 0 && op.rstd.data != nullptr) static_cast<float*>(op.rstd.data)[row * op.rstd.stride] = rstd;
  const float* gain = static_cast<const float*>(op.gain.data);
  const float* bias = static_cast<const float*>(op.bias.data);
  const uint32_t row_key = op.draws.row_key(row);
  Y* y = static_cast<Y*>(op.y.data) + row * op.y.stride;
  for (int64_t c = lane; c < op.width; c += 32) {
    const float value = (load_one(x + c) - mean) * rstd * gain[c] + (bias != nullptr ? bias[c] : 0.0f);
    store_one(y + c, value * op.draws.factor(row_key, c));
  }
}

// Each group of lanes takes every (groups of the grid)-th row and sums what its rows give gain and bias; the groups of
// a block add up in order, and partial [blocks, 2, width] holds one sum a block. With kPrepares the gradient is
// also written in the type of dy (PreparedGradient), and partial [blocks, 3, width] has its sums.
template <typename X, typename Dy, typename Dx, int kLanes, int kPasses, bool kPrepares>
__global__ void __launch_bounds__(kBackwardThreads, backward_blocks(kPasses))
    norm_backward_kernel(NormArguments op, float* partial) {
  constexpr int kGroups = kBackwardThreads / kLanes;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const float inverse_width = 1.0f / static_cast<float>(op.width);
  const float* gain = static_cast<const float*>(op.gain.data);
  constexpr int kSums = kPrepares ? 3 : 2;
  Floats<8> totals[kSums][kPasses] = {};  // of gain, of bias, of the prepared gradient
  Elements<8, X> x_read[kPasses];
  Elements<8, Dy> dy_read[kPasses];
  struct {  // of the row that was read
    float mean = 0, rstd = 0;
    int32_t sequence = 0, position = 0;
  } known;
  const Draws& of_rows = !kPrepares || op.draws.threshold > 0 ? op.draws : op.du_draws;  // both have the same rows
  const uint64_t key = op.draws.threshold > 0 ? op.draws.drawn_key() : 0;
  const uint64_t du_key = kPrepares && op.du_draws.threshold > 0 ? op.du_draws.drawn_key() : 0;
  const auto read_row = [&](int64_t row) {
    if (row < op.rows) {
      if (op.centred) known.mean = static_cast<const float*>(op.mean.data)[row * op.mean.stride];
      known.rstd = static_cast<const float*>(op.rstd.data)[row * op.rstd.stride];
      if (of_rows.threshold > 0) {
        known.sequence = of_rows.sequence[row];
        known.position = of_rows.position[row];
      }
    }
    const X* x = static_cast<const X*>(op.x.data) + row * op.x.stride;
    const Dy* dy = static_cast<const Dy*>(op.dy.data) + row * op.dy.stride;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int column = (pass * kLanes + lane) * 8;
      x_read[pass] = {};
      dy_read[pass] = {};
      if (row < op.rows && column < op.width) {
        x_read[pass] = read<8>(x + column);
        dy_read[pass] = read<8>(dy + column);
      }
    }
  };
  const int64_t step = static_cast<int64_t>(gridDim.x) * kGroups;
  if constexpr (reads_ahead(kPasses)) read_row(static_cast<int64_t>(blockIdx.x) * kGroups + group);
  // All lanes of a warp go round equally often: they exchange sums.
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kGroups; first < op.rows; first += step) {
    const int64_t row = first + group;
    const bool exists = row < op.rows;
    Dx* dx = static_cast<Dx*>(op.dx.data) + row * op.dx.stride;
    if constexpr (!reads_ahead(kPasses)) read_row(row);
    Floats<8> normal[kPasses], gradient[kPasses];
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      normal[pass] = floats_of(x_read[pass]);
      gradient[pass] = floats_of(dy_read[pass]);
    }
    const float mean = known.mean, rstd = known.rstd;
    const auto row_key_of = [sequence = known.sequence, position = known.position](uint64_t drawn_key) {
      return random_row_key(drawn_key, static_cast<uint32_t>(sequence), static_cast<uint32_t>(position));
    };
    if constexpr (reads_ahead(kPasses)) read_row(row + step);
    Elements<8, Dx> before[kPasses];  // of dx: on its way while the sums are made
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int column = (pass * kLanes + lane) * 8;
      before[pass] = {};
      if (exists && column < op.width && op.dx_adds && op.dx.data != nullptr) before[pass] = read<8>(dx + column);
    }
    if (op.draws.threshold > 0 && exists) {
      const uint32_t row_key = row_key_of(key);
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        for (int i = 0; i < 8; ++i) {
          gradient[pass].v[i] *= op.draws.factor(row_key, (pass * kLanes + lane) * 8 + i);
        }
      }
    }
    float sum_g = 0, sum_gn = 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int column = (pass * kLanes + lane) * 8;
      if (column < op.width) {
        const Floats<8> factor = load<8>(gain + column);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float n = (normal[pass].v[i] - mean) * rstd, g = gradient[pass].v[i];
          totals[0][pass].v[i] += g * n;
          totals[1][pass].v[i] += g;
          normal[pass].v[i] = n;
          gradient[pass].v[i] = g * factor.v[i];
          sum_g += gradient[pass].v[i];
          sum_gn += gradient[pass].v[i] * n;
        }
      }
    }
    const float mean_g = op.centred ? sum_of_lanes<kLanes>(sum_g) * inverse_width : 0.0f;
    const float mean_gn = sum_of_lanes<kLanes>(sum_gn) * inverse_width;
    if (op.dx.data == nullptr || !exists) continue;
    [[maybe_unused]] const uint32_t du_row_key = row_key_of(du_key);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      const int column = (pass * kLanes + lane) * 8;
      if (column < op.width) {
        Floats<8> out = floats_of(before[pass]);
        for (int i = 0; i < 8; ++i) {
          out.v[i] += rstd * (gradient[pass].v[i] - mean_g - normal[pass].v[i] * mean_gn);
        }
        store(dx + column, out);
        if constexpr (kPrepares) {
          if (op.du_draws.threshold > 0) {
            for (int i = 0; i < 8; ++i) out.v[i] *= op.du_draws.factor(du_row_key, column + i);
          }
          for (int i = 0; i < 8; ++i) totals[2][pass].v[i] += out.v[i];
          store(static_cast<Dy*>(op.du.data) + row * op.du.stride + column, out);
        }
      }
    }
  }
  if (partial == nullptr) return;
  float* sums = reinterpret_cast<float*>(dynamic_shared());  // [kSums, width]
  for (int turn = 0; turn < kGroups; ++turn) {
    if (turn == group) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int column = (pass * kLanes + lane) * 8;
        if (column < op.width) {
#pragma unroll
          for (int s = 0; s < kSums; ++s) {
            Floats<8> sum = {};
            if (turn > 0) sum = load<8>(sums + s * op.width + column);
            for (int i = 0; i < 8; ++i) sum.v[i] += totals[s][pass].v[i];
            store(sums + s * op.width + column, sum);
          }
        }
      }
    }
    __syncthreads();
  }
  for (int64_t at = threadIdx.x; at < kSums * op.width; at += kBackwardThreads)
    partial[blockIdx.x * kSums * op.width + at] = sums[at];
}

template <typename X, typename Dy, typename Dx>
__global__ void norm_backward_any_kernel(NormArguments op) {
  const int lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
  if (row >= op.rows) return;
  const X* x = static_cast<const X*>(op.x.data) + row * op.x.stride;
  const Dy* dy = static_cast<const Dy*>(op.dy.data) + row * op.dy.stride;
  Dx* dx = static_cast<Dx*>(op.dx.data) + row * op.dx.stride;
  const float* gain = static_cast<const float*>(op.gain.data);
  const float mean = op.centred ? static_cast<const float*>(op.mean.data)[row * op.mean.stride] : 0.0f;
  const float rstd = static_cast<const float*>(op.rstd.data)[row * op.rstd.stride];
  const uint32_t row_key = op.draws.row_key(row);
  float mean_g = 0, mean_gn = 0;
  for (int64_t c = lane; c < op.width; c += 32) {
    const float g = load_one(dy + c) * op.draws.factor(row_key, c) * gain[c];
    mean_g += g;
    mean_gn += g * (load_one(x + c) - mean) * rstd;
  }
  mean_g = op.centred ? sum_of_lanes<32>(mean_g) / static_cast<float>(op.width) : 0.0f;
  mean_gn = sum_of_lanes<32>(mean_gn) / static_cast<float>(op.width);
  for (int64_t c = lane; c < op.width; c += 32) {
    const float g = load_one(dy + c) * op.draws.factor(row_key, c) * gain[c];
    const float value = rstd * (g - mean_g - (load_one(x + c) - mean) * rstd * mean_gn);
    store_one(dx + c, op.dx_adds ? load_one(dx + c) + value : value);
  }
}

// partial [gridDim.y, 2, width]: block y sums every gridDim.y-th row of its thread's column.
template <typename X, typename Dy>
__global__ void norm_backward_columns_any_kernel(NormArguments op, float* partial) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= op.width) return;
  float dgain = 0, dbias = 0;
  for (int64_t row = blockIdx.y; row < op.rows; row += gridDim.y) {
    const float mean = op.centred ? static_cast<const float*>(op.mean.data)[row * op.mean.stride] : 0.0f;
    const float rstd = static_cast<const float*>(op.rstd.data)[row * op.rstd.stride];
    const float g = load_one(static_cast<const Dy*>(op.dy.data) + row * op.dy.stride + column) *
                    op.draws.factor(op.draws.row_key(row), column);
    dgain += g * (load_one(static_cast<const X*>(op.x.data) + row * op.x.stride + column) - mean) * rstd;
    dbias += g;
  }
  partial[blockIdx.y * 2 * op.width + column] = dgain;
  partial[blockIdx.y * 2 * op.width + op.width + column] = dbias;
}

// Calls body with the lanes and passes that hold a row of this width.
template <int kLanes, int kPasses>
struct RowShape {
  static constexpr int lanes = kLanes, passes = kPasses;
};
template <typename Body>
void with_row_shape(int64_t width, const Body& body) {
  if (width <= 64) return body(RowShape<8, 1>{});
  if (width <= 128) return body(RowShape<16, 1>{});
  if (width <= 256) return body(RowShape<32, 1>{});
  if (width <= 512) return body(RowShape<32, 2>{});
  if (width <= 768) return body(RowShape<32, 3>{});
  body(RowShape<32, 4>{});
}

}  // namespace

void norm_forward(const NormForward& op) {
  const NormArguments arguments{.centred = op.kind == NormKind::layer,
                                .epsilon = op.epsilon,
                                .rows = op.x.rows,
                                .width = op.x.cols,
                                .x = op.x,
                                .gain = op.gain,
                                .bias = op.bias,
                                .y = op.y,
                                .mean = op.mean,
                                .rstd = op.rstd,
                                .draws = draws_of(op.dropout, op.rows)};
  const bool fits =
      op.x.cols <= kWidestInRegisters && in_eights(op.x) && in_eights(op.y) && in_eights(op.gain) && in_eights(op.bias);
  const auto run = [&](auto x, auto y) {
    using X = decltype(x);
    using Y = decltype(y);
    if (!fits) {
      return launch(norm_forward_any_kernel<X, Y>, {.blocks = divide_up(op.x.rows, kThreads / 32), .threads = kThreads},
                    arguments);
    }
    with_row_shape(op.x.cols, [&](auto shape) {
      using Shape = decltype(shape);
      launch(norm_forward_kernel<X, Y, Shape::lanes, Shape::passes>,
             {.blocks = divide_up(op.x.rows, kThreads / Shape::lanes), .threads = kThreads}, arguments);
    });
  };
  if (op.y.type == DType::f16 && op.x.type == DType::f32) return run(float{}, f16_t{});
  if (op.y.type == DType::f16 && op.x.type == DType::f16) return run(f16_t{}, f16_t{});
  with_type(op.x.type, [&](auto x) { with_type(op.y.type, [&](auto y) { run(x, y); }); });
}

void norm_backward(const NormBackward& op) {
  const NormArguments arguments{.centred = op.kind == NormKind::layer,
                                .rows = op.x.rows,
                                .width = op.x.cols,
                                .x = op.x,
                                .gain = op.gain,
                                .mean = op.mean,
                                .rstd = op.rstd,
                                .dy = op.dy,
                                .dx = op.dx,
                                .dx_adds = op.dx_adds,
                                .draws = draws_of(op.dropout, op.rows),
                                .du = op.prepared.du,
                                .du_draws = draws_of(op.prepared.dropout, op.rows)};
  const bool fits =
      op.x.cols <= kWidestInRegisters && in_eights(op.x) && in_eights(op.dy) && in_eights(op.dx) && in_eights(op.gain);
  const int64_t rows = op.x.rows, width = op.x.cols;
  // As training does it: what is between products in fewer bits, the residual stream in f32 or as what is between.
  const bool prepares = op.prepared.du && fits && (op.x.type == DType::f32 || op.x.type == op.dy.type) &&
                        op.dx.type == op.x.type && op.dy.type != DType::f32 && op.prepared.du.type == op.dy.type &&
                        in_eights(op.prepared.du);
  const bool sums = op.dgain || op.dbias || (prepares && op.prepared.dbias);
  const int64_t results = prepares ? 3 : 2;
  int64_t parts = 0;
  float* partial = nullptr;
  const DType dx_type = op.dx ? op.dx.type : op.x.type;
  const auto run = [&](auto x, auto dy, auto dx) {
    using X = decltype(x);
    using Dy = decltype(dy);
    using Dx = decltype(dx);
    if (!fits) {
      if (op.dx) {
        launch(norm_backward_any_kernel<X, Dy, Dx>, {.blocks = divide_up(rows, kThreads / 32), .threads = kThreads},
               arguments);
      }
      if (!sums) return;
      parts = std::min<int64_t>(rows, 128);
      partial = static_cast<float*>(workspace(parts * 2 * width * size_of(DType::f32)));
      launch(norm_backward_columns_any_kernel<X, Dy>,
             {.blocks = divide_up(width, kThreads), .blocks_y = parts, .threads = kThreads}, arguments, partial);
      return;
    }
    with_row_shape(width, [&](auto shape) {
      using Shape = decltype(shape);
      const int64_t blocks = std::min(divide_up(rows, kBackwardThreads / Shape::lanes),
                                      int64_t{backward_blocks(Shape::passes)} * multiprocessors());
      const int64_t result_bytes = results * width * size_of(DType::f32);
      if (sums) {
        parts = blocks;
        partial = static_cast<float*>(workspace(parts * result_bytes));
      }
      auto* kernel = norm_backward_kernel<X, Dy, Dx, Shape::lanes, Shape::passes, false>;
      if constexpr (sizeof(Dy) == 2 && std::is_same_v<X, Dx> && (sizeof(X) == 4 || std::is_same_v<X, Dy>)) {
        if (prepares) kernel = norm_backward_kernel<X, Dy, Dx, Shape::lanes, Shape::passes, true>;
      }
      launch(kernel, {.blocks = blocks, .threads = kBackwardThreads, .shared_bytes = result_bytes}, arguments, partial);
    });
  };
  if (op.dy.type == DType::f16 && op.x.type == DType::f32 && dx_type == DType::f32) {
    run(float{}, f16_t{}, float{});
  } else if (op.dy.type == DType::f16 && op.x.type == DType::f16 && dx_type == DType::f16) {
    run(f16_t{}, f16_t{}, f16_t{});
  } else {
    with_type(op.x.type, [&](auto x) {
      with_type(op.dy.type, [&](auto dy) { with_type(dx_type, [&](auto dx) { run(x, dy, dx); }); });
    });
  }
  if (sums) {
    launch(add_parts_kernel, add_parts_shape(width, results),
           PartSums{partial,
                    parts,
                    results * width,
                    width,
                    {op.dgain.f32(), op.dbias.f32(), op.prepared.dbias.f32()},
                    {op.dgain_adds, op.dbias_adds, op.prepared.dbias_adds}});
  }
  if (!op.prepared.du || prepares) return;
  LinearGradientPass pass;
  pass.dy = op.dx;
  pass.dropout = op.prepared.dropout;
  pass.rows = op.rows;
  pass.du = op.prepared.du;
  pass.dbias = op.prepared.dbias;
  pass.dbias_adds = op.prepared.dbias_adds;
  if (pass.dbias) {
    pass.partial = static_cast<float*>(workspace(linear_partial_floats(op.dx) * size_of(DType::f32)));
  }
  linear_gradient_pass(pass);
}

}  // namespace brisk::cuda
