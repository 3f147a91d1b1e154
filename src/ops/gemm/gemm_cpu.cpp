#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "ops/cpu/cpu_workspace.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_few_rows.h"
#include "ops/gemm/gemm_kernels.h"
#include "ops/gemm/gemm_library.h"
#include "ops/gemm/gemm_prefetch.h"
#include "ops/gemm/gemm_schedule.h"
#include "ops/gemm/panel_memory.h"

namespace brisk::cpu {

namespace {

using Range = GemmRange;

// The most of B a step packs (2 MiB), and of A where a thread keeps all passes of an item.
constexpr int64_t kStepFloats = 1 << 19, kItemFloats = 1 << 17;

// B is packed by each thread for itself up to so many rows of A, of which a pass (1 MiB) stays near and all are not too
// much (8 MiB), and where there are so many panels of B for each thread. Two cores, of the peak: DistilBERT's products
// with 200 rows 0.61 to 0.68, logits of 512 rows and 50,000 words 0.77 to 0.97, of 1,024 and 10,000 0.88 to 0.95.
constexpr int64_t kLowRows = 1024, kLowPassFloats = 1 << 18, kLowFloats = 1 << 21, kLowItems = 6;

// One product: how it is cut into steps and items, and shared by the thread pool.
//
// A step is a block of columns and depth of B, packed by all threads together. In a step the rows of C are cut into
// items; each thread begins with its own share of them and then helps the others (gemm_schedule.h), so that a core that
// other processes slow down delays nobody. An item goes through the depth of its step in passes whose panels fit the
// caches.
//
// With few rows (`low_`) it is the other way round: packing B is a good part of the work then, and what one core packed
// is in another core's cache. So all threads pack A together, an item is a few panels of C's columns, and a thread
// packs its panels of B right before it multiplies all rows with them.
class CpuGemm {
 public:
  CpuGemm(const GemmKernels& kernels, int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
          const GemmEpilogue& epilogue, int pool_size)
      : kernels_(kernels),
        m_(m),
        n_(n),
        k_(k),
        a_(a),
        b_(b),
        epilogue_(epilogue),
        threads_(m * n * k < kSmallProduct ? 1 : pool_size) {
    const bool adds_bias_at_most = epilogue.c.type == DType::f32 && epilogue.activation == Activation::none &&
                                   !epilogue.before && !epilogue.dropout.active() && !epilogue.residual;
    const int64_t threads = threads_, depth_step = kernels.units_step * kernels.unit_depth;
    depth_passes_ = std::max<int64_t>(1, divide_up(k, kernels.units_block * kernels.unit_depth));
    depth_block_ = round_up(std::max<int64_t>(1, divide_up(k, depth_passes_)), depth_step);
    if (depth_passes_ > 1) depth_block_ = round_up(depth_block_, kStretch);
    depth_passes_ = std::max<int64_t>(1, divide_up(k, depth_block_));
    // A bias is where a tile's sums begin, of a single pass: through a buffer and the epilogue it took 5 % of a model with a
    // head of 64 x 50,000 in fp32, and 7 % in bf16.
    starts_from_bias_ = adds_bias_at_most && epilogue.bias != nullptr && !epilogue.adds && depth_passes_ == 1;
    plain_ = adds_bias_at_most && (epilogue.bias == nullptr || starts_from_bias_);
    const int64_t units_block = depth_block_ / kernels.unit_depth;
    a_by_row_ = kernels.row_stride > 0 && !a.transposed && a.type == DType::f32;

    panel_floats_ = a_by_row_ ? kernels.rows * kernels.row_stride : kernels.row_floats * units_block;
    low_ = m <= kLowRows && m * units_block <= kLowPassFloats && m * k <= kLowFloats && !a.transposed &&
           divide_up(n, kernels.cols) >= kLowItems * threads;
    if (low_) {
      cut_low();
    } else {
      cut(units_block);
    }

    const int64_t b_panels = cols_block_ / kernels.cols;
    b_floats_ = low_ ? units_block * kernels.cols * item_cols_ : units_block * cols_block_ * step_passes_;
    a_floats_ = item_panels_ * panel_floats_ * (low_ ? depth_passes_ : col_items_ > 1 ? step_passes_ : 1);
    // Sums of passes before the last: where a step has all passes, of the item in work alone, which stay near.
    const bool keeps_partial = !plain_ && depth_passes_ > 1;
    partial_items_ = depth_steps_ > 1 ? row_items_ : threads;
    const int64_t partial_cols = low_ ? item_cols_ : b_panels;
    partial_floats_ = keeps_partial ? item_panels_ * partial_cols * tile_floats() : 0;
    row_keys_size_ = epilogue.dropout.active() ? round_up(item_panels_ * kernels.rows, 16) : 0;
  }

  int64_t workspace_floats() const {
    return b_copies() * b_floats_ + a_copies() * a_floats_ + threads_ * (tile_floats() + row_keys_size_) +
           partial_items_ * partial_floats_;
  }

  void run() {
    // Of the thread that asks for a product, whether the pool computes it or that thread alone.
    static thread_local PanelMemory panel_memory;
    static thread_local GemmSchedule schedule;
    schedule_ = &schedule;
    schedule_->begin(threads_, steps(), row_items_ * col_items_);
    float* memory = panel_memory.reserve(workspace_floats());
    b_panels_ = memory;
    a_panels_ = memory += b_copies() * b_floats_;
    tile_buffers_ = memory += a_copies() * a_floats_;
    partial_ = memory += threads_ * tile_floats();
    row_keys_ = reinterpret_cast<uint32_t*>(memory + partial_items_ * partial_floats_);
    if (threads_ == 1) return run_thread(0);
    thread_pool().run_parts([this](int thread) { run_thread(thread); });
  }

 private:
  void cut(int64_t units_block) {
    col_passes_ = divide_up(n_, kernels_.cols_block);
    cols_block_ = round_up(divide_up(n_, col_passes_), kernels_.cols);
    col_passes_ = divide_up(n_, cols_block_);

    // High items, since each reads all of B's block; several for each thread, so that threads can help each other: of
    // few rows each item is cut by columns too, and a thread that goes on with the same rows need not pack them again.
    const int64_t threads = threads_, wanted = threads == 1 ? 1 : kernels_.items_wanted * threads;
    const int64_t low_items = std::min(wanted, m_ / kernels_.rows_least);
    row_items_ = std::min(round_up(std::max(divide_up(m_, kernels_.rows_block), low_items), threads),
                          divide_up(m_, kernels_.rows));
    const int64_t panels = cols_block_ / kernels_.cols;
    col_items_ = std::clamp<int64_t>(divide_up(wanted, row_items_), 1, std::max<int64_t>(1, panels / 2));
    if (row_items_ * col_items_ < threads) col_items_ = std::min(divide_up(threads, row_items_), panels);
    item_panels_ = divide_up(divide_up(m_, row_items_), kernels_.rows);

    // As many passes to a step as keep its share of B (and of A, where several items want the same rows) near.
    // Twice as much where sums between steps would need memory of their own.
    const int64_t step_floats = plain_ ? kStepFloats : 2 * kStepFloats;
    step_passes_ = std::clamp<int64_t>(step_floats / (units_block * cols_block_), 1, depth_passes_);
    if (col_items_ > 1) {
      step_passes_ = std::clamp<int64_t>(kItemFloats / (item_panels_ * panel_floats_), 1, step_passes_);
    }
    depth_steps_ = divide_up(depth_passes_, step_passes_);
    step_passes_ = divide_up(depth_passes_, depth_steps_);
  }

  // One step. Where B's depth lies across memory several panels are packed side by side.
  void cut_low() {
    const int64_t panels = divide_up(n_, kernels_.cols);
    cols_block_ = panels * kernels_.cols;
    item_panels_ = divide_up(m_, kernels_.rows);
    item_cols_ = b_.transposed ? 1 : std::clamp<int64_t>(panels / (kLowItems * threads_), 1, 4);
    col_items_ = divide_up(panels, item_cols_);
    step_passes_ = depth_passes_;
  }

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
  int64_t tile_floats() const { return kernels_.rows * kernels_.cols; }
  int64_t b_copies() const { return low_ ? threads_ : 2; }
  int64_t a_copies() const { return low_ ? 1 : threads_; }
  Step step(int64_t number) const {
    const int64_t col_pass = number / depth_steps_, depth_step = number % depth_steps_;
    return {{col_pass * cols_block_, std::min(n_, (col_pass + 1) * cols_block_)},
            {depth_step * step_passes_, std::min(depth_passes_, (depth_step + 1) * step_passes_)},
            number};
  }
  Range depth_of(int64_t pass) const { return {pass * depth_block_, std::min(k_, (pass + 1) * depth_block_)}; }
  void run_thread(int thread) {
    kernels_.begin_thread();
    for (int64_t number = 0; number < steps(); ++number) {
      const Step now = step(number);
      schedule_->wait_for_buffer(number);
      const int64_t tasks = pack_tasks(now);
      float* b_panels = b_panels_ + (number % 2) * b_floats_;
      for (int64_t task = 0; schedule_->take_pack(thread, number, tasks, task);) {
        if (low_) {
          const int64_t pass = task / item_panels_, panel = task % item_panels_;
          pack_a({0, m_}, {panel, panel + 1}, depth_of(pass), low_panels(pass));
        } else {
          pack_b(now, task, b_panels);
        }
        schedule_->packed(number);
      }
      schedule_->wait_for_packed(number, tasks);
      if (low_) {
        multiply_low(thread, now);
      } else {
        multiply_step(thread, now, b_panels);
      }
    }
    kernels_.end_thread();
  }

  int64_t units(Range depth) const {
    return round_up(divide_up(depth.size(), kernels_.unit_depth), kernels_.units_step);
  }

  // Where neighbours along the depth lie far apart in memory, panels are packed a stretch of depth at a time, side by
  // side: else every panel would walk over all the pages of the block again.
  static constexpr int64_t kStretch = 32;

  // B is packed in tasks: a panel and a pass each, or a stretch of depth of all panels. (With few rows A, a panel and a
  // pass each.)
  int64_t pack_tasks(const Step& step) const {
    if (k_ == 0) return 0;
    if (low_) return depth_passes_ * item_panels_;
    if (b_.transposed) return step.passes.size() * divide_up(step.cols.size(), kernels_.cols);
    return divide_up(depth_of(step).size(), kStretch);
  }
  Range depth_of(const Step& step) const {
    return {depth_of(step.passes.begin).begin, depth_of(step.passes.end - 1).end};
  }

  void pack_b(const Step& step, int64_t task, float* b_panels) const {
    const int64_t panels = divide_up(step.cols.size(), kernels_.cols);
    // A pass is a whole number of stretches unless it is the last.
    const Range all = depth_of(step);
    const int64_t begin = all.begin + task * kStretch;
    const int64_t pass = b_.transposed ? step.passes.begin + task / panels : begin / depth_block_;
    float* out = b_panels + (pass - step.passes.begin) * (depth_block_ / kernels_.unit_depth) * cols_block_;
    if (b_.transposed) {
      const int64_t panel = task % panels;
      return pack_b_panel(step.cols, pass, panel, depth_of(pass), out + panel * kernels_.cols * units(depth_of(pass)));
    }
    pack_b_stretch(step.cols, pass, {0, panels}, {begin, std::min(begin + kStretch, depth_of(pass).end)}, out);
  }

  // A stretch of depth of some panels, the first of which begins at `out`.
  void pack_b_stretch(Range cols, int64_t pass, Range panels, Range depth, float* out) const {
    const int64_t panel_floats = kernels_.cols * units(depth_of(pass));
    for (int64_t panel = panels.begin; panel < panels.end; ++panel, out += panel_floats) {
      pack_b_panel(cols, pass, panel, depth, out);
    }
  }

  void pack_b_panel(Range cols, int64_t pass, int64_t panel, Range depth, float* out) const {
    const int64_t col = cols.begin + panel * kernels_.cols,
                  unit = (depth.begin - depth_of(pass).begin) / kernels_.unit_depth;
    const GemmPanelSource source{element_of(b_, depth.begin, col),        b_.type,     b_.stride, b_.transposed,
                                 std::min(kernels_.cols, cols.end - col), depth.size()};
    kernels_.pack_b(source, out + unit * kernels_.cols);
  }

  // Some of the panels of an item's rows; `a_panels` are all of them.
  void pack_a(Range item_rows, Range panels, Range all_depth, float* a_panels) const {
    const int64_t count = divide_up(item_rows.size(), kernels_.rows);
    const int64_t stretch = a_.transposed ? kStretch : std::max<int64_t>(1, all_depth.size());
    for (int64_t begin = all_depth.begin; begin < all_depth.end; begin += stretch) {
      const Range depth{begin, std::min(begin + stretch, all_depth.end)};
      const int64_t unit = (depth.begin - all_depth.begin) / kernels_.unit_depth;
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const Range rows = row_range(item_rows, panel, count);
        const GemmPanelSource source{
            element_of(a_, rows.begin, depth.begin), a_.type, a_.stride, !a_.transposed, rows.size(), depth.size()};
        float* out = a_panels + panel * panel_floats_;
        if (a_by_row_) {
          kernels_.pack_a_by_row(source, out);
        } else {
          kernels_.pack_a(source, out + unit * kernels_.row_floats);
        }
      }
    }
  }

  static const void* element_of(const GemmOperand& operand, int64_t i, int64_t j) {
    const int64_t index = operand.transposed ? j * operand.stride + i : i * operand.stride + j;
    return static_cast<const char*>(operand.data) + index * size_of(operand.type);
  }

  // The same panels in every step, so that a partial sum always belongs to one item.
  Item item_of(const Step& step, int64_t number) const {
    const int64_t row_item = number / col_items_, panels = divide_up(step.cols.size(), kernels_.cols);
    const Range wanted = divide({0, cols_block_ / kernels_.cols}, number % col_items_, col_items_);
    return {row_range({0, m_}, row_item, row_items_),
            row_item,
            {std::min(wanted.begin, panels), std::min(wanted.end, panels)}};
  }

  void multiply_step(int thread, const Step& step, const float* b_panels) const {
    const bool keeps_all = col_items_ > 1;  // passes of A, for the next item of the same rows
    int64_t packed_item = -1;
    for (int64_t number = 0; schedule_->take_item(thread, step.number, number);) {
      const Item item = item_of(step, number);
      schedule_->wait_for_item(step.number, number);
      if (item.row_item != packed_item) write_row_keys(thread, item.rows);
      const float* b_pass = b_panels;
      for (int64_t pass = step.passes.begin; pass < step.passes.end; ++pass) {
        const Range depth = depth_of(pass);
        float* a_panels = a_panels_ + thread * a_floats_;
        if (keeps_all) a_panels += (pass - step.passes.begin) * item_panels_ * panel_floats_;
        if (!keeps_all || item.row_item != packed_item) {
          pack_a(item.rows, {0, divide_up(item.rows.size(), kernels_.rows)}, depth, a_panels);
        }
        const GemmPrefetch prefetch = plain_ ? next_of_a(step, pass, number, packed_item) : GemmPrefetch();
        multiply_item(thread, step, pass, item, a_panels, b_pass + item.panels.begin * kernels_.cols * units(depth),
                      prefetch);
        b_pass += (depth_block_ / kernels_.unit_depth) * cols_block_;
      }
      packed_item = item.row_item;
      schedule_->finished(step.number, number);
    }
  }

  float* low_panels(int64_t pass) const { return a_panels_ + pass * item_panels_ * panel_floats_; }

  void multiply_low(int thread, const Step& step) const {
    float* b_panels = b_panels_ + thread * b_floats_;
    write_row_keys(thread, {0, m_});
    for (int64_t number = 0; schedule_->take_item(thread, step.number, number);) {
      const Item item = item_of(step, number);
      for (int64_t pass = 0; pass < depth_passes_; ++pass) {
        const Range depth = depth_of(pass);
        const int64_t stretch = b_.transposed ? std::max<int64_t>(1, depth.size()) : kStretch;
        for (int64_t begin = depth.begin; begin < depth.end; begin += stretch) {
          pack_b_stretch(step.cols, pass, item.panels, {begin, std::min(begin + stretch, depth.end)}, b_panels);
        }
        const bool goes_on = pass + 1 < depth_passes_;
        const Item next = goes_on || number + 1 == col_items_ ? item : item_of(step, number + 1);
        const Range next_cols{next.panels.begin * kernels_.cols, std::min(n_, next.panels.end * kernels_.cols)};
        multiply_item(thread, step, pass, item, low_panels(pass), b_panels,
                      prefetch_of_b(next_cols, depth_of(goes_on ? pass + 1 : 0)));
      }
      schedule_->finished(step.number, number);
    }
  }

  // `b_panels` begins with the item's first panel.
  void multiply_item(int thread, const Step& step, int64_t pass, const Item& item, const float* a_panels,
                     const float* b_panels, GemmPrefetch prefetch) const {
    const int64_t panel_units = units(depth_of(pass)), count = divide_up(item.rows.size(), kernels_.rows);
    const int64_t tile_floats = kernels_.rows * kernels_.cols;
    float* partial = partial_ + thread * partial_floats_;
    if (depth_steps_ > 1) {
      partial = partial_ + item.row_item * partial_floats_ + item.panels.begin * item_panels_ * tile_floats;
    }
    const uint32_t* row_keys = row_keys_ + thread * row_keys_size_;
    if (item.panels.size() == 0) return;
    GemmTile tile;
    tile.units = panel_units;
    tile.a_by_row = a_by_row_;
    prefetch.share_among(item.panels.size() * count);
    for (int64_t panel = item.panels.begin; panel < item.panels.end; ++panel) {
      const int64_t col = step.cols.begin + panel * kernels_.cols;
      GemmParts parts(item.rows, count);
      for (int64_t p = 0; p < count; ++p) {
        const Range rows = kernels_.whole_panels ? whole_panel(item.rows, p) : parts.next();
        tile.a_panel = a_panels + p * panel_floats_;
        tile.b_panel = b_panels;
        prefetch.next(tile);
        multiply_tile(tile, rows, {col, std::min(col + kernels_.cols, step.cols.end)}, pass, partial + p * tile_floats,
                      tile_buffers_ + thread * tile_floats, row_keys + (rows.begin - item.rows.begin));
      }
      b_panels += kernels_.cols * panel_units;
      partial += item_panels_ * tile_floats;
    }
  }

  Range whole_panel(Range rows, int64_t panel) const {
    const int64_t begin = rows.begin + panel * kernels_.rows;
    return {begin, std::min(begin + kernels_.rows, rows.end)};
  }

  // For dropout, of the rows that a thread multiplies next.
  void write_row_keys(int thread, Range rows) const {
    if (row_keys_size_ == 0) return;
    uint32_t* row_keys = row_keys_ + thread * row_keys_size_;
    for (int64_t r = rows.begin; r < rows.end; ++r) *row_keys++ = epilogue_.dropout.row_key(epilogue_.rows, r);
  }

  // Parts of a range of rows: of whole panels where the kernel wants whole ones, else nearly equal, so that 128 rows
  // are ten panels of 12 or 13 rows, not nine of 14 and a thin one.
  Range row_range(Range range, int64_t part, int64_t parts) const {
    if (!kernels_.whole_panels) return divide(range, part, parts);
    const Range whole = divide({0, divide_up(range.size(), kernels_.rows)}, part, parts);
    return {range.begin + whole.begin * kernels_.rows, std::min(range.end, range.begin + whole.end * kernels_.rows)};
  }

  void multiply_tile(GemmTile& tile, Range rows, Range cols, int64_t depth_pass, float* partial, float* buffer,
                     const uint32_t* row_keys) const {
    const bool first = depth_pass == 0, last = depth_pass + 1 == depth_passes_;
    const bool whole = cols.size() == kernels_.cols && (!kernels_.whole_panels || rows.size() == kernels_.rows);
    tile.rows = rows.size();
    tile.start = nullptr;
    tile.out_stride = tile.start_stride = kernels_.cols;
    tile.written[0].count = 0;
    if (plain_) {
      const bool adds = epilogue_.adds || !first;
      if (whole) {
        tile.out = epilogue_.c.f32() + rows.begin * epilogue_.c.stride + cols.begin;
        tile.out_stride = tile.start_stride = epilogue_.c.stride;
        tile.start = adds ? tile.out : nullptr;
        if (starts_from_bias_) {
          tile.start = epilogue_.bias + cols.begin;
          tile.start_stride = 0;
        }
        tile.written[0] = {reinterpret_cast<const char*>(tile.out), tile.out_stride * 4, tile.rows};
        kernels_.multiply(tile);
        return;
      }
      // At the edges of C a tile is computed in a buffer. The sum is taken in the same order as inside, so that where
      // the edges of tiles lie (on the number of threads) changes no bit.
      if (adds || starts_from_bias_) {
        for (int64_t r = 0; r < rows.size(); ++r) {
          const float* row = starts_from_bias_ ? epilogue_.bias + cols.begin
                                               : epilogue_.c.f32() + (rows.begin + r) * epilogue_.c.stride + cols.begin;
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
        if (*tensor) tile.written[wanted++] = wanted_rows(*tensor, rows, cols.begin);
      }
    }
    kernels_.multiply(tile);
    if (last) {
      kernels_.finish(buffer, kernels_.cols, rows.begin, rows.size(), cols.begin, cols.size(), epilogue_, row_keys);
    }
  }

  static GemmTile::Wanted wanted_rows(const Tensor& tensor, Range rows, int64_t col) {
    const int64_t bytes = size_of(tensor.type);
    return {static_cast<const char*>(tensor.data) + (rows.begin * tensor.stride + col) * bytes, tensor.stride * bytes,
            rows.size()};
  }

  // What of A is packed after a pass of an item. Not for products with an epilogue, whose tiles have enough to fetch:
  // 10 % slower at 256 wide.
  GemmPrefetch next_of_a(const Step& step, int64_t pass, int64_t number, int64_t packed_item) const {
    const Item item = item_of(step, number);
    if (pass + 1 < step.passes.end) {
      return item.row_item == packed_item ? GemmPrefetch() : prefetch_of_a(item.rows, depth_of(pass + 1));
    }
    if (number + 1 == row_items_ * col_items_) return {};
    const Item next = item_of(step, number + 1);
    return next.row_item == item.row_item ? GemmPrefetch() : prefetch_of_a(next.rows, depth_of(step.passes.begin));
  }
  GemmPrefetch prefetch_of_a(Range rows, Range depth) const {
    return GemmPrefetch(element_of(a_, rows.begin, depth.begin), a_, rows, depth, !a_.transposed);
  }
  GemmPrefetch prefetch_of_b(Range cols, Range depth) const {
    return GemmPrefetch(element_of(b_, depth.begin, cols.begin), b_, cols, depth, b_.transposed);
  }
  const GemmKernels& kernels_;
  const int64_t m_, n_, k_;
  const GemmOperand& a_;
  const GemmOperand& b_;
  const GemmEpilogue& epilogue_;
  const int threads_;
  bool plain_ = false;  // C gets the products, and a bias at most, in fp32: it can hold the partial sums itself
  bool starts_from_bias_ = false;
  bool a_by_row_ = false;
  int64_t depth_passes_ = 1, depth_block_ = 0;
  int64_t step_passes_ = 1, depth_steps_ = 1;  // passes of a step, steps of a block of columns
  int64_t col_passes_ = 1, cols_block_ = 0;
  int64_t row_items_ = 1, col_items_ = 1;
  bool low_ = false;          // few rows: A is packed by the thread pool, B by each thread
  int64_t item_cols_ = 1;     // then: panels of B in an item
  int64_t item_panels_ = 1;   // most panels of A in an item
  int64_t panel_floats_ = 0;  // from one panel of A to the next
  GemmSchedule* schedule_ = nullptr;
  float* b_panels_ = nullptr;  // of two steps, which take turns; low_: of each thread
  float* a_panels_ = nullptr;  // of each thread; low_: of all passes
  int64_t a_floats_ = 0, b_floats_ = 0;
  float* tile_buffers_ = nullptr;  // of each thread
  float* partial_ = nullptr;       // of each thread's item, or of all items of a block of columns
  int64_t partial_floats_ = 0, partial_items_ = 0;
  uint32_t* row_keys_ = nullptr;  // of each thread: of its item's rows, for dropout
  int64_t row_keys_size_ = 0;
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
    CpuGemm(*kernels, m, n, std::max<int64_t>(k, 0), a, b, epilogue, thread_pool().size()).run();
    return;
  }
  gemm_by(implementation, m, n, k, a, b, epilogue, arithmetic);
}

void gemm_alone(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b,
                const GemmEpilogue& epilogue, Arithmetic arithmetic) {
  BRISK_CHECK(can_gemm_alone(), "only brisk's own product runs on one thread of a thread pool");
  if (m > 0 && n > 0) CpuGemm(*own_kernels(arithmetic), m, n, std::max<int64_t>(k, 0), a, b, epilogue, 1).run();
}

int64_t gemm_workspace_bytes(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, bool plain,
                             Arithmetic arithmetic) {
  const GemmKernels* kernels = own_kernels(arithmetic);
  if (m <= 0 || n <= 0) return 0;
  if (gemm_implementation() != GemmImplementation::own || kernels == nullptr)
    return plain ? 0 : m * n * size_of(DType::f32);
  GemmEpilogue epilogue;
  if (!plain) epilogue.dropout.probability = 0.5f;
  return CpuGemm(*kernels, m, n, k, a, b, epilogue, thread_pool().size()).workspace_floats() * size_of(DType::f32);
}

bool can_gemm_alone() { return gemm_implementation() == GemmImplementation::own && has_vector_kernels(); }

}  // namespace brisk::cpu
