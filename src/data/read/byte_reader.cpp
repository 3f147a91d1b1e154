#include "data/read/byte_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "data/read/plain_reader.h"
#include "data/read/source_files.h"

namespace brisk {

Packing packing_of(const std::string& path) {
  const std::string extension = lowercase_extension(path);
  if (extension == ".gz") return Packing::kGzip;
  return extension == ".zst" ? Packing::kZstd : Packing::kNone;
}

std::string unpacked_name(const std::string& path) {
  return packing_of(path) == Packing::kNone ? path : path.substr(0, path.rfind('.'));
}

std::unique_ptr<ByteReader> open_byte_reader(const std::string& path) {
  switch (packing_of(path)) {
    case Packing::kGzip: return open_gzip_reader(path);
    case Packing::kZstd: return open_zstd_reader(path);
    case Packing::kNone: break;
  }
  return std::make_unique<PlainReader>(path);
}

bool fill_buffer(ByteReader& reader, size_t size, std::string& buffer) {
  constexpr size_t kReadBytes = size_t{128} << 10;
  while (buffer.size() < size) {
    const size_t before = buffer.size();
    buffer.resize(std::max(size, before + kReadBytes));
    const size_t count = reader.read(buffer.data() + before, buffer.size() - before);
    buffer.resize(before + count);
    if (count == 0) return true;
  }
  return false;
}

void ByteReader::skip(int64_t bytes) {
  std::vector<char> dropped(size_t{1} << 16);
  while (bytes > 0) {
    const size_t count = read(dropped.data(), static_cast<size_t>(std::min<int64_t>(bytes, std::ssize(dropped))));
    if (count == 0) user_error("the text is {} bytes shorter than it was a moment ago; is it being written to?", bytes);
    bytes -= static_cast<int64_t>(count);
  }
}

PlainReader::PlainReader(std::string path) : path_(std::move(path)) {
  file_descriptor_ = open_file_or_inherited_pipe(path_);
  is_pipe_ = ::lseek(file_descriptor_, 0, SEEK_CUR) < 0;
  ::posix_fadvise(file_descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

PlainReader::~PlainReader() { ::close(file_descriptor_); }

size_t PlainReader::read(char* out, size_t size) {
  for (;;) {
    const ssize_t count =
        is_pipe_ ? ::read(file_descriptor_, out, size) : ::pread(file_descriptor_, out, size, position_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) user_error("{}: cannot read it: {}", path_, explain_errno(errno));
    position_ += count;
    return static_cast<size_t>(count);
  }
}

void PlainReader::skip(int64_t bytes) {
  if (is_pipe_) return ByteReader::skip(bytes);
  position_ += bytes;
}

// Text packs to a third, logs to a fiftieth; what unpacks to five hundred times its size would fill the disk with tokens of
// one repeated character.
void PackedInput::check_expansion(int64_t text_bytes) const {
  constexpr int64_t kMostExpansion = 500, kAnyway = int64_t{64} << 20;
  if (text_bytes <= kAnyway || text_bytes / kMostExpansion <= used()) return;
  user_error(
      "{}: its first {} bytes unpack to {}, more than {} times as much, which no text does; if it is meant, unpack it "
      "and give the file itself",
      path(), used(), format_bytes(static_cast<double>(text_bytes)), kMostExpansion);
}

}  // namespace brisk
