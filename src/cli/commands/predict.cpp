#include "infer/predict.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/limits.h"
#include "data/read/byte_reader.h"
#include "data/table/input_table.h"
#include "infer/precision.h"

namespace brisk {

namespace {

struct PredictArguments {
  std::string model, tokenizer, text, pair, data, text_field, pair_field;
  int64_t max_length = 0, threads = 0;
  bool has_text = false, fp32 = false;
  std::string device = "auto";
};

// Collects texts, computes a few hundred at a time, and prints the answers in the order of the texts.
class AnswerStream {
 public:
  AnswerStream(const TrainedModel& model, bool pairs, int64_t max_length)
      : model_(model), predictor_(model, pairs, max_length) {}

  void add(std::string_view text, std::string_view pair = {}) {
    waiting_.push_back({std::string(text), std::string(pair)});
    bytes_ += std::ssize(text) + std::ssize(pair);
    if (waiting_.size() >= kMost || bytes_ >= kMostBytes) flush();
  }

  void flush() {
    predictor_.predict(waiting_, [&](int32_t label, const std::vector<double>& probabilities) {
      nlohmann::ordered_json json;
      json["label"] = model_.labels.name(label);
      auto& shares = json["probabilities"] = nlohmann::ordered_json::object();
      for (size_t i = 0; i < probabilities.size(); ++i)
        shares[model_.labels.name(static_cast<int64_t>(i))] = probabilities[i];
      fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    });
    count_ += std::ssize(waiting_);
    waiting_.clear();
    bytes_ = 0;
    std::fflush(stdout);
  }

  int64_t count() const { return count_; }
  int64_t tokens() const { return predictor_.tokens(); }

 private:
  static constexpr size_t kMost = 512;
  static constexpr int64_t kMostBytes = int64_t{4} << 20;

  const TrainedModel& model_;
  Predictor predictor_;
  std::vector<TextOrPair> waiting_;
  int64_t bytes_ = 0, count_ = 0;
};

// Each line is a text. `read` returns the bytes that are available, 0 at the end.
void predict_lines(const std::function<size_t(char* out, size_t size)>& read, bool someone_waits,
                   AnswerStream& answers) {
  std::string rest, block(size_t{1} << 16, '\0');
  for (size_t size = 0; (size = read(block.data(), block.size())) > 0;) {
    rest.append(block.data(), size);
    size_t begin = 0;
    for (size_t end = 0; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const bool windows = end > begin && rest[end - 1] == '\r';
      answers.add(std::string_view(rest).substr(begin, end - begin - (windows ? 1 : 0)));
    }
    rest.erase(0, begin);
    if (someone_waits) answers.flush();  // a reader at the other end of a pipe; the next block may take long
  }
  if (!rest.empty()) answers.add(rest);
}

size_t read_standard_input(char* out, size_t size) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, out, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) user_error("standard input: cannot read it: {}", explain_errno(errno));
  }
}

TableOptions columns(const PredictArguments& arguments, const Job& job) {
  return {.paths = {arguments.data},
          .text_field = arguments.text_field.empty() ? job.data.text_field : arguments.text_field,
          .pair_field = arguments.pair_field.empty() ? job.data.pair_field : arguments.pair_field,
          .labelled = false,
          .on_command_line = true};
}

void run_predict(const PredictArguments& arguments) {
  Runtime::current().set_threads(thread_count_for(arguments.threads, "--threads"));
  const auto model = open_trained_model(arguments.model, arguments.tokenizer, !arguments.fp32, arguments.device);
  const bool pairs = !arguments.pair.empty() || !model->job.data.pair_field.empty();
  say("{}, computed in {}", model->source, precision_name(model->store.compute_type(), ProductFormat::own));
  if (arguments.has_text && arguments.pair.empty() && !model->job.data.pair_field.empty()) {
    user_error("{} classifies pairs of texts; give the second text with --pair", arguments.model);
  }
  const int64_t positions = model->job.model.context > 0 ? model->job.model.context : model->job.training.max_length;
  check_max_length(arguments.max_length, positions);
  AnswerStream answers(*model, pairs, arguments.max_length);
  const auto start = std::chrono::steady_clock::now();
  if (arguments.has_text) {
    answers.add(arguments.text, arguments.pair);
  } else if (arguments.data.empty()) {
    if (pairs) user_error("{} classifies pairs of texts; give --data, or a text and --pair", arguments.model);
    predict_lines(read_standard_input, true, answers);
  } else if (is_table_file(arguments.data)) {
    const InputTable table(columns(arguments, model->job));
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
           arguments.data, empty, empty == 1 ? "" : "s", table.text_column(), first);
    }
  } else {
    if (pairs)
      user_error("{} classifies pairs of texts, so --data must be a table (.csv, .tsv, .jsonl)", arguments.model);
    const auto reader = open_byte_reader(arguments.data);
    predict_lines([&](char* out, size_t size) { return reader->read(out, size); }, false, answers);
  }
  answers.flush();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say("{} text{} in {}: {:.1f} texts/s, {:.0f} tokens/s", answers.count(), answers.count() == 1 ? "" : "s",
      format_duration(seconds), static_cast<double>(answers.count()) / seconds,
      static_cast<double>(answers.tokens()) / seconds);
}

}  // namespace

void add_predict_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("predict", "Classify texts with a trained classifier");
  auto arguments = std::make_shared<PredictArguments>();
  command->add_option("run", arguments->model, "Run directory, checkpoint, or Hugging Face folder of a classifier")
      ->required();
  CLI::Option* text =
      command
          ->add_option("text", arguments->text,
                       "Text to classify (default: the lines of standard input, unless --data is given)")
          ->type_name("TEXT");
  command->add_option("--pair", arguments->pair, "Second text, for a classifier of pairs")
      ->type_name("TEXT")
      ->needs(text);
  command
      ->add_option(
          "--data", arguments->data,
          "Texts to classify: a table (.csv, .tsv, .jsonl) or a file with one text per line; also .gz and .zst")
      ->excludes(text);
  command->add_option("--text-field", arguments->text_field, "Column of the text (default: as in training)");
  command->add_option("--pair-field", arguments->pair_field, "Column of the second text (default: as in training)");
  command->add_option("--max-length", arguments->max_length, "Maximum tokens per text (default: as in training)")
      ->check(at_least(3));
  command->add_option("--tokenizer", arguments->tokenizer, "Tokenizer to use instead of the model's own");
  command->add_option("--threads", arguments->threads, "Number of compute threads (default: all cores)")
      ->check(at_least(1));
  add_device_option(*command, arguments->device);
  command->add_flag("--fp32", arguments->fp32, "Compute in fp32 (default: the number format of the run)");
  command->footer(
      "Examples:\n"
      "  brisk predict runs/reviews \"a fine film\"\n"
      "  brisk predict runs/reviews --data new.csv > answers.jsonl\n"
      "  cat lines.txt | brisk predict runs/reviews\n"
      "Answers are JSON lines with the label and all probabilities, in the order of the texts.");
  command->callback([arguments, text] {
    arguments->has_text = text->count() > 0;
    run_predict(*arguments);
  });
}

}  // namespace brisk
