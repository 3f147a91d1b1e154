// gemm's kernels for one instruction set: panels multiplied into a tile that stays in registers over the whole depth
// block.
#include <type_traits>
#include <utility>

#include "ops/gemm/gemm_epilogue_simd.h"
#include "ops/gemm/gemm_kernels.h"
#include "ops/gemm/gemm_pack_simd.h"

namespace brisk::BRISK_ISA {

namespace {

#if defined(BRISK_ISA_avx2)
constexpr int kPanelRows = 6;  // 6 x 16: 12 of the 16 registers hold C
#else
constexpr int kPanelRows = 14;  // 14 x 32: 28 of the 32 registers hold C
#endif
constexpr int kGemmPanelVectors = 2;
constexpr int64_t kPanelCols = kGemmPanelVectors * kLanes;
constexpr int64_t kRowFloats = kLanes;  // a unit of a panel of A: a whole vector, so that packing stores whole vectors

// Depth of a pass. With AVX2 a panel of B and one of A fit the first-level cache together, and A is copied by row; with
// AVX-512 both were slower (14 rows to read side by side, twice as many passes): B's panels come from the second level.
#if defined(BRISK_ISA_avx2)
constexpr int64_t kUnitsBlock = 256, kRowsBlock = 144;
constexpr bool kCopiesRows = true;
#else
constexpr int64_t kUnitsBlock = 512, kRowsBlock = 168;
constexpr bool kCopiesRows = false;
#endif
constexpr int64_t kRowStride = kUnitsBlock + 16;  // not a multiple of 4 KiB apart: such rows share a cache set

// A row of A times a vector of B, added to C. `add_broadcast` reads the row's unit inside the multiplication: one
// instruction less to issue, one load more.
struct FloatProduct {
  static Vec add(Vec row, Vec column, Vec c) { return fma(row, column, c); }
#if !defined(BRISK_ISA_avx2)
  static Vec add_broadcast(const float& row, Vec column, Vec c) {
    asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(column), "m"(row));
    return c;
  }
#endif
};

#if defined(BRISK_ISA_avx512bf16) || defined(BRISK_ISA_amx)
struct PairProduct {
  static Vec add(Vec row, Vec column, Vec c) { return _mm512_dpbf16_ps(c, (__m512bh)row, (__m512bh)column); }
  static Vec add_broadcast(const float& row, Vec column, Vec c) {
    asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(column), "m"(row));
    return c;
  }
};
#endif

// Rows that are read inside the multiplication: of 14 rows 10, which makes 26 loads and 32 instructions for 28
// multiplications. On a core that another hardware thread shares this was 6-8 % faster than none, on a quiet one the
// same; more would run out of loads (two a cycle).
constexpr int broadcast_rows(int rows) { return rows * 6 / 7 > 2 ? rows * 6 / 7 - 2 : 0; }

// One unit of depth: kRows rows of A, kStep floats apart, times the vectors of B.
template <typename Product, int kRows, int64_t kStep>
__attribute__((always_inline)) inline void multiply_unit(const float* a, const float* b,
                                                         Vec (&acc)[kRows][kGemmPanelVectors]) {
  Vec column[kGemmPanelVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kGemmPanelVectors; ++v) column[v] = load(b + v * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#if !defined(BRISK_ISA_avx2)
    if (r < broadcast_rows(kRows)) {
#pragma GCC unroll 2
      for (int v = 0; v < kGemmPanelVectors; ++v)
        acc[r][v] = Product::add_broadcast(a[r * kStep], column[v], acc[r][v]);
      continue;
    }
#endif
    const Vec row = set1(a[r * kStep]);
#pragma GCC unroll 2
    for (int v = 0; v < kGemmPanelVectors; ++v) acc[r][v] = Product::add(row, column[v], acc[r][v]);
  }
}

// Walks over GemmTile::written, to the first-level cache, and then over GemmTile::read, to the second level.
class WantedLines {
 public:
  explicit WantedLines(const GemmTile& tile) : written_(tile.written), read_(tile.read) { begin(); }
  __attribute__((always_inline)) void fetch() {
    if (left_ == 0) return;
    if (writes_) {
      __builtin_prefetch(at_, 1);
      __builtin_prefetch(at_ + 64, 1);
    } else {
      __builtin_prefetch(at_, 0, 2);
      __builtin_prefetch(at_ + 64, 0, 2);
    }
    at_ += stride_;
    if (--left_ == 0) begin();
  }

 private:
  void begin() {
    writes_ = next_ < GemmTile::kWritten && written_[next_].count > 0;
    if (!writes_ && next_ < GemmTile::kWritten) next_ = GemmTile::kWritten;
    if (next_ == GemmTile::kWritten + GemmTile::kRead) return;
    const GemmTile::Wanted& now = writes_ ? written_[next_] : read_[next_ - GemmTile::kWritten];
    at_ = now.at;
    stride_ = now.stride;
    left_ = now.count;
    ++next_;
  }
  const GemmTile::Wanted *written_, *read_;
  int next_ = 0;
  bool writes_ = true;
  int64_t left_ = 0, stride_ = 0;
  const char* at_ = nullptr;
};

template <typename Product, int kRows, bool kByRow>
void multiply_rows(const GemmTile& tile) {
  constexpr int64_t kRowStep = kByRow ? kRowStride : 1, kUnitStep = kByRow ? 1 : kRowFloats;
  Vec acc[kRows][kGemmPanelVectors];
  const float* a = tile.a_panel;
  const float* b = tile.b_panel;
  WantedLines wanted(tile);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kGemmPanelVectors; ++v) acc[r][v] = zero();
  }
  constexpr int64_t kUnroll = 4;
  int64_t unit = 0;
#pragma GCC unroll 1
  for (; unit + kUnroll <= tile.units; unit += kUnroll, a += kUnroll * kUnitStep, b += kUnroll * kPanelCols) {
    wanted.fetch();
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u) {
      multiply_unit<Product, kRows, kRowStep>(a + u * kUnitStep, b + u * kPanelCols, acc);
    }
  }
#pragma GCC unroll 1
  for (; unit < tile.units; ++unit, a += kUnitStep, b += kPanelCols) {
    multiply_unit<Product, kRows, kRowStep>(a, b, acc);
  }
  if (tile.start != nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kGemmPanelVectors; ++v) acc[r][v] += load(tile.start + r * tile.start_stride + v * kLanes);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kGemmPanelVectors; ++v) store(tile.out + r * tile.out_stride + v * kLanes, acc[r][v]);
  }
}

struct RowKernels {
  void (*multiply[kPanelRows])(const GemmTile&);
};
template <typename Product, bool kByRow, int... kIndex>
constexpr RowKernels row_kernels(std::integer_sequence<int, kIndex...>) {
  return {{multiply_rows<Product, kIndex + 1, kByRow>...}};
}

template <typename Product>
void multiply(const GemmTile& tile) {
  constexpr auto kRows = std::make_integer_sequence<int, kPanelRows>();
  static constexpr RowKernels kByUnit = row_kernels<Product, false>(kRows);
  if constexpr (kCopiesRows && std::is_same_v<Product, FloatProduct>) {
    static constexpr RowKernels kByRow = row_kernels<Product, true>(kRows);
    if (tile.a_by_row) return kByRow.multiply[tile.rows - 1](tile);
  }
  kByUnit.multiply[tile.rows - 1](tile);
}

template <typename Units>
void pack_rows(const GemmPanelSource& source, float* panel) {
  if (source.type == DType::bf16) return pack_by_unit<Units, bf16_t>(source, kRowFloats, panel);
  pack_by_unit<Units, float>(source, kRowFloats, panel);
}

[[maybe_unused]] void pack_rows_as_they_are(const GemmPanelSource& source, float* panel) {
  const float* row = static_cast<const float*>(source.data);
  for (int64_t r = 0; r < source.across; ++r, row += source.stride, panel += kRowStride) {
    int64_t unit = 0;
    for (; unit + 4 * kLanes <= source.depth; unit += 4 * kLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) store(panel + unit + v * kLanes, load(row + unit + v * kLanes));
    }
    for (; unit < source.depth; unit += kLanes) store(panel + unit, load(row + unit, source.depth - unit));
  }
}

template <typename Units>
void pack_cols(const GemmPanelSource& source, float* panel) {
  if (source.type == DType::bf16) return pack_by_unit<Units, bf16_t>(source, kPanelCols, panel);
  pack_by_unit<Units, float>(source, kPanelCols, panel);
}

void nothing() {}

template <typename Units, typename Product>
GemmKernels vector_kernels() {
  GemmKernels kernels;
  kernels.rows = kPanelRows;
  kernels.cols = kPanelCols;
  kernels.row_floats = kRowFloats;
  kernels.unit_depth = Units::kDepth;
  kernels.units_block = kUnitsBlock;
  kernels.rows_block = kRowsBlock;
  kernels.rows_least = 56;
  kernels.items_wanted = 8;
  kernels.cols_block = 1024;
  if constexpr (kCopiesRows && std::is_same_v<Units, FloatUnits>) {
    kernels.row_stride = kRowStride;
    kernels.pack_a_by_row = pack_rows_as_they_are;
  }
  kernels.pack_a = pack_rows<Units>;
  kernels.pack_b = pack_cols<Units>;
  kernels.multiply = multiply<Product>;
  kernels.finish = finish_tile;
  kernels.begin_thread = nothing;
  kernels.end_thread = nothing;
  return kernels;
}

#if defined(BRISK_ISA_amx)

// Eight tile registers of 16 rows x 64 bytes: 0-3 hold 2 x 2 tiles of C, 4 and 5 of A, 6 and 7 of B.
constexpr int64_t kTileFloats = 256, kTileBytesPerRow = 64;

struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfiguration kTileConfiguration;

void configure_tiles() { _tile_loadconfig(&kTileConfiguration); }
void release_tiles() { _tile_release(); }

// The next tiles use the same panel of B and another of A, so A is read as a stream, which leaves B in the first-level
// cache: a step over 32 of depth took 25 ns instead of 33 at a depth of 512.
void multiply_tiles(const GemmTile& tile) {
  const int64_t out_bytes = tile.out_stride * 4;
  if (tile.start != nullptr) {
    const int64_t start_bytes = tile.start_stride * 4;
    const float* lower = tile.start + 16 * tile.start_stride;
    _tile_loadd(0, tile.start, start_bytes);
    _tile_loadd(1, tile.start + 16, start_bytes);
    _tile_loadd(2, lower, start_bytes);
    _tile_loadd(3, lower + 16, start_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const float* a = tile.a_panel;
  const float* b = tile.b_panel;
  WantedLines wanted(tile);
  for (int64_t unit = 0; unit < tile.units; unit += 16) {
    for (int i = 0; i < 4; ++i) wanted.fetch();
    _tile_stream_loadd(4, a, kTileBytesPerRow);
    _tile_loadd(6, b, kTileBytesPerRow);
    _tile_loadd(7, b + kTileFloats, kTileBytesPerRow);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_stream_loadd(5, a + kTileFloats, kTileBytesPerRow);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    a += 2 * kTileFloats;
    b += 2 * kTileFloats;
  }
  float* lower = tile.out + 16 * tile.out_stride;
  _tile_stored(0, tile.out, out_bytes);
  _tile_stored(1, tile.out + 16, out_bytes);
  _tile_stored(2, lower, out_bytes);
  _tile_stored(3, lower + 16, out_bytes);
}

void pack_row_tiles(const GemmPanelSource& source, float* panel) {
  if (source.type == DType::bf16) return pack_by_tile<bf16_t, false>(source, 32, panel);
  pack_by_tile<float, false>(source, 32, panel);
}

void pack_col_tiles(const GemmPanelSource& source, float* panel) {
  if (source.type == DType::bf16) return pack_by_tile<bf16_t, true>(source, 32, panel);
  pack_by_tile<float, true>(source, 32, panel);
}

GemmKernels tile_kernels() {
  GemmKernels kernels;
  kernels.rows = 32;
  kernels.cols = 32;
  kernels.row_floats = 32;
  kernels.whole_panels = true;
  kernels.unit_depth = 2;
  kernels.units_step = 16;
  kernels.units_block = 256;
  kernels.rows_block = 128;
  kernels.rows_least = 128;  // tiles are done with a panel of B in no time: fewer rows would wait for the next one
  kernels.cols_block = 1024;
  kernels.pack_a = pack_row_tiles;
  kernels.pack_b = pack_col_tiles;
  kernels.multiply = multiply_tiles;
  kernels.finish = finish_tile;
  kernels.begin_thread = configure_tiles;
  kernels.end_thread = release_tiles;
  return kernels;
}

#endif

}  // namespace

const GemmKernels& gemm_kernels(Arithmetic arithmetic) {
  static const GemmKernels f32 = vector_kernels<FloatUnits, FloatProduct>();
#if defined(BRISK_ISA_amx)
  static const GemmKernels bf16 = tile_kernels();
#elif defined(BRISK_ISA_avx512bf16)
  static const GemmKernels bf16 = vector_kernels<PairUnits, PairProduct>();
#else
  static const GemmKernels bf16 = vector_kernels<RoundedUnits, FloatProduct>();
#endif
  return arithmetic == Arithmetic::f32 ? f32 : bf16;
}

}  // namespace brisk::BRISK_ISA
