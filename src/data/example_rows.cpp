#include "data/example_rows.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/rounding.h"
#include "base/terminal.h"
#include "data/token_cache_file.h"

namespace brisk {

namespace {

constexpr int64_t kRowsAlignment = 64;

struct RowsHeader {
  std::array<char, 8> magic = {'b', 'r', 'i', 's', 'k', 'r', 'o', '1'};
  uint64_t key = 0;
  int64_t examples = 0, row_bytes = 0, total_rows = 0;
  std::array<int64_t, 3> unused = {};
  bool operator==(const RowsHeader&) const = default;
};
static_assert(sizeof(RowsHeader) == kRowsAlignment);

int64_t place_of_rows(int64_t examples) {
  return round_up(static_cast<int64_t>(sizeof(RowsHeader)) + (examples + 1) * 8, kRowsAlignment);
}

std::string rows_path(const std::string& directory, const std::string& kind, uint64_t key) {
  return fmt::format("{}/{:016x}.{}", directory, key, kind);
}

class RowsFileWriter final : public ExampleRowsWriter {
 public:
  RowsFileWriter(const std::string& path, uint64_t key, const ExampleRowsShape& shape) : file_(path) {
    const RowsHeader header{
        .key = key, .examples = shape.examples, .row_bytes = shape.row_bytes, .total_rows = shape.total_rows()};
    file_.write(&header, sizeof(header));
    int64_t start = 0;
    file_.write(&start, sizeof(start));
    for (int64_t example = 0; example < shape.examples; ++example) {
      start += shape.rows_of(example);
      file_.write(&start, sizeof(start));
    }
    const std::array<char, kRowsAlignment> zeros{};
    file_.write(zeros.data(), place_of_rows(shape.examples) - file_.size());
    end_ = shape.file_bytes();
  }
  void append(std::span<const std::byte> rows) override {
    in_cache([&] { file_.write(rows.data(), std::ssize(rows)); });
  }
  void commit() {
    BRISK_CHECK(file_.size() == end_, "{} bytes of {} were made", file_.size(), end_);
    file_.commit();
  }

 private:
  AtomicFile file_;
  int64_t end_ = 0;
};

}  // namespace

int64_t ExampleRowsShape::total_rows() const {
  int64_t total = 0;
  for (int64_t example = 0; example < examples; ++example) total += rows_of(example);
  return total;
}

int64_t ExampleRowsShape::file_bytes() const { return place_of_rows(examples) + total_rows() * row_bytes; }

std::span<const std::byte> ExampleRows::of(int64_t example) const {
  const int64_t begin = starts_[example], end = starts_[example + 1];
  return {rows_ + begin * row_bytes_, static_cast<size_t>((end - begin) * row_bytes_)};
}

bool ExampleRows::open(uint64_t key, const ExampleRowsShape& shape) {
  if (!file_exists(path_)) return false;
  file_ = MappedFile(path_);
  const RowsHeader expected{
      .key = key, .examples = shape.examples, .row_bytes = shape.row_bytes, .total_rows = shape.total_rows()};
  RowsHeader found;
  if (file_.size() != shape.file_bytes()) return false;
  std::memcpy(&found, file_.data(), sizeof(found));
  if (!(found == expected)) return false;
  examples_ = shape.examples;
  row_bytes_ = shape.row_bytes;
  starts_ = reinterpret_cast<const int64_t*>(file_.data() + sizeof(RowsHeader));
  rows_ = file_.data() + place_of_rows(examples_);
  int64_t start = 0;  // a place outside of the file would be read from there
  for (int64_t example = 0; example < examples_; start += shape.rows_of(example++)) {
    if (starts_[example] != start) return false;
  }
  return starts_[examples_] == start;
}

bool has_example_rows(const std::string& directory, const std::string& kind, uint64_t key) {
  return file_exists(rows_path(directory, kind, key));
}

std::shared_ptr<const ExampleRows> open_or_make_example_rows(const std::string& directory, const std::string& kind,
                                                             uint64_t key, const ExampleRowsShape& shape,
                                                             const std::function<void(ExampleRowsWriter&)>& make) {
  const auto rows = std::make_shared<ExampleRows>();
  rows->path_ = rows_path(directory, kind, key);
  rows->reused_ = rows->open(key, shape);
  if (rows->reused_) return rows;
  in_cache([&] { make_directories(directory); });
  const FileLock lock = in_cache([&] {
    return FileLock(rows->path_ + ".lock", [&] { say("another brisk is making {}; waiting for it", rows->path_); });
  });
  rows->reused_ = rows->open(key, shape);  // it may be there by now
  if (rows->reused_) return rows;
  const auto writer = in_cache([&] { return std::make_unique<RowsFileWriter>(rows->path_, key, shape); });
  make(*writer);
  in_cache([&] { writer->commit(); });
  if (!rows->open(key, shape)) {
    user_error("{}: not as it was written; check the disk or set data.cache_dir to another", rows->path_);
  }
  return rows;
}

}  // namespace brisk
