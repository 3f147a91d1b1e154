#include "base/files/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  file_descriptor_ = open_own_file(path_, O_RDWR);
  struct stat facts {};
  if (::fstat(file_descriptor_, &facts) != 0) fail("cannot read it", errno);
  size_ = facts.st_size;
}

AppendFile::~AppendFile() {
  if (file_descriptor_ >= 0) ::close(file_descriptor_);
}

void AppendFile::fail(const char* action, int error_number) const {
  user_error("{}: {}: {}", path_, action, explain_errno(error_number));
}

void AppendFile::cut(int64_t size) {
  if (::ftruncate(file_descriptor_, size) != 0) fail("cannot cut it", errno);
  size_ = size;
}

void AppendFile::write(const void* data, int64_t size) {
  write_at(size_, data, size);
  size_ += size;
}

void AppendFile::write_at(int64_t offset, const void* data, int64_t size) {
  const char* next = static_cast<const char*>(data);
  for (int64_t left = size; left > 0;) {
    const ssize_t count = ::pwrite(file_descriptor_, next, static_cast<size_t>(left), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write it", errno);
    next += count;
    left -= count;
    offset += count;
  }
}

void AppendFile::read(int64_t offset, void* data, int64_t size) const {
  char* next = static_cast<char*>(data);
  for (int64_t left = size; left > 0;) {
    const ssize_t count = ::pread(file_descriptor_, next, static_cast<size_t>(left), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot read it", errno);
    if (count == 0)
      user_error("{}: the file became shorter while it was read; is another program writing to it?", path_);
    next += count;
    left -= count;
    offset += count;
  }
}

void AppendFile::sync() {
  // Some network file systems cannot flush and say so with EINVAL.
  if (::fdatasync(file_descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail("cannot flush it to disk", errno);
}

void AppendFile::rename_to(const std::string& path) {
  sync();
  const int number = std::exchange(file_descriptor_, -1);
  if (::close(number) != 0 && errno != EINTR) fail("cannot close it", errno);
  rename_file(path_, path);
}

}  // namespace brisk
