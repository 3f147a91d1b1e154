#include "train/task/image_to_text_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "data/examples/example_statistics.h"
#include "data/examples/written_rows.h"
#include "infer/answer/image_reader.h"
#include "infer/architecture/architecture.h"
#include "infer/forward/image_batch_layout.h"
#include "job/job_options.h"
#include "train/task/frozen_images.h"
#include "train/task/image_subset.h"
#include "train/task/worth_caching.h"

namespace brisk {

namespace {

constexpr int64_t kImagesAtATime = 256;
constexpr std::array kImageScores = {TextScoreKind::kBleu, TextScoreKind::kChrf, TextScoreKind::kCer,
                                     TextScoreKind::kSteds, TextScoreKind::kBleuText};
// Rows of texts of a micro-batch, in those of as many texts in the mean.
constexpr double kRoomForLongTexts = 1.25;

// How the images of an evaluation are read.
struct Reading {
  int64_t count = 0;  // of the first so many
  TranslateOptions options;
  BleuOptions bleu;
  std::shared_ptr<const ImageTable>
      table;  // where the texts are as they were written; none: they are what the tokens stand for
};

// The sequences of an evaluation, with what it takes to write their texts.
class ReadImages final : public ImageTextSequences {
 public:
  ReadImages(ExampleSet examples, std::shared_ptr<const ImageStore> store, ImageLayout layout, PairFrame frame,
             int64_t most_target_rows, Reading reading)
      : ImageTextSequences(std::move(examples), std::move(store), std::move(layout), std::move(frame),
                           most_target_rows),
        reading_(std::move(reading)) {}

  int64_t readings() const { return std::min(reading_.count, count()); }
  const Reading& reading() const { return reading_; }

  // The texts that the model writes of images `begin` to `end`.
  using OnText = std::function<void(int64_t image, const Translated::Text& text, const std::string& reference)>;
  void read(const Model& model, const ParameterStore& parameters, const Tokenizer& tokenizer, int64_t begin,
            int64_t end, const OnText& on_text) const {
    BRISK_CHECK(model.conditional() != nullptr, "a model that writes no texts");
    ImageReader reader(*model.conditional(), parameters, layout(), tokenizer, frame());
    std::optional<WrittenRows> rows;
    if (reading_.table) rows.emplace(reading_.table->table);
    std::vector<int64_t> images;
    for (; begin < end; begin += std::ssize(images)) {
      images.clear();
      for (int64_t i = begin; i < std::min(end, begin + kImagesAtATime); ++i) images.push_back(examples().row_of(i));
      reader.read(
          store(), images, reading_.options,
          [&](size_t i, const Translated& answer) {
            const int64_t image = begin + static_cast<int64_t>(i);
            on_text(image, answer.best.front(),
                    rows ? std::string(rows->at(images[i]).pair) : tokenizer.decode(target_tokens(image)));
          },
          features());
    }
  }

 private:
  Reading reading_;
};

// Of all that were trained on; a model that has learned nothing yet never ends.
int64_t most_tokens_of(const ImageTextSequences& train) { return train.longest(kTargetSet) + 8; }

}  // namespace

TaskData ImageToTextTask::prepare(const Job& job, DataRequest request) {
  const TrainingOptions& training = job.training;
  sample_count_ = training.sample_translations;
  text_evaluation_ = TextEvaluation(job, request.processes);
  layout_ = architecture_of(job.model).image_layout(job.model);
  data_ = prepare_images(job, std::move(request), layout_);
  TableData& table = data_.table;
  if (table.validation.count() > 0) check_best_by(job, kImageScores);
  const PairFrame frame = pair_frame_of(*table.tokenizer, *table.tokenizer, job.model.first_token);
  check_room_for_pairs(frame, {.source = frame.source_rows(1), .target = training.max_length});
  const TooLong rule = job.data.too_long == "cut" ? TooLong::cut : TooLong::skip;
  const FittingTexts fit = fitting_image_texts(table.train, frame, training.max_length, rule);
  if (fit.examples.count() == 0) {
    user_error("{}: no text fits training.max_length = {}; raise it, or set data.too_long = cut",
               table.train.data().name(), training.max_length);
  }
  if (fit.too_long > 0) {
    const double share = static_cast<double>(fit.too_long) / static_cast<double>(table.train.count());
    const std::string line = fmt::format(
        "{} of {} images ({:.1f} %) have texts that do not fit training.max_length = {} and are {} "
        "(data.too_long)",
        with_commas(fit.too_long), with_commas(table.train.count()), 100 * share, training.max_length,
        rule == TooLong::cut ? "cut" : "left out of training");
    constexpr double kMany = 0.05;
    (share > kMany ? table.warnings_of_all : table.notes).push_back(line);
  }
  too_long_ = fit.too_long;
  table.train = fit.examples;
  train_ = std::make_shared<ImageTextSequences>(table.train, data_.train_images, layout_, frame, training.max_length);
  const LengthTotals texts = train_->totals(kTargetSet);
  target_rows_ = {kRoomForLongTexts * static_cast<double>(texts.rows) / static_cast<double>(train_->count()),
                  training.max_length};
  Reading reading{.count = training.eval_translations,
                  .options = {.beam = training.eval_beam, .max_tokens = most_tokens_of(*train_)},
                  .table = data_.validation_table};
  validation_ = std::make_shared<ReadImages>(table.validation, data_.validation_images, layout_, frame,
                                             training.max_length, std::move(reading));
  TaskData data = hand_over(table, train_, validation_);
  data.rows_per_epoch = static_cast<double>(train_->all_rows());
  data.notes.push_back("image cache: " + data_.train_images->cache_note());
  return data;
}

ModelConfig ImageToTextTask::model_config(const Job& job) const {
  return cached_ ? architecture_of(job.model).cached_config(job) : training_config(job);
}

std::vector<std::string> ImageToTextTask::compute_ahead(const Job& job, DType compute_type,
                                                        const std::string& checkpoint, Device& device,
                                                        ProcessGroup& processes) {
  if (!job.training.freeze_encoders || !job.training.cache_frozen || !is_worth_caching(job, *train_)) return {};
  const FrozenImageEncoders frozen(job, compute_type, checkpoint, device);
  const bool one = &data_.train_rows.data() == &data_.validation_rows.data();
  int64_t needed =
      frozen.are_there(data_.train_rows, data_.train_fingerprint) ? 0 : frozen.file_bytes(data_.train_rows);
  if (!one && !frozen.are_there(data_.validation_rows, data_.validation_fingerprint))
    needed += frozen.file_bytes(data_.validation_rows);
  const std::string directory = data_.train_rows.data().cache_directory();
  std::string line =
      no_room_to_cache(needed, directory, "what the frozen image encoders make of the images", processes);
  if (!line.empty()) return {std::move(line)};
  // The first process computes them, and the others find them in the cache.
  if (!processes.is_first()) processes.wait_for_all();
  const auto features = frozen.features_of(data_.train_rows, *data_.train_images, data_.train_fingerprint);
  train_->read_features(features);
  validation_->read_features(
      one ? features
          : frozen.features_of(data_.validation_rows, *data_.validation_images, data_.validation_fingerprint));
  if (processes.is_first()) processes.wait_for_all();
  cached_ = true;
  return {fmt::format("frozen image encoders: what they make of the images {} {} ({}), and is not computed again",
                      needed == 0 ? "was in" : "was computed and is in", directory,
                      format_bytes(static_cast<double>(frozen.file_bytes(data_.train_rows))))};
}

BatchLayout ImageToTextTask::batch_layout(const Job& job) const {
  const int64_t longest = job.training.max_length;
  const ImageLayout layout = layout_.empty() ? architecture_of(job.model).image_layout(job.model) : layout_;
  return image_text_layout(layout,
                           target_rows_.longest > 0 ? target_rows_ : TargetRows{static_cast<double>(longest), longest});
}

Task::Description ImageToTextTask::describe_data(const Job& job, const TaskData& data,
                                                 const PackingFigures& packing) const {
  const ExampleStatistics statistics = example_statistics(train_->examples(), job.training.max_length, [&](int64_t i) {
    return train_->frame().target_rows(std::ssize(train_->target_tokens(i)));
  });
  const LengthTotals texts = train_->totals(kTargetSet);
  return {
      fmt::format("{}{}\ntexts        {} tokens, {:.1f} a text, max {}\n{}\nvalidation   {} images, {} tokens of texts",
                  describe_image_input(layout_, train_->count()),
                  statistics.copies > 0 ? fmt::format(", {} of them copies", with_commas(statistics.copies)) : "",
                  with_commas(texts.rows), static_cast<double>(texts.rows) / static_cast<double>(train_->count()),
                  texts.longest, step_text(packing, 0), with_commas(data.validation->count()),
                  with_commas(data.validation->total_rows(kTargetSet))),
      example_statistics_json_text(statistics)};
}

Metrics ImageToTextTask::metrics() const {
  Metrics metrics = token_metrics();
  for (const TextScoreKind kind : kImageScores) metrics.add(text_score_metric(kind));
  return metrics;
}

void ImageToTextTask::add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                                  const Sequences& sequences, Metrics& metrics) const {
  const auto& images = dynamic_cast<const ReadImages&>(sequences);
  text_evaluation_.add_scores(
      images.readings(), {.kinds = {kImageScores.begin(), kImageScores.end()}, .bleu = images.reading().bleu},
      [&](int64_t begin, int64_t end, const TextEvaluation::OnAnswer& on_answer) {
        images.read(model, store, tokenizer, begin, end,
                    [&](int64_t, const Translated::Text& text, const std::string& reference) {
                      on_answer(text.text, reference);
                    });
      },
      metrics);
}

std::vector<Task::Sample> ImageToTextTask::samples(const Model& model, const ParameterStore& store,
                                                   const Tokenizer& tokenizer, const Sequences& validation) const {
  std::vector<Sample> samples;
  const auto& images = dynamic_cast<const ReadImages&>(validation);
  images.read(model, store, tokenizer, 0, std::min(sample_count_, images.count()),
              [&](int64_t image, const Translated::Text& text, const std::string& reference) {
                const std::string& path = images.store().path(images.examples().row_of(image));
                samples.push_back({path, text.text, reference, text.tokens, text.ended, path});
              });
  return samples;
}

Task::EvaluationData ImageToTextTask::open_evaluation(const TrainedModel& model,
                                                      const EvaluationRequest& request) const {
  EvaluationData data;
  const Tokenizer& tokenizer = model.writes_with();
  const ImageLayout layout = architecture_of(model.job.model).image_layout(model.job.model);
  const PairFrame frame = text_of(model).frame;
  check_room_for_pairs(frame, {.source = frame.source_rows(1), .target = request.max_length});
  OtherImages other = open_other_images(request.paths, model.job, &tokenizer, {}, layout);
  data.notes = std::move(other.notes);
  data.cut = fitting_image_texts(other.rows.examples, frame, request.max_length, TooLong::cut).too_long;
  Reading reading{
      .count = request.translate ? other.rows.examples.count() : 0,
      .options = request.translation,
      .bleu = {.tokenizer = bleu_tokenizer_from(request.bleu_tokenizer.empty() ? "13a" : request.bleu_tokenizer,
                                                option_name("tokenize"))},
      .table = other.table};
  if (request.translate) {
    const TextScores scores({.kinds = {kImageScores.begin(), kImageScores.end()}, .bleu = reading.bleu});
    data.details.json = nlohmann::ordered_json{{"signature", scores.signature(TextScoreKind::kBleu)},
                                               {"chrf_signature", scores.signature(TextScoreKind::kChrf)}}
                            .dump();
  }
  const auto images = std::make_shared<const ReadImages>(other.rows.examples, other.images, layout, frame,
                                                         request.max_length, std::move(reading));
  const LengthTotals texts = images->totals(kTargetSet);
  data.layout = image_text_layout(layout, {kRoomForLongTexts * static_cast<double>(texts.rows) /
                                               static_cast<double>(std::max<int64_t>(1, images->count())),
                                           request.max_length});
  data.sequences = images;
  return data;
}

std::optional<Task::TryOut> ImageToTextTask::try_out(const std::string& run, const std::string& data) const {
  const auto count = [](const std::string& output) {  // messages stand among them
    int64_t texts = 0;
    for (size_t at = 0; (at = output.find("{\"image\"", at)) != std::string::npos; ++at) ++texts;
    return fmt::format("{} texts", texts);
  };
  return TryOut{"predict", {"predict", run, "--images", data, "--beam", "2", "--json"}, count};
}

std::string ImageToTextTask::usage(const std::string& run) const {
  return fmt::format("brisk predict {} --images FOLDER", run);
}

SmokeSubset ImageToTextTask::take_subset(const Job& job, const std::string& folder, const SubsetSize& size,
                                         Job& small) const {
  return take_image_subset(job, folder, size, small);
}

std::unique_ptr<Task> make_image_to_text_task() { return std::make_unique<ImageToTextTask>(); }

}  // namespace brisk
