// The options of a job's data.
#include "job/job_options.h"

namespace brisk {

namespace {

std::vector<Option> declare_source(DataSource& source) {
  return {Option("path", source.path, "a file, a folder or a glob"),
          Option("weight", source.weight,
                 "how often an epoch draws its sequences: at 2 each twice, at 0.5 half of them, the others in the next "
                 "epoch")
              .above(0)
              .at_most(1000),
          Option("text_field", source.text_field, "of its .jsonl lines").automatic("data.text_field"),
          Option("document", source.document, "what a document of its .txt files is")
              .one_of({"auto", "file", "block", "line"})
              .same_as("paragraph", "block")
              .automatic("data.document")};
}

class DataSourceItems : public OptionItems {
 public:
  explicit DataSourceItems(std::vector<DataSource>& sources) : sources_(sources) {}
  void clear() override { sources_.clear(); }
  std::vector<Option> append() override { return declare_source(sources_.emplace_back()); }
  std::vector<Option> example() override { return declare_source(example_); }
  std::vector<std::vector<Option>> items() override {
    std::vector<std::vector<Option>> all;
    for (DataSource& source : sources_) {
      std::vector<Option>& item = all.emplace_back(declare_source(source));
      for (size_t i = 0; i < item.size(); ++i) item[i].default_text = example()[i].default_text;
    }
    return all;
  }

 private:
  std::vector<DataSource>& sources_;
  DataSource example_;
};

}  // namespace

void declare_data(DataOptions& data, std::vector<Option>& all) {
  all.push_back(Option("data.train", std::make_shared<DataSourceItems>(data.train),
                       "text to learn from: .txt and .jsonl files, plain or compressed (.gz, .zst), folders, globs; or "
                       "--data; an object gives a source a weight, a text_field or a document rule of its own")
                    .also({"train_file", "train_files", "train_path", "train_data", "path", "files"}));
  all.push_back(
      Option("data.validation", data.validation, "text to evaluate on")
          .automatic("validation_fraction of train")
          .also({"validation_file", "validation_files", "valid", "val", "eval", "validation_path", "eval_file"}));
  all.push_back(Option("data.validation_fraction", data.validation_fraction,
                       "share of train kept for evaluation where validation is not given; 0: none")
                    .at_least(0)
                    .at_most(0.5)
                    .also({"validation_split", "val_split", "val_fraction", "eval_fraction", "validation_ratio"}));
  all.push_back(
      Option("data.text_field", data.text_field,
             "the key of a .jsonl line that holds its text; a dot goes into an object or a list: article.body.text; "
             "of the task classify the column of the table, found where it is not given")
          .also({"text_column", "text_key"}));
  declare_table(data, all);
  all.push_back(Option("data.document", data.document,
                       "what a document of a .txt is: the file, a block between blank lines, or a line")
                    .one_of({"auto", "file", "block", "line"})
                    .same_as("paragraph", "block"));
  all.push_back(Option("data.tokenizer", data.tokenizer,
                       "a tokenizer.json, SentencePiece .model, GPT-2's or llama2.c's files, or a folder with one")
                    .automatic("a byte-level BPE of model.vocab_size entries, trained on the training text")
                    .also({"tokenizer_path", "tokenizer_file", "tokenizer_name", ".tokenizer", "model.tokenizer"}));
  all.push_back(
      Option("data.cache_dir", data.cache_dir, "where token files are kept between runs")
          .automatic("$XDG_CACHE_HOME/brisk or ~/.cache/brisk; /tmp/brisk-cache-UID for a user without a home")
          .also({"cache"}));
}

}  // namespace brisk
