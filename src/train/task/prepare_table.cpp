#include "train/task/prepare_table.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/terminal/terminal.h"
#include "base/terminal/work_bar.h"
#include "base/text/plural.h"
#include "checkpoint/run_directory.h"
#include "data/examples/example_statistics.h"
#include "data/table/input_table.h"
#include "infer/open/label_file.h"
#include "job/job_conditions.h"
#include "job/job_options.h"
#include "train/task/prepare_text.h"

namespace brisk {

namespace {

// A vocabulary is learned from at most so much text.
constexpr int64_t kVocabularySampleBytes = int64_t{64} << 20;

TableOptions table_options(const std::vector<std::string>& paths, const Job& job, bool of_job = true) {
  return {.paths = paths,
          .text_field = job.data.text_field,
          .label_field = job.data.label_field,
          .pair_field = job.data.pair_field,
          .labelled = traits_of_task(job.task).has_labels,
          .of_job = of_job};
}

std::shared_ptr<const ExampleData> tokens_of(const InputTable& table, const Job& job, const Tokenizer& tokenizer) {
  WorkBar bar("tokens of " + table.files().front().path);
  return open_examples(table, tokenizer, cache_directory(job.data),
                       [&](int64_t done, int64_t total) { bar.update(done, total); });
}

void take_notes(const std::vector<std::string>& from, std::vector<std::string>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

void decide_vocabulary(const Job& job, TableData& prepared, bool given) {
  const int64_t size = prepared.tokenizer->vocab_size();
  if (!job.model.from.empty()) {
    if (size > job.model.vocab_size) {
      user_error("{}: a vocabulary of {}, but the tokenizer has {} entries: use the one it was trained with",
                 job.model.from, job.model.vocab_size, size);
    }
    return;
  }
  if (size == job.model.vocab_size) return;
  tell_vocabulary(job, size, given ? VocabularyFrom::tokenizer : VocabularyFrom::training, prepared.notes,
                  prepared.warnings);
  prepared.found["model.vocab_size"] = size;
}

TableVocabulary vocabulary_of(const Job& job) {
  using Kind = TableVocabulary::Kind;
  return {.vocab_size = job.model.vocab_size,
          .kind = job.model.has_byte_level_vocabulary() ? Kind::byte_level : Kind::wordpiece,
          .lowercase = job.data.lowercase};
}

void check_classes(const Job& job, const LabelSet& labels) {
  if (job.model.num_labels != 0 && job.model.num_labels != labels.count()) {
    user_error("model.num_labels = {}, but {} has {} classes: {}; leave num_labels out", job.model.num_labels,
               job.data.train.front().path, labels.count(), labels.text());
  }
}

bool all_in(const std::vector<std::string>& names, const LabelSet& labels) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return labels.find(name) >= 0; });
}

LabelSet class_numbers(const LabelSet& labels) {
  std::vector<std::string> numbers;
  for (int64_t i = 0; i < labels.count(); ++i) numbers.push_back(fmt::format("{}", i));
  return LabelSet::in_order(std::move(numbers));
}

// A model says NEGATIVE and POSITIVE, the table 0 and 1.
bool are_class_numbers(const ExampleData& data, const LabelSet& labels) {
  return labels.count() > 0 && !all_in(data.label_names(), labels) && all_in(data.label_names(), class_numbers(labels));
}

const char* file_name_of(const TableVocabulary& vocabulary) {
  using Texts = TableVocabulary::Texts;
  switch (vocabulary.kind) {
    case TableVocabulary::Kind::wordpiece: return vocabulary.lowercase ? "wordpiece" : "wordpiece-cased";
    case TableVocabulary::Kind::byte_level: return "roberta-bpe";
    case TableVocabulary::Kind::text_to_text: break;
  }
  return vocabulary.texts == Texts::all     ? "pairs-bpe"
         : vocabulary.texts == Texts::first ? "sources-bpe"
                                            : "targets-bpe";
}

}  // namespace

std::string TableVocabulary::name() const {
  if (kind != Kind::wordpiece) return "byte-level BPE";
  return lowercase ? "lower-case WordPiece" : "cased WordPiece";
}

std::unique_ptr<Tokenizer> vocabulary_of_table(const InputTable& table, const TableVocabulary& vocabulary,
                                               const std::string& cache_directory, std::string& note) {
  using Kind = TableVocabulary::Kind;
  using Texts = TableVocabulary::Texts;
  make_directories(cache_directory);
  const std::string path = fmt::format("{}/{}-{:016x}-{}.json", cache_directory, file_name_of(vocabulary),
                                       table.content_hash(cache_directory), vocabulary.vocab_size);
  const FileLock lock(path + ".lock",
                      [] { say("another brisk is training the vocabulary of this text; waiting for it"); });
  if (file_exists(path)) {
    auto tokenizer = load_tokenizer(path);
    note = fmt::format("tokenizer: {} of {} entries, from {}", vocabulary.name(), tokenizer->vocab_size(), path);
    return tokenizer;
  }
  std::vector<std::string> texts;
  int64_t bytes = 0;
  TableRowReader rows(table);
  TableRow row;
  bool more = true;
  while (bytes < kVocabularySampleBytes && (more = rows.next(row))) {
    for (const std::string_view text : {vocabulary.texts == Texts::second ? std::string_view() : row.text,
                                        vocabulary.texts == Texts::first ? std::string_view() : row.pair}) {
      if (text.empty()) continue;
      bytes += std::ssize(text);
      texts.emplace_back(text);
    }
  }
  if (texts.empty()) user_error("{}: no text in it; give a table with texts", table.files().front().path);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  TrainedTokenizer trained =
      vocabulary.kind != Kind::wordpiece
          ? train_bpe(views, {.vocab_size = vocabulary.vocab_size,
                              .kind = vocabulary.kind == Kind::byte_level ? BpeKind::roberta : BpeKind::text_to_text})
          : train_wordpiece(views, {.vocab_size = vocabulary.vocab_size, .lowercase = vocabulary.lowercase});
  note = fmt::format(
      "tokenizer: {} of {} entries, trained on {}{}", vocabulary.name(), trained.tokenizer->vocab_size(),
      plural(std::ssize(texts), "text"),
      more ? fmt::format(", the first {} of the table", format_bytes(static_cast<double>(kVocabularySampleBytes)))
           : "");
  table.unchanged().check();
  trained.tokenizer->save(path);
  return std::move(trained.tokenizer);
}

void check_room_for_text(const ExampleSet& examples, int64_t max_length) {
  const int64_t specials = examples.frame().specials(), texts = examples.has_pairs() ? 2 : 1;
  if (max_length >= specials + texts) return;
  user_error("training.max_length = {}: {} special tokens are added to {}; use {} or more", max_length, specials,
             texts == 2 ? "each pair of texts" : "each text", specials + texts);
}

std::vector<std::string> table_train_paths(const Job& job, const std::string& what) {
  if (job.data.train.empty()) {
    user_error("{}: data.train is missing: name {}", job.name, what);
  }
  std::vector<std::string> paths;
  for (const DataSource& source : job.data.train) {
    if (!(source == DataSource(source.path))) {
      user_error(
          "data.train: {} has a weight, a text_field or a document rule of its own, which task {} does not support: "
          "give only its path",
          source.path, job.task);
    }
    paths.push_back(source.path);
  }
  return paths;
}

std::string cache_hash_of(const ExampleData& data) { return std::filesystem::path(data.cache_path()).stem().string(); }

uint64_t fingerprint_of_examples(const ExampleSet& examples) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < examples.count(); ++i) {
    const int32_t label = examples.label(i);
    const uint64_t name = label < 0 ? 0 : hash_bytes(examples.labels().names()[static_cast<size_t>(label)]);
    sum += hash_mix(examples.text_hash(i), name);
  }
  return hash_mix(sum, static_cast<uint64_t>(examples.count()));
}

void prepare_tokenizer(const Job& job, DataRequest& request, const InputTable& table, const TableVocabulary& vocabulary,
                       TableData& prepared) {
  const std::string own = request.run + kTokenizerFile;
  const std::string given = !request.run.empty() && file_exists(own) ? own : job.data.tokenizer;
  if (!given.empty()) {
    prepared.tokenizer = load_tokenizer(given);
    prepared.notes.push_back(fmt::format("tokenizer: {} entries, from {}", prepared.tokenizer->vocab_size(), given));
  } else if (request.model_tokenizer) {
    prepared.tokenizer = std::move(request.model_tokenizer);
    prepared.notes.push_back(fmt::format("tokenizer: {} entries, from {}", prepared.tokenizer->vocab_size(),
                                         job.model.from.empty() ? job.model.decoder_from : job.model.from));
  } else {
    std::string note;
    prepared.tokenizer = vocabulary_of_table(table, vocabulary, cache_directory(job.data), note);
    prepared.notes.push_back(note);
  }
  decide_vocabulary(job, prepared, !given.empty());
}

KnownClasses known_classes(const DataRequest& request) {
  const bool of_run = !request.run.empty() && file_exists(request.run + kLabelFile);
  return {of_run ? read_labels(request.run, 0) : LabelSet(), LabelSet::in_order(request.model_labels)};
}

void decide_classes(const Job& job, const KnownClasses& known, const ExampleData& data, TableData& prepared) {
  const auto& [of_run, of_model] = known;
  // The classes of a trained classifier are classes, however few rows of them there are.
  const bool are_known = of_model.count() > 0 && all_in(data.label_names(), of_model);
  prepared.labels = of_run.count() > 0
                        ? of_run
                        : training_labels(data, job.data.allow_unusual_labels || are_known, &prepared.warnings);
  if (of_run.count() == 0 && LabelSet(of_model.names()) == prepared.labels) prepared.labels = of_model;
  if (const std::string near = prepared.labels.near_copies(); !near.empty()) {
    prepared.warnings.push_back(
        fmt::format("labels that differ only in case count as different classes: {}; if they mean the same, spell "
                    "them the same way",
                    near));
  }
  check_classes(job, prepared.labels);
  prepared.found["model.num_labels"] = prepared.labels.count();
}

TableData prepare_table(const Job& job, DataRequest request) {
  const bool classify = traits_of_task(job.task).has_labels;
  TableData prepared;
  const KnownClasses known = known_classes(request);
  const InputTable table(
      table_options(table_train_paths(job, "the table to train on, in the job or with --data PATH"), job));
  prepare_tokenizer(job, request, table, vocabulary_of(job), prepared);
  const auto data = tokens_of(table, job, *prepared.tokenizer);
  take_notes(data->notes(), prepared.notes);
  prepared.fingerprint = cache_hash_of(*data);
  if (classify) {
    decide_classes(job, known, *data, prepared);
    prepared.found["data.label_field"] = table.label_column();
  }
  prepared.found["data.text_field"] = table.text_column();
  prepared.found["data.pair_field"] = table.pair_column();
  prepared.cache_files.push_back(data->cache_path());
  ExampleSet all(data, *prepared.tokenizer, prepared.labels);
  check_room_for_text(all, job.training.max_length);

  if (job.data.validation.empty()) {
    ExampleSplit split = split_examples(all, job.data.validation_fraction, static_cast<uint64_t>(job.training.seed));
    prepared.train = std::move(split.train);
    prepared.validation = std::move(split.validation);
    if (!split.note.empty()) prepared.notes.push_back(split.note);
  } else {
    prepared.train = std::move(all);
    const InputTable other(table_options(job.data.validation, with_found(job, prepared.found)));
    const auto held_out = tokens_of(other, job, *prepared.tokenizer);
    take_notes(held_out->notes(), prepared.notes);
    prepared.fingerprint += "-" + cache_hash_of(*held_out);
    prepared.cache_files.push_back(held_out->cache_path());
    prepared.validation = ExampleSet(held_out, *prepared.tokenizer, prepared.labels);
    if (const int64_t shared = shared_texts(*held_out, *data); shared > 0) {
      prepared.warnings_of_all.push_back(
          fmt::format("{} of the {} texts of data.validation are also in data.train: memorised texts make the "
                      "evaluation look too good; remove them from one of the two",
                      shared, held_out->rows()));
    }
  }
  if (prepared.validation.count() > 0) prepared.validation_fingerprint = fingerprint_of_examples(prepared.validation);
  return prepared;
}

TaskData hand_over(TableData& prepared, std::shared_ptr<const Sequences> train,
                   std::shared_ptr<const Sequences> validation) {
  TaskData data;
  data.tokenizer = std::move(prepared.tokenizer);
  data.train = std::move(train);
  data.validation = std::move(validation);
  data.sequences_per_epoch = data.train->count();
  data.rows_per_epoch = static_cast<double>(data.train->total_rows());
  data.labels = prepared.labels;
  data.fingerprint = prepared.fingerprint;
  data.validation_fingerprint = prepared.validation_fingerprint;
  data.found = prepared.found;
  data.cache_files = prepared.cache_files;
  data.notes = prepared.notes;
  data.warnings = prepared.warnings;
  data.warnings_of_all = prepared.warnings_of_all;
  return data;
}

Task::Description describe_examples(const TableData& prepared, const Job& job, const TaskData& data,
                                    const PackingFigures& packing, const std::string& more) {
  const ExampleStatistics statistics = example_statistics(prepared.train, job.training.max_length);
  return {fmt::format("{}\n{}\n{}validation   {} examples, {} tokens", example_statistics_text(statistics),
                      step_text(packing, 0), more, with_commas(data.validation->count()),
                      with_commas(data.validation->total_rows())),
          example_statistics_json_text(statistics)};
}

ExampleSet open_evaluation_examples(const std::vector<std::string>& paths, const Job& job, const Tokenizer& tokenizer,
                                    const LabelSet& labels, std::vector<std::string>& notes, bool of_job) {
  const InputTable table(table_options(paths, job, of_job));
  const auto data = tokens_of(table, job, tokenizer);
  take_notes(data->notes(), notes);
  if (!are_class_numbers(*data, labels)) return {data, tokenizer, labels};
  notes.push_back(fmt::format("labels are taken as the numbers of the classes {}", labels.text()));
  return {data, tokenizer, class_numbers(labels)};
}

}  // namespace brisk
