#include "base/files/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

[[noreturn]] void fail(const std::string& path, const char* action, int error_number) {
  user_error("{}: {}: {}", path, action, explain_errno(error_number));
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

const char* name_of_type(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe (FIFO)";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no file";
}

enum class Use { reading, writing };

void refuse_what_is_no_file(const std::string& path, mode_t mode, Use use) {
  if (S_ISREG(mode)) return;
  if (S_ISDIR(mode)) fail(path, use == Use::reading ? "cannot read it" : "cannot write it", EISDIR);
  user_error("{}: it is {}, expected a file; {}", path, name_of_type(mode),
             use == Use::reading ? "copy what it holds to a file, and name that" : "remove it");
}

}  // namespace

std::string explain_errno(int error_number) {
  const std::string reason = std::strerror(error_number);
  switch (error_number) {
    case ENOENT: return reason + "; check the path, relative ones start at the current folder";
    case ENOTDIR: return reason + "; a part of the path is a file where a folder is needed";
    case EISDIR: return reason + "; name a file, not a folder";
    case EACCES:
    case EPERM: return reason + "; change its permissions (ls -l shows them) or use another folder";
    case EROFS: return reason + "; use a folder on another file system";
    case ENOSPC: return reason + "; free some space (df -h shows it) or use a folder on another disk";
    case EDQUOT: return reason + "; your quota is used up: free some space or use a folder on another disk";
    case EFBIG: return reason + "; the file is larger than this file system or ulimit -f allows";
    case EMFILE:
    case ENFILE: return reason + "; raise the limit with ulimit -n";
    case EIO: return reason + "; the disk or the network file system failed: see dmesg";
    default: return reason;
  }
}

bool file_exists(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0;
}

bool is_directory(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

int64_t file_size(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) fail(path, "cannot find it", errno);
  return facts.st_size;
}

bool is_inherited_pipe(const std::string& path) {
  // By these names alone: a link in somebody's folder that leads here is no pipe that this process was given.
  if (path != "/dev/stdin" && !path.starts_with("/dev/fd/") && !path.starts_with("/proc/self/fd/")) return false;
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode);
}

int open_regular_file(const std::string& path, int64_t* size) {
  // Looked at before it is opened, which alone makes some devices do something, and after, when it cannot change any more.
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) fail(path, "cannot open it", errno);
  refuse_what_is_no_file(path, facts.st_mode, Use::reading);
  const int number = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (number < 0) fail(path, "cannot open it", errno);
  Descriptor file(number);
  if (::fstat(file, &facts) != 0) fail(path, "cannot read it", errno);
  refuse_what_is_no_file(path, facts.st_mode, Use::reading);
  if (size != nullptr) *size = facts.st_size;
  return file.release();
}

int open_file_or_inherited_pipe(const std::string& path, int64_t* size) {
  if (!is_inherited_pipe(path)) return open_regular_file(path, size);
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) fail(path, "cannot open it", errno);
  return number;
}

std::string read_file(const std::string& path, const FileKind& kind) {
  const auto refuse = [&](const std::string& size) {
    user_error(
        "{}: it has {}, and {} has at most {}; it is another file or damaged: name the right one, or copy it again",
        path, size, kind.name, format_bytes(static_cast<double>(kind.most_bytes)));
  };
  int64_t size = 0;
  const Descriptor file(open_file_or_inherited_pipe(path, &size));
  if (size > kind.most_bytes) refuse(format_bytes(static_cast<double>(size)));
  std::string contents(static_cast<size_t>(size), '\0');
  size_t filled = 0;
  for (;;) {
    // A pipe or a file of /proc has no size: read until the end.
    if (filled == contents.size()) contents.resize(filled + 65536);
    if (static_cast<int64_t>(filled) > kind.most_bytes) refuse("more");
    const ssize_t count = ::read(file, contents.data() + filled, contents.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "cannot read it", errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  contents.resize(filled);
  return contents;
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(path, "cannot make the folder", error.value());
  if (!is_directory(path)) fail(path, "cannot make the folder", ENOTDIR);
}

void refuse_link(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISLNK(facts.st_mode)) return;
  std::error_code error;
  const std::string target = std::filesystem::read_symlink(path, error).string();
  user_error(
      "{}: it is a symbolic link to {}, and nothing is written through links inside such a folder; remove it, or put what "
      "it leads to in its place",
      path, printable(target));
}

void make_own_directory(const std::string& path) {
  refuse_link(path);
  make_directories(path);
}

int open_own_file(const std::string& path, int flags) {
  // What this process made itself, and has no other name for: a file in memory.
  const bool own_descriptor = path.starts_with("/proc/self/fd/");
  if (!own_descriptor) refuse_link(path);
  struct stat facts {};
  // Before it is opened: a pipe would wait for its other end.
  if (!own_descriptor && ::lstat(path.c_str(), &facts) == 0) refuse_what_is_no_file(path, facts.st_mode, Use::writing);
  Descriptor file(
      ::open(path.c_str(), flags | O_CREAT | (own_descriptor ? 0 : O_NOFOLLOW) | O_NONBLOCK | O_CLOEXEC, 0666));
  if (file < 0) fail(path, "cannot open it for writing", errno);
  if (::fstat(file, &facts) != 0) fail(path, "cannot read it", errno);
  refuse_what_is_no_file(path, facts.st_mode, Use::writing);
  if (facts.st_nlink > 1) {
    user_error(
        "{}: the file has {} names (hard links), and what is written to it would change under all of them; copy it "
        "(cp --remove-destination), or copy the folder without links (cp -r)",
        path, facts.st_nlink);
  }
  return file.release();
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path, "cannot remove it", errno);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  // (The standard library's iterator ends the process where its small memory is refused.)
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.c_str()), ::closedir);
  if (!list) {
    if (errno == ENOENT) return names;
    fail(folder, "cannot list it", errno);
  }
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(list.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) fail(folder, "cannot list it", errno);
  std::sort(names.begin(), names.end());
  return names;
}

void remove_directory_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) fail(path, "cannot remove the folder", error.value());
}

void sync_directory(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder < 0) fail(path, "cannot open the folder", errno);
  // Some network file systems cannot flush a folder and say so with EINVAL; the rename is then as safe as it can be.
  if (::fsync(folder) != 0 && errno != EINVAL) fail(path, "cannot flush the folder", errno);
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "cannot rename the finished file to it", errno);
  sync_directory(parent_of(to));
}

bool is_partial_file(std::string_view name) {
  constexpr std::string_view kMark = ".partial-";
  const size_t at = name.rfind(kMark);
  if (at == std::string_view::npos || at == 0) return false;
  const std::string_view numbers = name.substr(at + kMark.size());  // <process>-<object>
  const size_t dash = numbers.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.substr(0, dash).find_first_not_of("0123456789") == std::string_view::npos &&
         numbers.substr(dash + 1).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void write_file_atomically(const std::string& path, std::string_view contents, Links links) {
  AtomicFile file(path, links);
  file.write(contents);
  file.commit();
}

AtomicFile::AtomicFile(std::string path, Links links) : path_(std::move(path)) {
  struct stat facts {};
  const bool special = ::stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
  if (links == Links::refuse) {
    refuse_link(path_);
    if (special) refuse_what_is_no_file(path_, facts.st_mode, Use::writing);
  }
  if (special) {
    // /dev/null or a pipe must not be replaced by a file.
    file_descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    // A symbolic link stays one: the file it names is replaced.
    std::error_code error;
    if (std::filesystem::is_symlink(path_, error)) path_ = std::filesystem::weakly_canonical(path_, error).string();
    // Two objects of one process may write the same file at once. What is there under that name, left by a killed process
    // or put there by somebody, is not written to.
    partial_path_ = fmt::format("{}.partial-{}-{:x}", path_, ::getpid(), reinterpret_cast<uintptr_t>(this));
    ::unlink(partial_path_.c_str());
    file_descriptor_ = ::open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  }
  if (file_descriptor_ < 0) brisk::fail(path_, "cannot create it", errno);
}

AtomicFile::~AtomicFile() {
  if (file_descriptor_ < 0) return;
  ::close(file_descriptor_);
  remove_partial();
}

void AtomicFile::remove_partial() const {
  if (!partial_path_.empty()) ::unlink(partial_path_.c_str());
}

void AtomicFile::fail(const char* action, int error_number) {
  ::close(file_descriptor_);
  file_descriptor_ = -1;
  remove_partial();
  brisk::fail(path_, action, error_number);
}

void AtomicFile::write(const void* data, int64_t size) {
  BRISK_CHECK(file_descriptor_ >= 0, "{} is closed", path_);
  const char* next = static_cast<const char*>(data);
  int64_t left = size;
  while (left > 0) {
    const ssize_t count = ::write(file_descriptor_, next, static_cast<size_t>(left));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write it", errno);
    next += count;
    left -= count;
  }
  size_ += size;
}

void AtomicFile::commit() {
  BRISK_CHECK(file_descriptor_ >= 0, "{} is closed", path_);
  if (::fsync(file_descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail("cannot flush it to disk", errno);
  const int number = std::exchange(file_descriptor_, -1);
  if (::close(number) != 0 && errno != EINTR) {
    const int reason = errno;
    remove_partial();
    brisk::fail(path_, "cannot close it", reason);
  }
  if (partial_path_.empty()) return;
  if (::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    remove_partial();
    brisk::fail(path_, "cannot rename the finished file to it", reason);
  }
  sync_directory(parent_of(path_));
}

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(open_regular_file(path, &size_));
  if (size_ == 0) return;  // mmap refuses an empty range
  void* address = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) {
    size_ = 0;
    fail(path, "cannot map it into memory", errno);
  }
  data_ = static_cast<const std::byte*>(address);
  file_descriptor_ = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  path_ = path;
}

void MappedFile::check_size() const {
  struct stat facts {};
  if (file_descriptor_ < 0 || ::fstat(file_descriptor_, &facts) != 0 || facts.st_size >= size_) return;
  user_error(
      "{}: it had {} bytes when it was opened and has {} now: another program cut it short; put it back, and run again "
      "when nothing writes to it",
      path_, size_, facts.st_size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(size_));
  if (file_descriptor_ >= 0) ::close(file_descriptor_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      file_descriptor_(std::exchange(other.file_descriptor_, -1)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(file_descriptor_, other.file_descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

void MappedFile::advise_sequential() const {
  if (data_ == nullptr) return;
  ::madvise(const_cast<std::byte*>(data_), static_cast<size_t>(size_), MADV_SEQUENTIAL);
  ::madvise(const_cast<std::byte*>(data_), static_cast<size_t>(size_), MADV_WILLNEED);
}

void MappedFile::advise_random() const {
  if (data_ != nullptr) ::madvise(const_cast<std::byte*>(data_), static_cast<size_t>(size_), MADV_RANDOM);
}

}  // namespace brisk
