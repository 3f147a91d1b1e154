#include "hub/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

using SortedJson = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr int64_t kLengthBytes = 8;                // of the header's length
constexpr int64_t kLongestHeader = 100'000'000;    // the format's own limit
constexpr int64_t kBlockBytes = int64_t{4} << 20;  // copied out of a device at a time
constexpr int kDeepest = 16;                       // three are all that is needed
constexpr const char* kMetadataKey = "__metadata__";

struct TypeFacts {
  SafetensorsType type;
  std::string_view name;
  int64_t size;
};

constexpr std::array<TypeFacts, 13> kTypes = {{{SafetensorsType::f64, "F64", 8},
                                               {SafetensorsType::f32, "F32", 4},
                                               {SafetensorsType::f16, "F16", 2},
                                               {SafetensorsType::bf16, "BF16", 2},
                                               {SafetensorsType::i64, "I64", 8},
                                               {SafetensorsType::i32, "I32", 4},
                                               {SafetensorsType::i16, "I16", 2},
                                               {SafetensorsType::i8, "I8", 1},
                                               {SafetensorsType::u64, "U64", 8},
                                               {SafetensorsType::u32, "U32", 4},
                                               {SafetensorsType::u16, "U16", 2},
                                               {SafetensorsType::u8, "U8", 1},
                                               {SafetensorsType::boolean, "BOOL", 1}}};

const TypeFacts& facts_of(SafetensorsType type) { return kTypes[static_cast<size_t>(type)]; }

// Nothing if the product does not fit 63 bits, as it can in a damaged header.
std::optional<int64_t> bytes_of(SafetensorsType type, const std::vector<int64_t>& shape) {
  int64_t bytes = size_of(type);
  for (const int64_t length : shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  return bytes;
}

// Reads a header; every complaint names the file, the place, what was found and what to do.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::span<const std::byte> content) : path_(path), content_(content) {}

  std::vector<SafetensorsEntry> read(std::map<std::string, std::string>& metadata) {
    const SortedJson header = parse();
    std::vector<SafetensorsEntry> entries;
    for (const auto& [name, description] : header.items()) {
      if (name == kMetadataKey) {
        metadata = read_metadata(description);
      } else {
        entries.push_back(read_entry(name, description));
      }
    }
    // By their bytes; of several at one place, the empty ones first, so that the check below sees no gap.
    std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
      return std::tie(a.data, a.bytes, a.name) < std::tie(b.data, b.bytes, b.name);
    });
    check_every_byte_is_used(entries);
    return entries;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    user_error("{}: incomplete or damaged safetensors file: {}; fetch or save the file again", path_,
               format_message(format, std::forward<Args>(args)...));
  }

  SortedJson parse() {
    if (std::ssize(content_) < kLengthBytes) {
      fail("found {} bytes, expected at least the {} of the header's length", std::ssize(content_), kLengthBytes);
    }
    uint64_t length = 0;
    std::memcpy(&length, content_.data(), kLengthBytes);
    if (length > static_cast<uint64_t>(kLongestHeader)) {
      fail("it begins with a header length of {} bytes, expected at most {}", length, kLongestHeader);
    }
    header_bytes_ = static_cast<int64_t>(length);
    if (header_bytes_ > std::ssize(content_) - kLengthBytes) {
      fail("the header should have {} bytes, found {}", header_bytes_, std::ssize(content_) - kLengthBytes);
    }
    data_bytes_ = std::ssize(content_) - kLengthBytes - header_bytes_;
    const std::string_view text = {reinterpret_cast<const char*>(content_.data()) + kLengthBytes,
                                   static_cast<size_t>(header_bytes_)};

    JsonProblem problem;
    SortedJson header = parse_json_or_discard<SortedJson>(text, {.depth = kDeepest}, &problem);
    if (header.is_discarded()) fail("the header is not JSON that brisk reads ({})", problem.what);
    if (!header.is_object()) fail("the header is a JSON {}, expected an object", header.type_name());
    return header;
  }

  std::map<std::string, std::string> read_metadata(const SortedJson& description) const {
    std::map<std::string, std::string> metadata;
    if (!description.is_object()) fail("{} is a JSON {}, expected an object", kMetadataKey, description.type_name());
    for (const auto& [key, value] : description.items()) {
      if (!value.is_string())
        fail("{}.{} is a JSON {}, expected a string", kMetadataKey, printable(key), value.type_name());
      metadata[key] = value.get<std::string>();
    }
    return metadata;
  }

  SafetensorsEntry read_entry(const std::string& tensor, const SortedJson& description) const {
    const std::string name = printable(tensor);  // in messages
    if (!description.is_object()) fail("'{}' is a JSON {}, expected an object", name, description.type_name());
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (!description.contains(key)) fail("'{}' has no {}", name, key);
    }
    SafetensorsEntry entry;
    entry.name = tensor;
    entry.type = read_type(name, description["dtype"]);
    entry.shape = read_sizes(name, "shape", description["shape"]);
    const std::vector<int64_t> offsets = read_sizes(name, "data_offsets", description["data_offsets"]);
    if (offsets.size() != 2) fail("'{}' has {} data_offsets, expected 2", name, offsets.size());
    if (offsets[0] > offsets[1]) fail("'{}' begins at byte {} and ends at {}", name, offsets[0], offsets[1]);
    if (offsets[1] > data_bytes_) {
      fail("'{}' ends at byte {} of the tensors, of which there are {}", name, offsets[1], data_bytes_);
    }
    const std::optional<int64_t> bytes = bytes_of(entry.type, entry.shape);
    entry.bytes = offsets[1] - offsets[0];
    if (!bytes || *bytes != entry.bytes) {
      fail("'{}' has {} bytes, but its shape [{}] of {} takes {}", name, entry.bytes, fmt::join(entry.shape, ", "),
           safetensors_type_name(entry.type), bytes ? fmt::format("{}", *bytes) : "more than any file holds");
    }
    entry.data = content_.data() + kLengthBytes + header_bytes_ + offsets[0];
    return entry;
  }

  SafetensorsType read_type(const std::string& name, const SortedJson& value) const {
    for (const TypeFacts& facts : kTypes) {
      if (value == facts.name) return facts.type;
    }
    user_error("{}: '{}' has dtype {}, which brisk does not read; convert it to F32 or BF16", path_, name,
               value.is_string() ? printable(value.get_ref<const std::string&>()) : json_in_message(value));
  }

  std::vector<int64_t> read_sizes(const std::string& name, const char* key, const SortedJson& value) const {
    if (!value.is_array()) fail("{} of '{}' is a JSON {}, expected an array", key, name, value.type_name());
    std::vector<int64_t> sizes;
    for (const SortedJson& element : value) {
      if (!element.is_number_unsigned() || element.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        fail("{} of '{}' holds {}, expected integers of 0 or more", key, name, json_in_message(element));
      }
      sizes.push_back(element.get<int64_t>());
    }
    return sizes;
  }

  // A gap or an overlap says that header and bytes do not belong together.
  void check_every_byte_is_used(const std::vector<SafetensorsEntry>& entries) const {
    const std::byte* begin = content_.data() + kLengthBytes + header_bytes_;
    int64_t used = 0;
    for (const SafetensorsEntry& entry : entries) {
      const int64_t first = static_cast<const std::byte*>(entry.data) - begin;
      if (first < used)
        fail("'{}' begins at byte {}, inside another tensor that ends at {}", printable(entry.name), first, used);
      if (first > used) fail("bytes {} to {} belong to no tensor", used, first);
      used = first + entry.bytes;
    }
    if (used != data_bytes_) fail("the tensors end at byte {}, the file at {}", used, data_bytes_);
  }

  const std::string& path_;
  std::span<const std::byte> content_;
  int64_t header_bytes_ = 0;
  int64_t data_bytes_ = 0;
};

}  // namespace

int64_t size_of(SafetensorsType type) { return facts_of(type).size; }
std::string_view safetensors_type_name(SafetensorsType type) { return facts_of(type).name; }

int64_t SafetensorsEntry::count() const { return bytes / size_of(type); }

void SafetensorsWriter::add_metadata(std::string key, std::string value) {
  metadata_[std::move(key)] = std::move(value);
}

void SafetensorsWriter::add(std::string name, SafetensorsType type, std::vector<int64_t> shape, const void* host) {
  add(std::move(name), type, std::move(shape), Fill());
  items_.back().host = host;
}

void SafetensorsWriter::add(std::string name, SafetensorsType type, std::vector<int64_t> shape, Fill fill) {
  BRISK_CHECK(name != kMetadataKey, "{} is not a name for a tensor", name);
  BRISK_CHECK(std::none_of(shape.begin(), shape.end(), [](int64_t length) { return length < 0; }), "shape of {}", name);
  const std::optional<int64_t> bytes = bytes_of(type, shape);
  BRISK_CHECK(bytes.has_value(), "shape of {}", name);
  items_.push_back({std::move(name), type, std::move(shape), *bytes, nullptr, std::move(fill)});
}

std::string SafetensorsWriter::header() const {
  SortedJson header = SortedJson::object();
  if (!metadata_.empty()) header[kMetadataKey] = metadata_;
  int64_t offset = 0;
  for (const Item& item : items_) {
    BRISK_CHECK(!header.contains(item.name), "tensor {} was added twice", item.name);
    header[item.name] = {{"dtype", safetensors_type_name(item.type)},
                         {"shape", item.shape},
                         {"data_offsets", {offset, offset + item.bytes}}};
    offset += item.bytes;
  }
  std::string text = header.dump();
  // Spaces, so that the tensors begin at a multiple of 64: readers that map the file find them aligned.
  while ((text.size() + kLengthBytes) % 64 != 0) text += ' ';
  return text;
}

std::string SafetensorsWriter::head() const {
  const std::string text = header();
  const uint64_t length = text.size();
  std::string all(kLengthBytes, '\0');
  std::memcpy(all.data(), &length, kLengthBytes);
  return all + text;
}

int64_t SafetensorsWriter::finish(const std::function<void(std::span<const std::byte>)>& written) {
  AtomicFile file(path_);
  const auto write = [&](const void* data, int64_t size) {
    file.write(data, size);
    if (written) written({static_cast<const std::byte*>(data), static_cast<size_t>(size)});
  };
  const std::string text = head();
  write(text.data(), std::ssize(text));
  std::vector<std::byte> block;
  for (const Item& item : items_) {
    if (item.host != nullptr || item.bytes == 0) {
      write(item.host, item.bytes);
      continue;
    }
    block.resize(static_cast<size_t>(std::max<int64_t>(std::ssize(block), std::min(item.bytes, kBlockBytes))));
    for (int64_t offset = 0; offset < item.bytes; offset += kBlockBytes) {
      const int64_t count = std::min(kBlockBytes, item.bytes - offset);
      item.fill(offset, std::span(block).first(static_cast<size_t>(count)));
      write(block.data(), count);
    }
  }
  file.commit();
  return file.size();
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)), file_(path_) { read(file_.bytes()); }

SafetensorsFile::SafetensorsFile(std::string name, std::span<const std::byte> content) : path_(std::move(name)) {
  read(content);
}

void SafetensorsFile::read(std::span<const std::byte> content) {
  entries_ = HeaderReader(path_, content).read(metadata_);
  for (size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].name] = i;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  file_.check_size();  // what is found is about to be read
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

}  // namespace brisk
