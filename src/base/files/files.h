// Files, with errors a user can act on: path, what failed, why, and the fix (UserError).
//
//   make_directories(run + "/checkpoints");
//   write_file_atomically(run + "/job.json", text);   // a crash leaves the old file or the new one, never half of one
//   const std::string text = read_file("job.json");
//   const MappedFile tokens("cache/tokens.bin");       // read-only, unmapped at the end of its life
//   std::span<const std::byte> bytes = tokens.bytes();
//
// Large files are written piece by piece:
//
//   AtomicFile file(path);
//   file.write(data, size);   // as often as needed
//   file.commit();            // flushes, renames; without it the file's destructor removes what was written
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

bool file_exists(const std::string& path);  // anything by that name
bool is_directory(const std::string& path);
int64_t file_size(const std::string& path);

std::string read_file(const std::string& path);

void make_directories(const std::string& path);                // and its parents; nothing where it exists
void remove_file(const std::string& path);                     // nothing where there is none
std::vector<std::string> names_in(const std::string& folder);  // sorted; none where there is no folder
void remove_directory_tree(const std::string& path);
void rename_file(const std::string& from, const std::string& to);  // then flushes the folder, so it survives a crash
void sync_directory(const std::string& path);

void write_file_atomically(const std::string& path, std::string_view contents);

// "permission denied: ...": the text that every error here ends with; `error_number` is errno's value.
std::string explain_errno(int error_number);

class AtomicFile {
 public:
  // Creates path + ".partial-<process>"; the folder must exist. A device or a pipe is written to as it is.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, int64_t size);
  void write(std::string_view text) { write(text.data(), static_cast<int64_t>(text.size())); }
  int64_t size() const { return size_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* action, int error_number);
  void remove_partial() const;

  std::string path_, partial_path_;  // no partial one where what exists is written to in place
  int file_descriptor_ = -1;
  int64_t size_ = 0;
};

class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), static_cast<size_t>(size_)}; }

  // Tells the kernel that the pages will be read in order, and soon.
  void advise_sequential() const;
  void advise_random() const;  // that reading ahead is of no use

 private:
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace brisk
