// From the job's tables to examples: the tokenizer (given, the model's, or a WordPiece vocabulary that is trained), the
// tokens, the classes, the two parts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/job.h"
#include "data/examples.h"
#include "text/tokenizer.h"
#include "train/task.h"

namespace brisk {

struct EncoderData {
  std::unique_ptr<Tokenizer> tokenizer;
  ExampleSet train, validation;
  LabelSet labels;  // of a classifier
  std::string fingerprint;
  std::vector<std::string> notes, warnings;
};

// Sets job.model.vocab_size, the columns that were found (data.text_field, ...) and, of a classifier, model.num_labels.
// The classes are those of the training data; in the order of the run that goes on, or of a classifier that is started
// from, where it has the same.
EncoderData prepare_encoder_data(Job& job, DataRequest request);

// The rows of other files for a trained classifier, with its columns where the files have them.
ExampleSet open_evaluation_examples(const std::vector<std::string>& paths, const Job& job, const Tokenizer& tokenizer,
                                    const LabelSet& labels, std::vector<std::string>& notes);

// A WordPiece vocabulary of at most so many entries from the beginning of a table; trained once for the same texts, and
// then found in `cache_directory`.
std::unique_ptr<Tokenizer> wordpiece_of_table(const TextTable& table, int64_t vocab_size,
                                              const std::string& cache_directory, std::string& note);

// UserError where max_length leaves no room for a token beside the special ones.
void check_room_for_text(const ExampleSet& examples, int64_t max_length);

}  // namespace brisk
