// A new task: this file, and an entry in the table (tables/job/tasks.def). Its data, which rows have targets, and a metric of
// its own.
#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/files.h"
#include "base/hash.h"
#include "infer/answer/generate.h"
#include "train/task/task.h"

namespace brisk {

namespace {

constexpr FileKind kRiddlesFile = {"a file of riddles", file_kind::kMebibyte};

// Lines such as "ab=ba": what stands after the sign is to be answered.
class Riddles final : public Sequences {
 public:
  Riddles(const std::string& text, const Tokenizer& tokenizer) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const TokenId end = tokenizer.end_of_document().value();
      std::vector<TokenId>& ids = ids_.emplace_back(1, end);  // a text begins where another one ended
      tokenizer.encode(line, ids);
      ids.push_back(end);
      const size_t sign = line.find('=') + 1;
      questions.push_back(line.substr(0, sign));
      answers.push_back(line.substr(sign));
      totals_.add(std::ssize(ids) - 1);
    }
  }
  int64_t count() const override { return std::ssize(ids_); }
  int64_t rows(int64_t index, int /*set*/ = 0) const override {
    return std::ssize(ids_[static_cast<size_t>(index)]) - 1;
  }
  LengthTotals totals(int /*set*/ = 0) const override { return totals_; }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    const std::vector<TokenId>& ids = ids_[static_cast<size_t>(index)];
    const size_t asked = questions[static_cast<size_t>(index)].size();
    MicroBatch::Set& rows = batch.sets[0];
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      rows.tokens.push_back(ids[i]);
      rows.targets.push_back(i < asked ? -1 : ids[i + 1]);
      rows.position.push_back(static_cast<int32_t>(i));
      rows.sequence.push_back(sequence);
    }
    rows.end_sequence(rows.tokens.size());
  }

  std::vector<std::string> questions, answers;

 private:
  std::vector<std::vector<TokenId>> ids_;
  LengthTotals totals_;
};

class RiddleTask final : public Task {
 public:
  TaskData prepare(const Job& job, DataRequest /*request*/) override {
    const std::string text = read_file(job.data.train.front().path, kRiddlesFile);
    TaskData data;
    const std::vector<std::string_view> texts = {text};
    data.tokenizer = train_bpe(texts, {.vocab_size = 257}).tokenizer;  // bytes
    data.train = std::make_shared<Riddles>(text, *data.tokenizer);
    data.validation = std::make_shared<Riddles>(read_file(job.data.validation.front(), kRiddlesFile), *data.tokenizer);
    data.sequences_per_epoch = data.train->count();
    data.rows_per_epoch = static_cast<double>(data.train->total_rows());
    data.fingerprint = fmt::format("{:016x}", hash_bytes(text));  // a run is not resumed on another text
    data.found["model.vocab_size"] = data.tokenizer->vocab_size();
    return data;
  }
  Description describe_data(const Job&, const TaskData& data, const PackingFigures&) const override {
    return {fmt::format("{} riddles", data.train->count()), "{}"};
  }
  Metrics metrics() const override {
    Metrics metrics = token_metrics();
    metrics.add(solved(Metric::kNone));
    return metrics;
  }
  // By asking.
  void add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                   const Sequences& sequences, Metrics& metrics) const override {
    const auto& riddles = dynamic_cast<const Riddles&>(sequences);
    Generator generator(*model.causal(), store, tokenizer);
    double right = 0;
    for (size_t i = 0; i < riddles.questions.size(); ++i) {
      const std::string text = generator.generate(riddles.questions[i], {.max_tokens = 4, .temperature = 0}).text;
      right += text == riddles.questions[i] + riddles.answers[i] ? 1 : 0;
    }
    metrics.add(solved(right / static_cast<double>(riddles.questions.size())));
  }
  EvaluationData open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const override {
    return {.sequences = std::make_shared<Riddles>(read_file(request.paths.front(), kRiddlesFile), *model.tokenizer),
            .layout = {},
            .notes = {}};
  }

 private:
  static Metric solved(double share) {
    return {.name = "solved", .value = share, .higher_is_better = true, .format = MetricFormat::percent};
  }
};

}  // namespace

std::unique_ptr<Task> make_riddles_task() { return std::make_unique<RiddleTask>(); }

}  // namespace brisk
