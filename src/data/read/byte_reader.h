// Reads the bytes of a text file in order, decompressing it if needed, in constant memory.
//
//   std::unique_ptr<ByteReader> reader = open_byte_reader("corpus.jsonl.zst");
//   while (size_t count = reader->read(buffer, sizeof(buffer))) ...
//
// A truncated or damaged file is a UserError with the file, the position, and how much text came before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace brisk {

class ByteReader {
 public:
  virtual ~ByteReader() = default;

  // Reads at most `size` bytes of text, as many as are available; 0 only at the end.
  virtual size_t read(char* out, size_t size) = 0;

  // Skips this many bytes of text; UserError if the file has fewer.
  virtual void skip(int64_t bytes);

  // Bytes of the file itself that were read, for progress.
  virtual int64_t disk_position() const = 0;
};

std::unique_ptr<ByteReader> open_byte_reader(const std::string& path);

// Reads until `buffer` has `size` bytes or more, or the text ends; returns whether it ended.
bool fill_buffer(ByteReader& reader, size_t size, std::string& buffer);

enum class Packing : uint8_t { kNone, kGzip, kZstd };

Packing packing_of(const std::string& path);         // by its extension: .gz, .zst
std::string unpacked_name(const std::string& path);  // "a.jsonl.gz" is "a.jsonl"

// Of the two kinds of packing. UserError if this brisk was built without the library.
std::unique_ptr<ByteReader> open_gzip_reader(const std::string& path);
std::unique_ptr<ByteReader> open_zstd_reader(const std::string& path);

}  // namespace brisk
