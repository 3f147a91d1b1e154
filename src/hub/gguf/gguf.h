// GGUF, the file format of llama.cpp: metadata (key and value), the tensors' names, shapes, types, and their bytes.
//
//   GgufWriter writer("model.gguf");
//   writer.set("general.architecture", "llama");
//   writer.set("llama.block_count", uint32_t{5});
//   writer.set("tokenizer.ggml.tokens", tokens);                              // arrays of strings, floats, integers
//   writer.add("token_embd.weight", GgufType::f16, {V, D}, fill);             // as in hub/formats/safetensors.h
//   writer.finish();                                                          // writes a temporary file, then renames it
//
//   const GgufFile file("model.gguf");         // memory-mapped; UserError if a length or an offset is outside the file
//   const GgufValue* layers = file.value("llama.block_count");
//   const GgufTensor* table = file.find("token_embd.weight");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/files/files.h"

namespace brisk {

// The types brisk reads; files hold many others (blocks of quantised weights), which are listed by number alone.
enum class GgufType : uint32_t { f32 = 0, f16 = 1, bf16 = 30 };
std::string gguf_type_name(uint32_t type);  // "F16"; "type 12" for one that brisk does not read

// Integers of every width are kept as int64_t, uint64_t where that is too small; f32 and f64 as double.
using GgufValue = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
                               std::vector<uint64_t>, std::vector<double>, std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  uint32_t type = 0;
  std::vector<int64_t> shape;  // rows first, as everywhere in brisk; the file has them the other way round
  const void* data = nullptr;  // in the file's memory
  int64_t bytes = 0;           // 0 for a type that brisk does not read
  bool is_readable() const { return bytes > 0; }
};

class GgufFile {
 public:
  explicit GgufFile(std::string path);
  // The same from the content of a file, which has to outlive this; `name` is named in errors.
  GgufFile(std::string name, std::span<const std::byte> content);

  const std::string& path() const { return path_; }
  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  const GgufValue* value(std::string_view key) const;  // nullptr if there is none
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find(std::string_view name) const;  // nullptr if there is none

 private:
  void read(std::span<const std::byte> content);

  std::string path_;
  MappedFile file_;  // empty if the content was given
  std::map<std::string, GgufValue, std::less<>> values_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Whether the file begins as a GGUF file does.
bool is_gguf_file(const std::string& path);

class GgufWriter {
 public:
  using Fill = std::function<void(int64_t offset, std::span<std::byte> block)>;

  explicit GgufWriter(std::string path) : path_(std::move(path)) {}

  void set(const std::string& key, uint32_t value);
  void set(const std::string& key, float value);
  void set(const std::string& key, bool value);
  void set(const std::string& key, const std::string& value);
  void set(const std::string& key, const char* value) { set(key, std::string(value)); }
  void set(const std::string& key, const std::vector<std::string>& values);
  void set(const std::string& key, const std::vector<float>& values);
  void set(const std::string& key, const std::vector<int32_t>& values);

  void add(const std::string& name, GgufType type, std::vector<int64_t> shape, Fill fill);

  // Sources given to add() are read here, 4 MiB at a time. Returns the bytes of the file.
  int64_t finish();

 private:
  struct Item {
    std::string name;
    GgufType type;
    std::vector<int64_t> shape;
    int64_t bytes;
    Fill fill;
  };
  void begin(const std::string& key, uint32_t kind);

  std::string path_;
  std::string metadata_;  // the pairs, as the file has them
  uint64_t pairs_ = 0;
  std::vector<Item> items_;
};

}  // namespace brisk
