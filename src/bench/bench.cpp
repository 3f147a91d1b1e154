#include "bench/bench.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/random.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "data/batch/chunk_sequences.h"
#include "data/batch/loader.h"
#include "data/corpus/corpus.h"
#include "infer/device_choice.h"
#include "job/job.h"
#include "models/model_costs.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"
#include "train/record/run_text.h"
#include "train/run/plan/resource_checks.h"

namespace brisk {

namespace {

struct Shape {
  const char* name;
  int64_t vocab_size, d_model, num_layers, num_heads, max_length, batch;
};

constexpr int64_t kSteps = 8;  // whose tokens are made; then they come again

constexpr Shape kShapes[] = {{"small", 10000, 256, 2, 4, 128, 32},
                             {"large", 50000, 512, 6, 8, 128, 16},
                             {"production", 32000, 512, 6, 8, 128, 16},
                             {"gpt2", 50304, 768, 12, 12, 1024, 32}};

const Shape& find_shape(const std::string& name) {
  for (const Shape& shape : kShapes) {
    if (name == shape.name) return shape;
  }
  user_error("--shape {}: unknown; use small, large, production or gpt2", name);
}

// The heads that a job of this width has where it does not say.
int64_t default_heads(int64_t width) {
  Job job;
  job.model.d_model = width;
  resolve_defaults(job);
  return job.model.num_heads;
}

// The named shape with what the options change in it.
Shape shape_of(const BenchOptions& options) {
  Shape shape = find_shape(options.shape);
  if (options.width > 0) {
    shape.d_model = options.width;
    shape.num_heads = default_heads(options.width);
  }
  if (options.layers > 0) shape.num_layers = options.layers;
  if (options.vocabulary > 0) shape.vocab_size = options.vocabulary;
  if (options.heads > 0) shape.num_heads = options.heads;
  if (options.max_length > 0) shape.max_length = options.max_length;
  if (options.batch > 0) shape.batch = options.batch;
  if (shape.d_model % shape.num_heads != 0) {
    user_error("--heads {}: each head takes an equal share of the width, and {} is not divisible by it; use --heads {}",
               shape.num_heads, shape.d_model, default_heads(shape.d_model));
  }
  return shape;
}

void refuse_shape_that_cannot_fit(const Shape& shape, const EngineOptions& options, const Device& device) {
  const MemoryPlan plan = plan_memory(options);
  const int64_t tokens =
      kSteps * shape.batch * shape.max_length * 2 * static_cast<int64_t>(sizeof(int32_t));  // as made and as held
  const int64_t needed =
      plan.state_bytes + plan.activation_bytes + plan.workspace_bytes + (device.is_cuda() ? 0 : tokens);
  const int64_t available = memory_for_engine(device);
  if (needed <= available) return;
  user_error(
      "this shape needs {} of memory and {} are available; use a smaller --width, --layers, --vocabulary, --batch, "
      "--micro-batch-tokens or --max-length\n{}",
      format_bytes(static_cast<double>(needed)), format_bytes(static_cast<double>(std::max<int64_t>(0, available))),
      memory_table(plan));
}

// Documents that fill a sequence each, their tokens spread like words: few common, most rare.
std::shared_ptr<const TokenStream> varied_tokens(int64_t documents, int64_t length, int64_t vocab_size) {
  std::vector<std::vector<int32_t>> tokens(static_cast<size_t>(documents));
  const uint64_t key = random_key({2024});
  uint64_t drawn = 0;
  for (auto& document : tokens) {
    for (int64_t i = 0; i < length - 1; ++i) {
      const double skewed = std::pow(random_uniform(key, drawn++), 3.0);
      document.push_back(1 + static_cast<int32_t>(skewed * static_cast<double>(vocab_size - 1)));
    }
  }
  return TokenStream::from_documents(tokens, 0);
}

}  // namespace

BenchResult bench_language_model(const BenchOptions& options) {
  const Shape shape = shape_of(options);
  Runtime::current().set_threads(thread_count_for(options.threads, "--threads"));
  const int64_t length = shape.max_length, batch = shape.batch;
  const DeviceChoice place = choose_device(options.device, "--device");
  EngineOptions engine_options;
  engine_options.device = place.device;
  const DecoderConfig model{.vocab_size = shape.vocab_size,
                            .d_model = shape.d_model,
                            .num_layers = shape.num_layers,
                            .num_heads = shape.num_heads,
                            .num_kv_heads = shape.num_heads,
                            .d_ff = 4 * shape.d_model,
                            .max_length = length};
  engine_options.model = model;
  const int64_t rows = micro_batch_rows(options.micro_batch_tokens, usual_micro_batch_tokens(place.device), batch,
                                        {length, static_cast<double>(length)});
  engine_options.capacity = {rows, rows, length};
  if (options.optimizer == "muon") engine_options.muon = MuonOptions{};
  refuse_shape_that_cannot_fit(shape, engine_options, *place.device);  // before measuring: that takes memory too
  const PrecisionChoice precision =
      choose_precision(options.precision, model_widths(engine_options.model), *place.device);
  engine_options.compute_type = precision.compute_type;
  engine_options.products = precision.products;
  check_master_weights(options.master_weights, options.precision, *place.device);
  engine_options.master_weights = options.master_weights;
  const MemoryPlan plan = plan_memory(engine_options);
  const GpuMemoryExplanation explanation([plan] { return memory_table(plan); });
  Engine engine(engine_options);
  engine.initialise(1);

  const auto stream = varied_tokens(kSteps * batch, length, shape.vocab_size);
  Loader loader(text_sequences(stream, whole_corpus(*stream, length).chunks),
                {.sequences_per_step = batch, .micro_batch_rows = {rows}});
  const MeasuredSteps measured = measure_steps(engine, loader, {.seconds = options.seconds});

  BenchResult result{figures_of(measured, engine, precision)};
  result.mean_tokens_per_second = static_cast<double>(measured.tokens) / result.ledger.seconds();
  result.model = model;
  result.batch = batch;
  result.threads = thread_pool().size();
  const RowMeans even{.rows = static_cast<double>(length), .attended = static_cast<double>(length)};
  result.flop_per_token = model_flop_per_token(engine_options.model, {&even, 1});
  result.set_speed(static_cast<double>(batch * length) / measured.median_seconds, result.flop_per_token);
  result.state_bytes = plan.state_bytes;
  result.activation_bytes = plan.activation_bytes;
  result.workspace_bytes = plan.workspace_bytes + plan.library_bytes;
  result.device = place.name;
  return result;
}

}  // namespace brisk
