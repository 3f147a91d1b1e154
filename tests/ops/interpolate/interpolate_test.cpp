#include "ops/interpolate/interpolate.h"

#include <gtest/gtest.h>

#include "support/numeric.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;

constexpr int64_t kRows = 23;

struct Problem {
  int64_t columns, groups;
  DType type = DType::f32;  // of the target and the share
  bool adds = false;
};

struct Gate {
  explicit Gate(const Problem& p)
      : adds(p.adds),
        x(kRows, p.columns, DType::f32, 1),
        target(kRows, p.columns, p.type, 2, 1.0, p.columns + 8),
        share(kRows, p.groups, p.type, 3),
        dy(kRows, p.columns, DType::f32, 4),
        y(kRows, p.columns, DType::f32, 0, 0),
        dx(kRows, p.columns, DType::f32, 5),
        dtarget(kRows, p.columns, p.type, 6),
        dshare(kRows, p.groups, p.type, 7) {}
  InterpolateForward forward() const { return {x, target, share, y}; }
  InterpolateBackward backward() const { return {x, target, share, dy, dx, dtarget, dshare, adds, adds, adds}; }
  bool adds;
  Matrix x, target, share, dy, y, dx, dtarget, dshare;
};

TEST(Interpolate, AShareOfNothingStaysAndAWholeOneArrives) {
  for_each_isa([&](Isa) {
    Gate gate({.columns = 12, .groups = 3});
    for (int64_t r = 0; r < kRows; ++r) {
      gate.share.set(r, 0, 0);
      gate.share.set(r, 1, 1);
      gate.share.set(r, 2, 0.5f);
    }
    cpu::interpolate_forward(gate.forward());
    for (int64_t r = 0; r < kRows; ++r) {
      EXPECT_EQ(gate.y.get(r, 3), gate.x.get(r, 3));
      EXPECT_NEAR(gate.y.get(r, 4), gate.target.get(r, 4), 1e-6);
      EXPECT_NEAR(gate.y.get(r, 11), (gate.x.get(r, 11) + gate.target.get(r, 11)) / 2, 1e-6);
    }
  });
}

TEST(Interpolate, MatchesTheReference) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const bool adds : {false, true}) {
      for (const auto& [columns, groups] : {std::pair<int64_t, int64_t>{64, 16}, {12, 4}, {700, 7}, {5, 5}, {33, 1}}) {
        SCOPED_TRACE(::testing::Message() << columns << " columns, " << groups << " groups");
        const Problem problem{columns, groups, type, adds};
        Gate expected(problem);
        ref::interpolate_forward(expected.forward());
        ref::interpolate_backward(expected.backward());
        const double tolerance = type == DType::f32 ? 2e-5 : 8e-3;
        for_each_isa([&](Isa) {
          Gate got(problem);
          cpu::interpolate_forward(got.forward());
          cpu::interpolate_backward(got.backward());
          expect_close(got.y, expected.y, 2e-5, "y");
          expect_close(got.dx, expected.dx, 2e-5, "dx");
          expect_close(got.dtarget, expected.dtarget, tolerance, "dtarget");
          expect_close(got.dshare, expected.dshare, tolerance, "dshare");
        });
      }
    }
  }
}

}  // namespace
}  // namespace brisk
