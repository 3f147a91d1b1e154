// What gemm needs of an instruction set: a way to pack each operand into panels, a product of two panels into one tile
// of C, and the epilogue of a tile. gemm_isa.cpp provides these once per instruction set; gemm_cpu.cpp walks over C
// with them.
//
// A packed unit is 4 bytes: one float, or two bf16 neighbours along the depth where the instruction multiplies pairs.
// A panel of A holds up to `rows` rows of A over a block of depth, a panel of B `cols` columns of B; both are padded
// with zeros to whole units (and to whole tiles for AMX), so a product never looks at a remainder. Floats of A whose
// depth lies in a row of memory are copied as they lie (`by_row`): a transposition while packing took 5 % of a product
// with 256 columns.
#pragma once

#include "ops/cpu/by_isa.h"
#include "ops/gemm/gemm.h"

namespace brisk {

// A tile of the product: C[rows, cols] = start + A panel * B panel. All strides are in floats.
struct GemmTile {
  int64_t units = 0;  // packed depth
  const float* a_panel = nullptr;
  const float* b_panel = nullptr;
  int64_t rows = 0;              // of the A panel
  bool a_by_row = false;         // the panel of A is [rows][row_stride], not [units][row_floats]
  const float* start = nullptr;  // [rows, cols] or none for zero
  int64_t start_stride = 0;
  float* out = nullptr;  // [rows, cols]; may be `start`
  int64_t out_stride = 0;

  // Memory that is touched next: by the tile's epilogue, which writes there, or by the packing that follows. Fetched a
  // little at a time while the depth is walked through: all at once they would fill the line buffers that the panels
  // come through.
  struct Wanted {
    const char* at = nullptr;  // two lines there ...
    int64_t stride = 0;        // ... and every so many bytes
    int64_t count = 0;
  };
  static constexpr int kWritten = 3, kRead = 6;
  Wanted written[kWritten], read[kRead];
};

// An operand seen from a panel: `across` counts rows of A or columns of B.
struct GemmPanelSource {
  const void* data = nullptr;  // of element (across 0, depth 0) of the panel
  DType type = DType::f32;
  int64_t stride = 0;
  bool depth_contiguous = false;  // neighbours along the depth are neighbours in memory
  int64_t across = 0;             // how many there are; the rest of the panel may be anything
  int64_t depth = 0;
};

struct GemmKernels {
  int64_t rows = 0;           // most rows of a panel of A
  int64_t cols = 0;           // columns of a panel of B
  int64_t row_floats = 0;     // floats of a unit of depth of a panel of A; of a panel of B it is cols
  int64_t row_stride = 0;     // floats of a row of a panel of A by_row; 0: there are none
  bool whole_panels = false;  // a tile always has `rows` rows (AMX); otherwise exactly as many as its panel
  int64_t unit_depth = 1;     // depth of a unit: 1 float or 2 bf16
  int64_t units_step = 1;     // packed depth is a multiple of this many units
  int64_t units_block = 256;  // most packed depth of one pass
  int64_t rows_block = 168;   // rows of A packed at a time, which stay in the second-level cache
  int64_t rows_least = 64;    // rows below which a block of A is too low: B's panels come from afar for each
  int64_t items_wanted = 4;   // items of a step for each thread, so that threads can help each other
  int64_t cols_block = 1024;  // columns of B packed at a time, shared by the thread pool
  void (*pack_a)(const GemmPanelSource& source, float* panel) = nullptr;
  void (*pack_a_by_row)(const GemmPanelSource& source, float* panel) = nullptr;
  void (*pack_b)(const GemmPanelSource& source, float* panel) = nullptr;
  void (*multiply)(const GemmTile& tile) = nullptr;
  // acc [rows, cols] at (row, col) of C goes through the epilogue; row_keys of the tile's rows, for dropout.
  void (*finish)(const float* acc, int64_t acc_stride, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 const GemmEpilogue& epilogue, const uint32_t* row_keys) = nullptr;
  void (*begin_thread)() = nullptr;  // before and after a thread multiplies; AMX configures its tiles
  void (*end_thread)() = nullptr;
};

BRISK_EVERY_ISA(const GemmKernels& gemm_kernels(Arithmetic arithmetic);)

// Multiply-adds below which one thread does it all: 30 microseconds of work in fp32, which two would not halve.
constexpr int64_t kSmallProduct = 2 << 20;

}  // namespace brisk
