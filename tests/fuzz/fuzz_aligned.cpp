// Two aligned files: the first line of the input says how many bytes of the rest are the first one.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "data/read/aligned_reader.h"
#include "data/table/input_table.h"
#include "fuzz/fuzz_input.h"

using namespace brisk;

namespace {

// In memory, with a name.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(::memfd_create("fuzz", 0)) {
    fuzz::require(descriptor_ >= 0, "a file in memory");
    for (size_t done = 0; done < content.size();) {
      const ssize_t count = ::write(descriptor_, content.data() + done, content.size() - done);
      fuzz::require(count > 0, "it takes the content");
      done += static_cast<size_t>(count);
    }
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

std::string merged(const std::string& source, const std::string& target, size_t step) {
  AlignedReader reader(source, target);
  std::string all, piece(step, '\0');
  for (size_t count = 0; (count = reader.read(piece.data(), piece.size())) > 0;) all.append(piece, 0, count);
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  const size_t cut = std::min(content.find('\n'), content.size());
  const std::string_view text = content.substr(std::min(cut + 1, content.size()));
  size_t bytes = text.size() / 2;
  std::from_chars(content.data(), content.data() + cut, bytes);
  bytes = std::min(bytes, text.size());
  const MemoryFile source(text.substr(0, bytes)), target(text.substr(bytes));
  fuzz::unless_refused([&] {
    const std::string all = merged(source.path(), target.path(), size_t{1} << 16);
    fuzz::require(merged(source.path(), target.path(), 3) == all, "read in small pieces it is the same text");
    TableFile file;
    file.kind = TableKind::kAligned;
    size_t total = 0;
    int64_t rows = 0;
    for_each_row(file, all, 0, 1, [&](const TableRow& row) {
      fuzz::require(row.line == ++rows, "a row for each line");
      total += row.text.size() + row.pair.size() + 2;
    });
    fuzz::require(total == all.size(), "every byte is in a row");
  });
  return 0;
}
