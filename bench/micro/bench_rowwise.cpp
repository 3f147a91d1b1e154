// The ops that memory bounds, in GB/s of the traffic they cannot avoid. The floor is `memory_copy`, taken in the same
// run.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "base/runtime.h"
#include "filled_buffer.h"
#include "ops/activation/gated.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/norm/norm.h"
#include "ops/optimizer/update.h"
#include "ops/rotary/rotary.h"
#include "ops/rows/rows_copy.h"
#include "ops/softmax/softmax.h"

namespace brisk {
namespace {

DType type_of(int64_t bf16) { return bf16 != 0 ? DType::bf16 : DType::f32; }

void finish(benchmark::State& state, double bytes) {
  state.counters["GB/s"] =
      benchmark::Counter(bytes * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

struct Rows {
  explicit Rows(int64_t rows, int64_t length = 128) {
    for (int64_t s = 0; s <= rows / length; ++s) starts.push_back(static_cast<int32_t>(s * length));
    for (int64_t r = 0; r < rows; ++r) {
      position.push_back(static_cast<int32_t>(r % length));
      sequence.push_back(static_cast<int32_t>(r / length));
    }
    set = {rows, rows / length, length, starts.data(), position.data(), sequence.data()};
  }
  std::vector<int32_t> starts, position, sequence;
  RowSet set;
};

void memory_copy(benchmark::State& state) {
  const FilledBuffer from(1, 64 << 20, DType::f32), to(1, 64 << 20, DType::f32);
  for (auto _ : state) {
    thread_pool().for_range(64 << 20, 4096, [&](int64_t begin, int64_t end, int) {
      std::memcpy(to.view().f32() + begin, from.view().f32() + begin, static_cast<size_t>(end - begin) * 4);
    });
  }
  finish(state, 2.0 * (64 << 20) * 4);
}
BENCHMARK(memory_copy)->UseRealTime()->Unit(benchmark::kMillisecond);

void adamw_update(benchmark::State& state) {
  const int64_t count = state.range(0);
  const FilledBuffer p(1, count, DType::f32), g(1, count, DType::f32), m(1, count, DType::f32), v(1, count, DType::f32);
  const FilledBuffer copy(1, count, DType::bf16);
  AdamWUpdate op;
  op.parameters = p.view().f32();
  op.gradient = g.view().f32();
  op.m = m.view().f32();
  op.v = v.view().f32();
  op.copy = state.range(1) != 0 ? copy.view().bf16() : nullptr;
  op.count = count;
  op.rate = 1e-3f;
  for (auto _ : state) cpu::adamw_update(op);
  finish(state, static_cast<double>(count) * (state.range(1) != 0 ? 30 : 28));
  state.counters["ns/parameter"] = benchmark::Counter(static_cast<double>(count * state.iterations()) * 1e-9,
                                                      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(adamw_update)
    ->ArgNames({"parameters", "bf16_copy"})
    ->Args({32 << 20, 0})
    ->Args({32 << 20, 1})
    ->Args({1 << 16, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void squared_norm(benchmark::State& state) {
  const FilledBuffer g(1, 32 << 20, DType::f32);
  for (auto _ : state) benchmark::DoNotOptimize(cpu::squared_norm(g.view().f32(), 32 << 20));
  finish(state, 4.0 * (32 << 20));
}
BENCHMARK(squared_norm)->UseRealTime()->Unit(benchmark::kMillisecond);

void norm_forward(benchmark::State& state) {
  const int64_t rows = 4096, width = state.range(0);
  const DType type = type_of(state.range(1));
  const FilledBuffer x(rows, width, type), y(rows, width, type), gain(1, width, DType::f32), mean(rows, 1, DType::f32);
  const FilledBuffer rstd(rows, 1, DType::f32);
  const NormForward op{NormKind::layer, 1e-5f, x.view(), gain.view(), gain.view(), y.view(), mean.view(), rstd.view()};
  for (auto _ : state) cpu::norm_forward(op);
  finish(state, 2.0 * static_cast<double>(rows * width * size_of(type)));
}
BENCHMARK(norm_forward)
    ->ArgNames({"D", "bf16"})
    ->ArgsProduct({{256, 512}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void norm_backward(benchmark::State& state) {
  const int64_t rows = 4096, width = state.range(0);
  const DType type = type_of(state.range(1));
  const FilledBuffer x(rows, width, type), dy(rows, width, type), dx(rows, width, type), gain(1, width, DType::f32);
  const FilledBuffer mean(rows, 1, DType::f32), rstd(rows, 1, DType::f32), dgain(1, width, DType::f32),
      dbias(1, width, DType::f32);
  NormBackward op;
  op.x = x.view();
  op.gain = gain.view();
  op.mean = mean.view();
  op.rstd = rstd.view();
  op.dy = dy.view();
  op.dx = dx.view();
  op.dx_adds = true;
  op.dgain = dgain.view();
  op.dbias = dbias.view();
  for (auto _ : state) cpu::norm_backward(op);
  finish(state, 4.0 * static_cast<double>(rows * width * size_of(type)));
}
BENCHMARK(norm_backward)
    ->ArgNames({"D", "bf16"})
    ->ArgsProduct({{256, 512}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void embedding_forward(benchmark::State& state) {
  const int64_t rows = 4096, width = 512, vocabulary = 50000;
  const Rows set(rows);
  const FilledBuffer table(vocabulary, width, DType::f32), positions(128, width, DType::f32),
      y(rows, width, DType::f32);
  std::vector<int32_t> tokens;
  for (int64_t r = 0; r < rows; ++r)
    tokens.push_back(static_cast<int32_t>(mix64(static_cast<uint64_t>(r)) % vocabulary));
  for (auto _ : state) cpu::embedding_forward({tokens.data(), set.set, table.view(), positions.view(), {}, y.view()});
  finish(state, 2.0 * static_cast<double>(rows * width * 4));
}
BENCHMARK(embedding_forward)->UseRealTime()->Unit(benchmark::kMillisecond);

void embedding_backward(benchmark::State& state) {
  const bool adds = state.range(0) != 0;
  const int64_t rows = 4096, width = 512, vocabulary = 50000;
  const Rows set(rows);
  const FilledBuffer dy(rows, width, DType::f32), dtable(vocabulary, width, DType::f32),
      dpositions(128, width, DType::f32);
  std::vector<int32_t> tokens;
  for (int64_t r = 0; r < rows; ++r)
    tokens.push_back(static_cast<int32_t>(mix64(static_cast<uint64_t>(r)) % vocabulary));
  const EmbeddingBackward op{tokens.data(), set.set, {}, dy.view(), dtable.view(), adds, dpositions.view(), false};
  for (auto _ : state) cpu::embedding_backward(op);
  finish(state, static_cast<double>(rows * width * 4) * 3 + (adds ? 0.0 : static_cast<double>(vocabulary * width * 4)));
}
BENCHMARK(embedding_backward)->ArgName("adds")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void gated_forward(benchmark::State& state) {
  const int64_t rows = 4096, width = 1376;
  const DType type = type_of(state.range(0));
  const FilledBuffer x(rows, 2 * width, type), y(rows, width, type);
  for (auto _ : state) cpu::gated_forward({Activation::silu, x.view(), y.view()});
  finish(state, 3.0 * static_cast<double>(rows * width * size_of(type)));
}
BENCHMARK(gated_forward)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void gated_backward(benchmark::State& state) {
  const int64_t rows = 4096, width = 1376;
  const DType type = type_of(state.range(0));
  const FilledBuffer x(rows, 2 * width, type), dy(rows, width, type), dx(rows, 2 * width, type);
  for (auto _ : state) cpu::gated_backward({Activation::silu, x.view(), dy.view(), dx.view()});
  finish(state, 5.0 * static_cast<double>(rows * width * size_of(type)));
}
BENCHMARK(gated_backward)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void rotary(benchmark::State& state) {
  const int64_t rows = 4096, width = 512;
  const DType type = type_of(state.range(0));
  const Rows set(rows);
  const FilledBuffer x(rows, 3 * width, type);
  // In place: only queries and keys are touched.
  const Tensor turned = x.view().columns(0, 2 * width);
  for (auto _ : state) cpu::rotary({turned, turned, set.set, 2 * width, 64, 10000.0f, false});
  finish(state, 4.0 * static_cast<double>(rows * width * size_of(type)));
}
BENCHMARK(rotary)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

// The general ops, on matrices of 16384 x 1024: larger than the caches.
constexpr int64_t kGeneralRows = 16384, kGeneralCols = 1024;

struct GeneralMatrices {
  explicit GeneralMatrices(DType type)
      : a(kGeneralRows, kGeneralCols, type),
        b(kGeneralRows, kGeneralCols, type),
        y(kGeneralRows, kGeneralCols, type),
        bytes(static_cast<double>(kGeneralRows * kGeneralCols * size_of(type))) {}
  const FilledBuffer a, b, y;
  const double bytes;  // of one
};

void combine_matrices(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  for (auto _ : state) cpu::combine({Combine::Kind::multiply, m.a.view(), m.b.view(), m.y.view()});
  finish(state, 3 * m.bytes);
}
BENCHMARK(combine_matrices)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void combine_with_row_factors(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  const FilledBuffer factors(kGeneralRows, state.range(1), type_of(state.range(0)));
  for (auto _ : state) cpu::combine({Combine::Kind::multiply, m.a.view(), factors.view(), m.y.view()});
  finish(state, 2 * m.bytes);
}
BENCHMARK(combine_with_row_factors)
    ->ArgNames({"bf16", "groups"})
    ->ArgsProduct({{0, 1}, {1, 16}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void copy_columns(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  const bool adds = state.range(1) != 0;
  const Tensor from = m.a.view().columns(128, 512), to = m.y.view().columns(256, 512);
  for (auto _ : state) cpu::copy_rows(from, to, adds);
  finish(state, (adds ? 3 : 2) * m.bytes / 2);
}
BENCHMARK(copy_columns)
    ->ArgNames({"bf16", "adds"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void sum_columns(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  const FilledBuffer sums(kGeneralRows, state.range(1), DType::f32);
  for (auto _ : state) cpu::sum_columns({m.a.view(), m.b.view(), sums.view()});
  finish(state, 2 * m.bytes);
}
BENCHMARK(sum_columns)
    ->ArgNames({"bf16", "groups"})
    ->ArgsProduct({{0, 1}, {1, 16}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void sum_rows(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  const FilledBuffer sums(1, kGeneralCols, DType::f32), scratch(kSumRowsParts, kGeneralCols, DType::f32);
  for (auto _ : state) cpu::sum_rows({m.a.view(), m.b.view(), sums.view(), scratch.view()});
  finish(state, 2 * m.bytes);
}
BENCHMARK(sum_rows)->ArgName("bf16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void softmax_forward(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  const SoftmaxForward op{m.a.view(), m.y.view(), state.range(1), state.range(2) != 0};
  for (auto _ : state) cpu::softmax_forward(op);
  finish(state, 2 * m.bytes);
}
void softmax_backward(benchmark::State& state) {
  const GeneralMatrices m(type_of(state.range(0)));
  const SoftmaxBackward op{m.a.view(), m.b.view(), m.y.view(), state.range(1), state.range(2) != 0};
  for (auto _ : state) cpu::softmax_backward(op);
  finish(state, 3 * m.bytes);
}
void softmax_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"bf16", "groups", "log"})->ArgsProduct({{0, 1}, {1, 16}, {0, 1}});
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(softmax_forward)->Apply(softmax_shapes);
BENCHMARK(softmax_backward)->Apply(softmax_shapes);

}  // namespace
}  // namespace brisk
