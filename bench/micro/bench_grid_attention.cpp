// Attention within the windows of Swin's stages in GFLOP/s of useful work (2 products forward, 4 backward; recomputation
// counts not at all), for one image of 896 x 672 as Nougat-small reads it. The floor is the fp32 multiply-add peak.
#include <benchmark/benchmark.h>

#include <vector>

#include "filled_buffer.h"
#include "ops/grid_attention/grid_attention.h"

namespace brisk {
namespace {

// One image at a stage: heads of 32, windows of 7 x 7 with a bias.
struct GridJob {
  GridJob(int stage, int64_t shift, DType type)
      : shape{GridWindows::of(224 >> stage, 168 >> stage, 7, shift), int64_t{4} << stage, 32},
        rows(shape.windows.rows()),
        width(shape.heads * shape.head_width),
        qkv(rows, 3 * width, type, 1),
        dqkv(rows, 3 * width, type, 2),
        y(rows, width, type, 3),
        dy(rows, width, type, 4),
        log_sum_exp(rows, shape.heads, DType::f32, 5),
        bias(shape.heads, 49 * 49, DType::f32, 6),
        dbias(shape.heads, 49 * 49, DType::f32, 7),
        dbias_parts(shape.heads * grid_bias_parts(shape, 1), 49 * 49, DType::f32, 8) {
    for (int64_t r = 0; r < rows; ++r) position.push_back(static_cast<int32_t>(r));
    sequence.assign(static_cast<size_t>(rows), 0);
    starts = {0, static_cast<int32_t>(rows)};
    op.forward = {.shape = shape,
                  .qkv = qkv.view(),
                  .rows = {rows, 1, rows, starts.data(), position.data(), sequence.data()},
                  .bias = bias.view(),
                  .y = y.view(),
                  .log_sum_exp = log_sum_exp.view()};
    op.dy = dy.view();
    op.dqkv = dqkv.view();
    op.dbias = dbias.view();
    op.dbias_parts = dbias_parts.view();
    double pairs = 0;
    for (int32_t number = 0; number < shape.windows.regions(); ++number) {
      const double count = shape.windows.rows_of(shape.windows.region(number));
      pairs += count * count;
    }
    product_flops = 2 * pairs * static_cast<double>(width);
  }
  GridAttentionShape shape;
  int64_t rows, width;
  FilledBuffer qkv, dqkv, y, dy, log_sum_exp, bias, dbias, dbias_parts;
  std::vector<int32_t> starts, position, sequence;
  GridAttentionBackward op;
  double product_flops;  // of one product over what is visible
};

GridJob job_of(const benchmark::State& state) {
  return {static_cast<int>(state.range(0)), state.range(1), state.range(2) != 0 ? DType::bf16 : DType::f32};
}

void finish(benchmark::State& state, const GridJob& job, double products) {
  state.SetItemsProcessed(state.iterations() * job.rows);
  state.counters["GFLOP/s"] = benchmark::Counter(
      products * job.product_flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void grid_attention_forward(benchmark::State& state) {
  const GridJob job = job_of(state);
  for (auto _ : state) cpu::grid_attention_forward(job.op.forward);
  finish(state, job, 2);
}

void grid_attention_backward(benchmark::State& state) {
  const GridJob job = job_of(state);
  cpu::grid_attention_forward(job.op.forward);
  for (auto _ : state) cpu::grid_attention_backward(job.op);
  finish(state, job, 4);
}

void stages(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"stage", "shift", "bf16"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int64_t bf16 : {0, 1}) {
    for (const int64_t shift : {0, 3}) {
      for (const int64_t stage : {0, 2}) bench->Args({stage, shift, bf16});
    }
  }
}

BENCHMARK(grid_attention_forward)->Apply(stages);
BENCHMARK(grid_attention_backward)->Apply(stages);

}  // namespace
}  // namespace brisk
