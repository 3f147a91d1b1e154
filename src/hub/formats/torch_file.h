// pytorch_model.bin: a dictionary of tensors that torch.save wrote (PyTorch 1.6 and later). Tensors only: nothing in
// the file is executed (hub/formats/tensor_pickle.h), and sizes and offsets are checked before use.
//
//   const TorchFile file("pytorch_model.bin");       // memory-mapped; UserError unless every tensor is all there
//   const SafetensorsEntry* table = file.find("bert.embeddings.word_embeddings.weight");
//
// Entries look like those of a safetensors file, so both are read by the same code. Tensors may share bytes,
// and those that are not stored row by row are copied into that order.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/files.h"
#include "hub/formats/safetensors.h"
#include "hub/formats/zip_records.h"

namespace brisk {

class TorchFile {
 public:
  explicit TorchFile(std::string path);
  // The same from memory, which must outlive it; `name` is named in errors.
  TorchFile(std::span<const std::byte> content, std::string name);

  const std::string& path() const { return path_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  // in the order of the dictionary
  const SafetensorsEntry* find(std::string_view name) const;                 // nullptr if there is none
  void advise_sequential() const { file_.advise_sequential(); }
  // UserError where the bytes of a tensor are not those that were saved: the archive has their CRC-32.
  void check_bytes() const;

 private:
  void read(std::span<const std::byte> content);
  void check_record(const std::string& name, const ZipRecords::Record& record) const;

  std::string path_;
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::vector<std::vector<std::byte>> copies_;  // of tensors that are not stored row by row
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, ZipRecords::Record> storages_;  // that tensors stand in
};

}  // namespace brisk
