#include "ops/rows/pick_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/runtime.h"
#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

// Out of order, one row twice, most never.
const std::vector<int32_t> kSource = {3, 0, 99, 41, 3, 40};

TEST(PickRows, ReferenceTakesTheRowsAndGivesTheirGradientsBack) {
  const Matrix x(100, 5, DType::f32, 1), dy(6, 5, DType::f32, 2);
  Matrix y(6, 5), dx(100, 5, DType::f32, 3);
  ref::pick_rows_forward({x, kSource.data(), y});
  EXPECT_EQ(y.get(2, 4), x.get(99, 4));
  EXPECT_EQ(y.get(4, 0), x.get(3, 0));
  ref::pick_rows_backward({dy, kSource.data(), dx, false});
  EXPECT_FLOAT_EQ(dx.get(3, 1), dy.get(0, 1) + dy.get(4, 1));
  EXPECT_EQ(dx.get(41, 1), dy.get(3, 1));
  EXPECT_EQ(dx.get(1, 1), 0);
}

TEST(PickRows, MatchesTheReference) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const int64_t width : {1, 13, 64, 768}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(::testing::Message() << width << " wide");
        const Matrix x(100, width, type, 1, 1.0, width + 8), dy(6, width, type, 2);
        Matrix expected_y(6, width, type), expected_dx(100, width, type, 3);
        ref::pick_rows_forward({x, kSource.data(), expected_y});
        ref::pick_rows_backward({dy, kSource.data(), expected_dx, adds});
        for_each_isa([&](Isa) {
          Matrix y(6, width, type, 5), dx(100, width, type, 3);
          cpu::pick_rows_forward({x, kSource.data(), y});
          cpu::pick_rows_backward({dy, kSource.data(), dx, adds});
          expect_close(y, expected_y, 0, "y");
          expect_close(dx, expected_dx, 0, "dx");
        });
      }
    }
  }
}

TEST(PickRows, OfNoRowsLeavesAZeroGradient) {
  for_each_isa([&](Isa) {
    Matrix dy(0, 20), y(0, 20), dx(9, 20, DType::f32, 1);
    cpu::pick_rows_forward({dx, nullptr, y});
    cpu::pick_rows_backward({dy, nullptr, dx, false});
    expect_close(dx, Matrix(9, 20, DType::f32, 1, 0), 0, "dx");
  });
}

TEST(PickRows, AnyNumberOfThreadsGivesTheSameBits) {
  const int threads = thread_pool().size();
  const int64_t width = 700;
  std::vector<int32_t> source;
  for (int i = 0; i < 300; ++i) source.push_back(static_cast<int32_t>(mix64(static_cast<uint64_t>(i)) % 400));
  const Matrix dy(300, width, DType::f32, 2);
  Matrix one(400, width, DType::f32, 3);
  Runtime::current().set_threads(1);
  cpu::pick_rows_backward({dy, source.data(), one, true});
  for (const int pool : {2, 3}) {
    Runtime::current().set_threads(pool);
    Matrix many(400, width, DType::f32, 3);
    cpu::pick_rows_backward({dy, source.data(), many, true});
    expect_close(many, one, 0, "dx");
  }
  Runtime::current().set_threads(threads);
}

}  // namespace
}  // namespace brisk
