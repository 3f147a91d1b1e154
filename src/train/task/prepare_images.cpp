#include "train/task/prepare_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/terminal/terminal.h"
#include "base/terminal/work_bar.h"
#include "data/batch/loader.h"
#include "data/images/class_folders.h"
#include "data/images/image_check.h"
#include "job/job_conditions.h"

namespace brisk {

namespace {

constexpr const char* kWhatToName =
    "a table of images and their texts or labels, or data.images and data.texts, two folders of files with the same names";

bool has_classes(const Job& job) { return traits_of_task(job.task).has_labels; }

ImageTable open_table(const Job& job, const std::vector<std::string>& paths, bool of_job) {
  const DataOptions& data = job.data;
  if (has_classes(job) && paths.size() == 1 && is_class_folder(paths.front()))
    return open_class_folders(paths.front(), cache_directory(data));
  if (of_job && data.texts.empty() && !data.images.empty() && !is_directory(data.images))
    user_error("data.images = {}: there is no such folder; name the one where the paths of images begin", data.images);
  return open_image_table({.paths = paths,
                           .image_field = data.image_field,
                           .text_field = data.text_field,
                           .label_field = data.label_field,
                           .labelled = has_classes(job),
                           .image_folder = data.texts.empty() ? data.images : "",
                           .of_job = of_job});
}

ImageRows tokens_of_images(const ImageTable& table, const Job& job, const Tokenizer* tokenizer,
                           const LabelSet& labels) {
  WorkBar bar("tokens of " + table.table.files().front().path);
  const auto progress = [&](int64_t done, int64_t total) { bar.update(done, total); };
  return has_classes(job) ? open_image_rows(table, labels, cache_directory(job.data), progress)
                          : open_image_rows(table, tokenizer, cache_directory(job.data), progress);
}

// Their texts or labels, without those whose images cannot be read.
class ReadableRows {
 public:
  ReadableRows(const Job& job, ImageRows all) : rows(std::move(all)) {
    const BrokenImages rule = job.data.broken_images == "skip" ? BrokenImages::skip : BrokenImages::refuse;
    check = check_images(rows.image_paths(), rule, cache_directory(job.data));
    fingerprint = fmt::format("{}-{:016x}", cache_hash_of(rows.examples.data()), check.fingerprint);
    if (!check.broken.empty()) rows = without_images(rows, check.broken);
    if (rows.examples.count() == 0) user_error("{}: none of its images can be read", rows.examples.data().name());
  }

  void add_notes(std::vector<std::string>& notes) const {
    for (const auto& more : {rows.examples.data().notes(), check.notes})
      notes.insert(notes.end(), more.begin(), more.end());
  }

  ImageRows rows;
  ImageCheck check;
  std::string fingerprint;
};

// Rows of `part` whose file is one of `whole`, too: a name alone says nothing, folders of both have 0.png.
int64_t shared_files(const ImageRows& part, const ImageRows& whole) {
  const auto places = [](const ImageRows& rows) {
    std::vector<std::string> paths = rows.image_paths();
    for (std::string& path : paths) path = std::filesystem::absolute(path).lexically_normal().string();
    return paths;
  };
  std::vector<std::string> known = places(whole);
  std::sort(known.begin(), known.end());
  int64_t shared = 0;
  for (const std::string& path : places(part)) shared += std::binary_search(known.begin(), known.end(), path) ? 1 : 0;
  return shared;
}

// `share`: of the images of all parts.
std::shared_ptr<const ImageStore> store_of(const Job& job, const ImageRows& rows, const ImageLayout& layout,
                                           double share) {
  const double bytes = job.data.image_cache < 0 ? static_cast<double>(default_image_cache_bytes())
                                                : 1e6 * static_cast<double>(job.data.image_cache);
  return std::make_shared<const ImageStore>(rows.image_paths(), layout.images,
                                            ImageStoreOptions{.threads = static_cast<int>(job.training.num_workers),
                                                              .cache_bytes = static_cast<int64_t>(share * bytes)});
}

// The steps that the loader has ready, and the one that is computed.
constexpr int64_t kStepsInMemory = LoaderOptions{}.steps_ahead + 1;

// UserError where the pixels of the steps that are in memory at once do not fit there.
void refuse_images_without_room(const Job& job, const ImageLayout& layout, ProcessGroup* processes) {
  if (job.training.freeze_encoders && job.training.cache_frozen) return;  // what encoders make is read instead
  int64_t of_image = 0;
  for (const ImageInput& input : layout.images) of_image += input.rows() * input.cols();
  const int64_t images = job.training.batch_size * job.training.gradient_accumulation_steps;
  const double share =
      processes != nullptr ? static_cast<double>(processes->of_machine()) / static_cast<double>(processes->size()) : 1;
  const double of_step = share * static_cast<double>(images * of_image), needed = kStepsInMemory * of_step;
  const auto there = static_cast<double>(memory_available());
  if (needed < there) return;
  const ImageInput& input = layout.images.front();
  user_error(
      "training.batch_size: the pixels of a step of {} images of {} x {} take {}, those of the {} steps that are in memory "
      "at once {}, and {} are free: use fewer images in a step, or a smaller model.image_size",
      with_commas(images), input.height, input.width, format_bytes(of_step), kStepsInMemory, format_bytes(needed),
      format_bytes(there));
}

}  // namespace

ImageTable open_job_images(const Job& job, ImagePart part) {
  const DataOptions& data = job.data;
  const std::vector<std::string> paths = table_train_paths(job, kWhatToName);
  const bool validates = part == ImagePart::validation;
  if (validates && !data.validation.empty()) return open_table(job, data.validation, true);
  if (data.texts.empty()) return open_table(job, paths, true);
  return open_image_folders({data.images, data.texts, data.split}, data.split.empty() ? ImagePart::all : part,
                            cache_directory(data));
}

ImageData prepare_images(const Job& job, DataRequest request, const ImageLayout& layout) {
  ImageData prepared;
  TableData& table = prepared.table;
  const DataOptions& data = job.data;
  const bool folders = !data.texts.empty(), classes = has_classes(job);
  refuse_images_without_room(job, layout, request.processes);
  const ImageTable train = open_job_images(job, ImagePart::train);
  const KnownClasses known = known_classes(request);
  const double memory_share = 1.0 / (request.processes != nullptr ? request.processes->of_machine() : 1);
  if (!classes) {
    prepare_tokenizer(job, request, train.table,
                      {.vocab_size = job.model.vocab_size,
                       .kind = TableVocabulary::Kind::text_to_text,
                       .texts = TableVocabulary::Texts::second},
                      table);
  }
  ImageRows all = tokens_of_images(train, job, table.tokenizer.get(), {});
  if (classes) {
    decide_classes(job, known, all.examples.data(), table);
    all = tokens_of_images(train, job, nullptr, table.labels);
  }
  if (!folders) {
    table.found["data.image_field"] = train.table.text_column();
    table.found[classes ? "data.label_field" : "data.text_field"] =
        classes ? train.table.label_column() : train.table.pair_column();
  }
  if (classes) {
    for (const std::string& path : {table_train_paths(job, kWhatToName).front(),
                                    data.validation.empty() ? std::string() : data.validation.front()}) {
      const std::string unread = is_class_folder(path) ? unread_images_note(path) : "";
      if (!unread.empty()) table.warnings_of_all.push_back(unread);
    }
  }
  const ReadableRows readable(job, std::move(all));
  readable.add_notes(table.notes);
  table.fingerprint = readable.fingerprint;
  table.cache_files.push_back(readable.rows.examples.data().cache_path());
  prepared.train_rows = prepared.validation_rows = readable.rows.examples;
  prepared.train_fingerprint = prepared.validation_fingerprint = readable.fingerprint;

  if (data.validation.empty() && data.split.empty()) {
    ExampleSplit split =
        split_examples(readable.rows.examples, data.validation_fraction, static_cast<uint64_t>(job.training.seed));
    table.train = std::move(split.train);
    table.validation = std::move(split.validation);
    if (!split.note.empty()) table.notes.push_back(split.note);
    prepared.train_images = prepared.validation_images = store_of(job, readable.rows, layout, memory_share);
  } else {
    table.train = readable.rows.examples;
    prepared.validation_table =
        std::make_shared<const ImageTable>(open_job_images(with_found(job, table.found), ImagePart::validation));
    const ReadableRows other(job,
                             tokens_of_images(*prepared.validation_table, job, table.tokenizer.get(), table.labels));
    other.add_notes(table.notes);
    table.fingerprint += "-" + other.fingerprint;
    table.validation = prepared.validation_rows = other.rows.examples;
    prepared.validation_fingerprint = other.fingerprint;
    table.cache_files.push_back(table.validation.data().cache_path());
    if (const int64_t shared = shared_files(other.rows, readable.rows); shared > 0) {
      table.warnings_of_all.push_back(
          fmt::format("{} of the {} images of data.validation are also in data.train: what was memorised makes the "
                      "evaluation look too good; remove them from one of the two",
                      shared, table.validation.data().rows()));
    }
    const auto count = static_cast<double>(table.train.count());
    const double share = count / (count + static_cast<double>(table.validation.count()));
    prepared.train_images = store_of(job, readable.rows, layout, memory_share * share);
    prepared.validation_images = store_of(job, other.rows, layout, memory_share * (1 - share));
  }
  if (table.validation.count() > 0) table.validation_fingerprint = fingerprint_of_examples(table.validation);
  return prepared;
}

OtherImages open_other_images(const std::vector<std::string>& paths, const Job& job, const Tokenizer* tokenizer,
                              const LabelSet& labels, const ImageLayout& layout) {
  OtherImages other;
  const DataOptions& data = job.data;
  const bool folders = !data.texts.empty() && paths.size() == 1;
  const bool is_split = folders && paths.front().ends_with(".json");
  if (is_split) {
    other.table = std::make_shared<const ImageTable>(
        open_image_folders({data.images, data.texts, paths.front()}, ImagePart::test, cache_directory(data)));
  } else if (folders && is_directory(paths.front())) {
    other.table = std::make_shared<const ImageTable>(
        open_image_folders({data.images, paths.front(), ""}, ImagePart::all, cache_directory(data)));
  } else {
    other.table = std::make_shared<const ImageTable>(open_table(job, paths, false));
  }
  const ReadableRows readable(job, tokens_of_images(*other.table, job, tokenizer, labels));
  readable.add_notes(other.notes);
  other.rows = readable.rows;
  other.images = store_of(job, readable.rows, layout, 1);
  return other;
}

std::string describe_image_input(const ImageLayout& layout, int64_t images) {
  std::string text = fmt::format("images       {}", with_commas(images));
  for (size_t i = 0; i < layout.images.size(); ++i) {
    const ImageInput& input = layout.images[i];
    text += fmt::format("{} {} x {} pixels, {} patches of {} x {}", i == 0 ? ", read as" : ", and as", input.height,
                        input.width, with_commas(input.patches()), input.patch, input.patch);
  }
  return text;
}

}  // namespace brisk
