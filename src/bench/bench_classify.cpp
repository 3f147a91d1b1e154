#include "bench/bench_classify.h"

#include "base/error.h"
#include "base/runtime.h"
#include "base/threads.h"
#include "data/batch/loader.h"
#include "data/examples/example_sequences.h"
#include "infer/device_choice.h"
#include "job/job.h"
#include "models/encoder.h"
#include "models/model_costs.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"
#include "train/task/classify_task.h"
#include "train/task/prepare_table.h"

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
  set_bench_threads(options.threads, options.processes);
  ProcessGroup& processes = options.processes != nullptr ? *options.processes : single_process();
  if (!processes.is_first()) processes.wait_for_all();  // the first one fills the cache for all
  const InputTable table(
      {.paths = {options.data}, .text_field = options.text_field, .label_field = options.label_field, .of_job = false});
  std::string note;
  const std::unique_ptr<Tokenizer> tokenizer =
      options.tokenizer.empty()
          ? vocabulary_of_table(table, {.vocab_size = config.vocab_size}, Runtime::current().cache_directory(), note)
          : load_tokenizer(options.tokenizer);
  if (tokenizer->vocab_size() > config.vocab_size) {
    user_error("--tokenizer {}: {} entries, and {} has {}", options.tokenizer, tokenizer->vocab_size(), options.model,
               config.vocab_size);
  }
  const auto data = open_examples(table, *tokenizer, Runtime::current().cache_directory());
  if (processes.is_first()) processes.wait_for_all();
  const ExampleSet examples(data, *tokenizer, training_labels(*data, true));
  check_room_for_text(examples, options.max_length);
  const auto sequences = std::make_shared<const ExampleSequences>(examples, options.max_length);
  config.num_labels = examples.labels().count();

  const DeviceChoice place = choose_bench_device(options.device, options.processes);
  EngineOptions engine_options;
  engine_options.device = place.device;
  engine_options.processes = options.processes;
  engine_options.model = config;
  engine_options.layout = first_rows_layout(options.batch);
  const int64_t longest = sequences->longest();
  const int64_t rows =
      micro_batch_rows(options.micro_batch_tokens, usual_micro_batch_tokens(place.device),
                       sequences_of_share(options.batch, options.processes), length_figures(*sequences));
  engine_options.capacity = engine_options.layout.capacity(rows, longest);
  const PrecisionChoice precision = agreed_precision(
      choose_precision(options.precision, model_widths(engine_options.model), *place.device), options.processes);
  engine_options.compute_type = precision.compute_type;
  engine_options.products = precision.products;
  check_master_weights(options.master_weights, options.precision, *place.device);
  engine_options.master_weights = options.master_weights;
  Engine engine(engine_options);
  engine.initialise(1);
  Loader loader(
      sequences,
      {.sequences_per_step = options.batch, .micro_batch_rows = {rows}, .share = share_of_step(options.processes)});
  // Lengths vary: enough steps that they average out.
  const MeasuredSteps measured =
      measure_steps(engine, loader, {.seconds = options.seconds, .least_steps = 20, .rate = 5e-5});

  ClassifyBenchResult result{figures_of(measured, engine, precision)};
  result.rows_per_second = static_cast<double>(measured.sequences) / measured.ledger.seconds();
  result.mean_length = static_cast<double>(measured.tokens) / static_cast<double>(measured.sequences);
  result.set_speed(static_cast<double>(measured.tokens) / measured.ledger.seconds(),
                   model_flop_per_token(engine_options.model, row_means(*sequences, engine_options.layout)));
  result.device = place.name;
  return result;
}

}  // namespace brisk
