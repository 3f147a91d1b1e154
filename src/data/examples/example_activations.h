// What a model made of the examples of a table, kept in a file beside their tokens: some rows of a matrix for each row
// of the table.
//
//   const ExampleRowsShape shape{.examples = data.rows(), .row_bytes = 4 * classes, .rows_of = [](int64_t) { return 1;
//   }}; const auto logits = open_or_make_example_rows(directory, "logits", key, shape, [&](ExampleRowsWriter& writer) {
//     ...  writer.append(bytes);        // row after row, example after example
//   });
//   std::span<const std::byte> of_17 = logits->of(17);   // memory-mapped
//
// The key says everything that decides what is in the file. It is made once under a lock, to the side, and renamed: a
// killed process leaves nothing. A file of another length, shape or checksum is made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/files/files.h"

namespace brisk {

struct ExampleRowsShape {
  int64_t examples = 0;   // rows of the table
  int64_t row_bytes = 0;  // of the matrix
  std::function<int64_t(int64_t example)> rows_of;

  int64_t total_rows() const;
  int64_t file_bytes() const;
};

class ExampleRowsWriter {
 public:
  virtual ~ExampleRowsWriter() = default;
  virtual void append(std::span<const std::byte> rows) = 0;
};

// Any number of threads may read.
class ExampleRows {
 public:
  std::span<const std::byte> of(int64_t example) const;
  const std::string& path() const { return path_; }
  bool reused() const { return reused_; }  // it was there

 private:
  friend std::shared_ptr<const ExampleRows> open_or_make_example_rows(const std::string&, const std::string&, uint64_t,
                                                                      const ExampleRowsShape&,
                                                                      const std::function<void(ExampleRowsWriter&)>&);
  bool open(uint64_t key, const ExampleRowsShape& shape, const std::string& directory);

  std::string path_;
  MappedFile file_;
  int64_t examples_ = 0, row_bytes_ = 0;
  const int64_t* starts_ = nullptr;  // [examples + 1], in rows
  const std::byte* rows_ = nullptr;
  bool reused_ = false;
};

// `kind` is how the file's name ends. Makes `directory` where it is missing. `make` must append all rows.
std::shared_ptr<const ExampleRows> open_or_make_example_rows(const std::string& directory, const std::string& kind,
                                                             uint64_t key, const ExampleRowsShape& shape,
                                                             const std::function<void(ExampleRowsWriter&)>& make);

// Is it there already, for all that its size says?
bool has_example_rows(const std::string& directory, const std::string& kind, uint64_t key,
                      const ExampleRowsShape& shape);

}  // namespace brisk
