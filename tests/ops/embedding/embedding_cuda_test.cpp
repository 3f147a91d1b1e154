#include <gtest/gtest.h>

#include "ops/embedding/embedding.h"
#include "support/on_gpu.h"

namespace brisk {
namespace {

using testing::GpuMatrix;
using testing::GpuNumbers;
using testing::GpuRows;
using testing::OnGpu;
using testing::Side;

using CudaEmbedding = OnGpu;

struct Problem {
  std::vector<int> lengths;
  int64_t vocabulary = 50, width = 64;
  DType type = DType::f32;
  float dropout = 0;
  bool adds = false;
  int types = 0;           // 0: there is no table of types
  bool says_types = true;  // otherwise all rows are of type 0
  int frequent = 0;        // every such row is token 7
};

// Tokens and types, most of them rare.
std::vector<int32_t> draw(int64_t count, int64_t values, int frequent) {
  std::vector<int32_t> drawn;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<int32_t>(mix64(static_cast<uint64_t>(i)) % static_cast<uint64_t>(values));
    drawn.push_back(frequent > 0 && i % frequent == 0 ? 7 : value);
  }
  return drawn;
}

void expect_as_reference(const Problem& p) {
  GpuRows rows(p.lengths);
  const int64_t n = rows.rows(), longest = rows.at(Side::host).longest;
  GpuNumbers tokens(draw(n, p.vocabulary, p.frequent)), types(draw(n, std::max(1, p.types), 0));
  GpuMatrix table(p.vocabulary, p.width, DType::f32, 1), positions(longest + 3, p.width, DType::f32, 2);
  GpuMatrix type_table(std::max(1, p.types), p.width, DType::f32, 3), y(n, p.width, p.type, 0, 0);
  const Dropout dropout{p.dropout, 5};
  const auto forward = [&](Side side) {
    EmbeddingForward op;
    op.tokens = tokens.at(side);
    op.rows = rows.at(side);
    op.table = table.at(side);
    op.positions = positions.at(side);
    op.position_offset = 2;
    if (p.types > 0) op.type_table = type_table.at(side);
    if (p.says_types) op.types = types.at(side);
    op.dropout = dropout;
    op.y = y.at(side);
    return op;
  };
  ref::embedding_forward(forward(Side::host));
  cuda::embedding_forward(forward(Side::gpu));
  y.expect_close(p.type == DType::f32 ? 1e-6 : 1e-2, "y");

  GpuMatrix dy(n, p.width, p.type, 4), dtable(p.vocabulary, p.width, DType::f32, 5);
  GpuMatrix dpositions(longest + 3, p.width, DType::f32, 6), dtypes(std::max(1, p.types), p.width, DType::f32, 7);
  const auto backward = [&](Side side) {
    EmbeddingBackward op;
    op.tokens = tokens.at(side);
    op.rows = rows.at(side);
    op.dropout = dropout;
    op.dy = dy.at(side);
    op.dtable = dtable.at(side);
    op.dpositions = dpositions.at(side);
    op.position_offset = 2;
    if (p.types > 0) op.dtypes = dtypes.at(side);
    if (p.says_types) op.types = types.at(side);
    op.dtable_adds = op.dpositions_adds = op.dtypes_adds = p.adds;
    return op;
  };
  ref::embedding_backward(backward(Side::host));
  cuda::embedding_backward(backward(Side::gpu));
  dtable.expect_close(2e-5, "dtable");
  dpositions.expect_close(2e-5, "dpositions");
  if (p.types > 0) dtypes.expect_close(5e-5, "dtypes");
}

TEST_F(CudaEmbedding, IsTheReferencesOnRaggedRows) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const bool adds : {false, true}) {
      expect_as_reference({.lengths = {1, 40, 7, 129}, .type = type, .adds = adds, .types = 3});
    }
  }
}

TEST_F(CudaEmbedding, IsTheReferencesForAnyWidthWithDropout) {
  for (const int64_t width : {1, 20, 64, 768, 3000}) {
    expect_as_reference({.lengths = {17, 3, 50}, .width = width, .dropout = 0.2f, .types = 2});
  }
}

TEST_F(CudaEmbedding, SumsTokensThatFillManySegments) {
  expect_as_reference({.lengths = {700, 3}, .frequent = 2});
  expect_as_reference({.lengths = {333}, .frequent = 1});
  expect_as_reference({.lengths = {333}, .vocabulary = 50257, .types = 1, .says_types = false, .frequent = 3});
}

// More rows than are sorted by counting, and a vocabulary with more tokens than that takes.
TEST_F(CudaEmbedding, SumsManyRowsAndTokensOfALargeVocabulary) {
  expect_as_reference({.lengths = {9000, 8000}, .vocabulary = 1000, .width = 8});
  expect_as_reference({.lengths = {300}, .vocabulary = 300000, .width = 8});
}

TEST_F(CudaEmbedding, OfNoRowsClearsTheGradient) { expect_as_reference({.lengths = {}, .types = 2}); }

}  // namespace
}  // namespace brisk
