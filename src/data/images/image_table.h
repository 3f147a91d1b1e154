// Which images there are, and the text or the label of each.
//
//   // A table (CSV, TSV, JSON lines) with a column of image files, relative to the table's folder:
//   ImageTable table = open_image_table({.paths = {"captions.tsv"}});             // columns "image" and "text", by name
//   ImageTable table = open_image_table({.paths = {"kinds.csv"}, .labelled = true});         // "image" and "label"
//   // Two folders of files that are called the same, imgs/a.png and zh_mmd/a.mmd, and which of them are for what:
//   ImageTable table = open_image_folders({"imgs", "zh_mmd", "split.json"}, ImagePart::train, cache_directory);
//
//   ImageRows rows = open_image_rows(table, tokenizer.get(), cache_directory);    // tokenized once, on all cores
//   rows.examples.count();          // an ExampleSet: split_examples(), first(), subset(), label(), ... serve these rows, too
//   rows.image_path(3);             // of example 3
//
// In `examples` the first text of a row is the path of its image, a byte a token, and the second its text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/examples/examples.h"
#include "data/table/input_table.h"
#include "text/tokenizer.h"

namespace brisk {

struct ImageTableOptions {
  std::vector<std::string> paths;  // tables: files, folders, globs
  std::string image_field = "";    // "": found
  std::string text_field = "";     // "": found
  std::string label_field = "";    // "": found
  bool labelled = false;           // the images have labels, and no texts
  std::string image_folder = "";   // what relative paths are relative to; "": the table's folder
  bool of_job = true;              // these options are data.image_field, ... and not those of a call
};

struct ImageFolders {
  std::string images, texts;  // folders of files with the same names: a.png and a.mmd, a.md or a.txt
  std::string split;          // JSON with train_name_list, valid_name_list, test_name_list; "": none, all are one part
};
enum class ImagePart : uint8_t { all, train, validation, test };

struct ImageTable {
  InputTable table;    // a row's text is its image, its pair the text
  std::string folder;  // of the images with relative paths; "": the working directory
};

ImageTable open_image_table(const ImageTableOptions& options);

// Writes the texts as a table into `cache_directory`, where it is not there yet, and opens it.
ImageTable open_image_folders(const ImageFolders& folders, ImagePart part, const std::string& cache_directory);

// The usable rows of a table.
struct ImageRows {
  ExampleSet examples;
  std::string folder;

  std::string image_path(int64_t index) const { return image_path_of_row(examples.row_of(index)); }
  std::string image_path_of_row(int64_t row) const;  // of examples.data()
  std::vector<std::string> image_paths() const;  // of all rows of examples.data(), in their order: for an ImageStore
  ImageRows with(ExampleSet other) const { return {std::move(other), folder}; }
};

// `tokenizer`: of the texts; nullptr for images with labels alone. Those of training become numbers by `labels`, or are
// looked up in the labels that are given.
ImageRows open_image_rows(const ImageTable& table, const Tokenizer* tokenizer, const std::string& cache_directory,
                          const TokenizeProgress& progress = {});
ImageRows open_image_rows(const ImageTable& table, const LabelSet& labels, const std::string& cache_directory,
                          const TokenizeProgress& progress = {});

}  // namespace brisk
