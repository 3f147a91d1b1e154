#include "data/examples/example_activations.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "base/files/file_lock.h"
#include "base/rounding.h"
#include "base/terminal/terminal.h"
#include "data/token_store/file_checksum.h"
#include "data/token_store/token_cache_file.h"

namespace brisk {

namespace {

constexpr int64_t kRowsAlignment = 64;
constexpr int64_t kChecksumBytes = 8;  // at the end, of everything before

struct RowsHeader {
  std::array<char, 8> magic = {'b', 'r', 'i', 's', 'k', 'r', 'o', '2'};
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

class RowsFileWriter final : public ExampleActivationsWriter {
 public:
  RowsFileWriter(const std::string& path, uint64_t key, const ExampleActivationsShape& shape) : file_(path) {
    const RowsHeader header{
        .key = key, .examples = shape.examples, .row_bytes = shape.row_bytes, .total_rows = shape.total_rows()};
    put(&header, sizeof(header));
    int64_t start = 0;
    put(&start, sizeof(start));
    for (int64_t example = 0; example < shape.examples; ++example) {
      start += shape.rows_of(example);
      put(&start, sizeof(start));
    }
    const std::array<char, kRowsAlignment> zeros{};
    put(zeros.data(), place_of_rows(shape.examples) - file_.size());
    end_ = shape.file_bytes() - kChecksumBytes;
  }
  void append(std::span<const std::byte> rows) override {
    in_cache([&] { put(rows.data(), std::ssize(rows)); });
  }
  void commit() {
    BRISK_CHECK(file_.size() == end_, "{} bytes of {} were made", file_.size(), end_);
    const uint64_t sum = checksum_.sum();
    file_.write(&sum, sizeof(sum));
    file_.commit();
  }

 private:
  void put(const void* data, int64_t size) {
    file_.write(data, size);
    checksum_.add({static_cast<const std::byte*>(data), static_cast<size_t>(size)});
  }

  AtomicFile file_;
  FileChecksum checksum_;
  int64_t end_ = 0;
};

}  // namespace

int64_t ExampleActivationsShape::total_rows() const {
  int64_t total = 0;
  for (int64_t example = 0; example < examples; ++example) total += rows_of(example);
  return total;
}

int64_t ExampleActivationsShape::file_bytes() const {
  return place_of_rows(examples) + total_rows() * row_bytes + kChecksumBytes;
}

std::span<const std::byte> ExampleActivations::of(int64_t example) const {
  file_.check_size();
  const int64_t begin = starts_[example], end = starts_[example + 1];
  return {rows_ + begin * row_bytes_, static_cast<size_t>((end - begin) * row_bytes_)};
}

bool ExampleActivations::open(uint64_t key, const ExampleActivationsShape& shape, const std::string& directory) {
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
  if (starts_[examples_] != start) return false;
  uint64_t sum = 0;
  std::memcpy(&sum, file_.data() + file_.size() - kChecksumBytes, sizeof(sum));
  return has_checksum(path_, file_.size() - kChecksumBytes, sum, directory);
}

bool has_example_activations(const std::string& directory, const std::string& kind, uint64_t key,
                             const ExampleActivationsShape& shape) {
  const std::string path = rows_path(directory, kind, key);
  return file_exists(path) && file_size(path) == shape.file_bytes();
}

std::shared_ptr<const ExampleActivations> open_or_make_example_activations(
    const std::string& directory, const std::string& kind, uint64_t key, const ExampleActivationsShape& shape,
    const std::function<void(ExampleActivationsWriter&)>& make) {
  const auto rows = std::make_shared<ExampleActivations>();
  rows->path_ = rows_path(directory, kind, key);
  rows->reused_ = rows->open(key, shape, directory);
  if (rows->reused_) return rows;
  if (file_exists(rows->path_)) say("{}: the file is cut short or damaged; making it again", rows->path_);
  in_cache([&] { make_directories(directory); });
  const FileLock lock = in_cache([&] {
    return FileLock(rows->path_ + ".lock", [&] { say("another brisk is making {}; waiting for it", rows->path_); });
  });
  rows->reused_ = rows->open(key, shape, directory);  // it may be there by now
  if (rows->reused_) return rows;
  const auto writer = in_cache([&] { return std::make_unique<RowsFileWriter>(rows->path_, key, shape); });
  make(*writer);
  in_cache([&] { writer->commit(); });
  if (!rows->open(key, shape, directory)) {
    user_error(
        "{}: its contents differ from what was written; check the disk, or set data.cache_dir to a folder on another one",
        rows->path_);
  }
  return rows;
}

}  // namespace brisk
