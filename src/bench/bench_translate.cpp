#include "bench/bench_translate.h"

#include <cmath>

#include "base/error.h"
#include "base/runtime.h"
#include "data/batch/loader.h"
#include "data/examples/pair_sequences.h"
#include "data/table/input_table.h"
#include "infer/device_choice.h"
#include "models/encoder_decoder.h"
#include "models/model_costs.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"
#include "train/task/prepare_table.h"

namespace brisk {

TranslateBenchResult bench_translate(const TranslateBenchOptions& options) {
  constexpr int64_t kHeadWidth = 64;
  if (options.width % kHeadWidth != 0) {
    user_error("--width {}: heads are {} wide here; use a multiple of that", options.width, kHeadWidth);
  }
  set_bench_threads(options.threads, options.processes);
  ProcessGroup& processes = options.processes != nullptr ? *options.processes : single_process();
  if (!processes.is_first()) processes.wait_for_all();  // the first one fills the cache for all
  const std::string cache = Runtime::current().cache_directory();
  const InputTable table({.paths = {options.source},
                          .labelled = false,
                          .translations = true,
                          .target_paths = {options.target},
                          .of_job = false});
  std::string note;
  const std::unique_ptr<Tokenizer> tokenizer =
      options.tokenizer.empty()
          ? vocabulary_of_table(table, {.vocab_size = options.vocabulary, .kind = TableVocabulary::Kind::text_to_text},
                                cache, note)
          : load_tokenizer(options.tokenizer);
  const PairFrame frame = pair_frame_of(*tokenizer, *tokenizer);
  const PairLimits limits{.source = options.max_length, .target = options.max_length};
  check_room_for_pairs(frame, limits);
  const ExampleSet examples(open_examples(table, TextTokenizers(*tokenizer, *tokenizer), cache));
  if (processes.is_first()) processes.wait_for_all();
  const FittingPairs fit = fitting_pairs(examples, frame, limits, TooLong::skip);
  const auto sequences = std::make_shared<const PairSequences>(fit.pairs, frame, limits);
  if (sequences->empty()) user_error("{}: no pair fits --max-length {}", options.source, options.max_length);

  EncoderDecoderConfig config;
  config.source_vocab_size = config.target_vocab_size = tokenizer->vocab_size();
  config.encoder = {.d_model = options.width,
                    .num_layers = options.layers,
                    .num_heads = options.width / kHeadWidth,
                    .head_width = kHeadWidth,
                    .d_ff = options.d_ff > 0 ? options.d_ff : 4 * options.width,
                    .max_length = options.max_length};
  config.decoder = config.encoder;
  config.dropout = config.attention_dropout = options.dropout;

  const DeviceChoice place = choose_bench_device(options.device, options.processes);
  EngineOptions engine_options;
  engine_options.device = place.device;
  engine_options.processes = options.processes;
  engine_options.model = config;
  engine_options.label_smoothing = 0.1;
  const double share = static_cast<double>(sequences->total_rows(1)) / static_cast<double>(sequences->total_rows(0));
  engine_options.layout.others.push_back({[=](const RowCapacity& source) {
    const auto rows = static_cast<int64_t>(std::ceil(share * static_cast<double>(source.rows)));
    return RowCapacity{std::max(rows, limits.target), source.sequences, limits.target};
  }});
  const int64_t rows =
      micro_batch_rows(options.micro_batch_tokens, usual_micro_batch_tokens(place.device),
                       sequences_of_share(options.batch, options.processes), length_figures(*sequences));
  engine_options.capacity = engine_options.layout.capacity(rows, sequences->longest());
  const PrecisionChoice precision = agreed_precision(
      choose_precision(options.precision, model_widths(engine_options.model), *place.device), options.processes);
  engine_options.compute_type = precision.compute_type;
  engine_options.products = precision.products;
  check_master_weights(options.master_weights, options.precision, *place.device);
  engine_options.master_weights = options.master_weights;
  if (options.optimizer == "muon") engine_options.muon = MuonOptions{};
  Engine engine(engine_options);
  engine.initialise(1);
  Loader loader(sequences, {.sequences_per_step = options.batch,
                            .micro_batch_rows = engine_options.layout.row_limits(engine_options.capacity),
                            .share = share_of_step(options.processes)});
  // Lengths vary: enough steps that they average out.
  const MeasuredSteps measured =
      measure_steps(engine, loader, {.seconds = options.seconds, .least_steps = 20, .rate = 3e-4});

  TranslateBenchResult result{figures_of(measured, engine, precision)};
  const double seconds = measured.ledger.seconds(), pairs = static_cast<double>(sequences->count());
  result.pairs_per_second = static_cast<double>(measured.sequences) / seconds;
  result.mean_source = static_cast<double>(sequences->total_rows(0)) / pairs;
  result.mean_target = static_cast<double>(sequences->total_rows(1)) / pairs;
  result.set_speed(static_cast<double>(measured.tokens) / seconds,
                   model_flop_per_token(engine_options.model, row_means(*sequences, engine_options.layout)));
  result.device = place.name;
  return result;
}

}  // namespace brisk
