#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "ops/gemm.h"
#include "ops/gemm_few_rows.h"
#include "ops/gemm_kernels.h"
#include "ops/gemm_library.h"
#include "ops/panel_memory.h"

namespace brisk::cpu {

namespace {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
// Part `part` of `parts` nearly equal parts of a range.
Range divide(Range range, int64_t part, int64_t parts) {
  return {range.begin + range.size() * part / parts, range.begin + range.size() * (part + 1) / parts};
}

constexpr int kStepsAhead = 4;

// How many of its share of the items of a step each thread has taken; one line each, so that nobody waits for a
// neighbour.
struct alignas(64) Taken {
  std::atomic<int64_t> count[kStepsAhead] = {};
};

// The most of B a step packs (2 MiB), and of A where a thread keeps all passes of an item.
constexpr int64_t kStepFloats = 1 << 19, kItemFloats = 1 << 17;

// One product: how it is cut into steps and items, and shared by the team.
//
// A step is a block of columns and depth of B, packed by the whole team, which then meets: few steps, since whoever
// comes late holds up the others (a meeting every 256 of depth took up to 10 % of a product). In a step the rows of C
// are cut into items; each thread begins with its own share of them and then helps the others, so that a core that
// others disturb delays nobody. An item goes through the depth of its step in passes whose panels fit the caches.
class Product {
 public:
  Product(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
          const GemmEpilogue& epilogue, int team_size)
      : kernels_(kernels),
        m_(m),
        n_(n),
        k_(k),
        a_(a),
        b_(b),
        epilogue_(epilogue),
        threads_(m * n * k < kSmallProduct ? 1 : team_size) {
    plain_ = epilogue.c.type == DType::f32 && epilogue.bias == nullptr && epilogue.activation == Activation::none &&
             !epilogue.before && !epilogue.dropout.active() && !epilogue.residual;
    const int64_t threads = threads_, depth_step = kernels.units_step * kernels.unit_depth;
    depth_passes_ = std::max<int64_t>(1, divide_up(k, kernels.units_block * kernels.unit_depth));
    depth_block_ = round_up(std::max<int64_t>(1, divide_up(k, depth_passes_)), depth_step);
    if (depth_passes_ > 1) depth_block_ = round_up(depth_block_, 16 * kernels.unit_depth);
    depth_passes_ = std::max<int64_t>(1, divide_up(k, depth_block_));
    const int64_t units_block = depth_block_ / kernels.unit_depth;
    a_by_row_ = kernels.row_stride > 0 && !a.transposed && a.type == DType::f32;

    col_passes_ = divide_up(n, kernels.cols_block);
    cols_block_ = round_up(divide_up(n, col_passes_), kernels.cols);
    col_passes_ = divide_up(n, cols_block_);

    // High items, since each reads all of B's block; several for each thread, so that threads can help each other: of
    // few rows each item is cut by columns too, and a thread that goes on with the same rows need not pack them again.
    const int64_t wanted = threads == 1 ? 1 : 4 * threads;
    const int64_t low_items = std::min(wanted, m / kernels.rows_least);
    row_items_ =
        std::min(round_up(std::max(divide_up(m, kernels.rows_block), low_items), threads), divide_up(m, kernels.rows));
    const int64_t panels = cols_block_ / kernels.cols;
    col_items_ = std::clamp<int64_t>(divide_up(wanted, row_items_), 1, std::max<int64_t>(1, panels / 2));
    if (row_items_ * col_items_ < threads) col_items_ = std::min(divide_up(threads, row_items_), panels);
    item_panels_ = divide_up(divide_up(m, row_items_), kernels.rows);
    panel_floats_ = a_by_row_ ? kernels.rows * kernels.row_stride : kernels.row_floats * units_block;

    // As many passes to a step as keep its share of B (and of A, where several items want the same rows) near.
    const int64_t b_pass_floats = units_block * cols_block_;
    step_passes_ = std::clamp<int64_t>(kStepFloats / b_pass_floats, 1, depth_passes_);
    if (col_items_ > 1) {
      step_passes_ = std::clamp<int64_t>(kItemFloats / (item_panels_ * panel_floats_), 1, step_passes_);
    }
    depth_steps_ = divide_up(depth_passes_, step_passes_);
    step_passes_ = divide_up(depth_passes_, depth_steps_);

    // The team's memory, and each thread's for what it multiplies alone.
    static PanelMemory team_memory;
    static std::vector<Taken> team_taken;
    static thread_local PanelMemory own_memory;
    static thread_local std::vector<Taken> own_taken;
    PanelMemory& panel_memory = threads > 1 ? team_memory : own_memory;
    std::vector<Taken>& taken = threads > 1 ? team_taken : own_taken;
    if (static_cast<int64_t>(taken.size()) < threads) taken = std::vector<Taken>(static_cast<size_t>(threads));
    for (Taken& of_thread : taken) {
      for (std::atomic<int64_t>& count : of_thread.count) count.store(0, std::memory_order_relaxed);
    }
    taken_ = taken.data();
    const int64_t b_floats = round_up(b_pass_floats * step_passes_, 16);
    const int64_t tile_floats = kernels.rows * kernels.cols;
    a_floats_ = item_panels_ * panel_floats_ * (col_items_ > 1 ? step_passes_ : 1);
    const bool keeps_partial = !plain_ && depth_passes_ > 1;
    const int64_t partial_floats =
        keeps_partial ? row_items_ * item_panels_ * (cols_block_ / kernels.cols) * tile_floats : 0;
    const int64_t keys_floats = epilogue.dropout.active() ? round_up(m, 16) : 0;
    float* memory =
        panel_memory.reserve(2 * b_floats + threads * (a_floats_ + tile_floats) + partial_floats + keys_floats);
    b_panels_[0] = memory;
    b_panels_[1] = memory += b_floats;
    a_panels_ = memory += b_floats;
    tile_buffers_ = memory += threads * a_floats_;
    partial_ = memory += threads * tile_floats;
    row_keys_ = reinterpret_cast<uint32_t*>(memory + partial_floats);
  }

  void run() {
    if (threads_ == 1) return run_thread(0);
    Team::instance().run([this](int thread) { run_thread(thread); });
  }

 private:
  struct Item {
    Range rows;
    int64_t row_item = 0;
    Range panels;  // of B
  };

  struct Step {
    Range cols, passes;
    int64_t number = 0;
  };
  int64_t steps() const { return col_passes_ * depth_steps_; }
  Step step(int64_t number) const {
    const int64_t col_pass = number / depth_steps_, depth_step = number % depth_steps_;
    return {{col_pass * cols_block_, std::min(n_, (col_pass + 1) * cols_block_)},
            {depth_step * step_passes_, std::min(depth_passes_, (depth_step + 1) * step_passes_)},
            number};
  }
  Range depth_of(int64_t pass) const { return {pass * depth_block_, std::min(k_, (pass + 1) * depth_block_)}; }
  // Where a pass of a step begins in B's panels.
  int64_t b_offset(const Step& step, int64_t pass) const {
    return (pass - step.passes.begin) * (depth_block_ / kernels_.unit_depth) * cols_block_;
  }

  void run_thread(int thread) {
    kernels_.begin_thread();
    write_row_keys(thread);
    for (int64_t number = 0; number < steps(); ++number) {
      const Step now = step(number);
      // Two buffers take turns: whoever passes the barrier knows that all are done with the step before.
      float* b_panels = b_panels_[number % 2];
      for (int64_t pass = now.passes.begin; pass < now.passes.end; ++pass) {
        pack_b(thread, now, depth_of(pass), b_panels + b_offset(now, pass));
      }
      if (threads_ > 1) Team::instance().barrier();
      taken_[thread].count[(number + 2) % kStepsAhead].store(0, std::memory_order_relaxed);
      multiply_step(thread, now, b_panels);
    }
    kernels_.end_thread();
  }

  void write_row_keys(int thread) const {
    if (!epilogue_.dropout.active()) return;
    const Range own = divide({0, m_}, thread, threads_);
    for (int64_t r = own.begin; r < own.end; ++r) row_keys_[r] = epilogue_.dropout.row_key(epilogue_.rows, r);
  }

  int64_t units(Range depth) const {
    return round_up(divide_up(depth.size(), kernels_.unit_depth), kernels_.units_step);
  }

  Range panels_to_pack(int thread, const Step& step) const {
    return divide({0, divide_up(step.cols.size(), kernels_.cols)}, thread, threads_);
  }

  // Where neighbours along the depth lie far apart in memory, panels are packed a stretch of depth at a time, side by
  // side: else every panel would walk over all the pages of the block again.
  static constexpr int64_t kStretch = 32;
  template <typename PackPanel>
  void pack_panels(Range panels, Range depth, bool depth_contiguous, const PackPanel& pack_panel) const {
    const int64_t stretch = depth_contiguous ? std::max<int64_t>(1, depth.size()) : kStretch;
    for (int64_t begin = depth.begin; begin < depth.end; begin += stretch) {
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        pack_panel(panel, Range{begin, std::min(begin + stretch, depth.end)});
      }
    }
  }

  void pack_b(int thread, const Step& step, Range all_depth, float* b_panels) const {
    const int64_t panel_floats = kernels_.cols * units(all_depth);
    pack_panels(panels_to_pack(thread, step), all_depth, b_.transposed, [&](int64_t panel, Range depth) {
      const int64_t col = step.cols.begin + panel * kernels_.cols,
                    unit = (depth.begin - all_depth.begin) / kernels_.unit_depth;
      const GemmPanelSource source{element_of(b_, depth.begin, col),
                                   b_.type,
                                   b_.stride,
                                   b_.transposed,
                                   std::min(kernels_.cols, step.cols.end - col),
                                   depth.size()};
      kernels_.pack_b(source, b_panels + panel * panel_floats + unit * kernels_.cols);
    });
  }

  void pack_a(const Item& item, Range all_depth, float* a_panels) const {
    const int64_t count = divide_up(item.rows.size(), kernels_.rows);
    pack_panels({0, count}, all_depth, !a_.transposed, [&](int64_t panel, Range depth) {
      const Range rows = row_range(item.rows, panel, count);
      const int64_t unit = (depth.begin - all_depth.begin) / kernels_.unit_depth;
      const GemmPanelSource source{
          element_of(a_, rows.begin, depth.begin), a_.type, a_.stride, !a_.transposed, rows.size(), depth.size()};
      float* out = a_panels + panel * panel_floats_;
      if (a_by_row_) return kernels_.pack_a_by_row(source, out);
      kernels_.pack_a(source, out + unit * kernels_.row_floats);
    });
  }

  static const void* element_of(const GemmOperand& operand, int64_t i, int64_t j) {
    const int64_t index = operand.transposed ? j * operand.stride + i : i * operand.stride + j;
    return static_cast<const char*>(operand.data) + index * size_of(operand.type);
  }

  // The next item of the step for this thread: of its own share first, then of the others'. False if there is none
  // left.
  bool take(int thread, const Step& step, Item& item) const {
    const int64_t items = row_items_ * col_items_;
    for (int i = 0; i < threads_; ++i) {
      const int owner = (thread + i) % threads_;
      const Range share = divide({0, items}, owner, threads_);
      std::atomic<int64_t>& count = taken_[owner].count[step.number % kStepsAhead];
      if (count.load(std::memory_order_relaxed) >= share.size()) continue;
      const int64_t taken = count.fetch_add(1, std::memory_order_relaxed);
      if (taken >= share.size()) continue;
      const int64_t number = share.begin + taken;
      item.row_item = number / col_items_;
      item.rows = row_range({0, m_}, item.row_item, row_items_);
      item.panels = divide({0, divide_up(step.cols.size(), kernels_.cols)}, number % col_items_, col_items_);
      return true;
    }
    return false;
  }

  void multiply_step(int thread, const Step& step, const float* b_panels) const {
    const bool keeps_all = col_items_ > 1;  // passes of A, for the next item of the same rows
    int64_t packed_item = -1;
    Item item;
    while (take(thread, step, item)) {
      for (int64_t pass = step.passes.begin; pass < step.passes.end; ++pass) {
        float* a_panels = a_panels_ + thread * a_floats_;
        if (keeps_all) a_panels += (pass - step.passes.begin) * item_panels_ * panel_floats_;
        if (!keeps_all || item.row_item != packed_item) pack_a(item, depth_of(pass), a_panels);
        multiply_item(thread, step, pass, item, a_panels, b_panels + b_offset(step, pass));
      }
      packed_item = item.row_item;
    }
  }

  void multiply_item(int thread, const Step& step, int64_t pass, const Item& item, const float* a_panels,
                     const float* b_panels) const {
    const int64_t panel_units = units(depth_of(pass)), count = divide_up(item.rows.size(), kernels_.rows);
    float* tile_buffer = tile_buffers_ + thread * kernels_.rows * kernels_.cols;
    for (int64_t panel = item.panels.begin; panel < item.panels.end; ++panel) {
      const int64_t col = step.cols.begin + panel * kernels_.cols;
      for (int64_t p = 0; p < count; ++p) {
        GemmTile tile;
        tile.units = panel_units;
        tile.a_panel = a_panels + p * panel_floats_;
        tile.a_by_row = a_by_row_;
        tile.b_panel = b_panels + panel * kernels_.cols * panel_units;
        const int64_t number = (item.row_item * item_panels_ + p) * (cols_block_ / kernels_.cols) + panel;
        multiply_tile(tile, row_range(item.rows, p, count), {col, std::min(col + kernels_.cols, step.cols.end)}, pass,
                      partial_ + number * kernels_.rows * kernels_.cols, tile_buffer);
      }
    }
  }

  // Parts of a range of rows: of whole panels where the kernel wants whole ones, else nearly equal, so that 128 rows
  // are ten panels of 12 or 13 rows, not nine of 14 and a thin one.
  Range row_range(Range range, int64_t part, int64_t parts) const {
    if (!kernels_.whole_panels) return divide(range, part, parts);
    const Range whole = divide({0, divide_up(range.size(), kernels_.rows)}, part, parts);
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
        tile.wanted[0] = {reinterpret_cast<const char*>(tile.out), tile.out_stride * 4};
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
      kernels_.finish(buffer, kernels_.cols, rows.begin, rows.size(), cols.begin, cols.size(), {.c = epilogue_.c},
                      nullptr);
      return;
    }
    tile.start = first ? nullptr : partial;
    tile.out = last ? buffer : partial;
    if (last) {
      int wanted = 0;
      for (const Tensor* tensor : {&epilogue_.c, &epilogue_.before, &epilogue_.residual}) {
        if (*tensor) tile.wanted[wanted++] = wanted_rows(*tensor, rows.begin, cols.begin);
      }
    }
    kernels_.multiply(tile);
    if (last) {
      kernels_.finish(buffer, kernels_.cols, rows.begin, rows.size(), cols.begin, cols.size(), epilogue_,
                      row_keys_ + rows.begin);
    }
  }

  static GemmTile::Wanted wanted_rows(const Tensor& tensor, int64_t row, int64_t col) {
    const int64_t bytes = size_of(tensor.type);
    return {static_cast<const char*>(tensor.data) + (row * tensor.stride + col) * bytes, tensor.stride * bytes};
  }

  const GemmKernels& kernels_;
  const int64_t m_, n_, k_;
  const GemmOperand& a_;
  const GemmOperand& b_;
  const GemmEpilogue& epilogue_;
  const int threads_;
  bool plain_ = false;  // C gets the products and nothing else, in fp32: it can hold the partial sums itself
  bool a_by_row_ = false;
  int64_t depth_passes_ = 1, depth_block_ = 0;
  int64_t step_passes_ = 1, depth_steps_ = 1;  // passes of a step, steps of a block of columns
  int64_t col_passes_ = 1, cols_block_ = 0;
  int64_t row_items_ = 1, col_items_ = 1;
  int64_t item_panels_ = 1;   // most panels of A in an item
  int64_t panel_floats_ = 0;  // from one panel of A to the next
  Taken* taken_ = nullptr;
  float* b_panels_[2] = {};
  float* a_panels_ = nullptr;  // of each thread
  int64_t a_floats_ = 0;
  float* tile_buffers_ = nullptr;  // of each thread
  float* partial_ = nullptr;       // of each tile of a block of columns
  uint32_t* row_keys_ = nullptr;   // [M]
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
    if (m <= (arithmetic == Arithmetic::f32 ? kFewRows : kFewRowsBf16) && !a.transposed && b.transposed) {
      return gemm_few_rows(*kernels, m, n, std::max<int64_t>(k, 0), a, b, epilogue, arithmetic);
    }
    Product(*kernels, m, n, std::max<int64_t>(k, 0), a, b, epilogue, Team::instance().size()).run();
    return;
  }
  gemm_by(implementation, m, n, k, a, b, epilogue, arithmetic);
}

void gemm_alone(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
                const GemmEpilogue& epilogue, Arithmetic arithmetic) {
  BRISK_CHECK(can_gemm_alone(), "only brisk's own product runs on one thread of a team");
  if (m > 0 && n > 0) Product(*own_kernels(arithmetic), m, n, std::max<int64_t>(k, 0), a, b, epilogue, 1).run();
}

bool can_gemm_alone() { return gemm_implementation() == GemmImplementation::own && has_vector_kernels(); }

}  // namespace brisk::cpu
