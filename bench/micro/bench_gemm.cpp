// The three matrix products of a linear layer, and the loss, in GFLOP/s next to the machine's multiply-add peak, which
// is measured beside each product: on a shared machine it changes from second to second. `peak%` is the ratio of the
// two.
//
//   bench_gemm --benchmark_filter='own/.*bf16:0'        BRISK_ISA=avx2 bench_gemm        OMP_WAIT_POLICY=passive
//   bench_gemm
//
// A library's threads that keep spinning after their product would slow down everyone else's: hence the last form.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/machine/isa.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "filled_buffer.h"
#include "ops/gemm/gemm.h"
#include "ops/gemm/gemm_library.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/peak/peak.h"

namespace brisk {
namespace {

enum Product : int64_t { kForward, kInputGradient, kWeightGradient };

// Times each iteration and reports the median: a mean on a shared machine says more about the neighbours.
template <typename Body>
void measure(benchmark::State& state, double operations, Arithmetic arithmetic, const Body& body) {
  body();
  std::vector<double> seconds;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(seconds.back());
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<int64_t>(seconds.size() / 2), seconds.end());
  const double gflops = operations / seconds[seconds.size() / 2] * 1e-9, peak = measured_peak_gflops(arithmetic);
  state.counters["GFLOP/s"] = gflops;
  state.counters["peak"] = peak;
  if (peak > 0) state.counters["peak%"] = 100 * gflops / peak;
}

void product(benchmark::State& state, cpu::GemmImplementation implementation) {
  const int64_t rows = state.range(0), inputs = state.range(1), outputs = state.range(2);
  const Product which = static_cast<Product>(state.range(3));
  const DType type = state.range(4) != 0 ? DType::bf16 : DType::f32;
  const Arithmetic arithmetic = type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32;
  const FilledBuffer x(rows, inputs, type, 1), w(outputs, inputs, type, 2), y(rows, outputs, type, 3);
  const FilledBuffer dx(rows, inputs, type, 4), dw(outputs, inputs, DType::f32, 5);
  Runtime runtime({.environment = {{"BRISK_GEMM", std::string(cpu::gemm_implementation_name(implementation))}}});
  runtime.set_isa(active_isa());
  const RuntimeScope scope(runtime);
  measure(state, 2.0 * static_cast<double>(rows * inputs * outputs), arithmetic, [&] {
    if (which == kForward) {
      cpu::gemm(rows, outputs, inputs, operand(x.view()), operand(w.view(), true), {.c = y.view()}, arithmetic);
    } else if (which == kInputGradient) {
      cpu::gemm(rows, inputs, outputs, operand(y.view()), operand(w.view()), {.c = dx.view()}, arithmetic);
    } else {
      cpu::gemm(outputs, inputs, rows, operand(y.view(), true), operand(x.view()), {.c = dw.view()}, arithmetic);
    }
  });
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"N", "I", "O", "dx1dw2", "bf16"})->UseManualTime()->Unit(benchmark::kMillisecond);
  const std::vector<std::vector<int64_t>> layers = {
      {4096, 256, 256},  {4096, 256, 1024}, {4096, 1024, 256}, {2048, 512, 512}, {2048, 512, 1536}, {2048, 512, 2048},
      {2048, 2048, 512}, {2048, 768, 3072}, {2048, 3072, 768}, {512, 512, 2048}, {512, 512, 32000}, {1, 512, 2048}};
  for (const int64_t bf16 : {0, 1}) {
    for (const std::vector<int64_t>& layer : layers) {
      for (const Product which : {kForward, kInputGradient, kWeightGradient}) {
        bench->Args({layer[0], layer[1], layer[2], which, bf16});
      }
    }
  }
}

void loss(benchmark::State& state) {
  const int64_t rows = state.range(0), width = state.range(1), vocabulary = state.range(2);
  const DType type = state.range(3) != 0 ? DType::bf16 : DType::f32;
  const bool gradient = state.range(4) != 0;
  const FilledBuffer x(rows, width, type, 1), weight(vocabulary, width, type, 2), row_loss(rows, 1, DType::f32, 3),
      argmax(rows, 1, DType::f32, 4), sums(1, 4, DType::f32, 5), dx(rows, width, type, 6),
      dweight(vocabulary, width, DType::f32, 7);
  const FilledBuffer scratch(1, linear_cross_entropy_scratch(rows, width, vocabulary, type, gradient) / 4, DType::f32,
                             8);
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < rows; ++i)
    targets.push_back(static_cast<int32_t>(mix64(static_cast<uint64_t>(i)) % vocabulary));
  LinearCrossEntropy op;
  op.x = x.view();
  op.weight = weight.view();
  op.targets = targets.data();
  op.scale = 1.0f / static_cast<float>(rows);
  op.loss = row_loss.view();
  op.argmax = argmax.view();
  op.argmax.type = DType::i32;
  op.sums = sums.view();
  op.scratch = scratch.view();
  if (gradient) {
    op.dx = dx.view();
    op.dweight = dweight.view();
  }
  measure(state, (gradient ? 6.0 : 2.0) * static_cast<double>(rows * width * vocabulary),
          type == DType::bf16 ? Arithmetic::bf16 : Arithmetic::f32, [&] { cpu::linear_cross_entropy(op); });
}

void loss_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"N", "D", "V", "bf16", "gradient"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int64_t bf16 : {0, 1}) {
    for (const int64_t gradient : {1, 0}) {
      bench->Args({4096, 256, 10000, bf16, gradient});
      bench->Args({2048, 512, 32000, bf16, gradient});
      bench->Args({2048, 512, 50304, bf16, gradient});
      bench->Args({32, 768, 2, bf16, gradient});  // a classifier: a row a text
    }
  }
}
BENCHMARK(loss)->Apply(loss_shapes);

void own(benchmark::State& state) { product(state, cpu::GemmImplementation::own); }
BENCHMARK(own)->Apply(shapes);

// Libraries where the program was built with them. (oneDNN 2.6's AMX code stops with an illegal instruction on some
// machines: BRISK_ISA does not reach it, ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 does.)
const bool registered = [] {
  if (cpu::has_gemm_implementation(cpu::GemmImplementation::onednn)) {
    shapes(benchmark::RegisterBenchmark("onednn",
                                        [](benchmark::State& s) { product(s, cpu::GemmImplementation::onednn); }));
  }
  if (cpu::has_gemm_implementation(cpu::GemmImplementation::blas)) {
    shapes(
        benchmark::RegisterBenchmark("blas", [](benchmark::State& s) { product(s, cpu::GemmImplementation::blas); }));
  }
  return true;
}();

}  // namespace
}  // namespace brisk
