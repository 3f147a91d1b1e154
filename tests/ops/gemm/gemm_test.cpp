#include "ops/gemm/gemm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "base/runtime.h"
#include "ops/element.h"
#include "ops/gemm/gemm_library.h"
#include "support/numeric.h"
#include "support/sanitized.h"

namespace brisk {
namespace {

using testing::expect_close;
using testing::for_each_isa;
using testing::Matrix;
using testing::Ragged;

struct Shape {
  int64_t m, n, k;
};
// Ones, odd numbers, one more than a tile, several panels, several passes over depth (above 1024) and columns (above
// 1024); few rows and many columns, for which each thread packs its own panels.
const Shape kShapes[] = {{1, 1, 1},     {7, 33, 5},      {14, 32, 64},  {15, 31, 17},   {100, 50, 300}, {33, 100, 7},
                         {64, 64, 64},  {129, 257, 130}, {2, 1100, 40}, {3, 130, 65},   {8, 70, 100},   {50, 40, 2100},
                         {300, 70, 33}, {1, 300, 256},   {45, 410, 70}, {20, 421, 1100}};

float rounded(float x, Arithmetic arithmetic) { return arithmetic == Arithmetic::bf16 ? to_float(to_bf16(x)) : x; }

float at(const GemmOperand& x, int64_t i, int64_t j) {
  const int64_t index = x.transposed ? j * x.stride + i : i * x.stride + j;
  return x.type == DType::bf16 ? to_float(static_cast<const bf16_t*>(x.data)[index])
                               : static_cast<const float*>(x.data)[index];
}

// The product and its epilogue as the header states them.
void expected_gemm(const Shape& s, const GemmOperand& a, const GemmOperand& b, const GemmEpilogue& e,
                   Arithmetic arithmetic) {
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double acc = e.bias != nullptr ? e.bias[j] : 0;
      for (int64_t p = 0; p < s.k; ++p)
        acc += double{rounded(at(a, i, p), arithmetic)} * rounded(at(b, p, j), arithmetic);
      if (e.before) set_element(e.before, i, j, acc);
      double y = activate(e.activation, static_cast<float>(acc));
      if (e.dropout.active()) {
        const uint32_t key = random_row_key(e.dropout.key, static_cast<uint32_t>(e.rows.sequence[i]),
                                            static_cast<uint32_t>(e.rows.position[i]));
        y *= dropout_bits(key, static_cast<uint32_t>(j)) >= e.dropout.threshold() ? e.dropout.scale() : 0;
      }
      if (e.residual) y += element(e.residual, i, j);
      put_element(e.c, i, j, y, e.adds);
    }
  }
}

double tolerance_of(DType type) { return type == DType::bf16 ? 8e-3 : 2e-5; }

TEST(Gemm, MultipliesEveryShapeInEveryOrderAndType) {
  int combination = 0;
  for (const Shape& s : kShapes) {
    for (const int order : {0, 1, 2, 3}) {
      for (const auto& [a_type, b_type, arithmetic] :
           {std::tuple{DType::f32, DType::f32, Arithmetic::f32}, std::tuple{DType::bf16, DType::f32, Arithmetic::f32},
            std::tuple{DType::bf16, DType::bf16, Arithmetic::bf16},
            std::tuple{DType::f32, DType::bf16, Arithmetic::bf16},
            std::tuple{DType::bf16, DType::f32, Arithmetic::bf16}}) {
        if (testing::kSanitized && combination++ % 3 != 0) continue;
        SCOPED_TRACE(fmt::format("{} x {} x {}, order {}, types {} {}, arithmetic {}", s.m, s.n, s.k, order,
                                 dtype_name(a_type), dtype_name(b_type),
                                 arithmetic == Arithmetic::bf16 ? "bf16" : "f32"));
        const bool a_transposed = (order & 1) != 0, b_transposed = (order & 2) != 0;
        const double scale = 1 / std::sqrt(static_cast<double>(s.k));
        const Matrix a =
            a_transposed ? Matrix(s.k, s.m, a_type, 1, 1, s.m + 3) : Matrix(s.m, s.k, a_type, 1, 1, s.k + 5);
        const Matrix b =
            b_transposed ? Matrix(s.n, s.k, b_type, 2, scale, s.k + 2) : Matrix(s.k, s.n, b_type, 2, scale, s.n + 1);
        const Matrix c(s.m, s.n, DType::f32, 3, 1, s.n + 4), wanted(s.m, s.n, DType::f32, 3);
        const GemmOperand left = operand(a, a_transposed), right = operand(b, b_transposed);
        expected_gemm(s, left, right, {.c = wanted}, arithmetic);
        for_each_isa([&](Isa) {
          cpu::gemm(s.m, s.n, s.k, left, right, {.c = c}, arithmetic);
          expect_close(c, wanted, 2e-5, "c");
        });
      }
    }
  }
}

TEST(Gemm, AppliesTheEpilogueInItsOrder) {
  const Ragged ragged({60, 1, 39, 29});
  int combination = 0;
  for (const Shape& s : {Shape{129, 257, 130}, Shape{40, 33, 1300}, Shape{5, 101, 9}, Shape{31, 430, 600}}) {
    for (const Activation activation : {Activation::none, Activation::gelu_tanh, Activation::gelu_erf, Activation::relu,
                                        Activation::silu, Activation::tanh}) {
      for (const DType type : {DType::f32, DType::bf16}) {
        if (testing::kSanitized && combination++ % 5 != 0) continue;  // 5: every activation has its turn
        SCOPED_TRACE(fmt::format("{} x {} x {}, activation {}, {}", s.m, s.n, s.k, static_cast<int>(activation),
                                 dtype_name(type)));
        const Arithmetic arithmetic = type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
        const Matrix a(s.m, s.k, type, 1), b(s.n, s.k, type, 2, 1 / std::sqrt(static_cast<double>(s.k))),
            bias(1, s.n, DType::f32, 3), residual(s.m, s.n, type, 4), wanted(s.m, s.n, type, 5),
            wanted_before(s.m, s.n, type, 6);
        GemmEpilogue epilogue{
            .c = wanted, .bias = bias.view().f32(), .activation = activation, .before = wanted_before};
        epilogue.dropout = {.probability = 0.3f, .key = 77};
        epilogue.rows = ragged.view();
        epilogue.residual = residual;
        expected_gemm(s, operand(a), operand(b, true), epilogue, arithmetic);
        for_each_isa([&](Isa) {
          const Matrix c(s.m, s.n, type, 5), before(s.m, s.n, type, 6, 1, s.n + 7);
          epilogue.c = c;
          epilogue.before = before;
          cpu::gemm(s.m, s.n, s.k, operand(a), operand(b, true), epilogue, arithmetic);
          expect_close(c, wanted, tolerance_of(type), "c");
          expect_close(before, wanted_before, tolerance_of(type), "before");
        });
      }
    }
  }
}

TEST(Gemm, AddsToWhatIsThere) {
  for_each_isa([&](Isa) {
    for (const DType type : {DType::f32, DType::bf16}) {
      for (const Shape& s : {Shape{64, 64, 2100}, Shape{33, 47, 20}}) {
        const Matrix a(s.m, s.k), b(s.k, s.n, DType::f32, 2, 0.05), c(s.m, s.n, type, 3), wanted(s.m, s.n, type, 3);
        cpu::gemm(s.m, s.n, s.k, operand(a), operand(b), {.c = c, .adds = true}, Arithmetic::f32);
        expected_gemm(s, operand(a), operand(b), {.c = wanted, .adds = true}, Arithmetic::f32);
        expect_close(c, wanted, tolerance_of(type), "c");
      }
    }
  });
}

TEST(Gemm, WritesIntoItsOwnResidual) {
  for_each_isa([&](Isa) {
    const Shape s{70, 90, 1500};
    const Matrix a(s.m, s.k), b(s.n, s.k, DType::f32, 2, 0.05), c(s.m, s.n, DType::f32, 3),
        wanted(s.m, s.n, DType::f32, 3);
    cpu::gemm(s.m, s.n, s.k, operand(a), operand(b, true), {.c = c, .residual = c}, Arithmetic::f32);
    expected_gemm(s, operand(a), operand(b, true), {.c = wanted, .residual = wanted}, Arithmetic::f32);
    expect_close(c, wanted, 2e-5, "c");
  });
}

TEST(Gemm, LeavesTheMemoryBesideCAlone) {
  for_each_isa([&](Isa) {
    for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
      const Shape s{37, 45, 70};
      const Matrix a(s.m, s.k), b(s.k, s.n);
      Matrix frame(s.m + 2, s.n + 20, DType::f32, 9);
      const Matrix untouched(s.m + 2, s.n + 20, DType::f32, 9);
      const Tensor c = frame.view().row_range(1, s.m).columns(8, s.n);
      cpu::gemm(s.m, s.n, s.k, operand(a), operand(b), {.c = c}, arithmetic);
      for (int64_t i = 0; i < s.m + 2; ++i) {
        for (int64_t j = 0; j < s.n + 20; ++j) {
          const bool inside = i >= 1 && i <= s.m && j >= 8 && j < 8 + s.n;
          if (!inside) {
            ASSERT_EQ(frame.get(i, j), untouched.get(i, j)) << i << ", " << j;
          }
        }
      }
    }
  });
}

TEST(Gemm, OfNoDepthIsZeroAndOfNoRowsIsNothing) {
  for_each_isa([&](Isa) {
    const Matrix a(9, 8), b(8, 40), c(9, 40, DType::f32, 3), bias(1, 40, DType::f32, 4);
    cpu::gemm(0, 40, 8, operand(a), operand(b), {.c = c}, Arithmetic::f32);
    cpu::gemm(9, 0, 8, operand(a), operand(b), {.c = c}, Arithmetic::f32);
    EXPECT_EQ(c.get(3, 5), Matrix(9, 40, DType::f32, 3).get(3, 5));
    for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
      cpu::gemm(9, 40, 0, operand(a), operand(b), {.c = c, .bias = bias.view().f32()}, arithmetic);
      for (int64_t i = 0; i < 9; ++i) {
        for (int64_t j = 0; j < 40; ++j) ASSERT_EQ(c.get(i, j), bias.get(0, j));
      }
    }
  });
}

TEST(Gemm, GivesTheSameBitsWithAnyNumberOfThreads) {
  const int threads = thread_pool().size();
  const std::vector<int> pools = testing::kSanitized ? std::vector{3} : std::vector{2, 3, 4, 6};
  for_each_isa([&](Isa) {
    for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
      // The second has few rows for up to three threads.
      for (const Shape& s : {Shape{210, 170, 1100}, Shape{40, 600, 1100}}) {
        for (const bool with_bias : {false, true}) {
          if (testing::kSanitized && with_bias != (s.m == 40)) continue;
          const Matrix a(s.m, s.k), b(s.n, s.k), bias(1, s.n);
          const Matrix one(s.m, s.n);
          GemmEpilogue epilogue{.c = one, .bias = with_bias ? bias.view().f32() : nullptr};
          Runtime::current().set_threads(1);
          cpu::gemm(s.m, s.n, s.k, operand(a), operand(b, true), epilogue, arithmetic);
          for (const int pool : pools) {
            Runtime::current().set_threads(pool);
            const Matrix many(s.m, s.n, DType::f32, 5);
            epilogue.c = many;
            cpu::gemm(s.m, s.n, s.k, operand(a), operand(b, true), epilogue, arithmetic);
            for (int64_t i = 0; i < s.m; ++i) {
              for (int64_t j = 0; j < s.n; ++j) ASSERT_EQ(many.get(i, j), one.get(i, j)) << pool << " threads";
            }
          }
        }
      }
    }
  });
  Runtime::current().set_threads(threads);
}

// So deep and wide that B is packed in many steps, whose two buffers take turns, and that sums over the depth go from
// step to step: in C, or with a bias beside it.
TEST(Gemm, GivesTheSameBitsWithAnyNumberOfThreadsInManySteps) {
  const int threads = thread_pool().size();
  const Shape s{17, 1100, 4200};
  const Matrix a(s.k, s.m), b(s.n, s.k), bias(1, s.n), one(s.m, s.n), many(s.m, s.n, DType::f32, 5);
  for_each_isa([&](Isa isa) {
    if (isa == Isa::baseline) return;  // packs nothing
    for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
      for (const bool with_bias : {false, true}) {
        const auto run = [&](const Matrix& c, int pool) {
          Runtime::current().set_threads(pool);
          cpu::gemm(s.m, s.n, s.k, operand(a, true), operand(b, true),
                    {.c = c, .bias = with_bias ? bias.view().f32() : nullptr}, arithmetic);
        };
        run(one, 1);
        for (const int pool : {2, 6}) {
          if (testing::kSanitized && pool == 2) continue;
          run(many, pool);
          EXPECT_EQ(std::memcmp(many.view().data, one.view().data, static_cast<size_t>(s.m * s.n) * sizeof(float)), 0)
              << pool << " threads";
        }
      }
    }
  });
  Runtime::current().set_threads(threads);
}

TEST(Gemm, AgreesWithEveryLibraryItWasBuiltWith) {
  const Shape s{65, 90, 70};
  const Matrix a(s.m, s.k), b(s.n, s.k), bias(1, s.n), c(s.m, s.n), wanted(s.m, s.n);
  for (const Arithmetic arithmetic : {Arithmetic::f32, Arithmetic::bf16}) {
    expected_gemm(s, operand(a), operand(b, true), {.c = wanted, .bias = bias.view().f32()}, arithmetic);
    for (const cpu::GemmImplementation implementation :
         {cpu::GemmImplementation::own, cpu::GemmImplementation::onednn, cpu::GemmImplementation::blas,
          cpu::GemmImplementation::reference}) {
      if (!cpu::has_gemm_implementation(implementation)) continue;
      Runtime runtime({.environment = {{"BRISK_GEMM", std::string(cpu::gemm_implementation_name(implementation))}}});
      const RuntimeScope scope(runtime);
      cpu::gemm(s.m, s.n, s.k, operand(a), operand(b, true), {.c = c, .bias = bias.view().f32()}, arithmetic);
      expect_close(c, wanted, 2e-5, "c");
    }
  }
}

}  // namespace
}  // namespace brisk
