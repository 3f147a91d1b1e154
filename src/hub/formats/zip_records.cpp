#include "hub/formats/zip_records.h"

#if BRISK_HAVE_ZLIB
#include <zlib.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rounding.h"
#include "base/runtime.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

static_assert(std::endian::native == std::endian::little, "zip archives are little-endian");

using Content = ZipRecords::Content;
using Record = ZipRecords::Record;

// The parts of an archive, from its end to its beginning: signatures and fixed lengths.
constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint64_t kLongestComment = 0xFFFF;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // stands for a value that is in the zip64 part
constexpr uint16_t kExtra64 = 1;        // the kind of an entry's extra field that is its zip64 part
constexpr uint16_t kEncrypted = 1;      // of an entry's flags

class ArchiveReader {
 public:
  ArchiveReader(Content archive, const std::string& name) : archive_(archive), name_(name) {}

  std::map<std::string, Record, std::less<>> read() const {
    const Directory directory = find_directory();
    std::map<std::string, Record, std::less<>> records;
    uint64_t at = directory.offset, bytes = 0;
    for (uint64_t i = 0; i < directory.entries; ++i) {
      const Entry entry = read_entry(at);
      const Content content = content_of(entry);
      if (!records.emplace(entry.name, Record{content, entry.checksum}).second) {
        fail("it has '{}' twice", printable(entry.name));
      }
      at += entry.bytes;
      bytes += kLocalBytes + entry.name.size() + content.size();
      if (bytes > archive_.size()) fail("its records overlap");  // reading each of them would take more than the file
    }
    return records;
  }

 private:
  struct Directory {
    uint64_t entries = 0, offset = 0;
  };
  struct Entry {
    std::string name;
    uint64_t bytes = 0;  // of the entry itself
    uint64_t size = 0, local_offset = 0;
    uint32_t checksum = 0;
  };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    user_error("{}: incomplete or damaged zip archive, as torch.save writes: {}; fetch or save the file again", name_,
               format_message(format, std::forward<Args>(args)...));
  }

  // `bytes` bytes at `at`; all that is read goes through here.
  Content slice(uint64_t at, uint64_t bytes, const char* what) const {
    if (at > archive_.size() || bytes > archive_.size() - at) {
      fail("{} should be bytes {} to {}, the file has {}", what, at, at + bytes, archive_.size());
    }
    return archive_.subspan(at, bytes);
  }
  template <typename T>
  static T field(Content part, size_t at) {
    T value;
    std::memcpy(&value, part.data() + at, sizeof value);
    return value;
  }

  uint64_t find_end() const {
    for (uint64_t comment = 0; comment <= kLongestComment && kEndBytes + comment <= archive_.size(); ++comment) {
      const uint64_t at = archive_.size() - kEndBytes - comment;
      const Content end = archive_.subspan(at, kEndBytes);
      if (field<uint32_t>(end, 0) == kEnd && field<uint16_t>(end, 20) == comment) return at;
    }
    fail("its end is missing, so it was cut short");
  }

  Directory find_directory() const {
    const uint64_t at = find_end();
    const Content end = archive_.subspan(at, kEndBytes);
    Directory directory{field<uint16_t>(end, 10), field<uint32_t>(end, 16)};
    uint64_t bytes = field<uint32_t>(end, 12);
    if (at >= kLocator64Bytes) {
      const Content locator = archive_.subspan(at - kLocator64Bytes, kLocator64Bytes);
      if (field<uint32_t>(locator, 0) == kLocator64) {
        const Content end64 = slice(field<uint64_t>(locator, 8), kEnd64Bytes, "the end of its directory");
        if (field<uint32_t>(end64, 0) != kEnd64) fail("the end of its directory is not where it should be");
        directory = {field<uint64_t>(end64, 32), field<uint64_t>(end64, 48)};
        bytes = field<uint64_t>(end64, 40);
      }
    }
    slice(directory.offset, bytes, "its directory");
    if (directory.entries > bytes / kEntryBytes) {
      fail("a directory of {} bytes cannot name {} records", bytes, directory.entries);
    }
    return directory;
  }

  Entry read_entry(uint64_t at) const {
    const Content head = slice(at, kEntryBytes, "an entry of its directory");
    if (field<uint32_t>(head, 0) != kEntry) fail("byte {} should begin an entry of its directory", at);
    const uint64_t name_bytes = field<uint16_t>(head, 28), extra_bytes = field<uint16_t>(head, 30);
    Entry entry;
    entry.bytes = kEntryBytes + name_bytes + extra_bytes + field<uint16_t>(head, 32);
    const Content whole = slice(at, entry.bytes, "an entry of its directory");
    entry.name.assign(reinterpret_cast<const char*>(whole.data()) + kEntryBytes, name_bytes);
    entry.checksum = field<uint32_t>(head, 16);
    uint64_t stored = field<uint32_t>(head, 20);
    entry.size = field<uint32_t>(head, 24);
    entry.local_offset = field<uint32_t>(head, 42);
    // In this order, and only those that do not fit their 32 bits.
    Content wide = extra64(whole.subspan(kEntryBytes + name_bytes, extra_bytes));
    for (uint64_t* value : {&entry.size, &stored, &entry.local_offset}) {
      if (*value != kIn64 || wide.size() < sizeof(uint64_t)) continue;
      *value = field<uint64_t>(wide, 0);
      wide = wide.subspan(sizeof(uint64_t));
    }
    if ((field<uint16_t>(head, 8) & kEncrypted) != 0 || field<uint16_t>(head, 10) != 0 || stored != entry.size) {
      user_error(
          "{}: '{}' is compressed or encrypted in it, which torch.save never does; unpack the archive and save "
          "the model again",
          name_, printable(entry.name));
    }
    return entry;
  }

  // The zip64 part of an entry's extra fields; empty if there is none.
  static Content extra64(Content extra) {
    while (extra.size() >= 4) {
      const size_t bytes = field<uint16_t>(extra, 2);
      if (bytes > extra.size() - 4) break;
      if (field<uint16_t>(extra, 0) == kExtra64) return extra.subspan(4, bytes);
      extra = extra.subspan(4 + bytes);
    }
    return {};
  }

  Content content_of(const Entry& entry) const {
    const Content head = slice(entry.local_offset, kLocalBytes, "the head of a record");
    const uint64_t name_bytes = field<uint16_t>(head, 26), extra_bytes = field<uint16_t>(head, 28);
    const Content name = slice(entry.local_offset + kLocalBytes, name_bytes, "the name of a record");
    const bool same = name_bytes == entry.name.size() && std::memcmp(name.data(), entry.name.data(), name_bytes) == 0;
    if (field<uint32_t>(head, 0) != kLocal || !same) {
      fail("'{}' is not where its directory says", printable(entry.name));
    }
    return slice(entry.local_offset + kLocalBytes + name_bytes + extra_bytes, entry.size, "a record");
  }

  Content archive_;
  const std::string& name_;
};

}  // namespace

ZipRecords::ZipRecords(Content archive, const std::string& name) : records_(ArchiveReader(archive, name).read()) {}

const ZipRecords::Record* ZipRecords::find(std::string_view record) const {
  const auto found = records_.find(record);
  return found == records_.end() ? nullptr : &found->second;
}

bool has_its_checksum([[maybe_unused]] const ZipRecords::Record& record) {
#if BRISK_HAVE_ZLIB
  if (record.checksum == 0) return true;
  constexpr int64_t kBlock = int64_t{1} << 20;
  const int64_t size = std::ssize(record.content);
  if (size <= kBlock) {
    return crc32(0, reinterpret_cast<const Bytef*>(record.content.data()), static_cast<uInt>(size)) == record.checksum;
  }
  std::vector<uLong> checksums(static_cast<size_t>(divide_up(size, kBlock)));
  const auto length_of = [&](int64_t block) { return std::min(kBlock, size - block * kBlock); };
  thread_pool().for_range(std::ssize(checksums), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const auto* data = reinterpret_cast<const Bytef*>(record.content.data() + block * kBlock);
      checksums[static_cast<size_t>(block)] = crc32(0, data, static_cast<uInt>(length_of(block)));
    }
  });
  uLong checksum = 0;
  for (int64_t block = 0; block < std::ssize(checksums); ++block) {
    checksum = crc32_combine(checksum, checksums[static_cast<size_t>(block)], length_of(block));
  }
  return checksum == record.checksum;
#else
  return true;
#endif
}

bool looks_like_zip(std::span<const std::byte> content) {
  uint32_t first = 0;
  if (content.size() < sizeof first) return false;
  std::memcpy(&first, content.data(), sizeof first);
  return first == kLocal;
}

}  // namespace brisk
