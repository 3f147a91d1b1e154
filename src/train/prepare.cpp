#include "train/prepare.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "data/source.h"

namespace brisk {

namespace {

SourceOptions source_options(const std::vector<std::string>& paths, const DataOptions& data) {
  return {.paths = paths, .text_field = data.text_field, .document = document_rule_from(data.document)};
}

std::string cache_directory(const DataOptions& data) {
  return data.cache_dir.empty() ? default_cache_directory() : data.cache_dir;
}

void make_cache_directory(const DataOptions& data) {
  try {
    make_directories(cache_directory(data));
  } catch (const UserError& error) {
    user_error("{}; tokens are kept there: name a folder that can be written to with data.cache_dir", error.what());
  }
}

// A vocabulary is trained once per text and size; the next run of the same job finds it.
std::unique_ptr<Tokenizer> trained_tokenizer(Source& source, const Job& job, PreparedData& prepared) {
  const std::string path =
      fmt::format("{}/bpe-{:016x}-{}.json", cache_directory(job.data), source.content_hash(), job.model.vocab_size);
  if (file_exists(path)) {
    try {
      auto tokenizer = load_tokenizer(path);
      prepared.notes.push_back(
          fmt::format("tokenizer: byte-level BPE of {} entries, from {}", tokenizer->vocab_size(), path));
      return tokenizer;
    } catch (const UserError& error) {
      prepared.warnings.push_back(fmt::format("{}; training it again", error.what()));
    }
  }
  constexpr int64_t kSmallest = 257;
  if (job.model.vocab_size < kSmallest) {
    user_error(
        "model.vocab_size = {}: a vocabulary trained from text has 256 bytes and an end of document at least: use {} "
        "or "
        "more, or name a tokenizer with data.tokenizer",
        job.model.vocab_size, kSmallest);
  }
  BpeTrainingOptions options;
  options.vocab_size = job.model.vocab_size;
  BpeTrainingResult result = train_bpe(source.documents(), options);
  result.tokenizer->save(path);
  prepared.notes.push_back(fmt::format("tokenizer: byte-level BPE of {} entries, trained on {} documents",
                                       result.tokenizer->vocab_size(), source.documents().size()));
  return std::move(result.tokenizer);
}

// A token file is named by a hash of all that decides its tokens.
std::string hash_of(const TokenCache& cache) { return std::filesystem::path(cache.path).stem().string(); }

TokenCache evaluation_tokens(const std::vector<std::string>& paths, const DataOptions& options,
                             const Tokenizer& tokenizer) {
  Source source(source_options(paths, options));
  return open_token_cache(source, tokenizer, cache_directory(options));
}

}  // namespace

PreparedData prepare_data(Job& job, const std::string& tokenizer_path, std::unique_ptr<Tokenizer> model_tokenizer) {
  if (job.data.train.empty()) {
    user_error("{}: data.train is missing: name the text to train on, in the job or with --data PATH", job.name);
  }
  PreparedData prepared;
  make_cache_directory(job.data);
  Source source(source_options(job.data.train, job.data));
  const std::string given = tokenizer_path.empty() ? job.data.tokenizer : tokenizer_path;
  if (given.empty() && model_tokenizer) {
    prepared.tokenizer = std::move(model_tokenizer);
    prepared.notes.push_back(
        fmt::format("tokenizer: {} entries, from {}", prepared.tokenizer->vocab_size(), job.model.from));
  } else if (given.empty()) {
    prepared.tokenizer = trained_tokenizer(source, job, prepared);
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
    if (given.empty()) {
      prepared.warnings.push_back(
          fmt::format("model.vocab_size {} is more than this text supports: using {}", job.model.vocab_size, size));
    } else if (tokenizer_path.empty()) {
      prepared.notes.push_back(
          fmt::format("model.vocab_size = {} (the tokenizer's; the job says {})", size, job.model.vocab_size));
    }
    job.model.vocab_size = size;
  }

  TokenCache cache = open_token_cache(source, *prepared.tokenizer, cache_directory(job.data));
  prepared.train_stream = cache.stream;
  prepared.fingerprint = hash_of(cache);
  prepared.notes.insert(prepared.notes.end(), cache.notes.begin(), cache.notes.end());
  const int64_t max_length = job.training.max_length;
  if (job.data.validation.empty()) {
    CorpusSplit split = split_corpus(*cache.stream, {.max_length = max_length,
                                                     .validation_fraction = job.data.validation_fraction,
                                                     .seed = static_cast<uint64_t>(job.training.seed)});
    prepared.train = std::move(split.train);
    prepared.validation = std::move(split.validation);
    prepared.validation_stream = cache.stream;
    if (!split.note.empty()) prepared.notes.push_back(split.note);
  } else {
    prepared.train = whole_corpus(*cache.stream, max_length);
    const TokenCache validation = evaluation_tokens(job.data.validation, job.data, *prepared.tokenizer);
    prepared.validation_stream = validation.stream;
    prepared.validation = whole_corpus(*validation.stream, max_length);
    prepared.fingerprint += "-" + hash_of(validation);
  }
  return prepared;
}

CorpusPart prepare_evaluation(const std::vector<std::string>& paths, const DataOptions& options,
                              const Tokenizer& tokenizer, int64_t max_length,
                              std::shared_ptr<const TokenStream>& stream) {
  stream = evaluation_tokens(paths, options, tokenizer).stream;
  return whole_corpus(*stream, max_length);
}

}  // namespace brisk
