#include "ops/embedding/embedding.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;

struct Embedding {
  Embedding(const std::vector<int>& lengths, int64_t vocabulary, int64_t width, DType type, float probability)
      : rows(lengths),
        probability(probability),
        table(vocabulary, width, DType::f32, 1),
        positions(kOffset + std::max<int64_t>(1, rows.view().longest), width, DType::f32, 2),
        y(rows.view().rows, width, type, 0, 0),
        dy(rows.view().rows, width, type, 3),
        dtable(vocabulary, width, DType::f32, 4),
        dpositions(positions.rows(), width, DType::f32, 5),
        type_table(2, width, DType::f32, 6),
        dtypes(2, width, DType::f32, 7) {
    for (int64_t r = 0; r < rows.view().rows; ++r) {
      // Some tokens often, most never.
      tokens.push_back(
          static_cast<int32_t>(mix64(static_cast<uint64_t>(r)) % static_cast<uint64_t>(r % 3 == 0 ? 2 : vocabulary)));
      types.push_back(r % 7 < 4 ? 0 : 1);
    }
  }
  EmbeddingForward forward() const {
    EmbeddingForward op{tokens.data(), rows.view(), table, positions, {probability, 55}, y};
    op.position_offset = kOffset;
    op.type_table = type_table;
    op.types = types.data();
    return op;
  }
  EmbeddingBackward backward(bool adds) const {
    EmbeddingBackward op{tokens.data(), rows.view(), {probability, 55}, dy, dtable, adds, dpositions, adds};
    op.position_offset = kOffset;
    op.dtypes = dtypes;
    op.dtypes_adds = adds;
    op.types = types.data();
    return op;
  }
  static constexpr int64_t kOffset = 2;
  Ragged rows;
  float probability;
  std::vector<int32_t> tokens, types;
  Matrix table, positions, y, dy, dtable, dpositions, type_table, dtypes;
};

const std::vector<int> kLengths = {5, 1, 130, 2, 64};

TEST(Embedding, ReferenceAddsTheWordThePlaceAndTheType) {
  Embedding e({3, 2}, 10, 4, DType::f32, 0);
  ref::embedding_forward(e.forward());
  EXPECT_FLOAT_EQ(e.y.get(4, 2), e.table.get(e.tokens[4], 2) + e.positions.get(2 + 1, 2) + e.type_table.get(1, 2));
}

TEST(Embedding, ReferenceGradientIsTheSumOverTheRowsOfAToken) {
  Embedding e({3, 2}, 10, 4, DType::f32, 0);
  e.tokens = {7, 2, 7, 7, 2};
  ref::embedding_backward(e.backward(false));
  EXPECT_FLOAT_EQ(e.dtable.get(7, 1), e.dy.get(0, 1) + e.dy.get(2, 1) + e.dy.get(3, 1));
  EXPECT_FLOAT_EQ(e.dtable.get(3, 1), 0);
  EXPECT_FLOAT_EQ(e.dpositions.get(2 + 1, 3), e.dy.get(1, 3) + e.dy.get(4, 3));
  EXPECT_FLOAT_EQ(e.dpositions.get(1, 3), 0);
  EXPECT_FLOAT_EQ(e.dtypes.get(0, 3), e.dy.get(0, 3) + e.dy.get(1, 3) + e.dy.get(2, 3) + e.dy.get(3, 3));
  EXPECT_FLOAT_EQ(e.dtypes.get(1, 3), e.dy.get(4, 3));
}

TEST(Embedding, MatchesTheReference) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int64_t width : {3, 40, 256}) {
      for (const float probability : {0.0f, 0.3f}) {
        for (const bool adds : {false, true}) {
          Embedding expected(kLengths, 50, width, type, probability);
          ref::embedding_forward(expected.forward());
          ref::embedding_backward(expected.backward(adds));
          for_each_isa([&](Isa) {
            Embedding got(kLengths, 50, width, type, probability);
            cpu::embedding_forward(got.forward());
            expect_close(got.y, expected.y, type == DType::f32 ? 1e-6 : 8e-3, "y");
            cpu::embedding_backward(got.backward(adds));
            expect_close(got.dtable, expected.dtable, 2e-6, "dtable");
            expect_close(got.dpositions, expected.dpositions, 2e-6, "dpositions");
            expect_close(got.dtypes, expected.dtypes, 2e-6, "dtypes");
          });
        }
      }
    }
  }
}

TEST(Embedding, RowsWithoutTypesAreOfTypeZero) {
  for_each_isa([&](Isa) {
    Embedding e({4, 9}, 20, 24, DType::f32, 0);
    EmbeddingForward forward = e.forward();
    forward.types = nullptr;
    cpu::embedding_forward(forward);
    EXPECT_FLOAT_EQ(e.y.get(5, 23),
                    e.table.get(e.tokens[5], 23) + e.positions.get(2 + 1, 23) + e.type_table.get(0, 23));
    EmbeddingBackward backward = e.backward(false);
    backward.types = nullptr;
    cpu::embedding_backward(backward);
    EXPECT_NE(e.dtypes.get(0, 0), 0);
    EXPECT_EQ(e.dtypes.get(1, 0), 0);
  });
}

TEST(Embedding, WorksWithoutPositionsAndTypes) {
  for_each_isa([&](Isa) {
    Embedding e({4, 9}, 20, 24, DType::f32, 0);
    EmbeddingForward forward = e.forward();
    forward.positions = forward.type_table = {};
    cpu::embedding_forward(forward);
    EXPECT_EQ(e.y.get(5, 23), e.table.get(e.tokens[5], 23));
    EmbeddingBackward backward = e.backward(false);
    backward.dpositions = backward.dtypes = {};
    const float before = e.dpositions.get(0, 0), type_before = e.dtypes.get(0, 0);
    cpu::embedding_backward(backward);
    EXPECT_EQ(e.dpositions.get(0, 0), before);
    EXPECT_EQ(e.dtypes.get(0, 0), type_before);
  });
}

TEST(Embedding, AnEmptyBatchLeavesAZeroGradient) {
  for_each_isa([&](Isa) {
    Embedding e({}, 20, 24, DType::f32, 0);
    cpu::embedding_forward(e.forward());
    cpu::embedding_backward(e.backward(false));
    for (int64_t r = 0; r < 20; ++r) ASSERT_EQ(e.dtable.get(r, 5), 0);
  });
}

TEST(Embedding, AnyNumberOfThreadsGivesTheSameBits) {
  const int threads = thread_pool().size();
  for_each_isa([&](Isa) {
    Runtime::current().set_threads(1);
    Embedding one(kLengths, 50, 200, DType::f32, 0.1f);
    cpu::embedding_backward(one.backward(false));
    for (const int pool : {2, 3, 8}) {  // 200 columns have 3 slices: 8 threads share them in groups of tokens
      Runtime::current().set_threads(pool);
      Embedding many(kLengths, 50, 200, DType::f32, 0.1f);
      cpu::embedding_backward(many.backward(false));
      expect_close(many.dtable, one.dtable, 0, "dtable");
      expect_close(many.dpositions, one.dpositions, 0, "dpositions");
      expect_close(many.dtypes, one.dtypes, 0, "dtypes");
    }
  });
  Runtime::current().set_threads(threads);
}

TEST(Embedding, DropsTheShareAskedFor) {
  for_each_isa([&](Isa) {
    Embedding e({200}, 50, 200, DType::f32, 0.25f);
    cpu::embedding_forward(e.forward());
    int dropped = 0;
    for (int64_t r = 0; r < 200; ++r) {
      for (int64_t c = 0; c < 200; ++c) dropped += e.y.get(r, c) == 0;
    }
    EXPECT_NEAR(dropped / 40000.0, 0.25, 0.01);
  });
}

}  // namespace
}  // namespace brisk
