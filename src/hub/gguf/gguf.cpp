#include "hub/gguf/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/rounding.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

static_assert(std::endian::native == std::endian::little, "brisk reads little-endian GGUF files");

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kVersion = 3;  // 2 differs in nothing brisk reads
constexpr int64_t kAlignment = 32;
constexpr int64_t kMostDimensions = 4;
constexpr int64_t kCopyBytes = int64_t{4} << 20;  // copied at a time
// Longer arrays are kept for the tokenizer alone, whose vocabulary has no more than so many entries; a number of one
// byte takes eight in memory.
constexpr uint64_t kLongArray = 65536, kLongestArray = uint64_t{1} << 24;
constexpr std::string_view kTokenizerKeys = "tokenizer.ggml.";

// Kinds of metadata values, as the file numbers them.
enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

int64_t bytes_each(uint32_t type) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::f32: return 4;
    case GgufType::f16:
    case GgufType::bf16: return 2;
  }
  return 0;
}

// Walks through the file; nothing is taken on trust, since any byte may be damaged.
class GgufReader {
 public:
  GgufReader(const std::string& path, std::span<const std::byte> content) : path_(path), content_(content) {}

  void read(std::map<std::string, GgufValue, std::less<>>& values, std::vector<GgufTensor>& tensors) {
    if (std::ssize(content_) < 24 || std::memcmp(content_.data(), kMagic.data(), kMagic.size()) != 0) {
      user_error("{}: not a GGUF file: found {} bytes that do not begin with \"GGUF\"", path_, std::ssize(content_));
    }
    at_ = 4;
    const auto version = number<uint32_t>();
    if (version != 2 && version != kVersion) {
      user_error("{}: GGUF version {}, expected 2 or {}; convert the model again with a current llama.cpp", path_,
                 version, kVersion);
    }
    const auto tensor_count = number<uint64_t>(), pair_count = number<uint64_t>();
    for (uint64_t i = 0; i < pair_count; ++i) {
      std::string key = string("a key");
      key_ = key;
      GgufValue read = value(number<uint32_t>());
      if (!values.emplace(std::move(key), std::move(read)).second) fail("the key '{}' appears twice", key_);
    }
    key_.clear();
    const int64_t alignment = read_alignment(values);
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(tensor(offsets));
    place(round_up(at_, alignment), alignment, offsets, tensors);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    user_error("{}: incomplete or damaged GGUF file: {}; fetch or convert it again", path_,
               format_message(format, std::forward<Args>(args)...));
  }

  // Checks that so many bytes are left, and steps over them.
  const std::byte* take(uint64_t bytes, const char* of) {
    const uint64_t left = static_cast<uint64_t>(std::ssize(content_) - at_);
    if (bytes > left) {
      fail("{} at byte {}{} should have {} bytes, but {} are left", of, at_,
           key_.empty() ? "" : fmt::format(" (of '{}')", key_), bytes, left);
    }
    const std::byte* data = content_.data() + at_;
    at_ += static_cast<int64_t>(bytes);
    return data;
  }

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T), "a number"), sizeof(T));
    return value;
  }

  std::string string(const char* of) {
    const auto length = number<uint64_t>();
    return {reinterpret_cast<const char*>(take(length, of)), static_cast<size_t>(length)};
  }

  bool boolean() {
    const auto byte = number<uint8_t>();
    if (byte > 1) fail("'{}' is a boolean with the value {}", key_, byte);
    return byte == 1;
  }

  GgufValue value(uint32_t kind) {
    switch (kind) {
      case kU8: return int64_t{number<uint8_t>()};
      case kI8: return int64_t{number<int8_t>()};
      case kU16: return int64_t{number<uint16_t>()};
      case kI16: return int64_t{number<int16_t>()};
      case kU32: return int64_t{number<uint32_t>()};
      case kI32: return int64_t{number<int32_t>()};
      case kI64: return number<int64_t>();
      case kU64: return number<uint64_t>();
      case kF32: return double{number<float>()};
      case kF64: return number<double>();
      case kBool: return boolean();
      case kString: return string("a string");
      case kArray: return array();
      default: fail("'{}' has a value of kind {}, expected 0 to {}", key_, kind, static_cast<uint32_t>(kF64));
    }
  }

  // Whether an array of so many is kept; one that is not is read over.
  bool is_kept(uint64_t count) const {
    if (count <= kLongArray) return true;
    if (!std::string_view(key_).starts_with(kTokenizerKeys)) return false;
    if (count > kLongestArray) fail("'{}' has {} values, expected at most {}", printable(key_), count, kLongestArray);
    return true;
  }

  template <typename Stored, typename Kept>
  std::vector<Kept> numbers(uint64_t count) {
    if (count > content_.size() / sizeof(Stored)) take(UINT64_MAX, "an array");
    const std::byte* data = take(count * sizeof(Stored), "an array");
    if (!is_kept(count)) return {};
    std::vector<Kept> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      Stored stored;
      std::memcpy(&stored, data + i * sizeof(Stored), sizeof(Stored));
      values[i] = static_cast<Kept>(stored);
    }
    return values;
  }

  GgufValue array() {
    const auto kind = number<uint32_t>();
    const auto count = number<uint64_t>();
    switch (kind) {
      case kU8: return numbers<uint8_t, int64_t>(count);
      case kI8: return numbers<int8_t, int64_t>(count);
      case kU16: return numbers<uint16_t, int64_t>(count);
      case kI16: return numbers<int16_t, int64_t>(count);
      case kU32: return numbers<uint32_t, int64_t>(count);
      case kI32: return numbers<int32_t, int64_t>(count);
      case kI64: return numbers<int64_t, int64_t>(count);
      case kU64: return numbers<uint64_t, uint64_t>(count);
      case kF32: return numbers<float, double>(count);
      case kF64: return numbers<double, double>(count);
      case kBool: {
        const bool kept = is_kept(count);
        std::vector<bool> values;
        for (uint64_t i = 0; i < count; ++i) {
          const bool value = boolean();
          if (kept) values.push_back(value);
        }
        return values;
      }
      case kString: {
        const bool kept = is_kept(count);
        std::vector<std::string> values;
        for (uint64_t i = 0; i < count; ++i) {
          if (kept) {
            values.push_back(string("a string"));
          } else {
            take(number<uint64_t>(), "a string");
          }
        }
        return values;
      }
      default: fail("'{}' is an array of kind {}, which brisk does not read", key_, kind);
    }
  }

  int64_t read_alignment(const std::map<std::string, GgufValue, std::less<>>& values) const {
    const auto found = values.find("general.alignment");
    if (found == values.end()) return kAlignment;
    const int64_t* alignment = std::get_if<int64_t>(&found->second);
    if (alignment == nullptr || *alignment < 1 || *alignment > 65536 || *alignment % 8 != 0) {
      fail("general.alignment is not a multiple of 8 from 8 to 65536");
    }
    return *alignment;
  }

  GgufTensor tensor(std::vector<uint64_t>& offsets) {
    GgufTensor tensor;
    tensor.name = string("a tensor's name");
    const auto dimensions = number<uint32_t>();
    if (dimensions > kMostDimensions)
      fail("'{}' has {} dimensions, expected at most {}", tensor.name, dimensions, kMostDimensions);
    for (uint32_t d = 0; d < dimensions; ++d) {
      const auto length = number<uint64_t>();
      if (length > static_cast<uint64_t>(INT64_MAX)) fail("'{}' has a dimension of {}", tensor.name, length);
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(length));
    }
    tensor.type = number<uint32_t>();
    offsets.push_back(number<uint64_t>());
    return tensor;
  }

  void place(int64_t data_begin, int64_t alignment, const std::vector<uint64_t>& offsets,
             std::vector<GgufTensor>& tensors) const {
    data_begin = std::min(data_begin, std::ssize(content_));
    const int64_t data_bytes = std::ssize(content_) - data_begin;
    for (size_t i = 0; i < tensors.size(); ++i) {
      GgufTensor& tensor = tensors[i];
      if (offsets[i] > static_cast<uint64_t>(data_bytes) || offsets[i] % static_cast<uint64_t>(alignment) != 0) {
        fail("'{}' begins at byte {} of the tensors, of which there are {}; expected a multiple of {}", tensor.name,
             offsets[i], data_bytes, alignment);
      }
      tensor.data = content_.data() + data_begin + offsets[i];
      if (bytes_each(tensor.type) == 0) continue;
      int64_t bytes = bytes_each(tensor.type);
      bool overflows = false;
      for (const int64_t length : tensor.shape) overflows = overflows || __builtin_mul_overflow(bytes, length, &bytes);
      if (overflows || bytes > data_bytes - static_cast<int64_t>(offsets[i])) {
        fail("'{}' ([{}] of {}) reaches past the end of the file", tensor.name, fmt::join(tensor.shape, ", "),
             gguf_type_name(tensor.type));
      }
      tensor.bytes = bytes;
    }
    check_every_byte_is_used(data_begin, alignment, tensors);
  }

  // Tensors lie one behind the other with nothing but padding between them, as llama.cpp demands. Where they do not, an
  // offset, a shape or a type is not the one that was written.
  void check_every_byte_is_used(int64_t data_begin, int64_t alignment, const std::vector<GgufTensor>& tensors) const {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : tensors) {
      if (bytes_each(tensor.type) == 0) return;  // how long such a tensor is, brisk does not know
      order.push_back(&tensor);
    }
    const auto begin_of = [&](const GgufTensor& tensor) {
      return static_cast<const std::byte*>(tensor.data) - content_.data() - data_begin;
    };
    std::ranges::sort(order, [&](const GgufTensor* a, const GgufTensor* b) {
      return std::pair(a->data, a->bytes) < std::pair(b->data, b->bytes);
    });
    int64_t used = 0;
    std::string before = "the metadata";
    for (const GgufTensor* tensor : order) {
      const int64_t begin = begin_of(*tensor);
      if (begin != round_up(used, alignment)) {
        fail("'{}' ([{}] of {}) begins at byte {} of the tensors, but {} ends at {}: they {}", printable(tensor->name),
             fmt::join(tensor->shape, ", "), gguf_type_name(tensor->type), begin, before, used,
             begin < used ? "overlap" : "leave a gap");
      }
      used = begin + tensor->bytes;
      before = fmt::format("'{}' ([{}] of {})", printable(tensor->name), fmt::join(tensor->shape, ", "),
                           gguf_type_name(tensor->type));
    }
    const int64_t data_bytes = std::ssize(content_) - data_begin;
    if (data_bytes > round_up(used, alignment)) {
      fail("the tensors have {} bytes, of which {} belong to none of them", data_bytes, data_bytes - used);
    }
  }

  const std::string& path_;
  std::span<const std::byte> content_;
  int64_t at_ = 0;
  std::string key_;  // whose value is being read, for messages
};

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void append_string(std::string& out, const std::string& text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

}  // namespace

std::string gguf_type_name(uint32_t type) {
  switch (static_cast<GgufType>(type)) {
    case GgufType::f32: return "F32";
    case GgufType::f16: return "F16";
    case GgufType::bf16: return "BF16";
  }
  return fmt::format("type {}", type);
}

GgufFile::GgufFile(std::string path) : path_(std::move(path)), file_(path_) { read(file_.bytes()); }

GgufFile::GgufFile(std::string name, std::span<const std::byte> content) : path_(std::move(name)) { read(content); }

void GgufFile::read(std::span<const std::byte> content) {
  GgufReader(path_, content).read(values_, tensors_);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!index_.emplace(tensors_[i].name, i).second) {
      user_error("{}: incomplete or damaged GGUF file: it has the tensor '{}' twice; fetch or convert it again", path_,
                 tensors_[i].name);
    }
  }
}

const GgufValue* GgufFile::value(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

bool is_gguf_file(const std::string& path) {
  if (!file_exists(path) || is_directory(path) || file_size(path) < std::ssize(kMagic)) return false;
  return MappedFile(path).text().substr(0, kMagic.size()) == kMagic;
}

void GgufWriter::begin(const std::string& key, uint32_t kind) {
  append_string(metadata_, key);
  append(metadata_, kind);
  ++pairs_;
}

void GgufWriter::set(const std::string& key, uint32_t value) {
  begin(key, kU32);
  append(metadata_, value);
}

void GgufWriter::set(const std::string& key, float value) {
  begin(key, kF32);
  append(metadata_, value);
}

void GgufWriter::set(const std::string& key, bool value) {
  begin(key, kBool);
  append(metadata_, static_cast<uint8_t>(value ? 1 : 0));
}

void GgufWriter::set(const std::string& key, const std::string& value) {
  begin(key, kString);
  append_string(metadata_, value);
}

void GgufWriter::set(const std::string& key, const std::vector<std::string>& values) {
  begin(key, kArray);
  append(metadata_, static_cast<uint32_t>(kString));
  append(metadata_, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) append_string(metadata_, value);
}

void GgufWriter::set(const std::string& key, const std::vector<float>& values) {
  begin(key, kArray);
  append(metadata_, static_cast<uint32_t>(kF32));
  append(metadata_, static_cast<uint64_t>(values.size()));
  for (const float value : values) append(metadata_, value);
}

void GgufWriter::set(const std::string& key, const std::vector<int32_t>& values) {
  begin(key, kArray);
  append(metadata_, static_cast<uint32_t>(kI32));
  append(metadata_, static_cast<uint64_t>(values.size()));
  for (const int32_t value : values) append(metadata_, value);
}

void GgufWriter::add(const std::string& name, GgufType type, std::vector<int64_t> shape, Fill fill) {
  int64_t bytes = bytes_each(static_cast<uint32_t>(type));
  for (const int64_t length : shape) bytes *= length;
  BRISK_CHECK(bytes > 0, "tensor {} is empty", name);
  items_.push_back({name, type, std::move(shape), bytes, std::move(fill)});
}

int64_t GgufWriter::finish() {
  std::string header(kMagic);
  append(header, kVersion);
  append(header, static_cast<uint64_t>(items_.size()));
  append(header, pairs_);
  header += metadata_;
  int64_t offset = 0;
  for (const Item& item : items_) {
    append_string(header, item.name);
    append(header, static_cast<uint32_t>(item.shape.size()));
    for (auto length = item.shape.rbegin(); length != item.shape.rend(); ++length) {
      append(header, static_cast<uint64_t>(*length));
    }
    append(header, static_cast<uint32_t>(item.type));
    append(header, static_cast<uint64_t>(offset));
    offset = round_up(offset + item.bytes, kAlignment);
  }
  header.resize(static_cast<size_t>(round_up(std::ssize(header), kAlignment)), '\0');

  AtomicFile file(path_, Links::follow);  // a path that the user names
  file.write(header);
  std::vector<std::byte> block;
  const std::string zeros(static_cast<size_t>(kAlignment), '\0');
  for (const Item& item : items_) {
    block.resize(static_cast<size_t>(std::max<int64_t>(std::ssize(block), std::min(item.bytes, kCopyBytes))));
    for (int64_t begin = 0; begin < item.bytes; begin += kCopyBytes) {
      const int64_t count = std::min(kCopyBytes, item.bytes - begin);
      item.fill(begin, std::span(block).first(static_cast<size_t>(count)));
      file.write(block.data(), count);
    }
    file.write(zeros.data(), round_up(item.bytes, kAlignment) - item.bytes);
  }
  file.commit();
  return file.size();
}

}  // namespace brisk
