// The rows of a table as training examples: tokens in a memory-mapped cache, labels as numbers, split into two parts.
//
//   InputTable table({.paths = {"reviews.csv"}});
//   auto data = open_examples(table, *tokenizer, cache_directory);       // tokenised once, on all cores
//   ExampleSet all(data, *tokenizer, training_labels(*data));
//   ExampleSplit split = split_examples(all, /*fraction=*/0.05, seed);
//   ExampleSet validation(other, *tokenizer, all.labels());              // or another file's rows
//   split.train.set_class_weights(balanced_class_weights(split.train.class_counts()));
//
//   split.train.length(3, 128);                                  // rows of example 3, truncated at 128
//   split.train.append(3, 128, /*sequence=*/0, batch);           // and they are in the micro-batch
//   split.train.append_masked(3, 128, 0, masker, epoch, batch);  // for a masked language model instead
//
// Rows without text or label are skipped and counted; more than one in ten of them is a UserError.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batch/batch.h"
#include "data/examples/masking.h"
#include "data/examples/text_frame.h"
#include "data/table/input_table.h"
#include "data/table/labels.h"
#include "data/token_store/chunk_list.h"
#include "data/token_store/token_cache.h"
#include "text/tokenizer.h"

namespace brisk {

// The unusable rows of a table, and where they are.
struct MissingRows {
  struct Place {
    int64_t file, line;
  };
  int64_t rows = 0;  // of the table, including unusable ones
  int64_t without_text = 0, without_label = 0;
  std::vector<Place> first;  // a few

  int64_t count() const { return without_text + without_label; }
};

// All usable rows of a table, numbered in their order.
struct TextTokenizers;

class ExampleData {
 public:
  int64_t rows() const { return stream_->documents() / documents_per_row_; }
  bool has_pairs() const { return pairs_; }
  bool has_labels() const { return labelled_; }

  // As written in the table, in the order of first occurrence; label_of() is an index into these, -1 without labels.
  const std::vector<std::string>& label_names() const { return label_names_; }
  int32_t label_of(int64_t row) const;

  TextFrame::Lengths lengths_of(int64_t row) const;  // in tokens
  uint64_t text_hash_of(int64_t row) const;          // the same for copies of a text, or of a pair
  int64_t place_of(int64_t row, int text) const;     // position of its first token in the token file
  void copy(int64_t place, int64_t count, TokenId* out) const;

  const std::string& name() const { return name_; }  // the files, for messages
  const std::string& label_column() const { return label_column_; }
  const std::string& label_option() const { return label_option_; }  // the option for it, for messages
  const MissingRows& missing() const { return missing_; }
  const std::vector<std::string>& notes() const { return notes_; }  // detected columns and skipped rows, for the user
  const std::string& cache_path() const { return cache_path_; }
  std::string cache_directory() const;     // also used for long lists
  bool reused() const { return reused_; }  // the tokens were in the cache

 private:
  friend std::shared_ptr<const ExampleData> open_examples(const InputTable&, const TextTokenizers&, const std::string&,
                                                          const TokenizeProgress&, double);

  std::shared_ptr<const TokenStream> stream_;
  int64_t documents_per_row_ = 1;
  bool pairs_ = false, labelled_ = false, reused_ = false;
  std::vector<std::string> label_names_, notes_;
  std::string name_, label_column_, label_option_, cache_path_;
  MissingRows missing_;
};

// What makes tokens of the first text of a row, and of the second.
struct TextTokenizers {
  TextTokenizers(const Tokenizer& both) : text(both), pair(both) {}  // NOLINT: one is both wherever they are asked for
  TextTokenizers(const Tokenizer& text, const Tokenizer& pair) : text(text), pair(pair) {}

  const Tokenizer& text;
  const Tokenizer& pair;
};

// Makes `directory` where it is missing. Uses thread_pool(), so not from inside a run() of it. The tokens are keyed
// by the bytes of the files, how they are read, the columns and the tokenizer; two jobs that start at once make them
// once, and what a killed one made of them stays.
std::shared_ptr<const ExampleData> open_examples(const InputTable& table, const TextTokenizers& tokenizers,
                                                 const std::string& directory, const TokenizeProgress& progress = {},
                                                 double journal_seconds = 5);

// The classes of training data. UserError if there is only one, or where they are no classes (data/table/label_check.h):
// with `unusual` that is a warning.
LabelSet training_labels(const ExampleData& data, bool unusual = false, std::vector<std::string>* warnings = nullptr);

// How many texts of `part` are among those of `whole`. Holds 8 bytes a text of `whole` meanwhile.
int64_t shared_texts(const ExampleData& part, const ExampleData& whole);

class ExampleSet {
 public:
  ExampleSet() = default;
  // All rows. A label that is not in `labels` is a UserError: the model has no output for it.
  ExampleSet(std::shared_ptr<const ExampleData> data, const Tokenizer& tokenizer, LabelSet labels = {});
  // All rows, with nothing around their texts: for sequences that are framed elsewhere (pair_sequences.h).
  explicit ExampleSet(std::shared_ptr<const ExampleData> data);

  int64_t count() const { return std::ssize(rows_); }
  bool has_pairs() const { return frame_.pairs(); }
  const LabelSet& labels() const { return labels_; }
  int32_t label(int64_t index) const;  // -1: no labels
  std::vector<int64_t> class_counts() const;

  int64_t row_of(int64_t index) const;  // of the data; not of pieces
  uint64_t text_hash(int64_t index) const { return data_->text_hash_of(row_of(index)); }
  // Rows of a micro-batch, special ones included.
  int64_t full_length(int64_t index) const { return rows_[static_cast<size_t>(index)].length; }
  int64_t length(int64_t index, int64_t max_length) const { return std::min(full_length(index), max_length); }
  int64_t longest(int64_t max_length) const { return std::min(rows_.longest(), max_length); }

  // One weight per class, which the picked rows carry; empty: 1 each.
  void set_class_weights(std::vector<float> weights) { class_weights_ = std::move(weights); }
  const std::vector<float>& class_weights() const { return class_weights_; }

  // One more sequence and its first row picked. max_length must leave room for the special tokens and one more.
  void append(int64_t index, int64_t max_length, int32_t sequence, MicroBatch& batch) const;
  void append_masked(int64_t index, int64_t max_length, int32_t sequence, const Masker& masker, int64_t epoch,
                     MicroBatch& batch) const;

  const ExampleData& data() const { return *data_; }
  const TextFrame& frame() const { return frame_; }
  ExampleSet subset(ChunkList rows) const;  // rows of this set's list, in any order
  ExampleSet first(int64_t count) const;    // no more than these
  ExampleSet whole() const;                 // all rows of the data, in their order

  // The same texts, with long ones divided into several examples of at most max_length rows, so that nothing is
  // truncated: for masked language models. Call after the split, so that all pieces of a text are on one side. Not for
  // pairs.
  ExampleSet in_pieces(int64_t max_length) const;
  bool are_pieces() const { return pieces_; }
  const ChunkList& rows() const { return rows_; }

 private:
  void append_rows(int64_t index, int64_t max_length, int32_t sequence, MicroBatch& batch) const;
  ChunkList all_rows() const;

  std::shared_ptr<const ExampleData> data_;
  TextFrame frame_;
  LabelSet labels_;
  std::vector<int32_t> label_of_name_;  // the label of each of the data's names
  std::vector<float> class_weights_;
  // begin: the row of the data, or of a chunk of a text the position of its first token; length: in rows of a
  // micro-batch, before truncation
  ChunkList rows_;
  bool pieces_ = false;
};

struct ExampleSplit {
  ExampleSet train, validation;
  std::string note;  // how it was split, for the user
};

// Every class gives its share, and the copies of a text are on one side: which texts are for validation depends on the
// seed and the texts alone. A class of a single text is for training, as is a text with more copies than the share of
// its class. Holds 24 bytes an example meanwhile.
ExampleSplit split_examples(const ExampleSet& all, double fraction, uint64_t seed);

}  // namespace brisk
