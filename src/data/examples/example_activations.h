// What a model computed for the examples of a table, stored in a file next to their tokens: one or more matrix rows for
// each row of the table.
//
//   const ExampleActivationsShape shape{.examples = data.rows(), .row_bytes = 4 * classes, .rows_of = one_each};
//   const auto logits = open_or_make_example_activations(
//       directory, "logits", key, shape,
//       [&](ExampleActivationsWriter& writer) { writer.append(bytes); });   // row after row, example after example
//   std::span<const std::byte> row = logits->of(17);                        // memory-mapped
//
// The key covers everything that determines the contents. The file is made once, under a lock and a temporary name, and
// renamed: a killed process leaves nothing behind. A file of another length, shape or checksum is made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/files/files.h"

namespace brisk {

struct ExampleActivationsShape {
  int64_t examples = 0;   // rows of the table
  int64_t row_bytes = 0;  // of the matrix
  std::function<int64_t(int64_t example)> rows_of;

  int64_t total_rows() const;
  int64_t file_bytes() const;
};

class ExampleActivationsWriter {
 public:
  virtual ~ExampleActivationsWriter() = default;
  virtual void append(std::span<const std::byte> rows) = 0;
};

// Any number of threads may read.
class ExampleActivations {
 public:
  std::span<const std::byte> of(int64_t example) const;
  const std::string& path() const { return path_; }
  bool reused() const { return reused_; }  // the file existed

 private:
  friend std::shared_ptr<const ExampleActivations> open_or_make_example_activations(
      const std::string&, const std::string&, uint64_t, const ExampleActivationsShape&,
      const std::function<void(ExampleActivationsWriter&)>&);
  bool open(uint64_t key, const ExampleActivationsShape& shape, const std::string& directory);

  std::string path_;
  MappedFile file_;
  int64_t examples_ = 0, row_bytes_ = 0;
  const int64_t* starts_ = nullptr;  // [examples + 1], in rows
  const std::byte* rows_ = nullptr;
  bool reused_ = false;
};

// `kind` is the extension of the file. Creates `directory` if missing. `make` must append all rows.
std::shared_ptr<const ExampleActivations> open_or_make_example_activations(
    const std::string& directory, const std::string& kind, uint64_t key, const ExampleActivationsShape& shape,
    const std::function<void(ExampleActivationsWriter&)>& make);

// Whether the file exists, judging by its size.
bool has_example_activations(const std::string& directory, const std::string& kind, uint64_t key,
                             const ExampleActivationsShape& shape);

}  // namespace brisk
