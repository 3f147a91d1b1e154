#include "hub/formats/torch_file.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/text/printable.h"
#include "hub/formats/tensor_pickle.h"
#include "hub/formats/zip_records.h"

namespace brisk {

namespace {

constexpr std::string_view kPickle = "data.pkl";
// How torch.save began until version 1.6: a pickled number of ten bytes.
constexpr std::string_view kBefore16 = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr std::string_view kLargeFilePointer = "version https://git-lfs";

// Says what the file is instead, as far as its first bytes tell.
void check_is_archive(std::span<const std::byte> content, const std::string& path) {
  if (looks_like_zip(content)) return;
  const std::string_view text = {reinterpret_cast<const char*>(content.data()), content.size()};
  if (text.starts_with(kBefore16)) {
    user_error(
        "{}: a file of torch.save from before PyTorch 1.6, which brisk does not read; save it again: python3 -c "
        "\"import torch; torch.save(torch.load('FILE', weights_only=True), 'FILE')\"",
        path);
  }
  if (text.starts_with(kLargeFilePointer)) {
    user_error("{}: it is a Git LFS pointer, not the weights; fetch them with `git lfs pull`", path);
  }
  user_error("{}: found {} bytes that are not an archive of torch.save; fetch the file again", path, content.size());
}

// torch.save puts everything under a folder with a name of its choice; "" if there is none.
std::string root_of(const ZipRecords& records, const std::string& path) {
  std::optional<std::string> root;
  for (const auto& [name, content] : records.all()) {
    if (name != kPickle && !name.ends_with("/data.pkl")) continue;
    if (root) user_error("{}: it has more than one data.pkl; fetch the file again", path);
    root = name.substr(0, name.size() - kPickle.size());
  }
  if (!root) user_error("{}: a zip archive without data.pkl, so not one of torch.save; fetch the file again", path);
  return *root;
}

// Elements of `tensor`; nothing if that, or its last element's place, does not fit 63 bits or its storage.
std::optional<int64_t> count_within_storage(const PickledTensor& tensor) {
  int64_t count = 1, last = tensor.offset;
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(count, tensor.shape[d], &count) ||
        __builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  // More elements than the storage has are one number said many times (expand), which is no weight.
  if (last >= tensor.storage_count || count > tensor.storage_count) return std::nullopt;
  return count;
}

bool is_row_by_row(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

// The elements of `tensor`, of which there are some, row by row.
std::vector<std::byte> in_row_order(const PickledTensor& tensor, const std::byte* storage, int64_t count) {
  const auto size = static_cast<size_t>(size_of(tensor.type));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  std::vector<int64_t> index(tensor.shape.size(), 0), strides = tensor.strides;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (tensor.shape[d] == 1) strides[d] = 0;  // it says nothing, and could be any number
  }
  int64_t from = tensor.offset;
  for (std::byte* to = bytes.data(); to != bytes.data() + bytes.size(); to += size) {
    std::memcpy(to, storage + static_cast<size_t>(from) * size, size);
    for (size_t d = tensor.shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < tensor.shape[d]) break;
      from -= strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
  return bytes;
}

}  // namespace

TorchFile::TorchFile(std::string path) : path_(std::move(path)), file_(path_) { read(file_.bytes()); }

TorchFile::TorchFile(std::span<const std::byte> content, std::string name) : path_(std::move(name)) { read(content); }

void TorchFile::read(std::span<const std::byte> content) {
  check_is_archive(content, path_);
  const ZipRecords records(content, path_);
  const std::string root = root_of(records, path_);
  if (const ZipRecords::Record* order = records.find(root + "byteorder"); order != nullptr) {
    const std::string_view word = {reinterpret_cast<const char*>(order->content.data()), order->content.size()};
    if (word != "little") {
      user_error("{}: it was saved on a big-endian machine; save it again on a little-endian one", path_);
    }
  }
  const ZipRecords::Record& pickle = *records.find(root + std::string(kPickle));
  check_record(std::string(kPickle), pickle);
  int64_t copied = 0;
  for (const PickledTensor& tensor : read_tensor_pickle(pickle.content, path_)) {
    const ZipRecords::Record* record = records.find(root + "data/" + tensor.storage);
    const ZipRecords::Content* storage = record == nullptr ? nullptr : &record->content;
    if (storage == nullptr) {
      user_error("{}: '{}' should be in data/{}, which the archive lacks; fetch the file again", path_,
                 printable(tensor.name), printable(tensor.storage));
    }
    const int64_t size = size_of(tensor.type);
    if (std::ssize(*storage) % size != 0 || std::ssize(*storage) / size != tensor.storage_count) {
      user_error("{}: data/{} has {} bytes, but should hold {} numbers of {}; fetch the file again", path_,
                 printable(tensor.storage), storage->size(), tensor.storage_count, safetensors_type_name(tensor.type));
    }
    const std::optional<int64_t> count = count_within_storage(tensor);
    if (!count) {
      user_error(
          "{}: '{}' of the shape [{}] and strides [{}] does not fit data/{}, which has {} numbers; fetch the "
          "file again",
          path_, printable(tensor.name), fmt::join(tensor.shape, ", "), fmt::join(tensor.strides, ", "),
          printable(tensor.storage), tensor.storage_count);
    }
    SafetensorsEntry entry{tensor.name, tensor.type, tensor.shape, storage->data(), *count * size};
    if (*count > 0 && is_row_by_row(tensor)) {
      entry.data = storage->data() + tensor.offset * size;
    } else if (*count > 0) {
      copied += entry.bytes;  // a file cannot ask for more memory than it has bytes
      if (copied > std::ssize(content)) {
        user_error(
            "{}: its tensors that are not stored row by row have more bytes than the file; save it again from "
            "tensors made contiguous()",
            path_);
      }
      copies_.push_back(in_row_order(tensor, storage->data(), *count));
      entry.data = copies_.back().data();
    }
    storages_.emplace(tensor.storage, *record);
    index_[entry.name] = entries_.size();
    entries_.push_back(std::move(entry));
  }
}

void TorchFile::check_record(const std::string& name, const ZipRecords::Record& record) const {
  if (has_its_checksum(record)) return;
  user_error("{}: the bytes of {} in it are not those that were saved (their CRC-32 is another); fetch the file again",
             path_, printable(name));
}

void TorchFile::check_bytes() const {
  for (const auto& [name, record] : storages_) check_record("data/" + name, record);
}

const SafetensorsEntry* TorchFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

}  // namespace brisk
