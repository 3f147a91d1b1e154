#include "infer/answer/predict.h"

#include <brisk/model.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "api/input_lines.h"
#include "api/loaded_model.h"
#include "base/error.h"
#include "base/terminal/terminal.h"
#include "data/read/byte_reader.h"
#include "data/table/input_table.h"
#include "train/task/task.h"

namespace brisk {

namespace {

// Collects texts, computes a few hundred at a time, and hands on the answers in the order of the texts.
class AnswerStream {
 public:
  AnswerStream(const TrainedModel& model, bool pairs, int64_t max_length,
               const LoadedModel::OnPredictions& on_predictions)
      : predictor_(make_task(model.job)->open_predictor(model, pairs, max_length)),
        on_predictions_(in_callers_mode(on_predictions)) {}

  void add(std::string_view text, std::string_view pair = {}) {
    waiting_.push_back({std::string(text), std::string(pair)});
    bytes_ += std::ssize(text) + std::ssize(pair);
    if (waiting_.size() >= kMost || bytes_ >= kMostBytes) flush();
  }

  void flush() {
    if (waiting_.empty()) return;
    std::vector<Prediction> answers;
    predictor_->predict(waiting_, [&](int32_t label, const std::vector<double>& probabilities) {
      answers.push_back({static_cast<size_t>(label), probabilities});
    });
    on_predictions_(answers);
    texts_ += std::ssize(waiting_);
    waiting_.clear();
    bytes_ = 0;
  }

  PredictTotals finish() {
    flush();
    return {texts_, predictor_->tokens(), predictor_->cut(), predictor_->max_length()};
  }

 private:
  static constexpr size_t kMost = 512;
  static constexpr int64_t kMostBytes = int64_t{4} << 20;

  std::unique_ptr<Predictor> predictor_;
  const LoadedModel::OnPredictions on_predictions_;
  std::vector<TextOrPair> waiting_;
  int64_t bytes_ = 0, texts_ = 0;
};

// Returns the number of blank lines.
int64_t answer_lines(const ReadBytes& read, const std::string& name, bool someone_waits, AnswerStream& answers) {
  int64_t blank = 0;
  for_each_input_line(
      read, name,
      [&](std::string_view line) {
        blank += line.find_first_not_of(" \t") == std::string_view::npos;
        answers.add(line);
      },
      [&] {
        if (someone_waits) answers.flush();  // a reader at the other end of a pipe; the next block may take long
      });
  return blank;
}

void tell_blank_lines(const std::string& place, int64_t blank) {
  if (blank == 0) return;
  warn("{}: {} blank line{} answered as an empty text", place, blank, blank == 1 ? " is" : "s are");
}

void answer_table(const TableOptions& options, AnswerStream& answers) {
  const InputTable table(options);
  for (const std::string& note : table.notes()) say("{}", note);
  TableRowReader rows(table);
  TableRow row;
  int64_t empty = 0, first = 0;
  while (rows.next(row)) {
    if (row.text.empty() && ++empty == 1) first = row.line;
    answers.add(row.text, row.pair);
  }
  if (empty > 0) {
    warn("{}: {} row{} without text in the column \"{}\" (line {} is the first): answered as an empty text",
         options.paths.front(), empty, empty == 1 ? "" : "s", table.text_column(), first);
  }
}

}  // namespace

PredictTotals LoadedModel::predict(const std::vector<TextOrPair>& texts, const OnPredictions& on_predictions,
                                   const PredictOptions& options) {
  const Content::Scope scope(*content_);
  const bool given = std::any_of(texts.begin(), texts.end(), [](const auto& text) { return !text.pair.empty(); });
  // What another program trained does not say whether it was on pairs.
  const bool unknown = content_->model->job.data.train.empty();
  const bool pairs = classifies_pairs() || (given && unknown);
  if (given && !pairs) {
    user_error("{}: it classifies single texts, and a second one was given; remove it ({})", content_->model->path,
               option_name("pair"));
  }
  AnswerStream answers(*content_->model, pairs, content_->length(options.max_length), on_predictions);
  for (const TextOrPair& text : texts) answers.add(text.text, text.pair);
  return answers.finish();
}

PredictTotals LoadedModel::predict_file(const std::string& path, const OnPredictions& on_predictions,
                                        const PredictOptions& options) {
  const Content::Scope scope(*content_);
  const TrainedModel& model = *content_->model;
  if (!options.pair_field.empty() && !classifies_pairs()) {
    user_error("{}: it classifies single texts; remove {} {}", model.path, option_name("pair_field"),
               options.pair_field);
  }
  AnswerStream answers(model, classifies_pairs(), content_->length(options.max_length), on_predictions);
  if (is_table_file(path)) {
    const DataOptions& trained = model.job.data;
    answer_table({.paths = {path},
                  .text_field = options.text_field.empty() ? trained.text_field : options.text_field,
                  .pair_field = options.pair_field.empty() ? trained.pair_field : options.pair_field,
                  .labelled = false,
                  .of_job = false},
                 answers);
  } else {
    if (classifies_pairs())
      user_error("{}: {} classifies pairs of texts, which only a table (.csv, .tsv, .jsonl) has", path, model.path);
    const auto reader = open_byte_reader(path);
    tell_blank_lines(
        path, answer_lines([&](char* out, size_t size) { return reader->read(out, size); }, path, false, answers));
  }
  return answers.finish();
}

PredictTotals LoadedModel::predict_lines(const std::function<size_t(char* out, size_t size)>& read,
                                         const OnPredictions& on_predictions, const PredictOptions& options) {
  const Content::Scope scope(*content_);
  const TrainedModel& model = *content_->model;
  AnswerStream answers(model, false, content_->length(options.max_length), on_predictions);
  if (classifies_pairs())
    user_error("{} classifies pairs of texts; give a table, or texts with their pairs", model.path);
  tell_blank_lines("standard input", answer_lines(in_callers_mode(read), "standard input", true, answers));
  return answers.finish();
}

}  // namespace brisk
