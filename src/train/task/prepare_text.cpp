#include "train/task/prepare_text.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/terminal/work_bar.h"
#include "data/read/source.h"

namespace brisk {

namespace {

// A vocabulary is learned from at most so much text: more changes next to nothing in it but the time and the memory.
constexpr int64_t kTokenizerSampleBytes = int64_t{128} << 20;

struct TrainSource {
  Source source;
  double weight;
  std::string name;
};

SourceOptions source_options(const std::vector<std::string>& paths, const DataOptions& data) {
  return {.paths = paths, .text_field = data.text_field, .document = document_rule_from(data.document)};
}

// What is given by its path alone is one source, in which each file appears once; what has settings of its own is a
// source of its own.
std::vector<TrainSource> train_sources(const DataOptions& data) {
  std::vector<std::string> plain;
  std::vector<TrainSource> sources;
  for (const DataSource& item : data.train) {
    if (item == DataSource(item.path)) plain.push_back(item.path);
  }
  if (!plain.empty()) {
    sources.push_back({Source(source_options(plain, data)), 1, fmt::format("{}", fmt::join(plain, ", "))});
  }
  for (const DataSource& item : data.train) {
    if (item == DataSource(item.path)) continue;
    SourceOptions options = source_options({item.path}, data);
    if (!item.text_field.empty()) options.text_field = item.text_field;
    if (!item.document.empty()) options.document = document_rule_from(item.document);
    sources.push_back({Source(options), item.weight, item.path});
  }
  return sources;
}

void make_cache_directory(const DataOptions& data) {
  try {
    make_directories(cache_directory(data));
  } catch (const UserError& error) {
    user_error("{}; tokens are kept there: name a folder that can be written to with data.cache_dir", error.what());
  }
}

int64_t bytes_of(const std::vector<TrainSource>& sources) {
  int64_t bytes = 0;
  for (const TrainSource& source : sources) bytes += source.source.bytes();
  return bytes;
}

const char* kind_text(bool over_words) { return over_words ? "BPE over words" : "byte-level BPE"; }

TrainedTokenizer train_vocabulary(std::vector<TrainSource>& sources, int64_t vocab_size, bool over_words,
                                  PreparedData& prepared) {
  const auto total = static_cast<double>(bytes_of(sources));
  std::vector<TextSample> samples;
  std::vector<std::string_view> texts;
  int64_t bytes = 0;
  bool whole = true;
  for (TrainSource& source : sources) {
    const double share = static_cast<double>(source.source.bytes()) / total;
    const auto most = static_cast<int64_t>(share * static_cast<double>(kTokenizerSampleBytes));
    const TextSample& sample = samples.emplace_back(source.source.sample(std::max<int64_t>(most, 1)));
    texts.insert(texts.end(), sample.texts.begin(), sample.texts.end());
    bytes += sample.bytes;
    whole &= sample.whole;
  }
  if (texts.empty()) {
    user_error("{}: no text in any of the files; give files with text", sources.front().name);
  }
  TrainedTokenizer result =
      over_words ? train_word_bpe(texts, {.vocab_size = vocab_size}) : train_bpe(texts, {.vocab_size = vocab_size});
  prepared.notes.push_back(
      fmt::format("tokenizer: {} of {} entries, trained on {}", kind_text(over_words), result.tokenizer->vocab_size(),
                  whole ? fmt::format("the whole text, {}", format_bytes(static_cast<double>(bytes)))
                        : fmt::format("a sample of {}, spread over files of {}",
                                      format_bytes(static_cast<double>(bytes)), format_bytes(total))));
  return result;
}

// A vocabulary is trained once per text and size; the next run of the same job finds it.
std::unique_ptr<Tokenizer> trained_tokenizer(std::vector<TrainSource>& sources, const Job& job,
                                             PreparedData& prepared) {
  const std::string directory = cache_directory(job.data);
  uint64_t hash = sources.front().source.content_hash(directory);
  for (size_t i = 1; i < sources.size(); ++i) hash = hash_mix(hash, sources[i].source.content_hash(directory));
  const bool over_words = job.data.tokenizer_kind == "word-bpe";
  const std::string path =
      fmt::format("{}/{}-{:016x}-{}.json", directory, job.data.tokenizer_kind, hash, job.model.vocab_size);
  const FileLock lock(path + ".lock",
                      [] { say("another brisk is training the vocabulary of this text; waiting for it"); });
  if (file_exists(path)) {
    try {
      auto tokenizer = load_tokenizer(path);
      prepared.notes.push_back(
          fmt::format("tokenizer: {} of {} entries, from {}", kind_text(over_words), tokenizer->vocab_size(), path));
      return tokenizer;
    } catch (const UserError& error) {
      prepared.warnings.push_back(fmt::format("{}; training it again", error.what()));
    }
  }
  constexpr int64_t kSmallest = 257;
  if (!over_words && job.model.vocab_size < kSmallest) {
    user_error(
        "model.vocab_size = {}: a vocabulary trained from text needs 256 bytes and an end-of-document token: use {} "
        "or more, or name a tokenizer with data.tokenizer",
        job.model.vocab_size, kSmallest);
  }
  TrainedTokenizer result = train_vocabulary(sources, job.model.vocab_size, over_words, prepared);
  for (const TrainSource& source : sources) source.source.unchanged().check();
  result.tokenizer->save(path);
  return std::move(result.tokenizer);
}

// A token file is named by a hash of all that decides its tokens.
std::string hash_of(const TokenCache& cache) { return std::filesystem::path(cache.path).stem().string(); }

TokenCache tokens_of(Source& source, const std::string& name, const DataOptions& options, const Tokenizer& tokenizer) {
  WorkBar bar("tokens of " + name);
  return open_token_cache(source, tokenizer, cache_directory(options),
                          [&](int64_t done, int64_t total) { bar.update(done, total); });
}

TokenCache evaluation_tokens(const std::vector<std::string>& paths, const DataOptions& options,
                             const Tokenizer& tokenizer, std::string text_option = "data.text_field") {
  SourceOptions given = source_options(paths, options);
  given.text_option = std::move(text_option);
  Source source(std::move(given));
  return tokens_of(source, fmt::format("{}", fmt::join(paths, ", ")), options, tokenizer);
}

// The tokens of all sources as one stream; `weights` where they are not all 1.
void prepare_train_stream(std::vector<TrainSource>& sources, const Job& job, PreparedData& prepared,
                          std::vector<double>& weights) {
  std::vector<std::shared_ptr<const TokenStream>> streams;
  bool weighted = false;
  for (TrainSource& source : sources) {
    const TokenCache cache = tokens_of(source.source, source.name, job.data, *prepared.tokenizer);
    streams.push_back(cache.stream);
    prepared.cache_files.push_back(cache.path);
    weights.push_back(source.weight);
    weighted |= source.weight != 1;
    prepared.source_names.push_back(source.name);
    prepared.fingerprint += (prepared.fingerprint.empty() ? "" : "+") + hash_of(cache);
    for (const std::string& note : cache.notes) {
      prepared.notes.push_back(sources.size() > 1 ? fmt::format("{}: {}", source.name, note) : note);
    }
  }
  if (weighted) prepared.fingerprint += fmt::format("*{}", fmt::join(weights, "*"));
  prepared.train_stream = TokenStream::join(streams);
  prepared.duplicates = count_duplicates(*prepared.train_stream);
}

void prepare_validation_files(const Job& job, PreparedData& prepared) {
  const TokenCache validation = evaluation_tokens(job.data.validation, job.data, *prepared.tokenizer);
  prepared.validation_stream = validation.stream;
  prepared.cache_files.push_back(validation.path);
  prepared.validation = whole_corpus(*validation.stream, job.training.max_length, {}, cache_directory(job.data),
                                     job.training.window_stride);
  prepared.fingerprint += "-" + hash_of(validation);
  prepared.validation_shared = count_shared(*validation.stream, *prepared.train_stream);
  if (prepared.validation_shared->documents > 0) {
    prepared.warnings_of_all.push_back(
        fmt::format("{}{} of the {} documents of data.validation are also in data.train: memorised documents "
                    "make the validation loss look too good; remove them from one of the two",
                    prepared.validation_shared->estimated ? "about " : "", prepared.validation_shared->documents,
                    validation.stream->documents()));
  }
}

}  // namespace

PreparedData prepare_data(const Job& job, const std::string& tokenizer_path,
                          std::unique_ptr<Tokenizer> model_tokenizer) {
  if (job.data.train.empty()) {
    user_error("{}: data.train is missing: name the text to train on, in the job or with --data PATH", job.name);
  }
  PreparedData prepared;
  make_cache_directory(job.data);
  std::vector<TrainSource> sources = train_sources(job.data);
  const std::string given = tokenizer_path.empty() ? job.data.tokenizer : tokenizer_path;
  if (given.empty() && model_tokenizer) {
    prepared.tokenizer = std::move(model_tokenizer);
    prepared.notes.push_back(
        fmt::format("tokenizer: {} entries, from {}", prepared.tokenizer->vocab_size(), job.model.from));
  } else if (given.empty()) {
    prepared.tokenizer = trained_tokenizer(sources, job, prepared);
  } else {
    prepared.tokenizer = load_tokenizer(given);
    prepared.notes.push_back(fmt::format("tokenizer: {} entries, from {}", prepared.tokenizer->vocab_size(), given));
  }
  if (const int64_t size = prepared.tokenizer->vocab_size(); !job.model.from.empty()) {
    if (size > job.model.vocab_size) {
      user_error("{}: a vocabulary of {}, but the tokenizer has {} entries: use the one it was trained with",
                 job.model.from, job.model.vocab_size, size);
    }
  } else if (size != job.model.vocab_size) {
    tell_vocabulary(job, size,
                    given.empty()            ? VocabularyFrom::training
                    : tokenizer_path.empty() ? VocabularyFrom::tokenizer
                                             : VocabularyFrom::run,
                    prepared.notes, prepared.warnings_of_all);
    prepared.found["model.vocab_size"] = size;
  }

  std::vector<double> weights;
  prepare_train_stream(sources, job, prepared, weights);
  const int64_t max_length = job.training.max_length;
  if (job.data.validation.empty()) {
    CorpusSplit split = split_corpus(*prepared.train_stream, {.max_length = max_length,
                                                              .validation_fraction = job.data.validation_fraction,
                                                              .seed = static_cast<uint64_t>(job.training.seed),
                                                              .weights = weights,
                                                              .scratch_directory = cache_directory(job.data),
                                                              .stride = job.training.window_stride});
    prepared.train = std::move(split.train);
    prepared.validation = std::move(split.validation);
    prepared.validation_stream = prepared.train_stream;
    if (!split.note.empty()) prepared.notes.push_back(split.note);
  } else {
    prepared.train = whole_corpus(*prepared.train_stream, max_length, weights, cache_directory(job.data),
                                  job.training.window_stride);
    prepare_validation_files(job, prepared);
  }
  return prepared;
}

void tell_vocabulary(const Job& job, int64_t size, VocabularyFrom from, std::vector<std::string>& notes,
                     std::vector<std::string>& warnings) {
  const bool said = job.given.contains("model.vocab_size");
  if (from == VocabularyFrom::training) {
    if (said) {
      warnings.push_back(
          fmt::format("model.vocab_size {} is more than this text supports: using {}", job.model.vocab_size, size));
    } else {
      notes.push_back(fmt::format("model.vocab_size = {}: this text supports no more (the default is {})", size,
                                  job.model.vocab_size));
    }
    return;
  }
  notes.push_back(fmt::format("model.vocab_size = {} ({}{})", size,
                              from == VocabularyFrom::run ? "of the run's own tokenizer" : "the tokenizer's",
                              said ? fmt::format("; the job says {}", job.model.vocab_size) : ""));
}

CorpusStatistics statistics_of(const PreparedData& prepared, int64_t max_length) {
  CorpusStatistics statistics = corpus_statistics(prepared.train, max_length);
  statistics.duplicates = prepared.duplicates;
  statistics.validation_shared = prepared.validation_shared;
  if (prepared.source_names.size() < 2) return statistics;
  const double rows = prepared.train.rows_per_epoch();
  for (size_t i = 0; i < prepared.source_names.size(); ++i) {
    const SourceShare& share = prepared.train.sources[i];
    const double drawn = share.chunks > 0 ? static_cast<double>(share.draws) / static_cast<double>(share.chunks) : 0;
    statistics.sources.push_back({prepared.source_names[i], share.weight, share.documents, share.rows,
                                  drawn * static_cast<double>(share.rows) / rows});
  }
  return statistics;
}

CorpusPart prepare_evaluation(const std::vector<std::string>& paths, const DataOptions& options,
                              const Tokenizer& tokenizer, int64_t max_length, int64_t stride,
                              std::shared_ptr<const TokenStream>& stream) {
  stream = evaluation_tokens(paths, options, tokenizer, option_name("text_field")).stream;
  return whole_corpus(*stream, max_length, {}, cache_directory(options), stride);
}

}  // namespace brisk
