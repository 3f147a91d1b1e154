#include "base/files/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"

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

int open_for_reading(const std::string& path, struct stat& facts) {
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) fail(path, "cannot open it", errno);
  if (::fstat(number, &facts) != 0 || S_ISDIR(facts.st_mode)) {
    const int reason = S_ISDIR(facts.st_mode) ? EISDIR : errno;
    ::close(number);
    fail(path, "cannot read it", reason);
  }
  return number;
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

std::string read_file(const std::string& path) {
  struct stat facts {};
  const Descriptor file(open_for_reading(path, facts));
  std::string contents(static_cast<size_t>(std::max<off_t>(facts.st_size, 0)), '\0');
  size_t filled = 0;
  for (;;) {
    // A pipe or a file of /proc has no size: read until the end.
    if (filled == contents.size()) contents.resize(filled + 65536);
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

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path, "cannot remove it", errno);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error && error.value() != ENOENT) fail(folder, "cannot list it", error.value());
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

void write_file_atomically(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) {
    // /dev/null or a pipe must not be replaced by a file.
    file_descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    // A symbolic link stays one: the file it names is replaced.
    std::error_code error;
    if (std::filesystem::is_symlink(path_, error)) path_ = std::filesystem::weakly_canonical(path_, error).string();
    partial_path_ = fmt::format("{}.partial-{}", path_, ::getpid());
    file_descriptor_ = ::open(partial_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
  struct stat facts {};
  const Descriptor file(open_for_reading(path, facts));
  size_ = facts.st_size;
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
