#include <brisk/model.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "api/loaded_model.h"
#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "data/images/class_folders.h"
#include "data/images/image_check.h"
#include "data/images/image_store.h"
#include "data/read/source_files.h"
#include "data/table/input_table.h"
#include "image/image_file.h"
#include "infer/answer/image_predictor.h"
#include "infer/answer/image_reader.h"
#include "infer/architecture/architecture.h"
#include "job/job_conditions.h"

namespace brisk {

namespace {

// Some are computed while the next are decoded.
constexpr int64_t kImagesTogether = 64;

ImageLayout layout_for_images(const TrainedModel& model) {
  ImageLayout layout = architecture_of(model.job.model).image_layout(model.job.model);
  if (layout.empty()) {
    user_error(
        "{}: model.type {} (task {}) reads no images; train a job of task image_to_text, or classify with a model.type "
        "that does",
        model.source, model.job.model.type, model.job.task);
  }
  return layout;
}

// Calls `answer` with the numbers of some images after others.
void in_turns(const ImageStore& store, const std::function<void(std::span<const int64_t>)>& answer) {
  std::vector<int64_t> numbers(static_cast<size_t>(store.count()));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  const std::span<const int64_t> all = numbers;
  const auto turn = [&](size_t begin) {
    return all.subspan(begin, std::min<size_t>(kImagesTogether, all.size() - begin));
  };
  for (size_t begin = 0; begin < all.size(); begin += kImagesTogether) {
    if (begin + kImagesTogether < all.size()) store.prefetch(turn(begin + kImagesTogether));
    answer(turn(begin));
  }
}

std::unique_ptr<ImageStore> open_images(const TrainedModel& model, const std::vector<std::string>& images,
                                        const ImageLayout& layout) {
  const auto threads = static_cast<int>(std::max<int64_t>(1, model.job.training.num_workers));
  return std::make_unique<ImageStore>(images, layout.images, ImageStoreOptions{.threads = threads});
}

}  // namespace

bool LoadedModel::reads_images() const { return brisk::reads_images(content_->model->job.model.type); }

std::vector<std::string> LoadedModel::find_images(const std::string& path, bool skip_broken) const {
  const Content::Scope scope(*content_);
  std::vector<std::string> images;
  if (is_directory(path)) {
    images = images_of_folder(path);
    if (images.empty()) user_error("{}: no image in it (.png, .jpg, .webp, .ppm, .pgm)", path);
    if (const std::string unread = unread_images_note(path); !unread.empty()) warn("{}", unread);
  } else if (is_table_file(path)) {
    const DataOptions& data = content_->model->job.data;
    const InputTable table({.paths = {path},
                            .text_field = data.image_field.empty() ? "image" : data.image_field,
                            .labelled = false,
                            .of_job = false});
    const bool has_folder = !data.images.empty() && data.texts.empty();
    const std::filesystem::path folder = has_folder ? data.images : std::filesystem::path(path).parent_path().string();
    TableRowReader rows(table);
    TableRow row;
    while (rows.next(row)) {
      if (has_text(row.text)) images.push_back((folder / row.text).string());
    }
  } else if (file_exists(path)) {  // what it is, its content says
    images = {path};
  } else {
    user_error(
        "{}: there is no such file; give a folder of images, an image (.png, .jpg, .webp, .ppm, .pgm) or a table (.csv, "
        ".tsv, .jsonl)",
        path);
  }
  const ImageCheck check = check_images(images, skip_broken ? BrokenImages::skip : BrokenImages::refuse,
                                        cache_directory(content_->model->job.data), {}, option_name("skip_broken"));
  for (const std::string& note : check.notes) warn("{}", note);
  for (auto broken = check.broken.rbegin(); broken != check.broken.rend(); ++broken)
    images.erase(images.begin() + *broken);
  return images;
}

TranslateTotals LoadedModel::read_images(const std::vector<std::string>& images, const OnTranslations& on_texts,
                                         const TranslateOptions& options) {
  const Content::Scope scope(*content_);
  check_translate_options(options);
  const TrainedModel& model = *content_->model;
  const ImageLayout layout = layout_for_images(model);
  if (model.model->conditional() == nullptr) {
    user_error("{}: model.type {} (task {}) writes no texts; ask it for the classes of images", model.source,
               model.job.model.type, model.job.task);
  }
  const auto hand_over = in_callers_mode(on_texts);
  const std::unique_ptr<ImageStore> store = open_images(model, images, layout);
  ImageReader reader(*model.model->conditional(), model.store, layout, model.writes_with(), text_of(model).frame);
  TranslateTotals totals;
  in_turns(*store, [&](std::span<const int64_t> numbers) {
    std::vector<Translated> answers;
    reader.read(*store, numbers, options, [&](size_t, Translated answer) { answers.push_back(std::move(answer)); });
    for (const Translated& answer : answers) {
      ++totals.texts;
      totals.cut += answer.best.front().ended ? 0 : 1;
    }
    hand_over(answers);
  });
  totals.tokens = reader.tokens();
  return totals;
}

PredictTotals LoadedModel::predict_images(const std::vector<std::string>& images, const OnPredictions& on_predictions) {
  const Content::Scope scope(*content_);
  const TrainedModel& model = *content_->model;
  const ImageLayout layout = layout_for_images(model);
  const auto hand_over = in_callers_mode(on_predictions);
  const std::unique_ptr<ImageStore> store = open_images(model, images, layout);
  ImagePredictor predictor(model, layout);
  PredictTotals totals;
  in_turns(*store, [&](std::span<const int64_t> numbers) {
    std::vector<Prediction> answers;
    predictor.predict(*store, numbers, [&](int32_t label, const std::vector<double>& probabilities) {
      answers.push_back({static_cast<size_t>(label), probabilities});
    });
    totals.texts += std::ssize(answers);
    hand_over(answers);
  });
  totals.tokens = predictor.rows();
  return totals;
}

}  // namespace brisk
