#include "bench/bench.h"

#include "base/error.h"
#include "job/job.h"

namespace brisk {

namespace {

struct Shape {
  const char* name;
  int64_t vocab_size, d_model, num_layers, num_heads, max_length, batch;
};

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

}  // namespace

BenchResult bench_language_model(const BenchOptions& options) {
  const Shape shape = shape_of(options);
  const DecoderConfig model{.vocab_size = shape.vocab_size,
                            .d_model = shape.d_model,
                            .num_layers = shape.num_layers,
                            .num_heads = shape.num_heads,
                            .num_kv_heads = shape.num_heads,
                            .d_ff = 4 * shape.d_model,
                            .max_length = shape.max_length};
  BenchResult result{
      bench_text_training({.model = model,
                           .vocab_size = shape.vocab_size,
                           .max_length = shape.max_length,
                           .batch = shape.batch,
                           .precision = options.precision,
                           .master_weights = options.master_weights,
                           .optimizer = options.optimizer,
                           .seconds = options.seconds,
                           .threads = options.threads,
                           .micro_batch_tokens = options.micro_batch_tokens,
                           .device = options.device,
                           .processes = options.processes,
                           .sizes = "--width, --layers, --vocabulary, --batch, --micro-batch-tokens or --max-length"})};
  result.model = model;
  return result;
}

}  // namespace brisk
