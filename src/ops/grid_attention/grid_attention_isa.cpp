// In fp32, whatever the tensors' types: a head's rows of a region are gathered into tiles, which the products of attention
// take.
#include "ops/attention/attention_product_simd.h"
#include "ops/attention/attention_row_simd.h"
#include "ops/grid_attention/grid_attention_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

constexpr int64_t kGridTile = 66;  // queries at once: whole groups of rows, and all of a window of 7 x 7 or 8 x 8

struct GridScratch {
  GridScratch(const GridAttentionShape& shape, void* memory) {
    const int64_t most = shape.windows.places(), width = shape.head_width;
    padded = round_up(width, kLanes);
    stride = round_up(most, kPanel) + kLanes;
    tile = std::min(kGridTile, most);
    const int64_t panels = round_up(most, kPanel) * round_up(width, 4), rows = (most + kLanes) * padded;
    Scratch scratch{memory};
    for (float** part : {&key_panels, &value_panels}) *part = scratch.take(panels);
    for (float** part : {&key_rows, &value_rows, &dkeys, &dvalues}) *part = scratch.take(rows);
    for (float** part : {&query_rows, &dy_rows, &sums}) *part = scratch.take((tile + kGroupRows) * padded);
    for (float** part : {&scores, &dscores}) *part = scratch.take((tile + kGroupRows) * stride);
    row_numbers = reinterpret_cast<int32_t*>(scratch.take(most));
    place_numbers = reinterpret_cast<int32_t*>(scratch.take(most));
    bytes = scratch.bytes();
  }
  int64_t padded, stride, tile;
  float *key_panels, *value_panels;                // of all keys
  float *key_rows, *value_rows, *dkeys, *dvalues;  // [P, padded]
  float *query_rows, *dy_rows, *sums;              // [tile, padded]
  float *scores, *dscores;                         // [tile, stride]
  int32_t *row_numbers, *place_numbers;            // [P]
  int64_t bytes;
};

// The rows of a region, by number.
struct GridTileRows {
  GridTileRows(const GridAttentionForward& op, const GridTask& task, const GridScratch& scratch)
      : region(op.shape.windows.region(task.region)),
        count(op.shape.windows.rows_of(region)),
        rows(scratch.row_numbers),
        places(scratch.place_numbers) {
    const GridWindows& windows = op.shape.windows;
    const int32_t start = op.rows.starts[task.sequence], before = windows.before();
    if (before > 0) rows[0] = start, places[0] = 0;
    int32_t i = before;
    for (int32_t y = 0; y < region.rows; ++y) {
      const int32_t row = start + before + (region.row + y) * windows.width + region.col;
      const int32_t place = before + (region.place_row + y) * windows.window_width + region.place_col;
      for (int32_t x = 0; x < region.cols; ++x, ++i) rows[i] = row + x, places[i] = place + x;
    }
  }
  GridRegion region;
  int64_t count;
  int32_t *rows, *places;
};

// Asks for columns [col, col + width) of the rows of the region that comes next.
class NextRegion {
 public:
  NextRegion(const GridAttentionForward& op, const GridTask* next)
      : windows_(op.shape.windows), exists_(next != nullptr) {
    if (!exists_) return;
    region_ = windows_.region(next->region);
    start_ = op.rows.starts[next->sequence];
  }
  void fetch(const Tensor& t, int64_t col, int64_t width) const {
    if (!exists_) return;
    const int64_t size = size_of(t.type), bytes = width * size;
    for (int32_t y = 0; y < region_.rows; ++y) {
      const int64_t row = start_ + windows_.before() + (region_.row + y) * windows_.width + region_.col;
      const char* at = static_cast<const char*>(t.data) + (row * t.stride + col) * size;
      for (int32_t x = 0; x < region_.cols; ++x, at += t.stride * size) {
        for (int64_t b = 0; b < bytes; b += 64) _mm_prefetch(at + b, _MM_HINT_T1);
      }
    }
  }

 private:
  const GridWindows& windows_;
  bool exists_;
  GridRegion region_;
  int64_t start_ = 0;
};

// Columns [col, col + width) of rows [first, first + count) of the region, times scale, as contiguous fp32 rows.
void gather_rows(const Tensor& t, const GridTileRows& region, int64_t first, int64_t count, int64_t col, int64_t width,
                 float scale, float* out, int64_t padded) {
  with_element(t.type, [&](auto of_t) {
    for (int64_t r = 0; r < count; ++r) {
      const auto* in = t.as<decltype(of_t)>() + region.rows[first + r] * t.stride + col;
      float* to = out + r * padded;
      for_columns(width,
                  [&](int64_t c, int64_t lanes) BRISK_INLINE { store(to + c, load(in + c, lanes) * set1(scale)); });
    }
  });
}

void scatter_rows(const float* in, int64_t padded, float scale, const Tensor& t, const GridTileRows& region,
                  int64_t first, int64_t count, int64_t col, int64_t width) {
  for (int64_t r = 0; r < count; ++r) unpack_row(in + r * padded, scale, t, region.rows[first + r], col, width);
}

// scores[i][j] = a_i . (panels' row j)
void grid_products(const GridScratch& scratch, const float* a, int64_t rows, int64_t keys, int64_t width,
                   const float* panels, float* scores) {
  const int64_t panel_step = round_up(width, 4) * kPanel;
  for (int64_t first = 0; first < keys; first += kPanel) {
    const int64_t vectors = std::min(kPanelVectors, (keys - first + kLanes - 1) / kLanes);
    for (int64_t i = 0; i < rows; i += kGroupRows) {
      product_of_panel(std::min(kGroupRows, rows - i), vectors, width, {a + i * scratch.padded, scratch.padded, 1},
                       panels + first / kPanel * panel_step, kPanel, scores + i * scratch.stride + first,
                       scratch.stride, false);
    }
  }
}

// Calls body(first key, its place, count) for the runs of keys whose places follow each other.
template <typename Body>
inline void for_place_runs(const GridWindows& windows, const GridTileRows& region, const Body& body) {
  const bool whole = region.count == windows.places();
  const int64_t run = whole ? region.count : region.region.cols;  // parts of windows have no class row
  for (int64_t j = 0; j < region.count; j += run) body(j, region.places[j], run);
}

void add_window_bias(const GridAttentionForward& op, const GridTileRows& region, int64_t head, int64_t query,
                     float* scores) {
  const float* bias = op.bias.f32() + head * op.bias.stride + region.places[query] * op.shape.windows.places();
  for_place_runs(op.shape.windows, region, [&](int64_t key, int64_t place, int64_t count) BRISK_INLINE {
    for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
      // Whole vectors, which add 0 beyond the run: the row is read again at once, and what a masked store wrote is not
      // forwarded to a load. It took a third of the time.
      store(scores + key + c, load(scores + key + c) + load(bias + place + c, lanes));
    });
  });
}

void add_window_gradient(const GridAttentionForward& op, const GridTileRows& region, int64_t query,
                         const float* dscores, float* dbias) {
  float* sums = dbias + region.places[query] * op.shape.windows.places();
  for_place_runs(op.shape.windows, region, [&](int64_t key, int64_t place, int64_t count) BRISK_INLINE {
    for_columns(count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
      store(sums + place + c, load(sums + place + c, lanes) + load(dscores + key + c, lanes), lanes);
    });
  });
}

void pack_keys(const GridAttentionForward& op, const GridTileRows& region, int64_t col, const GridScratch& scratch,
               float* rows, float* panels) {
  gather_rows(op.qkv, region, 0, region.count, col, op.shape.head_width, 1.0f, rows, scratch.padded);
  if (panels != nullptr) pack_panels(rows, region.count, scratch.padded, op.shape.head_width, panels);
}

void forward_head(const GridAttentionForward& op, const GridTileRows& region, int64_t head,
                  const GridScratch& scratch) {
  const int64_t width = op.shape.head_width, all = op.shape.heads * width, column = head * width;
  const int64_t keys = region.count;
  const float dropout_scale = op.dropout.active() ? op.dropout.scale() : 1.0f;
  pack_keys(op, region, column + all, scratch, scratch.key_rows, scratch.key_panels);
  pack_keys(op, region, column + 2 * all, scratch, scratch.value_rows, nullptr);
  for (int64_t first = 0; first < keys; first += scratch.tile) {
    const int64_t queries = std::min(scratch.tile, keys - first);
    gather_rows(op.qkv, region, first, queries, column, width, op.shape.scale(), scratch.query_rows, scratch.padded);
    grid_products(scratch, scratch.query_rows, queries, keys, width, scratch.key_panels, scratch.scores);
    for (int64_t i = 0; i < queries; i += kGroupRows) {
      const int64_t rows = std::min(kGroupRows, queries - i);
      float total[kGroupRows];
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t row = region.rows[first + i + r];
        float* scores = scratch.scores + (i + r) * scratch.stride;
        if (op.bias) add_window_bias(op, region, head, first + i + r, scores);
        float largest = kLowest;
        total[r] = 0;
        soften_row(scores, keys, 0, RowDropout(op.dropout, op.rows, head, row), 0, largest, total[r]);
        if (op.log_sum_exp) {
          op.log_sum_exp.f32()[row * op.log_sum_exp.stride + head] = largest + __builtin_logf(total[r]);
        }
      }
      product_of_group(rows, scratch.padded / kLanes, keys, {scratch.scores + i * scratch.stride, scratch.stride, 1},
                       {scratch.value_rows, scratch.padded, kPanel}, scratch.sums, scratch.padded, false);
      for (int64_t r = 0; r < rows; ++r) {
        unpack_row(scratch.sums + r * scratch.padded, dropout_scale / total[r], op.y, region.rows[first + i + r],
                   column, width);
      }
    }
  }
}

void backward_head(const GridAttentionBackward& op, const GridTileRows& region, int64_t head, float* dbias,
                   const GridScratch& scratch) {
  const GridAttentionForward& forward = op.forward;
  const int64_t width = forward.shape.head_width, all = forward.shape.heads * width, column = head * width;
  const int64_t keys = region.count, padded = scratch.padded, stride = scratch.stride, vectors = padded / kLanes;
  const float scale = forward.shape.scale();
  const float dropout_scale = forward.dropout.active() ? forward.dropout.scale() : 1.0f;
  pack_keys(forward, region, column + all, scratch, scratch.key_rows, scratch.key_panels);
  pack_keys(forward, region, column + 2 * all, scratch, scratch.value_rows, scratch.value_panels);
  for (int64_t first = 0; first < keys; first += scratch.tile) {
    const int64_t queries = std::min(scratch.tile, keys - first);
    // The query carries the scale: so do the scores and dk, and dq gets it at the end.
    gather_rows(forward.qkv, region, first, queries, column, width, scale, scratch.query_rows, padded);
    gather_rows(op.dy, region, first, queries, column, width, 1.0f, scratch.dy_rows, padded);
    grid_products(scratch, scratch.query_rows, queries, keys, width, scratch.key_panels, scratch.scores);
    grid_products(scratch, scratch.dy_rows, queries, keys, width, scratch.value_panels, scratch.dscores);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t row = region.rows[first + i];
      float *scores = scratch.scores + i * stride, *dscores = scratch.dscores + i * stride;
      if (forward.bias) add_window_bias(forward, region, head, first + i, scores);
      differentiate_row(scores, dscores, keys, 0, RowDropout(forward.dropout, forward.rows, head, row), dropout_scale,
                        0, forward.log_sum_exp.f32()[row * forward.log_sum_exp.stride + head],
                        dot_row(scratch.dy_rows + i * padded, forward.y, row, column, width));
      if (dbias != nullptr) add_window_gradient(forward, region, first + i, dscores, dbias);
    }
    for (int64_t i = 0; i < queries; i += kGroupRows) {
      const int64_t rows = std::min(kGroupRows, queries - i);
      product_of_group(rows, vectors, keys, {scratch.dscores + i * stride, stride, 1},
                       {scratch.key_rows, padded, kPanel}, scratch.sums, padded, false);
      scatter_rows(scratch.sums, padded, scale, op.dqkv, region, first + i, rows, column, width);
    }
    for (int64_t j = 0; j < keys; j += kGroupRows) {
      const int64_t rows = std::min(kGroupRows, keys - j);
      product_of_group(rows, vectors, queries, {scratch.scores + j, 1, stride}, {scratch.dy_rows, padded, kPanel},
                       scratch.dvalues + j * padded, padded, first > 0);
      product_of_group(rows, vectors, queries, {scratch.dscores + j, 1, stride}, {scratch.query_rows, padded, kPanel},
                       scratch.dkeys + j * padded, padded, first > 0);
    }
  }
  scatter_rows(scratch.dkeys, padded, 1.0f, op.dqkv, region, 0, keys, column + all, width);
  scatter_rows(scratch.dvalues, padded, 1.0f, op.dqkv, region, 0, keys, column + 2 * all, width);
}

}  // namespace

int64_t grid_attention_scratch(const GridAttentionShape& shape) { return GridScratch(shape, nullptr).bytes; }

void grid_attention_forward_region(const GridAttentionForward& op, const GridTask& task, const GridTask* next,
                                   int64_t first_head, int64_t end_head, void* memory) {
  const GridScratch scratch(op.shape, memory);
  const GridTileRows region(op, task, scratch);
  const NextRegion ahead(op, next);
  const int64_t width = op.shape.head_width, all = op.shape.heads * width;
  for (int64_t head = first_head; head < end_head; ++head) {
    for (int64_t part = 0; part < 3; ++part) ahead.fetch(op.qkv, part * all + head * width, width);
    ahead.fetch(op.y, head * width, width);
    forward_head(op, region, head, scratch);
  }
}

void grid_attention_backward_region(const GridAttentionBackward& op, const GridTask& task, const GridTask* next,
                                    int64_t first_head, int64_t end_head, int64_t part, void* memory) {
  const GridAttentionForward& forward = op.forward;
  const GridScratch scratch(forward.shape, memory);
  const GridTileRows region(forward, task, scratch);
  const NextRegion ahead(forward, next);
  const int64_t heads = forward.shape.heads, width = forward.shape.head_width;
  for (int64_t head = first_head; head < end_head; ++head) {
    for (int64_t third = 0; third < 3; ++third) {
      ahead.fetch(forward.qkv, (third * heads + head) * width, width);
      ahead.fetch(op.dqkv, (third * heads + head) * width, width);
    }
    ahead.fetch(op.dy, head * width, width);
    ahead.fetch(forward.y, head * width, width);
    float* dbias = op.dbias ? op.dbias_parts.f32() + (part * heads + head) * op.dbias_parts.stride : nullptr;
    backward_head(op, region, head, dbias, scratch);
  }
}

}  // namespace brisk::BRISK_ISA
