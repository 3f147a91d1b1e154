// The uncompressed records of a zip archive, as torch.save writes them: located in place and never copied.
//
//   const MappedFile file("pytorch_model.bin");
//   const ZipRecords records(file.bytes(), "pytorch_model.bin");       // UserError for a damaged archive
//   const ZipRecords::Record* pickle = records.find("archive/data.pkl");
//   if (!has_its_checksum(*pickle)) ...                                // its bytes were changed
//
// Archives of more than 4 GiB (zip64) are read; compressed, encrypted and overlapping records, which torch.save never
// writes, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace brisk {

class ZipRecords {
 public:
  using Content = std::span<const std::byte>;
  struct Record {
    Content content;
    uint32_t checksum = 0;  // CRC-32; 0: the writer left it out, as torch.save can be told to
  };

  // `archive` must outlive it; `name` is named in errors.
  ZipRecords(Content archive, const std::string& name);

  const Record* find(std::string_view record) const;  // nullptr if there is none
  const std::map<std::string, Record, std::less<>>& all() const { return records_; }

 private:
  std::map<std::string, Record, std::less<>> records_;
};

// On all threads. True where there is no checksum, or this brisk was built without zlib.
bool has_its_checksum(const ZipRecords::Record& record);

// It begins as a zip archive does.
bool looks_like_zip(std::span<const std::byte> content);

}  // namespace brisk
