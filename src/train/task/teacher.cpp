#include "train/task/teacher.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/terminal/work_bar.h"
#include "checkpoint/store_checksum.h"
#include "data/examples/example_sequences.h"
#include "infer/answer/class_predictor.h"
#include "infer/answer/predict.h"
#include "infer/open/model_source.h"
#include "infer/open/trained_model.h"
#include "models/model_config.h"
#include "train/engine/engine.h"
#include "train/task/classify_task.h"
#include "train/task/prepare_table.h"

namespace brisk {

namespace {

constexpr uint64_t kLogitsFormat = 1;

// For each class of the student, the teacher's number of it.
std::vector<size_t> class_order(const Job& job, const LabelSet& labels, const LabelSet& teacher) {
  std::vector<size_t> order;
  for (int64_t i = 0; i < labels.count(); ++i) {
    if (const int32_t there = teacher.find(labels.name(i)); there >= 0) order.push_back(static_cast<size_t>(there));
  }
  if (labels.count() == teacher.count() && order.size() == static_cast<size_t>(labels.count())) return order;
  // A model of another program says LABEL_0 or NEGATIVE where the table says 0.
  order.clear();
  for (int64_t i = 0; i < labels.count() && labels.name(i) == fmt::format("{}", i); ++i)
    order.push_back(static_cast<size_t>(i));
  if (labels.count() == teacher.count() && order.size() == static_cast<size_t>(labels.count())) return order;
  user_error("training.teacher: {} names the classes {}, and the data has {}; a teacher must know the same classes",
             job.training.teacher, teacher.text(), labels.text());
}

std::unique_ptr<TrainedModel> open_teacher(const Job& job) {
  if (!file_exists(job.training.teacher)) {
    user_error("training.teacher: {}: no such run or folder; name a trained classifier of the same classes",
               job.training.teacher);
  }
  try {
    auto teacher = open_trained_model(job.training.teacher, "", true, "cpu", nonfinite_of(job));
    require_classifier(*teacher);
    return teacher;
  } catch (const UserError& error) {
    user_error("training.teacher: {}", error.what());
  }
}

}  // namespace

TeacherAnswers ask_teacher(const Job& job, const LabelSet& labels, int64_t rows) {
  const std::unique_ptr<TrainedModel> teacher = open_teacher(job);
  const std::vector<size_t> order = class_order(job, labels, teacher->labels);
  std::vector<std::string> paths, notes;
  for (const DataSource& source : job.data.train) paths.push_back(source.path);
  const ExampleSet examples = open_evaluation_examples(paths, job, *teacher->tokenizer, {}, notes, true);
  BRISK_CHECK(examples.count() == rows, "{} examples for the teacher, {} for the student", examples.count(), rows);
  const int64_t max_length = std::min(job.training.max_length, teacher->job.model.context);
  check_room_for_text(examples, max_length);

  uint64_t key = hash_mix(kLogitsFormat, checksum_of_parameters(teacher->store));
  key = hash_bytes(std::filesystem::path(examples.data().cache_path()).stem().string(), key);
  key =
      hash_mix(hash_mix(key, static_cast<uint64_t>(max_length)), static_cast<uint64_t>(teacher->store.compute_type()));
  key = hash_mix(key, fingerprint(teacher->config));
  for (const size_t there : order) key = hash_mix(key, there);
  const int64_t row_bytes = labels.count() * static_cast<int64_t>(sizeof(float));
  const ExampleActivationsShape shape{.examples = rows, .row_bytes = row_bytes, .rows_of = [](int64_t) { return 1; }};
  TeacherAnswers answers;
  answers.logits = open_or_make_example_activations(
      examples.data().cache_directory(), "logits", key, shape, [&](ExampleActivationsWriter& writer) {
        const BatchLayout layout = first_rows_layout(1);
        ClassPredictor predictor(*teacher->model, teacher->store,
                                 layout.capacity(std::max(max_length, kMicroBatchTokens / 2), max_length), layout,
                                 Backend::cpu);
        WorkBar bar("answers of " + job.training.teacher);
        Ledger ledger;
        std::vector<float> in_our_order;
        int64_t done = 0;
        predictor.run(ExampleSequences(examples, max_length), ledger, [&](const ClassPredictor::Row& row) {
          in_our_order.clear();
          for (const size_t there : order) in_our_order.push_back(row.logits[there]);
          writer.append(std::as_bytes(std::span(in_our_order)));
          bar.update(++done * row_bytes, rows * row_bytes);
        });
      });
  answers.note =
      fmt::format("teacher: {}; its logits for {} texts {} {}; weight {:g} in the loss, temperature {:g}",
                  teacher->source, rows, answers.logits->reused() ? "were in" : "are in", answers.logits->path(),
                  job.training.distillation_weight, job.training.distillation_temperature);
  return answers;
}

}  // namespace brisk
