// A file that is written over hours: what a killed process wrote remains, and the next process continues from a known
// size.
//
//   AppendFile file(path + ".building");      // created if missing
//   file.cut(journal.size);                   // discards what the journal does not cover
//   file.write(data, size);
//   file.sync();                              // now the journal may record it
//   file.rename_to(path);
//
// Errors are UserErrors that name the file and the fix, as in base/files/files.h.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

class AppendFile {
 public:
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  void cut(int64_t size);                      // beyond its end: zeros are added
  void write(const void* data, int64_t size);  // at the end
  // Over what is there; several processes may write a file at once, each at its own places.
  void write_at(int64_t offset, const void* data, int64_t size);
  void read(int64_t offset, void* data, int64_t size) const;
  void sync();
  void rename_to(const std::string& path);  // flushes first; closes the file

 private:
  [[noreturn]] void fail(const char* action, int error_number) const;

  std::string path_;
  int file_descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace brisk
