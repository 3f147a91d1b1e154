// Attention in GFLOP/s of useful work: causal products count half, recomputation not at all (2 products forward, 4
// backward). The floor is the fp32 multiply-add peak; items/s are key rows. `encoder`: every row sees all of its
// sequence, or (first = 1) the first row of each sequence alone does.
#include <benchmark/benchmark.h>

#include <vector>

#include "filled_buffer.h"
#include "ops/attention/attention.h"

namespace brisk {
namespace {

// A step: `sequences` of length T, heads of 64, q, k and v side by side in one matrix.
struct Job {
  Job(int64_t sequences, int64_t length, int64_t heads, DType type, float dropout, bool causal = true,
      bool first_rows = false)
      : rows(sequences * length),
        width(heads * 64),
        qkv(rows, 3 * width, type, 1),
        dqkv(rows, 3 * width, type, 2),
        y(rows, width, type, 3),
        dy(rows, width, type, 4),
        log_sum_exp(rows, heads, DType::f32, 5) {
    for (int64_t s = 0; s <= sequences; ++s) starts.push_back(static_cast<int32_t>(s * length));
    for (int64_t r = 0; r < rows; ++r) {
      position.push_back(static_cast<int32_t>(r % length));
      sequence.push_back(static_cast<int32_t>(r / length));
    }
    op.forward.shape = {heads, heads, 64, 0.125f, causal};
    op.forward.q = qkv.view().columns(0, width);
    op.forward.k = qkv.view().columns(width, width);
    op.forward.v = qkv.view().columns(2 * width, width);
    op.forward.queries = {rows, sequences, length, starts.data(), position.data(), sequence.data()};
    op.forward.k_begin = starts.data();
    op.forward.k_end = starts.data() + 1;
    op.forward.longest_keys = length;
    op.forward.dropout = {dropout, 77};
    op.forward.y = y.view();
    op.forward.log_sum_exp = log_sum_exp.view();
    op.dy = dy.view();
    op.dq = dqkv.view().columns(0, width);
    op.dk = dqkv.view().columns(width, width);
    op.dv = dqkv.view().columns(2 * width, width);
    const int64_t queries = first_rows ? 1 : length;
    product_flops = static_cast<double>(sequences * heads) * static_cast<double>(queries) *
                    static_cast<double>(length) * (causal ? 64 : 128);
    if (first_rows) {
      for (int64_t s = 0; s <= sequences; ++s) query_starts.push_back(static_cast<int32_t>(s));
      op.forward.queries.rows = sequences;
      op.forward.queries.longest = 1;
      op.forward.queries.starts = query_starts.data();
    }
  }
  int64_t rows, width;
  FilledBuffer qkv, dqkv, y, dy, log_sum_exp;
  std::vector<int32_t> starts, query_starts, position, sequence;
  AttentionBackward op;
  double product_flops;  // of one product over what is visible: 2 K operations a score
};

Job job_of(const benchmark::State& state) {
  const int64_t length = state.range(0), heads = state.range(1);
  return {std::max<int64_t>(1, 4096 / length), length, heads, state.range(2) != 0 ? DType::bf16 : DType::f32,
          static_cast<float>(state.range(3)) / 100};
}

void finish(benchmark::State& state, const Job& job, double products) {
  state.SetItemsProcessed(state.iterations() * job.rows);
  state.counters["GFLOP/s"] = benchmark::Counter(
      products * job.product_flops * 1e-9 * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void time_forward(benchmark::State& state, const Job& job) {
  for (auto _ : state) cpu::attention_forward(job.op.forward);
  finish(state, job, 2);
}

void time_backward(benchmark::State& state, const Job& job) {
  cpu::attention_forward(job.op.forward);
  for (auto _ : state) cpu::attention_backward(job.op);
  finish(state, job, 4);
}

void attention_forward(benchmark::State& state) { time_forward(state, job_of(state)); }
void attention_backward(benchmark::State& state) { time_backward(state, job_of(state)); }

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"T", "H", "bf16", "dropout%"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int64_t bf16 : {0, 1}) {
    for (const int64_t length : {16, 64, 128, 256, 1024, 4096}) bench->Args({length, 4, bf16, 0});
    bench->Args({128, 8, bf16, 0});
    bench->Args({128, 8, bf16, 10});
  }
}
BENCHMARK(attention_forward)->Apply(shapes);
BENCHMARK(attention_backward)->Apply(shapes);

Job encoder_job_of(const benchmark::State& state) {
  const int64_t length = state.range(0);
  return {4096 / length, length, 12, state.range(1) != 0 ? DType::bf16 : DType::f32, 0.1f, false, state.range(2) != 0};
}

void encoder_forward(benchmark::State& state) { time_forward(state, encoder_job_of(state)); }
void encoder_backward(benchmark::State& state) { time_backward(state, encoder_job_of(state)); }

void encoder_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"T", "bf16", "first"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (const int64_t bf16 : {0, 1}) {
    for (const int64_t first : {0, 1}) {
      for (const int64_t length : {13, 32, 64, 128, 256, 512}) bench->Args({length, bf16, first});
    }
  }
}
BENCHMARK(encoder_forward)->Apply(encoder_shapes);
BENCHMARK(encoder_backward)->Apply(encoder_shapes);

}  // namespace
}  // namespace brisk
