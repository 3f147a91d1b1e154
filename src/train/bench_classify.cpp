#include "train/bench_classify.h"

#include <algorithm>

#include "base/error.h"
#include "base/isa.h"
#include "base/job.h"
#include "base/machine.h"
#include "base/threads.h"
#include "data/example_sequences.h"
#include "data/loader.h"
#include "train/bench_steps.h"
#include "train/classify_task.h"
#include "train/device_choice.h"
#include "train/encoder_data.h"
#include "train/engine.h"
#include "train/precision.h"

namespace brisk {

namespace {

EncoderConfig shape_of(const std::string& name) {
  EncoderConfig config;
  config.vocab_size = 30522;
  if (name == "bert") {
    config.types = 2;
  } else if (name == "distilbert") {
    config.num_layers = 6;
    config.head = EncoderConfig::Head::relu;
    config.classifier_dropout = 0.2;
  } else if (name == "minilm") {
    config.types = 2;
    config.num_layers = 6;
    config.d_model = 384;
    config.d_ff = 1536;
  } else {
    user_error("--model {}: unknown; use distilbert, bert or minilm", name);
  }
  return config;
}

}  // namespace

ClassifyBenchResult bench_classify(const ClassifyBenchOptions& options) {
  EncoderConfig config = shape_of(options.model);
  if (options.max_length > config.max_length) {
    user_error("--max-length {}: {} reads at most {} tokens", options.max_length, options.model, config.max_length);
  }
  Team::set_size(team_size_for(options.threads, "--threads"));
  const TextTable table({.paths = {options.data}, .option_prefix = "--"});
  std::string note;
  const std::unique_ptr<Tokenizer> tokenizer =
      options.tokenizer.empty() ? wordpiece_of_table(table, config.vocab_size, default_cache_directory(), note)
                                : load_tokenizer(options.tokenizer);
  if (tokenizer->vocab_size() > config.vocab_size) {
    user_error("--tokenizer {}: {} entries, and {} has {}", options.tokenizer, tokenizer->vocab_size(), options.model,
               config.vocab_size);
  }
  const auto data = open_examples(table, *tokenizer, default_cache_directory());
  const ExampleSet examples(data, *tokenizer, training_labels(*data));
  check_room_for_text(examples, options.max_length);
  const auto sequences = std::make_shared<const ExampleSequences>(examples, options.max_length);
  config.num_labels = examples.labels().count();

  const DeviceChoice place = choose_device(options.device, "--device");
  EngineOptions engine_options;
  engine_options.device = place.device;
  engine_options.model = config;
  engine_options.picking = first_row_picking(options.batch);
  const int64_t longest = sequences->longest();
  const int64_t asked =
      options.micro_batch_tokens > 0 ? options.micro_batch_tokens : usual_micro_batch_tokens(place.device);
  const int64_t rows = std::max(longest, std::min(asked, options.batch * longest));
  engine_options.capacity = engine_options.picking.capacity(rows, longest);
  const PrecisionChoice precision =
      choose_precision(options.precision, model_widths(engine_options.model), *place.device);
  engine_options.compute_type = precision.compute_type;
  Engine engine(engine_options);
  engine.initialise(1);
  Loader loader(sequences, {.sequences_per_step = options.batch, .micro_batch_tokens = rows});
  // Lengths vary: enough steps that they average out.
  const MeasuredSteps measured =
      measure_steps(engine, loader, {.seconds = options.seconds, .least_steps = 20, .rate = 5e-5});

  ClassifyBenchResult result;
  result.ledger = measured.ledger;
  result.steps = measured.steps;
  result.rows_per_second = static_cast<double>(measured.sequences) / measured.ledger.seconds();
  result.tokens_per_second = static_cast<double>(measured.tokens) / measured.ledger.seconds();
  result.mean_length = static_cast<double>(measured.tokens) / static_cast<double>(measured.sequences);
  result.step_ms = 1e3 * measured.median_seconds;
  const double attended = sequences->squared_rows() / static_cast<double>(sequences->total_rows());
  result.gflops =
      result.tokens_per_second * model_flop_per_token(engine_options.model, attended, sequences->picked_rows()) * 1e-9;
  result.peak_gflops = measured.peak_gflops;
  result.utilisation = result.peak_gflops > 0 ? result.gflops / result.peak_gflops : 0;
  result.parameters = engine.parameters().count();
  result.peak_memory_bytes = place.device->is_cuda() ? place.device->used_bytes() : peak_memory_bytes();
  result.precision = precision.compute_type == DType::bf16 ? "bf16" : "fp32";
  result.isa = place.device->is_cuda() ? "cuda" : std::string(isa_name(active_isa()));
  result.device = place.name;
  result.reason = precision.reason;
  return result;
}

}  // namespace brisk
