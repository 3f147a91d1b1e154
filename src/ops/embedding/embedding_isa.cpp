#include "ops/cpu/simd.h"
#include "ops/embedding/embedding_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// The table is far larger than the cache and its rows are visited at random: ask for a row this many rows ahead.
constexpr int64_t kRowsAhead = 4;
constexpr int64_t kFloatsPerLine = 16;

void ask_for(const float* first, int64_t count) {
  for (int64_t c = 0; c < count; c += kFloatsPerLine)
    _mm_prefetch(reinterpret_cast<const char*>(first + c), _MM_HINT_T0);
}

// Zeroes the dropped elements and scales the kept ones.
struct EmbeddingDropout {
  EmbeddingDropout(const Dropout& dropout, const RowSet& rows)
      : active(dropout.active()),
        dropout(dropout),
        rows(rows),
        threshold(dropout.threshold()),
        scale(dropout.scale()) {}
  void enter(int64_t row) {
    if (active) row_key = dropout.row_key(rows, row);
  }
  Vec operator()(Vec x, int64_t column) const {
    if (!active) return x;
    return keep_at_least(dropout_bits(row_key, static_cast<uint32_t>(column)), int_set1(threshold), x * set1(scale));
  }
  bool active;
  const Dropout& dropout;
  const RowSet& rows;
  uint32_t threshold;
  float scale;
  uint32_t row_key = 0;
};

}  // namespace

void embedding_forward_rows(const EmbeddingForward& op, int64_t begin, int64_t end) {
  const int64_t width = op.y.cols;
  const float* table = op.table.f32();
  EmbeddingDropout dropout(op.dropout, op.rows);
  const Vec scale = set1(op.scale);
  with_element(op.y.type, [&](auto of_y) {
    for (int64_t row = begin; row < end; ++row) {
      if (row + kRowsAhead < end) ask_for(table + op.tokens[row + kRowsAhead] * op.table.stride, width);
      const float* word = table + op.tokens[row] * op.table.stride;
      const float* place = op.positions
                               ? op.positions.f32() + (op.position_offset + op.rows.position[row]) * op.positions.stride
                               : nullptr;
      const float* kind = op.type_table
                              ? op.type_table.f32() + (op.types != nullptr ? op.types[row] : 0) * op.type_table.stride
                              : nullptr;
      auto* y = op.y.as<decltype(of_y)>() + row * op.y.stride;
      dropout.enter(row);
      for_columns(width, [&](int64_t c, int64_t lanes) BRISK_INLINE {
        Vec value = scale * load(word + c, lanes);
        if (place != nullptr) value = value + load(place + c, lanes);
        if (kind != nullptr) value = value + load(kind + c, lanes);
        store(y + c, dropout(value, c), lanes);
      });
    }
  });
}

void embedding_backward_share(const EmbeddingBackward& op, const EmbeddingShare& share) {
  const int64_t rows = op.rows.rows;
  const auto mine = [&](int32_t number) { return share.groups == 1 || number % share.groups == share.remainder; };
  EmbeddingDropout dropout(op.dropout, op.rows);
  const Vec scale = set1(op.scale);
  with_element(op.dy.type, [&](auto of_dy) {
    for (int64_t row = 0; row < rows; ++row) {
      float *dword = nullptr, *dplace = nullptr, *dkind = nullptr;
      if (op.dtable) {
        float* table = op.dtable.f32() + share.first;
        if (row + kRowsAhead < rows && mine(op.tokens[row + kRowsAhead])) {
          ask_for(table + op.tokens[row + kRowsAhead] * op.dtable.stride, share.count);
        }
        if (mine(op.tokens[row])) dword = table + op.tokens[row] * op.dtable.stride;
      }
      if (op.dpositions && mine(op.rows.position[row])) {
        dplace =
            op.dpositions.f32() + share.first + (op.position_offset + op.rows.position[row]) * op.dpositions.stride;
      }
      const int32_t type = op.types != nullptr ? op.types[row] : 0;
      if (op.dtypes && mine(type)) dkind = op.dtypes.f32() + share.first + type * op.dtypes.stride;
      if (dword == nullptr && dplace == nullptr && dkind == nullptr) continue;
      const auto* dy = op.dy.as<decltype(of_dy)>() + row * op.dy.stride + share.first;
      dropout.enter(row);
      for_columns(share.count, [&](int64_t c, int64_t lanes) BRISK_INLINE {
        const Vec gradient = dropout(load(dy + c, lanes), share.first + c);
        if (dword != nullptr) store(dword + c, fma(scale, gradient, load(dword + c, lanes)), lanes);
        if (dplace != nullptr) store(dplace + c, load(dplace + c, lanes) + gradient, lanes);
        if (dkind != nullptr) store(dkind + c, load(dkind + c, lanes) + gradient, lanes);
      });
    }
  });
}

}  // namespace brisk::BRISK_ISA
