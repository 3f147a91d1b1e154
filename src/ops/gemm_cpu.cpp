#include "ops/gemm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/gemm_kernels.h"
#include "ops/gemm_library.h"

namespace brisk::cpu {

namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return divide_up(a, b) * b; }

// Memory for packed panels: lives as long as the program and only grows, so steady training allocates nothing. In huge
// pages, since a panel is read from end to end by every tile.
class Scratch {
 public:
  float* reserve(int64_t floats) {
    constexpr int64_t kHugePage = 2 << 20;
    const int64_t bytes = round_up(std::max<int64_t>(floats, 1) * 4, kHugePage);
    if (bytes > bytes_) {
      if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(bytes_ + kHugePage));
      memory_ = mmap(nullptr, static_cast<size_t>(bytes + kHugePage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
      BRISK_CHECK(memory_ != MAP_FAILED, "no memory for {} bytes of packed panels", bytes);
      bytes_ = bytes;
      data_ = reinterpret_cast<float*>(static_cast<uintptr_t>(
          round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory_)), kHugePage)));
      madvise(data_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
    }
    return data_;
  }

 private:
  void* memory_ = nullptr;
  float* data_ = nullptr;
  int64_t bytes_ = 0;
};

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
// Part `part` of `parts` nearly equal parts of a range.
Range divide(Range range, int64_t part, int64_t parts) {
  return {range.begin + range.size() * part / parts, range.begin + range.size() * (part + 1) / parts};
}

// One product: how it is cut into blocks and shared by the team.
class Product {
 public:
  Product(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
          const GemmEpilogue& epilogue)
      : kernels_(kernels), m_(m), n_(n), k_(k), a_(a), b_(b), epilogue_(epilogue), team_(Team::instance()) {
    plain_ = epilogue.c.type == DType::f32 && epilogue.bias == nullptr && epilogue.activation == Activation::none &&
             !epilogue.before && !epilogue.dropout.active() && !epilogue.residual;
    const int64_t depth_most = kernels.units_block * kernels.unit_depth;
    depth_passes_ = std::max<int64_t>(1, divide_up(k, depth_most));
    depth_block_ = round_up(std::max<int64_t>(1, divide_up(k, depth_passes_)), kernels.units_step * kernels.unit_depth);
    if (depth_passes_ > 1) depth_block_ = round_up(depth_block_, 16 * kernels.unit_depth);
    depth_passes_ = std::max<int64_t>(1, divide_up(k, depth_block_));
    units_block_ = depth_block_ / kernels.unit_depth + (depth_block_ % kernels.unit_depth != 0);

    col_passes_ = divide_up(n, kernels.cols_block);
    cols_block_ = round_up(divide_up(n, col_passes_), kernels.cols);
    col_passes_ = divide_up(n, cols_block_);

    // A thread gets rows first: then it shares no row of A with anybody. Where that leaves it with few rows, columns too.
    row_groups_ = team_.size();
    while (row_groups_ > 1 && m < row_groups_ * 3 * kernels.rows) row_groups_ = smaller_divisor(row_groups_);
    col_groups_ = team_.size() / row_groups_;
    row_blocks_ = std::max<int64_t>(1, divide_up(divide_up(m, row_groups_), kernels.rows_block));
    block_panels_ = divide_up(divide_up(divide_up(m, row_groups_), row_blocks_) + 1, kernels.rows);

    static Scratch scratch;
    const int64_t b_floats = round_up(units_block_ * cols_block_, 16);
    const int64_t a_floats = round_up(block_panels_ * kernels.rows * units_block_ + 64, 16);
    const int64_t tile_floats = kernels.rows * kernels.cols;
    const bool keeps_partial = !plain_ && depth_passes_ > 1;
    partial_floats_ =
        keeps_partial ? row_blocks_ * block_panels_ * (cols_block_ / kernels.cols) * tile_floats : 0;
    const int64_t keys_floats = epilogue.dropout.active() ? round_up(m, 16) : 0;
    float* memory = scratch.reserve(2 * b_floats + team_.size() * (a_floats + tile_floats) +
                                    row_groups_ * partial_floats_ + keys_floats);
    b_panels_[0] = memory;
    b_panels_[1] = memory += b_floats;
    a_panels_ = memory += b_floats;
    a_floats_ = a_floats;
    tile_buffers_ = memory += team_.size() * a_floats;
    partial_ = memory += team_.size() * tile_floats;
    row_keys_ = reinterpret_cast<uint32_t*>(memory + row_groups_ * partial_floats_);
  }

  void run() {
    team_.run([this](int thread) { run_thread(thread); });
  }

 private:
  int smaller_divisor(int64_t groups) const {
    int64_t smaller = groups - 1;
    while (team_.size() % smaller != 0) --smaller;
    return static_cast<int>(smaller);
  }

  void run_thread(int thread) {
    const Range rows = divide({0, m_}, thread / col_groups_, row_groups_);
    kernels_.begin_thread();
    if (epilogue_.dropout.active()) {
      // Threads of one row group write the same keys: of its own columns each needs all of them before the barrier is passed.
      const RowSet& set = epilogue_.rows;
      const Range own = divide(rows, thread % col_groups_, col_groups_);
      for (int64_t r = own.begin; r < own.end; ++r) {
        row_keys_[r] = random_row_key(epilogue_.dropout.key, static_cast<uint32_t>(set.sequence[r]),
                                      static_cast<uint32_t>(set.position[r]));
      }
    }
    int64_t step = 0;
    for (int64_t col_pass = 0; col_pass < col_passes_; ++col_pass) {
      const Range cols{col_pass * cols_block_, std::min(n_, (col_pass + 1) * cols_block_)};
      for (int64_t depth_pass = 0; depth_pass < depth_passes_; ++depth_pass, ++step) {
        const Range depth{depth_pass * depth_block_, std::min(k_, (depth_pass + 1) * depth_block_)};
        // Two buffers take turns: whoever passes this barrier knows that all are done with the buffer before the last.
        float* b_panels = b_panels_[step % 2];
        pack_b(thread, cols, depth, b_panels);
        team_.barrier();
        multiply_block(thread, rows, cols, depth, depth_pass, b_panels);
      }
    }
    kernels_.end_thread();
  }

  int64_t units(Range depth) const {
    return round_up(divide_up(depth.size(), kernels_.unit_depth), kernels_.units_step);
  }

  void pack_b(int thread, Range cols, Range depth, float* b_panels) const {
    const Range own = divide({0, divide_up(cols.size(), kernels_.cols)}, thread, team_.size());
    GemmPanelSource source{nullptr, b_.type, b_.stride, b_.transposed, 0, depth.size()};
    for (int64_t panel = own.begin; panel < own.end; ++panel) {
      const int64_t col = cols.begin + panel * kernels_.cols;
      source.data = element(b_, depth.begin, col);
      source.across = std::min(kernels_.cols, cols.end - col);
      kernels_.pack_b(source, b_panels + panel * kernels_.cols * units(depth));
    }
  }

  static const void* element(const GemmOperand& operand, int64_t i, int64_t j) {
    const int64_t index = operand.transposed ? j * operand.stride + i : i * operand.stride + j;
    return static_cast<const char*>(operand.data) + index * size_of(operand.type);
  }

  void multiply_block(int thread, Range rows, Range cols, Range depth, int64_t depth_pass, const float* b_panels) const {
    const int64_t panel_units = units(depth);
    const Range panels = divide({0, divide_up(cols.size(), kernels_.cols)}, thread % col_groups_, col_groups_);
    float* a_panels = a_panels_ + thread * a_floats_;
    float* tile_buffer = tile_buffers_ + thread * kernels_.rows * kernels_.cols;
    for (int64_t block = 0; block < row_blocks_; ++block) {
      const Range block_rows = block_range(rows, block, row_blocks_);
      const int64_t count = divide_up(block_rows.size(), kernels_.rows);
      for (int64_t p = 0; p < count; ++p) {
        const Range panel_rows = block_range(block_rows, p, count);
        const GemmPanelSource source{element(a_, panel_rows.begin, depth.begin), a_.type, a_.stride, !a_.transposed,
                                     panel_rows.size(), depth.size()};
        kernels_.pack_a(source, panel_rows.size(), a_panels + p * kernels_.rows * panel_units);
      }
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t col = cols.begin + panel * kernels_.cols;
        for (int64_t p = 0; p < count; ++p) {
          GemmTile tile;
          tile.units = panel_units;
          tile.a_panel = a_panels + p * kernels_.rows * panel_units;
          tile.b_panel = b_panels + panel * kernels_.cols * panel_units;
          const Range panel_rows = block_range(block_rows, p, count);
          float* partial = partial_ + (thread / col_groups_) * partial_floats_ +
                           ((block * block_panels_ + p) * (cols_block_ / kernels_.cols) + panel) * kernels_.rows *
                               kernels_.cols;
          multiply_tile(tile, panel_rows, {col, std::min(col + kernels_.cols, cols.end)}, depth_pass, partial, tile_buffer);
        }
      }
    }
  }

  // Parts of a range in whole panels where the kernel wants whole ones, else nearly equal: 128 rows are ten panels of
  // 12 or 13 rows, not nine of 14 and a thin one.
  Range block_range(Range range, int64_t part, int64_t parts) const {
    if (!kernels_.whole_panels) return divide(range, part, parts);
    const int64_t panels = divide_up(range.size(), kernels_.rows);
    const Range whole = divide({0, panels}, part, parts);
    return {range.begin + whole.begin * kernels_.rows, std::min(range.end, range.begin + whole.end * kernels_.rows)};
  }

  void multiply_tile(GemmTile& tile, Range rows, Range cols, int64_t depth_pass, float* partial, float* buffer) const {
    const bool first = depth_pass == 0, last = depth_pass + 1 == depth_passes_;
    const bool whole = cols.size() == kernels_.cols && (!kernels_.whole_panels || rows.size() == kernels_.rows);
    tile.rows = rows.size();
    tile.out_stride = tile.start_stride = kernels_.cols;
    if (plain_) {
      const bool adds = epilogue_.adds || !first;
      if (whole) {
        tile.out = epilogue_.c.f32() + rows.begin * epilogue_.c.stride + cols.begin;
        tile.out_stride = tile.start_stride = epilogue_.c.stride;
        tile.start = adds ? tile.out : nullptr;
        kernels_.multiply(tile);
        return;
      }
      // At the edges of C a tile is computed beside it. The sum is taken in the same order as inside, so that where the
      // edges of tiles lie (on the number of threads) changes no bit.
      if (adds) {
        for (int64_t r = 0; r < rows.size(); ++r) {
          const float* row = epilogue_.c.f32() + (rows.begin + r) * epilogue_.c.stride + cols.begin;
          std::copy(row, row + cols.size(), buffer + r * kernels_.cols);
        }
        tile.start = buffer;
      }
      tile.out = buffer;
      kernels_.multiply(tile);
      kernels_.finish(buffer, kernels_.cols, rows.begin, rows.size(), cols.begin, cols.size(), {.c = epilogue_.c}, nullptr);
      return;
    }
    tile.start = first ? nullptr : partial;
    tile.out = last ? buffer : partial;
    kernels_.multiply(tile);
    if (last) {
      kernels_.finish(buffer, kernels_.cols, rows.begin, rows.size(), cols.begin, cols.size(), epilogue_,
                      row_keys_ + rows.begin);
    }
  }

  const GemmKernels& kernels_;
  const int64_t m_, n_, k_;
  const GemmOperand& a_;
  const GemmOperand& b_;
  const GemmEpilogue& epilogue_;
  Team& team_;
  bool plain_ = false;  // C gets the products and nothing else, in fp32: it can hold the partial sums itself
  int64_t depth_passes_ = 1, depth_block_ = 0, units_block_ = 0;
  int64_t col_passes_ = 1, cols_block_ = 0;
  int64_t row_groups_ = 1, col_groups_ = 1, row_blocks_ = 1, block_panels_ = 1;
  float* b_panels_[2] = {};
  float* a_panels_ = nullptr;      // of each thread
  float* tile_buffers_ = nullptr;  // of each thread
  float* partial_ = nullptr;       // of each row group, tile by tile
  int64_t a_floats_ = 0, partial_floats_ = 0;
  uint32_t* row_keys_ = nullptr;  // [M]
};

const GemmKernels* own_kernels(Arithmetic arithmetic) {
  return has_vector_kernels() ? &BRISK_ACTIVE_ISA(gemm_kernels)(arithmetic) : nullptr;
}

}  // namespace

void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmEpilogue& epilogue,
          Arithmetic arithmetic) {
  if (m <= 0 || n <= 0) return;
  const GemmImplementation implementation = gemm_implementation();
  const GemmKernels* kernels = own_kernels(arithmetic);
  if (implementation == GemmImplementation::own && kernels != nullptr) {
    Product(*kernels, m, n, std::max<int64_t>(k, 0), a, b, epilogue).run();
    return;
  }
  gemm_by(implementation, m, n, k, a, b, epilogue, arithmetic);
}

}  // namespace brisk::cpu
