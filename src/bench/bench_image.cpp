#include "bench/bench_image.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/made_up_images.h"
#include "data/batch/loader.h"
#include "data/examples/pair_sequences.h"
#include "infer/architecture/architecture.h"
#include "infer/device_choice.h"
#include "infer/forward/image_batch_layout.h"
#include "job/job.h"
#include "job/tables.h"
#include "models/model_costs.h"
#include "train/engine/engine.h"
#include "train/engine/tune_micro_batch.h"

namespace brisk {

namespace {

struct ImageShape {
  const char* name;
  const char* task;
  nlohmann::ordered_json model;  // its section of a job, which has the defaults of its type where nothing is said
};

const std::vector<ImageShape>& image_shapes() {
  const auto vit = [](int64_t width, int64_t layers, int64_t heads) {
    return nlohmann::ordered_json{{"type", "vit"}, {"d_model", width}, {"num_layers", layers}, {"num_heads", heads}};
  };
  static const std::vector<ImageShape> all = {
      {"vit-tiny", "classify", vit(192, 12, 3)},
      {"vit-small", "classify", vit(384, 12, 6)},
      {"vit-base", "classify", vit(768, 12, 12)},
      {"vit-large", "classify", vit(1024, 24, 16)},
      {"dimtda", "image_to_text", {{"type", "dimtda"}}},
      {"dimtda-official",
       "image_to_text",
       {{"type", "dimtda"}, {"queries", 1024}, {"query_width", 1024}, {"num_layers", 6}}},
      // For a try on a small machine.
      {"dimtda-small",
       "image_to_text",
       {{"type", "dimtda"},
        {"image_size", {224, 224}},
        {"encoder_d_model", 32},
        {"encoder_depths", {2, 2, 2, 2}},
        {"encoder_stage_heads", {1, 2, 4, 8}},
        {"layout_d_model", 192},
        {"layout_layers", 4},
        {"layout_heads", 3},
        {"queries", 64},
        {"query_width", 256},
        {"d_model", 256},
        {"num_heads", 4},
        {"vocab_size", 8000}}},
  };
  return all;
}

Job image_job(const ImageBenchOptions& options) {
  const auto shape = std::ranges::find(image_shapes(), options.shape, &ImageShape::name);
  if (shape == image_shapes().end()) {
    user_error("--shape {}: unknown; use one of {}", options.shape, fmt::join(image_bench_shapes(), ", "));
  }
  nlohmann::ordered_json model = shape->model;
  model["dropout"] = options.dropout;
  if (!options.image_size.empty()) model["image_size"] = options.image_size;
  if (shape->task == std::string("classify")) model["num_labels"] = options.classes;
  nlohmann::ordered_json json = {{"task", shape->task}, {"model", model}};
  Job job = job_from_json_text(json.dump(), "--shape " + options.shape);
  resolve_defaults(job);
  job.training.freeze_encoders = options.frozen;  // of random weights, which a job may not have
  return job;
}

}  // namespace

std::vector<std::string> image_bench_shapes() {
  std::vector<std::string> names;
  for (const ImageShape& shape : image_shapes()) names.emplace_back(shape.name);
  return names;
}

ImageBenchResult bench_image(const ImageBenchOptions& options) {
  const Job job = image_job(options);
  const ImageLayout images = architecture_of(job.model).image_layout(job.model);
  const bool writes_texts = !traits_of_task(job.task).has_labels;
  set_bench_threads(options.threads, options.processes);
  const int64_t longest = options.length / 2 + options.length;
  if (writes_texts && longest > job.model.context) {
    user_error("--length {}: the longest texts have {} tokens, and the model writes {}; use {} or less", options.length,
               longest, job.model.context, 2 * job.model.context / 3);
  }

  constexpr int64_t kStepsOfEpoch = 8;
  const int64_t count = kStepsOfEpoch * options.batch;
  const auto sequences =
      writes_texts
          ? std::make_shared<const MadeUpImages>(
                images,
                MadeUpImages::Texts{
                    .mean_length = options.length, .vocabulary = job.model.vocab_size, .batch = options.batch},
                count)
          : std::make_shared<const MadeUpImages>(images, MadeUpImages::Labels{.classes = options.classes}, count);

  const DeviceChoice place = choose_bench_device(options.device, options.processes);
  EngineOptions engine_options;
  engine_options.device = place.device;
  engine_options.processes = options.processes;
  engine_options.model = training_config(job);
  const LengthTotals texts = sequences->totals(static_cast<int>(kTargetSet));
  engine_options.layout =
      writes_texts ? image_text_layout(images, {.rows = static_cast<double>(texts.rows) / static_cast<double>(count),
                                                .longest = texts.longest})
                   : image_label_layout(images);
  engine_options.checkpoint_every = options.checkpointing ? 1 : 0;
  const int64_t rows =
      std::max(micro_batch_rows(options.micro_batch_tokens, usual_micro_batch_tokens(place.device),
                                sequences_of_share(options.batch, options.processes), length_figures(*sequences)),
               engine_options.layout.least_rows(longest_of_sets(*sequences)));
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
  const MeasuredSteps measured =
      measure_steps(engine, loader, {.seconds = options.seconds, .least_steps = 2, .rate = 5e-5});

  ImageBenchResult result{figures_of(measured, engine, precision)};
  const double seconds = measured.ledger.seconds();
  result.writes_texts = writes_texts;
  result.rows_per_second = static_cast<double>(measured.sequences) / seconds;
  if (writes_texts) {
    result.text_tokens_per_second =
        result.rows_per_second * static_cast<double>(texts.rows) / static_cast<double>(count);
  }
  result.set_speed(static_cast<double>(measured.tokens) / seconds,
                   model_flop_per_token(engine_options.model, row_means(*sequences, engine_options.layout)));
  result.device = place.name;
  return result;
}

}  // namespace brisk
