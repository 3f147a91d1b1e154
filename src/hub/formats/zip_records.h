// The uncompressed records of a zip archive, as torch.save writes them: located in place and never copied.
//
//   const MappedFile file("pytorch_model.bin");
//   const ZipRecords records(file.bytes(), "pytorch_model.bin");       // UserError for a damaged archive
//   const std::span<const std::byte>* pickle = records.find("archive/data.pkl");
//
// Archives of more than 4 GiB (zip64) are read; compressed and encrypted records, which torch.save never writes, are
// refused.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace brisk {

class ZipRecords {
 public:
  using Content = std::span<const std::byte>;

  // `archive` must outlive it; `name` is named in errors.
  ZipRecords(Content archive, const std::string& name);

  const Content* find(std::string_view record) const;  // nullptr if there is none
  const std::map<std::string, Content, std::less<>>& all() const { return records_; }

 private:
  std::map<std::string, Content, std::less<>> records_;
};

// It begins as a zip archive does.
bool looks_like_zip(std::span<const std::byte> content);

}  // namespace brisk
