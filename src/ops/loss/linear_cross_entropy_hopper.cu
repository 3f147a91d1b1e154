#include <algorithm>

#include "base/rounding.h"
#include "ops/cuda/cuda_bulk_copies.cuh"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_instructions.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/cuda/cuda_warpgroup.cuh"
#include "ops/loss/linear_cross_entropy_hopper.h"

namespace brisk::cuda {

namespace {

constexpr float kLog2E = 1.44269504f;
constexpr int kTile = 128;  // rows and columns of a tile of logits
constexpr int kDepth = 64;  // of the operands that is loaded at once
constexpr int kOperandBytes = kTile * kDepth * 2;
constexpr int kCluster = 2;  // blocks with different rows that share what they load of the weight
constexpr int kGroups = 2;   // warpgroups that take turns: one multiplies while the other has its exponentials
constexpr int kThreads = 128 * (kGroups + 1);
constexpr int kMostStages = 8;
constexpr int kMostParts = 32;            // of the vocabulary
constexpr int kControlBytes = 1024;       // barriers
constexpr int kSharedBytes = 226 * 1024;  // of 227 KiB, which need not begin at a multiple of 1024

// Of the logits that one part of the vocabulary gives a row; sums refer to the row's reference.
struct PartOfRow {
  float sum, largest;
  int32_t argmax;
};

static_assert(exponentials_state_bytes(1) == kMostParts * kGroups * sizeof(PartOfRow) + sizeof(float));

// How a chunk is cut: pairs of blocks of rows times parts of the vocabulary, as many as the GPU's clusters do in whole
// rounds.
struct Cut {
  int row_pairs, tiles, parts;  // tiles of the vocabulary, divided into parts
};

Cut cut_of(int64_t rows, int64_t vocabulary, int clusters) {
  Cut cut{static_cast<int>(divide_up(rows, kTile * kCluster)), static_cast<int>(divide_up(vocabulary, kTile)), 1};
  const auto cost = [&](int parts) {
    constexpr int kBegin = 2;  // tiles' worth of time until the first one
    return divide_up(cut.row_pairs * parts, clusters) * (divide_up(cut.tiles, parts) + kBegin);
  };
  for (int parts = 1; parts <= std::min(kMostParts, cut.tiles); ++parts) {
    if (cost(parts) < cost(cut.parts)) cut.parts = parts;
  }
  return cut;
}

int clusters_of_gpu() { return multiprocessors() / kCluster; }

struct Tiles {
  int64_t rows, vocabulary, stride;
  int width, stages;
  Cut cut;
  const float* references;  // [rows] in bits
  bf16_t* exponentials;
  PartOfRow* parts;  // [parts * kGroups, rows]
};

// Whether the block's rows of x stay in shared memory, for the whole part of the vocabulary.
template <bool kResident>
struct SharedMemory {
  static constexpr int kStageBytes = kOperandBytes * (kResident ? 1 : 2);  // the weight's, and x's behind it
  uint32_t base;
  int resident_bytes;

  static __host__ __device__ int resident(int width) {
    return kResident ? (width + kDepth - 1) / kDepth * kOperandBytes : 0;
  }
  static int most_stages(int width) {
    return std::min(kMostStages, (kSharedBytes - kControlBytes - resident(width)) / kStageBytes);
  }
  __device__ uint32_t resident_x(int slice) const { return base + kControlBytes + slice * kOperandBytes; }
  __device__ uint32_t weight(int stage) const { return base + kControlBytes + resident_bytes + stage * kStageBytes; }
  __device__ uint32_t x(int stage, int slice) const {
    return kResident ? resident_x(slice) : weight(stage) + kOperandBytes;
  }
  __device__ uint32_t full(int stage) const { return base + stage * 8; }
  __device__ uint32_t empty(int stage) const { return base + (kMostStages + stage) * 8; }
  __device__ uint32_t x_full() const { return base + 2 * kMostStages * 8; }
  __device__ uint32_t x_empty() const { return base + (2 * kMostStages + 1) * 8; }
};

// The next of a ring of stages, and how often it was round.
struct Ring {
  int stages, stage = 0;
  uint32_t parity = 0;
  __device__ void next() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  __device__ void skip(int count) {
    for (stage += count; stage >= stages; stage -= stages) parity ^= 1;
  }
};

// Work of a cluster: a pair of blocks of rows, and a part of the tiles.
struct Unit {
  int pair, part, first_tile, end_tile;
  __device__ Unit(const Cut& cut, int number) {
    part = number / cut.row_pairs;
    pair = number % cut.row_pairs;
    first_tile = static_cast<int>(static_cast<int64_t>(cut.tiles) * part / cut.parts);
    end_tile = static_cast<int>(static_cast<int64_t>(cut.tiles) * (part + 1) / cut.parts);
  }
};

// One thread. Half of each tile of the weight is loaded here and half by the other block, both for both.
template <bool kResident>
__device__ void load_operands(const Tiles& t, const SharedMemory<kResident>& shared, const CUtensorMap& x_map,
                              const CUtensorMap& weight_map) {
  constexpr uint16_t kBoth = 3;
  constexpr int kOwnRows = kTile / kCluster;
  const int rank = static_cast<int>(block_in_cluster()), clusters = gridDim.x / kCluster;
  const int slices = (t.width + kDepth - 1) / kDepth;
  Ring ring{t.stages};
  uint32_t x_parity = 1;
  for (int number = blockIdx.x / kCluster; number < t.cut.row_pairs * t.cut.parts; number += clusters) {
    const Unit unit(t.cut, number);
    const int row = (unit.pair * kCluster + rank) * kTile;
    if (kResident) {
      wait_barrier(shared.x_empty(), x_parity);
      x_parity ^= 1;
      expect_bytes(shared.x_full(), slices * kOperandBytes);
      for (int slice = 0; slice < slices; ++slice) {
        copy_box(shared.resident_x(slice), x_map, slice * kDepth, row, shared.x_full());
      }
    }
    for (int tile = unit.first_tile; tile < unit.end_tile; ++tile) {
      for (int slice = 0; slice < slices; ++slice, ring.next()) {
        wait_barrier(shared.empty(ring.stage), ring.parity ^ 1);
        expect_bytes(shared.full(ring.stage), SharedMemory<kResident>::kStageBytes);
        if (!kResident) {
          copy_box(shared.x(ring.stage, slice), x_map, slice * kDepth, row, shared.full(ring.stage));
        }
        copy_box_to(kBoth, shared.weight(ring.stage) + rank * kOwnRows * kDepth * 2, weight_map, slice * kDepth,
                    tile * kTile + rank * kOwnRows, shared.full(ring.stage));
      }
    }
  }
}

// What a thread knows of its rows: of each half of the tile (64 rows) two, eight apart.
struct RowsOfThread {
  float reference[2][2], sum[2][2], largest[2][2];
  int32_t argmax[2][2];
};

// The largest of a row's logits in a tile, of four lanes, and where it is if it is larger than those before.
template <int kHalf>
__device__ void raise_largest(const WideSums& logits, int upper, int lane_column, RowsOfThread& rows) {
  float largest_of[4];  // of every fourth block of eight columns
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    const float of_block = fmaxf(logits[n][upper * 2], logits[n][upper * 2 + 1]);
    largest_of[n % 4] = n < 4 ? of_block : fmaxf(largest_of[n % 4], of_block);
  }
  float largest = fmaxf(fmaxf(largest_of[0], largest_of[1]), fmaxf(largest_of[2], largest_of[3]));
  largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
  const bool higher = largest > rows.largest[kHalf][upper];
  if (!__any_sync(~0u, higher)) return;  // most tiles
  int32_t argmax = 0x7FFFFFFF;
#pragma unroll
  for (int n = 15; n >= 0; --n) {
#pragma unroll
    for (int i = 1; i >= 0; --i) {
      if (logits[n][upper * 2 + i] == largest) argmax = lane_column + n * 8 + i;
    }
  }
  argmax = min(argmax, __shfl_xor_sync(~0u, argmax, 1));
  argmax = min(argmax, __shfl_xor_sync(~0u, argmax, 2));
  if (higher) {
    rows.largest[kHalf][upper] = largest;
    rows.argmax[kHalf][upper] = argmax;
  }
}

// 64 rows of a tile, from `row` of this thread's lane on, become exponentials.
template <int kHalf>
__device__ void write_exponentials(const Tiles& t, WideSums& logits, int64_t row, int column, RowsOfThread& rows) {
  const int fourth = threadIdx.x % 4;
  const bool edge = column + kTile > t.vocabulary;
  if (edge) {
#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (column + n * 8 + fourth * 2 + i % 2 >= t.vocabulary) logits[n][i] = -INFINITY;
      }
    }
  }
  // A lane has two neighbouring columns of each block of eight. It stores four, of every other block, which with those
  // of its neighbours are 32 bytes of a row.
  const bool odd = fourth % 2;
  const int store_column = odd * 8 + fourth / 2 * 4;
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    raise_largest<kHalf>(logits, upper, column + fourth * 2, rows);
    const float reference = rows.reference[kHalf][upper];
    const bool stored = row + upper * 8 < t.rows;
    bf16_t* const to = t.exponentials + (row + upper * 8) * t.stride + column + store_column;
    float sums[2] = {};
#pragma unroll
    for (int n = 0; n < 16; n += 2) {
      uint32_t words[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float a = exp2_fast(fmaf(logits[n + j][upper * 2], kLog2E, -reference));
        const float b = exp2_fast(fmaf(logits[n + j][upper * 2 + 1], kLog2E, -reference));
        sums[j] += a + b;
        words[j] = pack_bf16(a, b);
      }
      const uint32_t given = odd ? words[0] : words[1], kept = odd ? words[1] : words[0];
      const uint32_t got = __shfl_xor_sync(~0u, given, 1);
      if (stored && (!edge || column + n * 8 + store_column < t.stride)) {
        *reinterpret_cast<uint2*>(to + n * 8) = odd ? make_uint2(got, kept) : make_uint2(kept, got);
      }
    }
    rows.sum[kHalf][upper] += sums[0] + sums[1];
  }
}

__device__ void write_part(const Tiles& t, int part, int64_t row, float sum, float largest, int32_t argmax) {
  sum = sum_of_lanes<4>(sum);
  if (threadIdx.x % 4 == 0 && row < t.rows) t.parts[part * t.rows + row] = {sum, largest, argmax};
}

// The warpgroups' turns: a group waits for its own and gives the other the next. Without them one could wait for a
// round of a stage's barrier before the round ahead of it was there, which no barrier can tell apart.
__device__ void wait_for_turn(int group) { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
__device__ void give_turn(int group) { asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory"); }

// A warpgroup; the two take the tiles in turn.
template <bool kResident>
__device__ void multiply_tiles(const Tiles& t, const SharedMemory<kResident>& shared) {
  const int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int rank = static_cast<int>(block_in_cluster()), clusters = gridDim.x / kCluster;
  const int slices = (t.width + kDepth - 1) / kDepth;
  const auto release = [&](uint32_t stage) {
    if (lane >= kCluster) return;
    arrive_at(shared.empty(stage), lane);
  };
  Ring ring{t.stages};
  int turn = 0;
  if (group == 1) give_turn(0);
  uint32_t x_parity = 0;
  for (int number = blockIdx.x / kCluster; number < t.cut.row_pairs * t.cut.parts; number += clusters) {
    const Unit unit(t.cut, number);
    const int64_t first_row = (unit.pair * kCluster + rank) * kTile + warp * 16 + lane / 4;
    RowsOfThread rows;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const int64_t row = first_row + half * 64 + upper * 8;
        rows.reference[half][upper] = row < t.rows ? t.references[row] : 0.0f;
        rows.sum[half][upper] = 0;
        rows.largest[half][upper] = -INFINITY;
        rows.argmax[half][upper] = 0x7FFFFFFF;
      }
    }
    if (kResident) {
      wait_barrier(shared.x_full(), x_parity);
      x_parity ^= 1;
    }
    for (int tile = unit.first_tile; tile < unit.end_tile; ++tile, turn ^= 1) {
      if (turn != group) {
        ring.skip(slices);
        continue;
      }
      WideSums low, high;
      int before = 0;
      wait_for_turn(group);
#pragma unroll 1
      for (int slice = 0; slice < slices; ++slice) {
        wait_barrier(shared.full(ring.stage), ring.parity);
        const uint64_t x = swizzled_matrix(shared.x(ring.stage, slice), 0);
        const uint64_t w = swizzled_matrix(shared.weight(ring.stage), 0);
        order_products();
#pragma unroll
        for (int step = 0; step < kDepth / 16; ++step) {
          const uint64_t along = step * 32 / 16;  // 16 columns, in units of 16 bytes
          multiply_shared(low, x + along, w + along, slice > 0 || step > 0);
          multiply_shared(high, x + along + 64 * 128 / 16, w + along, slice > 0 || step > 0);
        }
        end_products();
        if (slice > 0) {
          wait_for_products<1>();
          release(before);
        }
        before = ring.stage;
        ring.next();
      }
      give_turn(1 - group);
      wait_for_products<0>();
      hold(low);
      hold(high);
      release(before);
      write_exponentials<0>(t, low, first_row, tile * kTile, rows);
      write_exponentials<1>(t, high, first_row + 64, tile * kTile, rows);
    }
    if (kResident && lane == 0) arrive(shared.x_empty());
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        write_part(t, unit.part * kGroups + group, first_row + half * 64 + upper * 8, rows.sum[half][upper],
                   rows.largest[half][upper], rows.argmax[half][upper]);
      }
    }
  }
}

template <bool kResident>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    exponentials_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap weight_map,
                        const Tiles t) {
  const uint32_t start = shared_address(dynamic_shared());
  const SharedMemory<kResident> shared{start + (1024 - start % 1024) % 1024,
                                       SharedMemory<kResident>::resident(t.width)};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < t.stages; ++stage) {
      init_barrier(shared.full(stage), 1);
      init_barrier(shared.empty(stage), 4 * kCluster);  // the warps of the one group that reads it, of both blocks
    }
    init_barrier(shared.x_full(), 1);
    init_barrier(shared.x_empty(), 4 * kGroups);
    publish_barriers();
  }
  meet_cluster();
  if (threadIdx.x < 128) {
    give_registers<40>();
    if (threadIdx.x == 0) load_operands(t, shared, x_map, weight_map);
  } else {
    take_registers<232>();
    multiply_tiles(t, shared);
  }
  meet_cluster();  // the other block still arrives at barriers here
}

// Of a warp, in each lane.
__device__ float dot(const bf16_t* a, const bf16_t* b, int width) {
  float sum = 0;
  for (int column = threadIdx.x % 32 * 8; column < width; column += 256) {
    const Floats<8> x = load<8>(a + column), y = load<8>(b + column);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(x.v[i], y.v[i], sum);
  }
  return sum_of_lanes<32>(sum);
}

struct RowOperands {
  const bf16_t *x, *weight;
  int64_t weight_stride;
  int width;
  __device__ RowOperands(const LossExponentials& a, int64_t row)
      : x(static_cast<const bf16_t*>(a.x.data) + row * a.x.stride),
        weight(static_cast<const bf16_t*>(a.weight.data)),
        weight_stride(a.weight.stride),
        width(static_cast<int>(a.x.cols)) {}
  __device__ float logit(int64_t word) const { return dot(x, weight + word * weight_stride, width); }
};

// A warp a row: its target's logit. A row without target takes that of the first word, which is as good for its sums.
__global__ void references_kernel(const LossExponentials a, float* references) {
  const int64_t row = blockIdx.x * int64_t{blockDim.x / 32} + threadIdx.x / 32;
  if (row >= a.rows.rows) return;
  const float logit = RowOperands(a, row).logit(max(a.rows.targets[row], 0));
  if (threadIdx.x % 32 == 0) references[row] = logit * kLog2E;
}

// A logit so far above its target has an exponential that is too large: the row is computed anew with the largest logit
// as reference, by one warp that reads the whole weight for it. A model whose loss is not beyond all reason has no such
// row.
constexpr float kMostAbove = 60 * kLog2E;  // bits

__device__ float exponentials_anew(const LossExponentials& a, int64_t row, float reference) {
  const RowOperands operands(a, row);
  bf16_t* to = static_cast<bf16_t*>(a.rows.gradient) + row * a.rows.stride;
  float sum = 0;
#pragma unroll 4
  for (int64_t word = 0; word < a.rows.vocabulary; ++word) {
    const float e = exp2_fast(fmaf(operands.logit(word), kLog2E, -reference));
    sum += e;
    if (threadIdx.x % 32 == 0) store_one(to + word, e);
  }
  return sum;
}

__device__ PartOfRow joined(const PartOfRow& a, float sum, float largest, int32_t argmax) {
  const bool other = largest > a.largest || (largest == a.largest && argmax < a.argmax);
  return {a.sum + sum, other ? largest : a.largest, other ? argmax : a.argmax};
}

// A row of a warp, times its factor; zeros whatever it is times zero, which is the factor of a row without target.
template <typename T>
__device__ void write_scaled(const T* from, T* to, int64_t width, float factor) {
  for (int64_t column = threadIdx.x % 32 * 8; column < width; column += 256) {
    Floats<8> v = load<8>(from + column);
#pragma unroll
    for (int i = 0; i < 8; ++i) v.v[i] = factor == 0 ? 0.0f : v.v[i] * factor;
    store(to + column, v);
  }
}

// A warp a row: the parts' sums become its loss, its gradient at the target and its factor.
__global__ void finish_exponentials_kernel(const LossExponentials a, const float* references, const PartOfRow* parts,
                                           int count) {
  const int64_t row = blockIdx.x * int64_t{blockDim.x / 32} + threadIdx.x / 32;
  if (row >= a.rows.rows) return;
  const int lane = threadIdx.x % 32;
  PartOfRow all{0, -INFINITY, 0x7FFFFFFF};
  for (int p = lane; p < count; p += 32) {
    const PartOfRow part = parts[p * a.rows.rows + row];
    all = joined(all, part.sum, part.largest, part.argmax);
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    all = joined(all, __shfl_xor_sync(~0u, all.sum, distance), __shfl_xor_sync(~0u, all.largest, distance),
                 __shfl_xor_sync(~0u, all.argmax, distance));
  }
  const float of_target = references[row];
  float reference = of_target;
  if (all.largest * kLog2E - reference > kMostAbove) {
    reference = all.largest * kLog2E;
    all.sum = exponentials_anew(a, row, reference);
  }
  // The target's own is computed here and there, and may differ in its last bits: no loss is below zero.
  const float at_target = exp2_fast(of_target - reference);
  if (all.sum < at_target) all.sum = at_target;
  const int32_t target = a.rows.targets[row];
  const float weight = target < 0 ? 0.0f : a.rows.weights != nullptr ? a.rows.weights[row] : 1.0f;
  const float scale = (a.rows.step_scale != nullptr ? *a.rows.step_scale : a.rows.scale) * weight;
  const float factor = scale / all.sum;
  if (lane == 0) {
    a.rows.loss[row * a.rows.loss_stride] = target < 0 ? 0.0f : logf(all.sum) + (reference - of_target) / kLog2E;
    a.rows.argmax[row * a.rows.argmax_stride] = all.argmax;
    a.factors[row] = factor;
    if (target >= 0) {
      store_one(static_cast<bf16_t*>(a.rows.gradient) + row * a.rows.stride + target, at_target - all.sum);
    }
  }
  const bf16_t* x = static_cast<const bf16_t*>(a.x.data) + row * a.x.stride;
  write_scaled(x, static_cast<bf16_t*>(a.scaled_x.data) + row * a.scaled_x.stride, a.x.cols, factor);
}

template <typename T>
__global__ void scale_rows_kernel(const Tensor rows, const float* factors) {
  const int64_t row = blockIdx.x * int64_t{blockDim.x / 32} + threadIdx.x / 32;
  if (row >= rows.rows) return;
  T* const at = static_cast<T*>(rows.data) + row * rows.stride;
  write_scaled(at, at, rows.cols, factors[row]);
}

constexpr int kRowThreads = 128;
int64_t blocks_of_rows(int64_t rows) { return divide_up(rows, kRowThreads / 32); }

template <bool kResident>
void launch_tiles(const LossExponentials& chunk, Tiles tiles) {
  tiles.stages = SharedMemory<kResident>::most_stages(tiles.width);
  const int units = tiles.cut.row_pairs * tiles.cut.parts;
  launch(exponentials_kernel<kResident>,
         {.blocks = std::min(units, clusters_of_gpu()) * kCluster,
          .threads = kThreads,
          .shared_bytes = 1024 + kControlBytes + SharedMemory<kResident>::resident(tiles.width) +
                          tiles.stages * SharedMemory<kResident>::kStageBytes},
         box_map(chunk.x, kDepth, kTile), box_map(chunk.weight, kDepth, kTile / kCluster), tiles);
}

}  // namespace

bool has_exponentials(const Tensor& x, const Tensor& weight, const Tensor& dx) {
  return is_hopper() && weight.type == DType::bf16 && in_eights(x) && in_eights(weight) && in_eights(dx);
}

void loss_exponentials(const LossExponentials& chunk) {
  const LossRows& rows = chunk.rows;
  Tiles tiles{};
  tiles.rows = rows.rows;
  tiles.vocabulary = rows.vocabulary;
  tiles.stride = rows.stride;
  tiles.width = static_cast<int>(chunk.x.cols);
  tiles.cut = cut_of(rows.rows, rows.vocabulary, clusters_of_gpu());
  tiles.exponentials = static_cast<bf16_t*>(rows.gradient);
  float* const references = static_cast<float*>(chunk.states);
  tiles.references = references;
  tiles.parts = reinterpret_cast<PartOfRow*>(references + rows.rows);
  const Launch by_row{.blocks = blocks_of_rows(rows.rows), .threads = kRowThreads};
  launch(references_kernel, by_row, chunk, references);
  constexpr int kFewestStages = 4;
  if (SharedMemory<true>::most_stages(tiles.width) >= kFewestStages) {
    launch_tiles<true>(chunk, tiles);
  } else {
    launch_tiles<false>(chunk, tiles);
  }
  launch(finish_exponentials_kernel, by_row, chunk, references, tiles.parts, tiles.cut.parts * kGroups);
}

void scale_rows(const Tensor& rows, const float* factors) {
  const Launch by_row{.blocks = blocks_of_rows(rows.rows), .threads = kRowThreads};
  with_type(rows.type, [&](auto type) { launch(scale_rows_kernel<decltype(type)>, by_row, rows, factors); });
}

}  // namespace brisk::cuda
