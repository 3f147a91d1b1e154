// The safetensors format: 8 bytes of header length, a JSON header (name -> dtype, shape, offsets), the tensors' bytes.
//
//   SafetensorsWriter writer("model.safetensors");
//   writer.add_metadata("format", "pt");
//   writer.add("head.weight", SafetensorsType::f32, {V, D}, host);                    // host memory, not copied
//   writer.add("norm.gain", SafetensorsType::f32, {1, D}, [&](int64_t offset, std::span<std::byte> block) {
//     device.copy_out(block.data(), static_cast<const std::byte*>(gain) + offset, std::ssize(block));
//   });
//   writer.finish();                             // writes a temporary file, flushes, renames; UserError if that fails
//
//   const SafetensorsFile file("model.safetensors");   // memory-mapped; UserError unless every byte is accounted for
//   const SafetensorsEntry* head = file.find("head.weight");
//   device.copy_in(weight, head->data, head->bytes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/files.h"

namespace brisk {

enum class SafetensorsType : uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };
int64_t size_of(SafetensorsType type);
std::string_view safetensors_type_name(SafetensorsType type);  // "F32", as it stands in a file

struct SafetensorsEntry {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<int64_t> shape;  // empty: a single number
  const void* data = nullptr;  // in the file's memory; a foreign file may place it at any alignment
  int64_t bytes = 0;

  int64_t count() const;  // elements
};

class SafetensorsWriter {
 public:
  // Writes bytes [offset, offset + block.size()) of a tensor into `block`.
  using Fill = std::function<void(int64_t offset, std::span<std::byte> block)>;

  explicit SafetensorsWriter(std::string path) : path_(std::move(path)) {}

  void add_metadata(std::string key, std::string value);
  void add(std::string name, SafetensorsType type, std::vector<int64_t> shape, const void* host);
  void add(std::string name, SafetensorsType type, std::vector<int64_t> shape, Fill fill);

  // Sources given to add() are read here, 4 MiB at a time. Returns the bytes of the file; `written` sees them pass by,
  // in order.
  int64_t finish(const std::function<void(std::span<const std::byte>)>& written = {});

  // What stands before the tensors, which follow each other without a gap in the order of add(): for whoever writes the file
  // in another way.
  std::string head() const;

 private:
  struct Item {
    std::string name;
    SafetensorsType type;
    std::vector<int64_t> shape;
    int64_t bytes;
    const void* host;
    Fill fill;
  };
  std::string header() const;

  std::string path_;
  std::map<std::string, std::string> metadata_;
  std::vector<Item> items_;
};

class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);
  // The same from the content of a file, which has to outlive this; `name` is named in errors.
  SafetensorsFile(std::string name, std::span<const std::byte> content);

  const std::string& path() const { return path_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  // in the order of their bytes
  const SafetensorsEntry* find(std::string_view name) const;                 // nullptr if there is none
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Before reading all of it: the kernel fetches ahead.
  void advise_sequential() const { file_.advise_sequential(); }

 private:
  void read(std::span<const std::byte> content);

  std::string path_;
  MappedFile file_;  // empty if the content was given
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace brisk
