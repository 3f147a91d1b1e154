// Backward sorts the rows by token, stably, and sums each token's rows in that order: no atomics, the same bits every
// time. A frequent token's rows are divided into segments that are summed side by side.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "base/rounding.h"
#include "ops/cuda/cuda_elements.cuh"
#include "ops/cuda/cuda_launch.cuh"
#include "ops/embedding/embedding.h"

namespace brisk::cuda {

namespace {

constexpr int kThreads = 256;

template <typename Y, int kCount>
__global__ void embedding_forward_kernel(EmbeddingForward op, Draws draws) {
  const int64_t per_row = op.y.cols / kCount, at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= op.rows.rows * per_row) return;
  const int64_t row = at / per_row, column = at % per_row * kCount;
  const auto add_row = [&](Floats<kCount>& sum, const Tensor& table, int64_t table_row, float scale) {
    const Floats<kCount> values =
        load<kCount>(static_cast<const float*>(table.data) + table_row * table.stride + column);
    for (int i = 0; i < kCount; ++i) sum.v[i] += scale * values.v[i];
  };
  Floats<kCount> sum = {};
  add_row(sum, op.table, op.tokens[row], op.scale);
  if (op.positions.data != nullptr) add_row(sum, op.positions, op.position_offset + op.rows.position[row], 1);
  if (op.type_table.data != nullptr) add_row(sum, op.type_table, op.types != nullptr ? op.types[row] : 0, 1);
  if (draws.threshold > 0) {
    const uint32_t row_key = draws.row_key(row);
    for (int i = 0; i < kCount; ++i) sum.v[i] *= draws.factor(row_key, column + i);
  }
  store(static_cast<Y*>(op.y.data) + row * op.y.stride + column, sum);
}

__global__ void number_rows_kernel(int32_t* rows, int64_t count) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at < count) rows[at] = static_cast<int32_t>(at);
}

// Few rows are sorted by counting, in one launch: a row's place is how many (key, row) are below its own. A warp has
// four rows; a lane compares four neighbours of every 128 of all.
constexpr int64_t kMostCounted = 16384;        // rows: twice as many take four times as long
constexpr int64_t kMostKeysCounted = 1 << 18;  // key and row are one number of 32 bits
constexpr int kRowsOfWarp = 4;

__global__ void place_rows_kernel(const int32_t* keys, int32_t count, uint32_t* sorted_keys, int32_t* sorted_rows) {
  const int lane = threadIdx.x % 32;
  const int first = static_cast<int>(blockIdx.x * (kThreads / 32) + threadIdx.x / 32) * kRowsOfWarp;
  if (first >= count) return;
  const auto number = [&](int row) {
    return static_cast<uint32_t>(keys[row]) * static_cast<uint32_t>(kMostCounted) + static_cast<uint32_t>(row);
  };
  uint32_t mine[kRowsOfWarp], below[kRowsOfWarp] = {};
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) mine[r] = first + r < count ? number(first + r) : 0;
  const int fours = reinterpret_cast<uintptr_t>(keys) % sizeof(int4) == 0 ? count / 4 * 4 : 0;
#pragma unroll 4
  for (int row = lane * 4; row < fours; row += 128) {
    const int4 four = *reinterpret_cast<const int4*>(keys + row);
    const int32_t key[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t other =
          static_cast<uint32_t>(key[i]) * static_cast<uint32_t>(kMostCounted) + static_cast<uint32_t>(row + i);
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) below[r] += other < mine[r] ? 1 : 0;
    }
  }
  for (int row = fours + lane; row < count; row += 32) {
    const uint32_t other = number(row);
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) below[r] += other < mine[r] ? 1 : 0;
  }
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    for (int distance = 16; distance > 0; distance /= 2) below[r] += __shfl_xor_sync(~0u, below[r], distance);
    if (lane == r && first + r < count) {
      sorted_keys[below[r]] = static_cast<uint32_t>(keys[first + r]);
      sorted_rows[below[r]] = first + r;
    }
  }
}

// Rows of dy in the order of their keys; a run is the rows of one key. Segment g is places [g length, (g + 1) length).
struct SortedRows {
  const uint32_t* keys;  // [count], or none: all 0
  const int32_t* rows;   // [count], or none: as they are
  int64_t count, length, segments;

  __device__ uint32_t key(int64_t place) const { return keys != nullptr ? keys[place] : 0; }
  __device__ int64_t row(int64_t place) const { return rows != nullptr ? rows[place] : place; }
  __device__ bool joined(int64_t place) const {  // place - 1 and place are of one run
    return place > 0 && place < count && key(place - 1) == key(place);
  }
};

struct TableGradient {
  Tensor dy, dtable;
  bool adds;
  float scale;  // of every sum
  Draws draws;
  float*
      partial;  // [segments, 2, width]: of the run that comes in from the left, of the one that goes out to the right
};

template <int kCount>
__device__ void put(const TableGradient& op, uint32_t key, int64_t column, Floats<kCount> sum) {
  float* out = static_cast<float*>(op.dtable.data) + key * op.dtable.stride + column;
  for (int i = 0; i < kCount; ++i) sum.v[i] *= op.scale;
  if (op.adds) {
    const Floats<kCount> before = load<kCount>(out);
    for (int i = 0; i < kCount; ++i) sum.v[i] += before.v[i];
  }
  store(out, sum);
}

// Sums the runs of one segment. Those within it are done; of those that reach over an end a partial sum is left.
template <typename Dy, int kCount>
__global__ void sum_segments_kernel(TableGradient op, SortedRows sorted) {
  constexpr int kAhead = 4;  // rows on their way at once
  const int64_t width = op.dy.cols, segment = blockIdx.x;
  const int64_t begin = segment * sorted.length, end = min(sorted.count, begin + sorted.length);
  for (int64_t column = threadIdx.x * kCount; column < width; column += blockDim.x * kCount) {
    Floats<kCount> sum = {};
    bool from_left = sorted.joined(begin);
    for (int64_t place = begin; place < end; place += kAhead) {
      Floats<kCount> values[kAhead];
#pragma unroll
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        values[ahead] = {};
        if (place + ahead < end) {
          const int64_t row = sorted.row(place + ahead);
          values[ahead] = load<kCount>(static_cast<const Dy*>(op.dy.data) + row * op.dy.stride + column);
        }
      }
#pragma unroll
      for (int ahead = 0; ahead < kAhead; ++ahead) {
        if (place + ahead >= end) continue;
        if (op.draws.threshold > 0) {
          const uint32_t row_key = op.draws.row_key(sorted.row(place + ahead));
          for (int i = 0; i < kCount; ++i) values[ahead].v[i] *= op.draws.factor(row_key, column + i);
        }
        for (int i = 0; i < kCount; ++i) sum.v[i] += values[ahead].v[i];
        const int64_t next = place + ahead + 1;
        const bool goes_on = sorted.joined(next);
        if (goes_on && next < end) continue;
        if (from_left) {
          store(op.partial + (2 * segment) * width + column, sum);
        } else if (goes_on) {
          store(op.partial + (2 * segment + 1) * width + column, sum);
        } else {
          put(op, sorted.key(next - 1), column, sum);
        }
        sum = {};
        from_left = false;
      }
    }
  }
}

// Adds up the partial sums of the run that starts in this segment and reaches over its end, if there is one.
template <int kCount>
__global__ void join_segments_kernel(TableGradient op, SortedRows sorted) {
  const int64_t width = op.dy.cols, segment = blockIdx.x;
  const int64_t begin = segment * sorted.length, end = min(sorted.count, begin + sorted.length);
  if (!sorted.joined(end)) return;
  const uint32_t key = sorted.key(end);
  if (sorted.key(begin) == key && sorted.joined(begin)) return;  // it started further left
  int64_t last = segment + 1;                                    // the run's last segment
  for (;;) {                                                     // a warp looks at 32 segments at once
    const int64_t next = last + 1 + threadIdx.x % 32;
    const bool reached =
        next < sorted.segments && sorted.joined(next * sorted.length) && sorted.key(next * sorted.length) == key;
    const uint32_t missed = ~__ballot_sync(~0u, reached);
    if (missed != 0) {
      last += __ffs(static_cast<int>(missed)) - 1;
      break;
    }
    last += 32;
  }
  for (int64_t column = threadIdx.x * kCount; column < width; column += blockDim.x * kCount) {
    Floats<kCount> sum = load<kCount>(op.partial + (2 * segment + 1) * width + column);
#pragma unroll 8
    for (int64_t s = segment + 1; s <= last; ++s) {
      const Floats<kCount> more = load<kCount>(op.partial + (2 * s) * width + column);
      for (int i = 0; i < kCount; ++i) sum.v[i] += more.v[i];
    }
    put(op, key, column, sum);
  }
}

// Position p of every sequence adds to row position_offset + p; a block takes 32 threads' columns of one position, and
// its eight warps every eighth sequence each.
template <typename Dy, int kCount>
__global__ void sum_positions_kernel(EmbeddingBackward op, Draws draws) {
  __shared__ float sums[8][32 * kCount];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t position = blockIdx.y, column = (static_cast<int64_t>(blockIdx.x) * 32 + lane) * kCount;
  Floats<kCount> sum = {};
  if (column < op.dy.cols) {
#pragma unroll 4
    for (int64_t s = warp; s < op.rows.sequences; s += 8) {
      const int64_t row = op.rows.starts[s] + position;
      if (row >= op.rows.starts[s + 1]) continue;
      Floats<kCount> dy = load<kCount>(static_cast<const Dy*>(op.dy.data) + row * op.dy.stride + column);
      if (draws.threshold > 0) {
        const uint32_t row_key = draws.row_key(row);
        for (int i = 0; i < kCount; ++i) dy.v[i] *= draws.factor(row_key, column + i);
      }
      for (int i = 0; i < kCount; ++i) sum.v[i] += dy.v[i];
    }
  }
  for (int i = 0; i < kCount; ++i) sums[warp][lane * kCount + i] = sum.v[i];
  __syncthreads();
  if (warp > 0 || column >= op.dy.cols) return;
  float* out =
      static_cast<float*>(op.dpositions.data) + (op.position_offset + position) * op.dpositions.stride + column;
  for (int i = 0; i < kCount; ++i) {
    float total = out[i];
    for (int w = 0; w < 8; ++w) total += sums[w][lane * kCount + i];
    out[i] = total;
  }
}

void fill_zero(const Tensor& t) {
  if (t.rows == 0) return;
  check(cudaMemset2DAsync(t.data, static_cast<size_t>(t.stride * size_of(t.type)), 0,
                          static_cast<size_t>(t.cols * size_of(t.type)), static_cast<size_t>(t.rows), stream()),
        "clearing a gradient");
}

int bits_for(int64_t values) {
  int bits = 1;
  while ((int64_t{1} << bits) < values) ++bits;
  return bits;
}

// Parts of one workspace, one after the other.
class Parts {
 public:
  int64_t add(int64_t bytes) {
    const int64_t at = bytes_;
    bytes_ += round_up(bytes, 256);
    return at;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// dtable[keys[r]] (+)= scale dy[r] for every row r; without keys all are of row 0.
void add_to_table(const int32_t* keys, const Tensor& dy, const Tensor& dtable, bool adds, float scale,
                  const Draws& draws, int64_t segment_length) {
  if (!adds) fill_zero(dtable);
  const int64_t count = dy.rows, segments = divide_up(count, segment_length);
  if (count == 0) return;
  const bool counted = count <= kMostCounted && dtable.rows <= kMostKeysCounted;
  const int bits = bits_for(dtable.rows);
  size_t sort_bytes = 0;
  if (keys != nullptr && !counted) {
    check(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, static_cast<const uint32_t*>(nullptr),
                                          static_cast<uint32_t*>(nullptr), static_cast<const int32_t*>(nullptr),
                                          static_cast<int32_t*>(nullptr), static_cast<int>(count), 0, bits, stream()),
          "memory to sort tokens");
  }
  Parts parts;
  const int64_t partial_at = parts.add(segments * 2 * dy.cols * size_of(DType::f32));
  const int64_t numbers_at = parts.add(count * 4), rows_at = parts.add(count * 4), keys_at = parts.add(count * 4);
  const int64_t sort_at = parts.add(static_cast<int64_t>(sort_bytes));
  char* memory = static_cast<char*>(workspace(parts.bytes()));
  SortedRows sorted{nullptr, nullptr, count, segment_length, segments};
  if (keys != nullptr) {
    auto* numbers = reinterpret_cast<int32_t*>(memory + numbers_at);
    auto* sorted_rows = reinterpret_cast<int32_t*>(memory + rows_at);
    auto* sorted_keys = reinterpret_cast<uint32_t*>(memory + keys_at);
    if (counted) {
      launch(place_rows_kernel, {.blocks = divide_up(count, kThreads / 32 * kRowsOfWarp), .threads = kThreads}, keys,
             static_cast<int32_t>(count), sorted_keys, sorted_rows);
    } else {
      launch(number_rows_kernel, {.blocks = divide_up(count, kThreads), .threads = kThreads}, numbers, count);
      check(cub::DeviceRadixSort::SortPairs(memory + sort_at, sort_bytes, reinterpret_cast<const uint32_t*>(keys),
                                            sorted_keys, numbers, sorted_rows, static_cast<int>(count), 0, bits,
                                            stream()),
            "sorting tokens");
    }
    sorted.keys = sorted_keys;
    sorted.rows = sorted_rows;
  }
  const TableGradient gradient{dy, dtable, adds, scale, draws, reinterpret_cast<float*>(memory + partial_at)};
  const bool eights = in_eights(dy) && in_eights(dtable);
  const int threads = static_cast<int>(std::min<int64_t>(round_up(dy.cols / (eights ? 8 : 1), 32), kThreads));
  const Launch shape{.blocks = segments, .threads = std::max(32, threads)};
  with_type(dy.type, [&](auto type) {
    using Dy = decltype(type);
    if (eights) {
      launch(sum_segments_kernel<Dy, 8>, shape, gradient, sorted);
      launch(join_segments_kernel<8>, shape, gradient, sorted);
    } else {
      launch(sum_segments_kernel<Dy, 1>, shape, gradient, sorted);
      launch(join_segments_kernel<1>, shape, gradient, sorted);
    }
  });
}

}  // namespace

void embedding_forward(const EmbeddingForward& op) {
  const bool eights = in_eights(op.y) && in_eights(op.table) && in_eights(op.positions) && in_eights(op.type_table);
  const Launch shape{.blocks = divide_up(op.rows.rows * op.y.cols / (eights ? 8 : 1), kThreads), .threads = kThreads};
  with_type(op.y.type, [&](auto type) {
    using Y = decltype(type);
    const Draws draws = draws_of(op.dropout, op.rows);
    if (eights) {
      launch(embedding_forward_kernel<Y, 8>, shape, op, draws);
    } else {
      launch(embedding_forward_kernel<Y, 1>, shape, op, draws);
    }
  });
}

void embedding_backward(const EmbeddingBackward& op) {
  const Draws draws = draws_of(op.dropout, op.rows);
  const Tensor dy = op.dy.row_range(0, op.rows.rows);
  // 16 rows a segment: a token is seldom more frequent. The few types have thousands of rows each.
  if (op.dtable) add_to_table(op.tokens, dy, op.dtable, op.dtable_adds, op.scale, draws, 16);
  if (op.dtypes) {
    add_to_table(op.types, dy, op.dtypes, op.dtypes_adds, 1, draws, std::max<int64_t>(16, divide_up(dy.rows, 256)));
  }
  if (!op.dpositions) return;
  if (!op.dpositions_adds) fill_zero(op.dpositions);
  const bool eights = in_eights(dy);
  const Launch shape{.blocks = divide_up(dy.cols, eights ? 256 : 32), .blocks_y = op.rows.longest, .threads = kThreads};
  with_type(dy.type, [&](auto type) {
    using Dy = decltype(type);
    if (eights) {
      launch(sum_positions_kernel<Dy, 8>, shape, op, draws);
    } else {
      launch(sum_positions_kernel<Dy, 1>, shape, op, draws);
    }
  });
}

}  // namespace brisk::cuda
