#include "train/task/translate_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/terminal/terminal.h"
#include "base/terminal/work_bar.h"
#include "base/text/plural.h"
#include "checkpoint/run_directory.h"
#include "data/examples/example_statistics.h"
#include "data/examples/written_rows.h"
#include "data/table/input_table.h"
#include "infer/architecture/architecture.h"
#include "job/job_conditions.h"
#include "job/job_options.h"
#include "score/bleu.h"
#include "score/chrf.h"
#include "train/task/prepare_table.h"
#include "train/task/prepare_text.h"

namespace brisk {

namespace {

constexpr size_t kTextsAtATime = 512;
constexpr std::array kScores = {TextScoreKind::kBleu, TextScoreKind::kChrf};
constexpr const char* kWhatToName =
    "the texts and their translations, {\"source\": FILE, \"target\": FILE} or a table with both";

TableOptions pair_table_options(const std::vector<std::string>& paths, const std::vector<std::string>& target,
                                const Job& job, bool of_job = true) {
  return {.paths = paths,
          .text_field = job.data.source_field,
          .pair_field = job.data.target_field,
          .labelled = false,
          .translations = true,
          .target_paths = target,
          .of_job = of_job};
}

std::shared_ptr<const ExampleData> tokens_of_pairs(const InputTable& table, const Job& job,
                                                   const TextTokenizers& tokenizers, std::vector<std::string>& notes) {
  WorkBar bar("tokens of " + table.files().front().path);
  std::shared_ptr<const ExampleData> data = open_examples(
      table, tokenizers, cache_directory(job.data), [&](int64_t done, int64_t total) { bar.update(done, total); });
  notes.insert(notes.end(), data->notes().begin(), data->notes().end());
  return data;
}

PairLimits limits_of(int64_t max_length) { return {.source = max_length, .target = max_length}; }

// As many rows of targets as there are of sources, times `share`.
BatchLayout pair_layout(double share, int64_t longest_target) {
  BatchLayout layout;
  layout.others.push_back({[=](const RowCapacity& source) {
    const auto rows = static_cast<int64_t>(std::ceil(share * static_cast<double>(source.rows)));
    return RowCapacity{std::max(rows, longest_target), source.sequences, longest_target};
  }});
  return layout;
}

// How the pairs of an evaluation are translated.
struct Decoding {
  int64_t count = 0;  // of the first so many
  TranslateOptions options;
  BleuOptions bleu;
  std::shared_ptr<const Tokenizer> target;  // none: the source's
  // Where the texts are as they were written; none: they are what the tokens stand for.
  std::shared_ptr<const InputTable> table;
};

// The sequences of an evaluation, with what it takes to translate them.
class TranslatedPairs final : public PairSequences {
 public:
  TranslatedPairs(ExampleSet pairs, PairFrame frame, PairLimits limits, Decoding decoding)
      : PairSequences(std::move(pairs), std::move(frame), limits), decoding_(std::move(decoding)) {}

  int64_t translations() const { return std::min(decoding_.count, count()); }
  const TranslateOptions& options() const { return decoding_.options; }
  const BleuOptions& bleu() const { return decoding_.bleu; }
  const Tokenizer& target(const Tokenizer& source) const { return decoding_.target ? *decoding_.target : source; }

  // The texts and references of the pairs from `begin` to `end`, some at a time.
  using OnTexts = std::function<void(std::vector<std::string>& texts, std::vector<std::string>& references)>;
  void for_texts(int64_t begin, int64_t end, const Tokenizer& source, const OnTexts& use) const {
    std::vector<std::string> texts, references;
    std::optional<WrittenRows> rows;
    if (decoding_.table) rows.emplace(*decoding_.table);
    for (int64_t i = begin; i < end; ++i) {
      if (rows) {
        const TableRow& row = rows->at(pairs().row_of(i));
        texts.emplace_back(row.text);
        references.emplace_back(row.pair);
      } else {
        texts.push_back(source.decode(tokens(i, 0)));
        references.push_back(target(source).decode(tokens(i, 1)));
      }
      if (texts.size() < kTextsAtATime && i + 1 < end) continue;
      use(texts, references);
      texts.clear();
      references.clear();
    }
  }

 private:
  Decoding decoding_;
};

Translator translator_of(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                         const TranslatedPairs& pairs) {
  BRISK_CHECK(model.conditional() != nullptr, "a model that does not translate");
  return {*model.conditional(), store, {tokenizer, pairs.target(tokenizer), pairs.frame()}};
}

// Of the model that the job starts from.
void check_vocabulary(const Job& job, const Tokenizer& tokenizer, int64_t rows, const char* which) {
  if (job.model.from.empty() || tokenizer.vocab_size() <= rows) return;
  user_error("{}: a vocabulary of {}, but the tokenizer{} has {} entries: use the one it was trained with",
             job.model.from, rows, which, tokenizer.vocab_size());
}

}  // namespace

TaskData TranslateTask::prepare(const Job& job, DataRequest request) {
  TaskData data;
  const TrainingOptions& training = job.training;
  sample_count_ = training.sample_translations;
  text_evaluation_ = TextEvaluation(job, request.processes);
  if (job.data.validation.empty() && !job.data.validation_target.empty()) {
    user_error("data.validation_target is given without data.validation: name the texts, too");
  }
  const InputTable table(pair_table_options(table_train_paths(job, kWhatToName), job.data.train_target, job));

  const auto note = [&](const Tokenizer& tokenizer, const std::string& path, const char* of) {
    data.notes.push_back(fmt::format("tokenizer{}: {} entries, from {}", of, tokenizer.vocab_size(), path));
  };
  const auto trained = [&](TableVocabulary::Texts texts, const char* of) {
    TableVocabulary vocabulary{
        .vocab_size = job.model.vocab_size, .kind = TableVocabulary::Kind::text_to_text, .texts = texts};
    std::string line;
    auto tokenizer = vocabulary_of_table(table, vocabulary, cache_directory(job.data), line);
    data.notes.push_back(line + of);
    return tokenizer;
  };
  using Texts = TableVocabulary::Texts;
  bool is_trained = false;
  const std::string own = request.run + kTokenizerFile, own_target = request.run + kTargetTokenizerFile;
  if (!request.run.empty() && file_exists(own)) {
    data.tokenizer = load_tokenizer(own);
    note(*data.tokenizer, own, "");
    if (file_exists(own_target)) target_ = load_tokenizer(own_target);
  } else if (!job.data.tokenizer.empty()) {
    data.tokenizer = load_tokenizer(job.data.tokenizer);
    note(*data.tokenizer, job.data.tokenizer, "");
    if (!job.data.target_tokenizer.empty()) {
      target_ = load_tokenizer(job.data.target_tokenizer);
      note(*target_, job.data.target_tokenizer, " of the translations");
    }
  } else if (request.model_tokenizer) {
    data.tokenizer = std::move(request.model_tokenizer);
    target_ = std::move(request.model_target_tokenizer);
    note(*data.tokenizer, job.model.from, "");
  } else {
    if (!job.data.target_tokenizer.empty()) {
      user_error("data.target_tokenizer = {}: the texts need one, too: set data.tokenizer", job.data.target_tokenizer);
    }
    is_trained = true;
    const bool separate = job.data.separate_tokenizers;
    data.tokenizer = trained(separate ? Texts::first : Texts::all, separate ? ", of the texts" : "");
    if (separate) target_ = trained(Texts::second, ", of their translations");
  }
  const Tokenizer &source = *data.tokenizer, &target = target_ ? *target_ : source;
  const ModelOptions& model = job.model;
  if (target_ && model.share_embeddings) {
    user_error(
        "model.share_embeddings: the texts and their translations have different tokenizers, and so no table in common: "
        "set it to false, or use one tokenizer");
  }
  check_vocabulary(job, source, model.source_vocab_size > 0 ? model.source_vocab_size : model.vocab_size, "");
  check_vocabulary(job, target, model.vocab_size, " of the translations");
  if (model.from.empty()) {
    const int64_t size = target.vocab_size();
    if (size != model.vocab_size) {
      tell_vocabulary(job, size, is_trained ? VocabularyFrom::training : VocabularyFrom::tokenizer, data.notes,
                      data.warnings);
    }
    data.found["model.vocab_size"] = size;
    data.found["model.source_vocab_size"] = target_ ? source.vocab_size() : int64_t{0};
  }

  const PairFrame frame = pair_frame_of(source, target, model.first_token);
  const PairLimits limits = limits_of(training.max_length);
  check_room_for_pairs(frame, limits);
  const TextTokenizers tokenizers(source, target);
  const auto rows = tokens_of_pairs(table, job, tokenizers, data.notes);
  data.fingerprint = cache_hash_of(*rows);
  data.cache_files.push_back(rows->cache_path());
  if (job.data.train_target.empty()) {
    data.found["data.source_field"] = table.text_column();
    data.found["data.target_field"] = table.pair_column();
  }
  ExampleSet train(rows), validation;
  Decoding decoding{.count = training.eval_translations, .options = {.beam = training.eval_beam}, .target = target_};
  if (job.data.validation.empty()) {
    ExampleSplit split = split_examples(train, job.data.validation_fraction, static_cast<uint64_t>(training.seed));
    train = std::move(split.train);
    validation = std::move(split.validation);
    if (!split.note.empty()) data.notes.push_back(split.note);
  } else {
    if (job.data.train_target.empty() != job.data.validation_target.empty()) {
      user_error("data.validation: {}; give both in the same way",
                 job.data.train_target.empty() ? "it is two files, and data.train is a table"
                                               : "data.train is two files, and it has no target");
    }
    decoding.table = std::make_shared<const InputTable>(
        pair_table_options(job.data.validation, job.data.validation_target, with_found(job, data.found)));
    const auto held_out = tokens_of_pairs(*decoding.table, job, tokenizers, data.notes);
    data.fingerprint += "-" + cache_hash_of(*held_out);
    data.cache_files.push_back(held_out->cache_path());
    validation = ExampleSet(held_out);
    if (const int64_t shared = shared_texts(*held_out, *rows); shared > 0) {
      data.warnings_of_all.push_back(
          fmt::format("{} of the {} pairs of data.validation are also in data.train: memorised texts make the "
                      "evaluation look too good; remove them from one of the two",
                      shared, held_out->rows()));
    }
  }
  if (validation.count() > 0) data.validation_fingerprint = fingerprint_of_examples(validation);
  if (validation.count() > 0) check_best_by(job, kScores);

  const TooLong rule = job.data.too_long == "cut" ? TooLong::cut : TooLong::skip;
  fit_ = fitting_pairs(train, frame, limits, rule);
  if (fit_.pairs.count() == 0) {
    user_error("{}: no pair fits training.max_length = {}; raise it, or set data.too_long = cut", rows->name(),
               training.max_length);
  }
  if (fit_.too_long > 0) {
    const double share = static_cast<double>(fit_.too_long) / static_cast<double>(train.count());
    const std::string line = fmt::format(
        "{} of {} pairs ({:.1f} %) do not fit training.max_length = {} and are {} ({} by the text, {} by its translation; "
        "data.too_long)",
        with_commas(fit_.too_long), with_commas(train.count()), 100 * share, training.max_length,
        rule == TooLong::cut ? "cut" : "left out of training", with_commas(fit_.long_sources),
        with_commas(fit_.long_targets));
    constexpr double kMany = 0.05;
    (share > kMany ? data.warnings_of_all : data.notes).push_back(line);
  }
  train_ = std::make_shared<const PairSequences>(fit_.pairs, frame, limits);
  data.train = train_;
  data.validation = std::make_shared<const TranslatedPairs>(std::move(validation), frame, limits, std::move(decoding));
  // Both row sets of a micro-batch are full at about the same time.
  target_share_ = static_cast<double>(train_->total_rows(1)) / static_cast<double>(train_->total_rows(0));
  data.sequences_per_epoch = data.train->count();
  data.rows_per_epoch = static_cast<double>(train_->total_rows(0) + train_->total_rows(1));
  return data;
}

BatchLayout TranslateTask::batch_layout(const Job& job) const {
  return pair_layout(target_share_, job.training.max_length);
}

Task::Description TranslateTask::describe_data(const Job& job, const TaskData& data,
                                               const PackingFigures& packing) const {
  const ExampleStatistics statistics = example_statistics(fit_.pairs, 2 * job.training.max_length);
  const auto side = [&](const char* name, int set) {
    const LengthTotals totals = train_->totals(set);
    return fmt::format("{}{} tokens, {:.1f} a text, max {}", name, with_commas(totals.rows),
                       static_cast<double>(totals.rows) / static_cast<double>(train_->count()), totals.longest);
  };
  return {fmt::format("pairs        {} of a text and its translation{}\n{}\n{}\n{}\nvalidation   {} pairs, {} tokens",
                      with_commas(train_->count()),
                      statistics.copies > 0 ? fmt::format(", {} of them copies", with_commas(statistics.copies)) : "",
                      side("texts        ", 0), side("translations ", 1), step_text(packing, 0),
                      with_commas(data.validation->count()),
                      with_commas(data.validation->total_rows(0) + data.validation->total_rows(1))),
          example_statistics_json_text(statistics)};
}

void TranslateTask::write_files(const std::string& run) const {
  const std::string path = run + kTargetTokenizerFile;
  if (target_ && !file_exists(path)) target_->save(path);
}

Metrics TranslateTask::metrics() const {
  Metrics metrics = token_metrics();
  for (const TextScoreKind kind : kScores) metrics.add(text_score_metric(kind));
  return metrics;
}

void TranslateTask::add_metrics(const Model& model, const ParameterStore& store, const Tokenizer& tokenizer,
                                const Sequences& sequences, Metrics& metrics) const {
  const auto& pairs = dynamic_cast<const TranslatedPairs&>(sequences);
  if (pairs.translations() == 0) return;
  Translator translator = translator_of(model, store, tokenizer, pairs);
  const auto write = [&](int64_t begin, int64_t end, const TextEvaluation::OnAnswer& on_answer) {
    pairs.for_texts(begin, end, tokenizer, [&](std::vector<std::string>& texts, std::vector<std::string>& references) {
      translator.translate(texts, pairs.options(), [&](size_t i, const Translated& answer) {
        on_answer(answer.best.front().text, references[i]);
      });
    });
  };
  text_evaluation_.add_scores(pairs.translations(), {.kinds = {kScores.begin(), kScores.end()}, .bleu = pairs.bleu()},
                              write, metrics);
}

std::vector<Task::Sample> TranslateTask::samples(const Model& model, const ParameterStore& store,
                                                 const Tokenizer& tokenizer, const Sequences& validation) const {
  std::vector<Sample> samples;
  const auto& pairs = dynamic_cast<const TranslatedPairs&>(validation);
  const int64_t count = std::min(sample_count_, pairs.count());
  if (count == 0) return samples;
  Translator translator = translator_of(model, store, tokenizer, pairs);
  pairs.for_texts(0, count, tokenizer, [&](std::vector<std::string>& texts, std::vector<std::string>& references) {
    translator.translate(texts, pairs.options(), [&](size_t i, const Translated& answer) {
      const Translated::Text& best = answer.best.front();
      samples.push_back({texts[i], best.text, references[i], best.tokens, best.ended});
    });
  });
  return samples;
}

Task::EvaluationData TranslateTask::open_evaluation(const TrainedModel& model, const EvaluationRequest& request) const {
  EvaluationData data;
  const Tokenizer &source = *model.tokenizer, &target = model.writes_with();
  const Job& job = model.job;
  const auto table =
      std::make_shared<const InputTable>(pair_table_options(request.paths, request.target, job, /*of_job=*/false));
  ExampleSet pairs(tokens_of_pairs(*table, job, {source, target}, data.notes));
  const PairFrame frame = text_of(model).frame;
  const PairLimits limits = limits_of(request.max_length);
  check_room_for_pairs(frame, limits);
  data.cut = fitting_pairs(pairs, frame, limits, TooLong::cut).too_long;
  Decoding decoding{
      .count = request.translate ? pairs.count() : 0,
      .options = request.translation,
      .bleu = {.tokenizer = bleu_tokenizer_from(request.bleu_tokenizer.empty() ? "13a" : request.bleu_tokenizer,
                                                option_name("tokenize"))},
      .table = table};
  if (model.target_tokenizer) decoding.target = std::shared_ptr<const Tokenizer>(&target, [](const Tokenizer*) {});
  if (request.translate) {
    nlohmann::ordered_json json;
    json["signature"] = bleu_signature(decoding.bleu, 1);
    json["chrf_signature"] = chrf_signature({}, 1);
    data.details.json = json.dump();
  }
  data.sequences = std::make_shared<const TranslatedPairs>(std::move(pairs), frame, limits, std::move(decoding));
  data.layout = pair_layout(1, request.max_length);
  return data;
}

std::optional<Task::TryOut> TranslateTask::try_out(const std::string& run, const std::string& data) const {
  const auto count = [](const std::string& output) {
    return fmt::format("{} translations", std::count(output.begin(), output.end(), '\n'));
  };
  return TryOut{"translate", {"translate", run, "--data", data, "--beam", "2"}, count};
}

std::string TranslateTask::usage(const std::string& run) const {
  return fmt::format("brisk translate {} < lines > translations", run);
}

SmokeSubset TranslateTask::take_subset(const Job& job, const std::string& folder, const SubsetSize& size,
                                       Job& small) const {
  return take_pairs_subset(job, folder, size, small);
}

std::unique_ptr<Task> make_translate_task() { return std::make_unique<TranslateTask>(); }

}  // namespace brisk
