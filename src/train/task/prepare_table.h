// From the job's tables to examples: the tokenizer (given, the model's, or a vocabulary that is trained), the
// tokens, the classes, the two parts.
//
//   TableData prepared = prepare_table(job, {});             // UserError on what a user can fix
//   auto train = std::make_shared<const ExampleSequences>(prepared.train, job.training.max_length);
//   TaskData data = hand_over(prepared, train, validation);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/examples/examples.h"
#include "job/job.h"
#include "job/options/options.h"
#include "text/tokenizer.h"
#include "train/task/task.h"

namespace brisk {

struct TableData {
  std::unique_ptr<Tokenizer> tokenizer;
  ExampleSet train, validation;
  LabelSet labels;  // of a classifier
  std::string fingerprint;
  std::optional<uint64_t> validation_fingerprint;  // as TaskData has it
  FoundValues found;  // the vocabulary, the columns that were found and, of a classifier, the number of classes
  std::vector<std::string> cache_files;  // that the tokens lie in
  std::vector<std::string> notes, warnings, warnings_of_all;
};

// The classes are those of the training data; in the order of the run that goes on, or of a classifier that is started
// from, where it has the same.
TableData prepare_table(const Job& job, DataRequest request);

// The job's data.train; UserError, which says `what` to name, where there is none, and of a source with settings of its own.
std::vector<std::string> table_train_paths(const Job& job, const std::string& what);

// What the trainer is handed of it, the tokenizer included: the sequences are the task's.
TaskData hand_over(TableData& prepared, std::shared_ptr<const Sequences> train,
                   std::shared_ptr<const Sequences> validation);

// Lines about the examples, `more` of the task's own among them, and the JSON object of statistics.json.
Task::Description describe_examples(const TableData& prepared, const Job& job, const TaskData& data,
                                    const PackingFigures& packing, const std::string& more = "");

// The rows of other files for a trained classifier, with its columns where the files have them. `of_job`: they are the
// job's own, and messages name its options.
ExampleSet open_evaluation_examples(const std::vector<std::string>& paths, const Job& job, const Tokenizer& tokenizer,
                                    const LabelSet& labels, std::vector<std::string>& notes, bool of_job = false);

// A vocabulary from the beginning of a table: WordPiece, as BERT has it, or byte-level BPE with the special tokens of RoBERTa
// or of text to text. Trained once for the same texts, and then found in `cache_directory`.
struct TableVocabulary {
  enum class Kind : uint8_t { wordpiece, byte_level, text_to_text };
  enum class Texts : uint8_t { all, first, second };  // of each row

  std::string name() const;  // "WordPiece"

  int64_t vocab_size = 30000;  // at most
  Kind kind = Kind::wordpiece;
  bool lowercase = true;  // of WordPiece
  Texts texts = Texts::all;
};
std::unique_ptr<Tokenizer> vocabulary_of_table(const InputTable& table, const TableVocabulary& vocabulary,
                                               const std::string& cache_directory, std::string& note);

// The run's own tokenizer, that of the job, that of model.from, or one that is trained; its size is among what was found.
void prepare_tokenizer(const Job& job, DataRequest& request, const InputTable& table, const TableVocabulary& vocabulary,
                       TableData& prepared);

// Classes in the order of the run that goes on, or of a classifier that is started from; none where there are none.
struct KnownClasses {
  LabelSet of_run, of_model;
};
KnownClasses known_classes(const DataRequest& request);
void decide_classes(const Job& job, const KnownClasses& known, const ExampleData& data, TableData& prepared);

std::string cache_hash_of(const ExampleData& data);
// Of the texts and their labels, whatever their order.
uint64_t fingerprint_of_examples(const ExampleSet& examples);

// UserError where max_length leaves no room for a token next to the special ones.
void check_room_for_text(const ExampleSet& examples, int64_t max_length);

}  // namespace brisk
