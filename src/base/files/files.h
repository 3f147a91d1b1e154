// File operations whose errors (UserError) name the path, what failed, why, and the fix.
//
//   make_directories(run + "/checkpoints");
//   write_file_atomically(run + "/job.json", text);   // a crash leaves the old file or the new one, never half of one
//   const std::string text = read_file("job.json", file_kind::job);   // of a limited size (base/files/file_kind.h)
//   const MappedFile tokens("cache/tokens.bin");       // read-only
//   std::span<const std::byte> bytes = tokens.bytes();
//
// Large files are written in parts:
//
//   AtomicFile file(path);
//   file.write(data, size);   // as often as needed
//   file.commit();            // flushes and renames; without it the destructor removes the partial file
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_kind.h"

namespace brisk {

bool file_exists(const std::string& path);  // a file, directory or anything else
bool is_directory(const std::string& path);
int64_t file_size(const std::string& path);

// What is read is a regular file: a FIFO, a device, a socket or a folder is refused at once, whatever it would do to whoever
// opens it. The exception is a pipe that this process was started with, by the names that a shell gives it: /dev/stdin,
// and /dev/fd/63 for <(command).
bool is_inherited_pipe(const std::string& path);

// The descriptor, which the caller closes. Never waits for another process to open the other end.
int open_regular_file(const std::string& path, int64_t* size = nullptr);
int open_file_or_inherited_pipe(const std::string& path, int64_t* size = nullptr);  // a pipe has no size

std::string read_file(const std::string& path, const FileKind& kind);  // also of an inherited pipe

void make_directories(const std::string& path);                // and its parents; does nothing if it exists
void make_own_directory(const std::string& path);              // the same; UserError where it is a symbolic link
void remove_file(const std::string& path);                     // does nothing if there is none
std::vector<std::string> names_in(const std::string& folder);  // sorted; empty if there is no such folder
void remove_directory_tree(const std::string& path);
void rename_file(const std::string& from, const std::string& to);  // flushes the folder: it survives a crash
void sync_directory(const std::string& path);

// Run folders, output folders and caches may come from anybody, with links in them that lead elsewhere. A file of ours is
// never written through one, and never into what is no regular file or has a second name (a hard link). `follow` is for a
// path that the user names: the link stays, and a device or a pipe (/dev/stdout) is written to.
enum class Links { refuse, follow };

void refuse_link(const std::string& path);  // UserError if it is a symbolic link

// The descriptor of a file of ours, made if it is missing, which the caller closes; `flags` as O_RDWR or O_APPEND.
int open_own_file(const std::string& path, int flags);

void write_file_atomically(const std::string& path, std::string_view contents, Links links = Links::refuse);

// "permission denied: ...", with which every error message here ends; `error_number` is a value of errno.
std::string explain_errno(int error_number);

class AtomicFile {
 public:
  // Creates path + ".partial-<process>-<object>"; the folder must exist.
  explicit AtomicFile(std::string path, Links links = Links::refuse);
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

  std::string path_, partial_path_;  // no partial path if the file is written in place
  int file_descriptor_ = -1;
  int64_t size_ = 0;
};

// Whether a name is that of a file which an AtomicFile of some process did not finish.
bool is_partial_file(std::string_view name);

// Another process may cut a file that is mapped, and reading what is gone ends the process (SIGBUS). So what reads one checks
// its size before each use (a call of the system, 0.2 us); what happens in between is left to the program's handler
// (cli/mapped_file_fault.h).
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

  // UserError if the file is shorter by now than what is mapped.
  void check_size() const;

  // Tells the kernel that the pages will soon be read in order.
  void advise_sequential() const;
  void advise_random() const;  // disables read-ahead

 private:
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
  int file_descriptor_ = -1;  // of the file that is mapped, whatever its path names by now
  std::string path_;
};

}  // namespace brisk
