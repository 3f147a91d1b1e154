// What attention's forward and backward share: which queries and keys a task works on, tile by tile.
//
// Attention runs in fp32, whatever the tensors' types. Key blocks are the outer loop: a block's keys and values are
// packed once and stay in the second-level cache while all tiles of queries pass by; what a tile has so far (its sums,
// maxima, gradients) waits in scratch for the next block.
#pragma once

#include "base/rounding.h"
#include "ops/attention/attention_kernels.h"
#include "ops/attention/attention_product_simd.h"
#include "ops/attention/attention_row_simd.h"

namespace brisk::BRISK_ISA {

constexpr int64_t kQueryTile = 24;  // whole groups of rows
constexpr int64_t kKeyBlock = 256;  // whole panels
// Between a tile's rows: the block, and room for the zeros that round a row's end up.
constexpr int64_t kTileStride = kKeyBlock + 2 * kLanes;

// The sizes and places of one task.
struct Head {
  Head(const AttentionForward& op, const AttentionTask& task) : Head(op, task.queries, 0) {
    const int32_t* starts = op.queries.starts + task.sequence;
    first_head = task.kv_head * group;
    kv_column = task.kv_head * width;
    row = starts[0] + task.first_query;
    key_row = op.k_begin[task.sequence];
    keys = op.k_end[task.sequence] - key_row;
    position = first_position(op.shape, starts[1] - starts[0], keys) + task.first_query;
    first_visible = op.shape.causal ? position + 1 : keys;
    growth = op.shape.causal ? 1 : 0;
  }
  // Sizes alone.
  Head(const AttentionForward& op, int64_t queries, int64_t keys)
      : width(op.shape.head_width),
        padded(round_up(width, kLanes)),
        vectors(padded / kLanes),
        group(op.shape.heads / op.shape.kv_heads),
        queries(queries),
        keys(keys) {}

  // How many keys the task's query i sees; below 0 and above `keys` mean none and all.
  int64_t visible(int64_t i) const { return first_visible + growth * i; }

  int64_t width, padded, vectors;  // a head's columns, and rounded up to whole vectors
  int64_t group;                   // query heads per key/value head
  int64_t queries, keys;
  int64_t first_head = 0, kv_column = 0;  // the task's query heads are first_head .. first_head + group - 1
  int64_t row = 0, key_row = 0;           // the first of q, y; of k, v
  int64_t position = 0;                   // of the first query among the keys
  int64_t first_visible = 0, growth = 0;
};

// The part of a head's scores that is worked on at once: some queries by one block of keys.
struct Tile {
  Tile(const Head& head, int64_t first, int64_t block) : first(first), block(block) {
    rows = std::min(kQueryTile, head.queries - first);
    keys = std::min(kKeyBlock, head.keys - block);
    limit0 = head.visible(first) - block;
    growth = head.growth;
  }
  // How many keys of the block row i (within the tile) sees.
  int64_t limit(int64_t i) const { return std::clamp<int64_t>(limit0 + growth * i, 0, keys); }
  int64_t group_rows(int64_t i) const { return std::min(kGroupRows, rows - i); }
  // What the group of rows beginning at i sees.
  int64_t group_limit(int64_t i) const { return limit(i + group_rows(i) - 1); }
  // The first row that sees key j (within the block): row i sees it when j < limit0 + growth i.
  int64_t first_row_of(int64_t j) const { return growth == 0 ? 0 : std::clamp<int64_t>(j - limit0 + 1, 0, rows); }

  // Whether its rows see no key of a later block.
  bool last_of(const Head& head) const { return block + keys >= std::min(head.keys, head.visible(first + rows - 1)); }

  int64_t first, block;  // of the task's queries; of the sequence's keys
  int64_t rows, keys;
  int64_t limit0, growth;
};

// Adds the bias of key `block` and those after it to the scores of the task's query `query`.
inline void add_bias(const AttentionForward& op, const Head& head, int64_t query_head, int64_t query, int64_t block,
                     int64_t keys, float* scores) {
  const float* bias = op.bias.f32() + query_head * op.bias.stride + op.bias.cols / 2 + block - (head.position + query);
  for_columns(keys, [&](int64_t j, int64_t lanes)
                        BRISK_INLINE { store(scores + j, load(scores + j) + load(bias + j, lanes)); });
}

// Asks for the rows that the next task will read and write, some at a time while the present task computes.
class ReadAhead {
 public:
  // `steps`: how often step() will be called, at least.
  explicit ReadAhead(int64_t steps) : steps_(std::max<int64_t>(1, steps)) {}
  void add(const Tensor& t, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    if (!t || count_ == kMost) return;
    parts_[count_++] = {static_cast<const char*>(t.data) + (row * t.stride + col) * size_of(t.type),
                        t.stride * size_of(t.type), cols * size_of(t.type), rows};
    rows_ += rows;
  }
  void step() {
    int64_t left = divide_up(rows_, steps_);
    while (left > 0 && part_ < count_) {
      Part& part = parts_[part_];
      for (; left > 0 && part.rows > 0; --left, --part.rows, part.first += part.stride) {
        for (int64_t b = 0; b < part.bytes; b += 64) _mm_prefetch(part.first + b, _MM_HINT_T1);
      }
      if (part.rows == 0) ++part_;
    }
  }

 private:
  struct Part {
    const char* first;
    int64_t stride, bytes, rows;
  };
  static constexpr int kMost = 8;
  Part parts_[kMost];
  int count_ = 0, part_ = 0;
  int64_t steps_, rows_ = 0;
};

// scores[i][j] = a_i . (panels' row j) for what each group of rows sees, rounded up to whole vectors.
inline void tile_products(const Head& head, const Tile& tile, const float* a, const float* panels, float* scores) {
  const int64_t panel_step = round_up(head.width, 4) * kPanel;
  for (int64_t first = 0; first < tile.keys; first += kPanel) {
    for (int64_t i = 0; i < tile.rows; i += kGroupRows) {
      const int64_t vectors = (tile.group_limit(i) - first + kLanes - 1) / kLanes;
      if (vectors <= 0) continue;
      product_of_panel(tile.group_rows(i), std::min(vectors, kPanelVectors), head.width,
                       {a + i * head.padded, head.padded, 1}, panels + first / kPanel * panel_step, kPanel,
                       scores + i * kTileStride + first, kTileStride, false);
    }
  }
}

// Calls body(tile) for each tile of queries that sees any key of the block.
template <typename Body>
inline void for_each_tile(const Head& head, int64_t block, const Body& body) {
  for (int64_t first = 0; first < head.queries; first += kQueryTile) {
    const Tile tile(head, first, block);
    if (tile.limit(tile.rows - 1) > 0) body(tile);
  }
}

inline ReadAhead read_ahead(const AttentionForward& op, const AttentionTask* next, int64_t steps) {
  ReadAhead ahead(steps);
  if (next == nullptr) return ahead;
  const Head head(op, *next);
  const int64_t col = head.first_head * head.width, cols = head.group * head.width;
  ahead.add(op.q, head.row, head.queries, col, cols);
  ahead.add(op.k, head.key_row, head.keys, head.kv_column, head.width);
  ahead.add(op.v, head.key_row, head.keys, head.kv_column, head.width);
  ahead.add(op.y, head.row, head.queries, col, cols);
  return ahead;
}

inline ReadAhead read_ahead(const AttentionBackward& op, const AttentionTask* next, int64_t steps) {
  ReadAhead ahead = read_ahead(op.forward, next, steps);
  if (next == nullptr) return ahead;
  const Head head(op.forward, *next);
  const int64_t col = head.first_head * head.width, cols = head.group * head.width;
  ahead.add(op.dy, head.row, head.queries, col, cols);
  ahead.add(op.dq, head.row, head.queries, col, cols);
  ahead.add(op.dk, head.key_row, head.keys, head.kv_column, head.width);
  ahead.add(op.dv, head.key_row, head.keys, head.kv_column, head.width);
  return ahead;
}

#if defined(__AVX512BF16__)
// attention_bf16_forward_isa.cpp and attention_bf16_backward_isa.cpp: the same tasks where all tensors are bf16. They
// work on 32 keys at a time: up to this many are done sooner by vectors in fp32 (5 keys in 35 %, 11 in 65 % of the
// time).
constexpr int64_t kFewKeys = 12;
inline bool all_bf16(const AttentionForward& op) {
  return op.q.type == DType::bf16 && op.k.type == DType::bf16 && op.v.type == DType::bf16 && op.y.type == DType::bf16;
}
int64_t bf16_forward_scratch(const Head& largest);
int64_t bf16_backward_scratch(const Head& largest);
void bf16_forward_task(const AttentionForward& op, const Head& head, const AttentionTask* next, void* memory);
void bf16_backward_task(const AttentionBackward& op, const Head& head, const AttentionTask* next, void* memory);
#endif

}  // namespace brisk::BRISK_ISA
