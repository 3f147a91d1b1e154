// embedding: y = dropout(scale table[token] + positions[position_offset + position] + types[type]). Backward is
// deterministic: no atomics, a fixed order of sums.
//
//   Value h = embedding(tape, 0, table, {.positions = positions, .dropout = 0.1});            // on the tape
//   cpu::embedding_forward({.tokens = tokens, .rows = rows, .table = table, .y = y});         // or directly
#pragma once

#include "ops/dropout.h"
#include "tensor/rows.h"
#include "tensor/tensor.h"

namespace brisk {

struct EmbeddingForward {
  const int32_t* tokens = nullptr;  // [N]
  RowSet rows;
  Tensor table;      // [V, D] f32
  Tensor positions;  // [T, D] f32, or none
  Dropout dropout;
  Tensor y;  // [N, D] f32 or bf16
  int64_t position_offset = 0;
  Tensor type_table;               // [types, D] f32, or none
  const int32_t* types = nullptr;  // [N], or none: all of type 0
  float scale = 1;                 // of the table's rows
};

struct EmbeddingBackward {
  const int32_t* tokens = nullptr;
  RowSet rows;
  Dropout dropout;
  Tensor dy;      // [N, D]
  Tensor dtable;  // [V, D] f32; without `adds` the rows of no token become 0
  bool dtable_adds = false;
  Tensor dpositions;  // [T, D] f32, or none
  bool dpositions_adds = false;
  int64_t position_offset = 0;
  Tensor dtypes;  // [types, D] f32, or none
  bool dtypes_adds = false;
  const int32_t* types = nullptr;
  float scale = 1;
};

namespace ref {
void embedding_forward(const EmbeddingForward& op);
void embedding_backward(const EmbeddingBackward& op);
}  // namespace ref
namespace cpu {
void embedding_forward(const EmbeddingForward& op);
void embedding_backward(const EmbeddingBackward& op);
}  // namespace cpu
namespace cuda {
void embedding_forward(const EmbeddingForward& op);
void embedding_backward(const EmbeddingBackward& op);
}  // namespace cuda

}  // namespace brisk
