// From the job's paths to tokens: the tokenizer (given, found in the cache, or trained) and the token streams.
//
//   PreparedData data = prepare_data(job, "");          // UserError on what a user can mend
//   data.train_stream->rows();
//   statistics_of(data, job.training.max_length);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/corpus/duplicates.h"
#include "data/corpus/statistics.h"
#include "data/token_store/token_cache.h"
#include "job/job.h"
#include "job/options/options.h"
#include "text/tokenizer.h"
#include "train/task/task.h"

namespace brisk {

struct PreparedData {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const TokenStream> train_stream;
  std::shared_ptr<const TokenStream> validation_stream;  // the same one when the split is by fraction
  CorpusPart train;
  CorpusPart validation;
  std::vector<std::string> source_names;            // of the parts of train_stream
  std::optional<DuplicateCount> duplicates;         // in train_stream
  std::optional<DuplicateCount> validation_shared;  // of data.validation's documents, those in data.train
  std::string fingerprint;  // of the tokens, training and validation: other text or another tokenizer, another one
  FoundValues found;        // the vocabulary, unless the model comes with its own (model.from)
  std::vector<std::string> cache_files;  // that the tokens lie in
  std::vector<std::string> notes;
  std::vector<std::string> warnings, warnings_of_all;
};

// `tokenizer_path`: the run's own tokenizer when resuming, else "". `model_tokenizer`: that of model.from, or none.
PreparedData prepare_data(const Job& job, const std::string& tokenizer_path,
                          std::unique_ptr<Tokenizer> model_tokenizer = nullptr);

// Where the vocabulary is not as large as model.vocab_size: a line for the user, a warning where the job asked for it.
enum class VocabularyFrom { training, tokenizer, run };
void tell_vocabulary(const Job& job, int64_t size, VocabularyFrom from, std::vector<std::string>& notes,
                     std::vector<std::string>& warnings);

// What the user should know of the training data; the packing is left to measure_packing.
CorpusStatistics statistics_of(const PreparedData& prepared, int64_t max_length);

// Tokens of other files with a run's tokenizer, for `brisk eval`.
CorpusPart prepare_evaluation(const std::vector<std::string>& paths, const DataOptions& options,
                              const Tokenizer& tokenizer, int64_t max_length, int64_t stride,
                              std::shared_ptr<const TokenStream>& stream);

}  // namespace brisk
