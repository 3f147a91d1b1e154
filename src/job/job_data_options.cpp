// The options of a job's data.
#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

std::vector<Option> declare_source(DataSource& source) {
  std::vector<Option> all;
  // Where the text is. That it is the same text is seen by its fingerprint.
  all.emplace_back("path", source.path, "a file, a folder or a glob", OnResume::may_change)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "weight", source.weight,
         "how often each sequence is used in an epoch: 2 is twice; 0.5 is half of the sequences, the other half "
         "in the next epoch",
         OnResume::fixed)
      .above(0)
      .at_most(1000)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("text_field", source.text_field, "key that holds the text in a line of this source's .jsonl files",
                   OnResume::fixed)
      .automatic("data.text_field")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("document", source.document, "what one document is in this source's .txt files", OnResume::fixed)
      .one_of({"auto", "file", "block", "line"})
      .same_as("paragraph", "block")
      .automatic("data.document")
      .everywhere()
      .same_in_smoke_test();
  return all;
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

void declare_data_options(Job& job, std::vector<Option>& all) {
  DataOptions& data = job.data;
  all.emplace_back(
         "data.train", std::make_shared<DataSourceItems>(data.train),
         "training data: .txt or .jsonl files, for classify .csv, .tsv or .jsonl with labels, for translate one of these "
         "with texts and their translations, or {\"source\": FILE, \"target\": FILE} with a text on each line, for "
         "image_to_text one of these with paths of images and their texts, for classify on images that with labels or a "
         "folder with a folder of images for each class; plain or compressed (.gz, .zst); files, folders or globs; an object gives a source a weight, a text_field or a "
         "document rule of its own; or --data",
         OnResume::may_change)
      .object_of({{"source", "data.train"}, {"target", "data.train_target"}})
      .also({"train_file", "train_files", "train_path", "train_data", "path", "files"})
      .everywhere()
      .same_in_smoke_test();
  const Condition translations = with_pairs_of_texts(job), images = with_images(job);
  all.emplace_back("data.train_target", data.train_target,
                   "files whose lines are the translations of the lines of train; empty: train is a table with both",
                   OnResume::may_change)
      .only_with(translations)
      .also({"train_target_file", "target_file", "target_files"})
      .same_in_smoke_test();
  all.emplace_back("data.validation", data.validation, "data to evaluate on, of the same kinds as train",
                   OnResume::may_change)
      .object_of({{"source", "data.validation"}, {"target", "data.validation_target"}})
      .automatic("validation_fraction of train")
      .also({"validation_file", "validation_files", "valid", "val", "eval", "validation_path", "eval_file"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("data.validation_target", data.validation_target,
                   "files whose lines are the translations of the lines of validation", OnResume::may_change)
      .only_with(translations)
      .also({"validation_target_file"})
      .same_in_smoke_test();
  all.emplace_back("data.validation_fraction", data.validation_fraction,
                   "fraction of the training data that is set aside for evaluation; 0: none", OnResume::fixed)
      .at_least(0)
      .at_most(0.5)
      .used_with({"without data.validation", [&data] { return data.validation.empty(); }})
      .also({"validation_split", "val_split", "val_fraction", "eval_fraction", "validation_ratio"})
      .same_in_smoke_test();
  all.emplace_back("data.text_field", data.text_field,
                   "key of a .jsonl line, or column of a table, that holds the text; a path such as "
                   "article.body.text reaches into nested objects and lists; empty: found by its name or its values",
                   OnResume::fixed)
      .default_with(with_encoder_task(job), "")
      .default_with(with_texts_of_images(job), "")
      .also({"text_column", "text_key", "text_column_name", "text_column_names"})
      .decided_by_data()
      .only_with(with_single_texts(job, "it has source_field and target_field"))
      .used_with(with_texts(job))
      .same_in_smoke_test();
  all.emplace_back("data.label_field", data.label_field, "column or key that holds the label, a word or a number",
                   OnResume::fixed)
      .decided_by_data()
      .automatic("found by its name (label, sentiment, class, ...) or its values")
      .only_with(with_labels(job, "it has no labels"))
      .also({"label_column", "label_key", "label_column_name"})
      .same_in_smoke_test();
  all.emplace_back("data.allow_unusual_labels", data.allow_unusual_labels,
                   "train even if the labels look like something else than classes: measurements, lists, free text, "
                   "classes of a single row",
                   OnResume::may_change)
      .only_with(with_labels(job, "it has no labels"))
      // In a sample of many classes most come once; the smoke test looks at the rest itself.
      .smoke_test_rule([&job] { job.data.allow_unusual_labels = traits_of_task(job.task).has_labels; });
  all.emplace_back("data.pair_field", data.pair_field, "column or key of the second text, to classify pairs of texts",
                   OnResume::fixed)
      .decided_by_data()
      .automatic("none")
      .only_with(with_labels(job, "it has no pairs of texts"))
      .only_with(with_texts(job))
      .also({"text_pair_field", "second_text_field", "pair_column"})
      .same_in_smoke_test();
  all.emplace_back("data.source_field", data.source_field,
                   "column, or key of a .jsonl line (translation.en), that holds the text to translate",
                   OnResume::fixed)
      .decided_by_data()
      .automatic("found by its name (source, src, input, ...), or the first of two columns")
      .only_with(translations)
      .also({"source_column", "source_key"})
      .same_in_smoke_test();
  all.emplace_back("data.target_field", data.target_field, "column or key that holds its translation", OnResume::fixed)
      .decided_by_data()
      .automatic("found by its name (target, tgt, output, ...), or the second of two columns")
      .only_with(translations)
      .also({"target_column", "target_key"})
      .same_in_smoke_test();
  all.emplace_back("data.image_field", data.image_field,
                   "column or key that holds the path of an image, from the folder of its table or from data.images",
                   OnResume::fixed)
      .decided_by_data()
      .automatic("found by its name (image, image_path, file_name, ...)")
      .only_with(images)
      .also({"image_column", "image_key", "image_column_name"})
      .same_in_smoke_test();
  all.emplace_back("data.images", data.images,
                   "folder of the images: with data.texts, of those with the same names as the texts; otherwise, where "
                   "the paths of a table begin",
                   OnResume::may_change)
      .automatic("the folder of the table")
      .only_with(images)
      .also({"image_folder", "images_folder", "image_dir", "images_dir", "img_dir", "image_root"})
      .same_in_smoke_test();
  const Condition texts_of_images = with_texts_of_images(job);
  all.emplace_back("data.texts", data.texts,
                   "folder with a file of text for each image of data.images, of the same name: NAME.png and NAME.txt "
                   "(or .mmd, .md); in place of the table of data.train",
                   OnResume::may_change)
      .only_with(texts_of_images)
      .also({"text_folder", "texts_folder", "text_dir", "texts_dir", "mmd_dir"})
      .same_in_smoke_test();
  all.emplace_back(
         "data.split", data.split,
         "JSON file that says which names of data.texts are for training and which for evaluation, in its lists "
         "train_name_list and valid_name_list; test_name_list is for `brisk eval`",
         OnResume::may_change)
      .automatic("data.validation_fraction of all")
      .only_with(texts_of_images)
      .also({"split_file", "split_json", "split_json_file_path"})
      .same_in_smoke_test();
  all.emplace_back("data.broken_images", data.broken_images,
                   "what to do where images cannot be read: refuse them, naming some, or skip them with a warning",
                   OnResume::fixed)
      .one_of({"refuse", "skip"})
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back("data.image_cache", data.image_cache,
                   "memory for images that are decoded already, so that later epochs need not; changes speed, not the "
                   "result; 0: none",
                   OnResume::may_change)
      .at_least(0)
      .automatic(-1, "a quarter of the free memory")
      .in("MB")
      .only_with(images)
      .also({"image_cache_mb", "cache_images"})
      .smoke_test_at_most(256);
  all.emplace_back("data.too_long", data.too_long,
                   "pairs of which a text does not fit training.max_length: left out of training, or cut; evaluations "
                   "cut them",
                   OnResume::fixed)
      .one_of({"skip", "cut"})
      .same_as("truncate", "cut")
      .only_with(with_encoder_decoder_task(job))
      .same_in_smoke_test();
  all.emplace_back("data.document", data.document,
                   "what one document is in a .txt file: the whole file, a block between blank lines, or a line",
                   OnResume::fixed)
      .one_of({"auto", "file", "block", "line"})
      .same_as("paragraph", "block")
      .only_with(with_decoder(job, "its texts are the rows of a table, or the blocks or lines of a file"))
      .same_in_smoke_test();
  all.emplace_back(
         "data.tokenizer", data.tokenizer,
         "tokenizer to use: a tokenizer.json, a SentencePiece .model, GPT-2's or llama2.c's files, or a folder "
         "with one of them",
         OnResume::may_change)
      .automatic(
          "model.vocab_size tokens, trained on the training text: WordPiece for a bert or distilbert, otherwise "
          "byte-level BPE")
      .also({"tokenizer_path", "tokenizer_file", "tokenizer_name", ".tokenizer", "model.tokenizer"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("data.target_tokenizer", data.target_tokenizer,
                   "tokenizer of the translations, where they have another one than the texts", OnResume::may_change)
      .automatic("data.tokenizer")
      .only_with(translations)
      .same_in_smoke_test();
  all.emplace_back("data.separate_tokenizers", data.separate_tokenizers,
                   "train a vocabulary of the texts and another one of their translations, instead of one of both",
                   OnResume::fixed)
      .only_with(translations)
      .used_with(
          {"a vocabulary that is trained", [&job] { return job.data.tokenizer.empty() && job.model.from.empty(); }})
      .also({"separate_vocabularies"})
      .same_in_smoke_test();
  all.emplace_back(
         "data.tokenizer_kind", data.tokenizer_kind,
         "kind of the vocabulary that is trained: bpe, byte-level as GPT-2's, which gives every text back; or "
         "word-bpe, over the characters of words and of runs of marks, which leaves spaces out",
         OnResume::fixed)
      .one_of({"bpe", "word-bpe"})
      .same_as("byte-bpe", "bpe")
      .only_with(with_decoder(job, "its vocabulary is WordPiece, or RoBERTa's"))
      .used_with(with_own_bpe(job))
      .same_in_smoke_test();
  all.emplace_back(
         "data.lowercase", data.lowercase,
         "whether a WordPiece vocabulary that is trained is lower-case, without accents; false: capitals count",
         OnResume::fixed)
      .default_with(with_own_wordpiece(job), true)
      .must_with(
          with_own_bpe(job), [&data] { return !data.lowercase; }, "capitals, always")
      .used_with(with_own_wordpiece(job))
      .also({"do_lower_case", "lower_case", "do_lowercase"})
      .same_in_smoke_test();
  all.emplace_back("data.cache_dir", data.cache_dir, "folder where tokenized data is kept between runs",
                   OnResume::may_change)
      .automatic("$XDG_CACHE_HOME/brisk or ~/.cache/brisk; /tmp/brisk-cache-UID for a user without a home")
      .also({"cache"})
      .everywhere()
      .same_in_smoke_test();
}

}  // namespace brisk
