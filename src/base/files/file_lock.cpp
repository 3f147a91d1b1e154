#include "base/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

namespace {

// Its holder removes the file of a lock, so whoever waited for it may hold a file that no one else can find.
bool is_the_file_at(int file_descriptor, const std::string& path) {
  struct stat held {
  }, found{};
  return ::fstat(file_descriptor, &held) == 0 && ::stat(path.c_str(), &found) == 0 && held.st_ino == found.st_ino &&
         held.st_dev == found.st_dev;
}

}  // namespace

FileLock::FileLock(std::string path, const std::function<void()>& before_waiting) : path_(std::move(path)) {
  bool told = false;
  for (;;) {
    file_descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_descriptor_ < 0) user_error("{}: cannot create it: {}", path_, explain_errno(errno));
    if (::flock(file_descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return;  // no locks here
      if (before_waiting && !std::exchange(told, true)) before_waiting();
      while (::flock(file_descriptor_, LOCK_EX) != 0 && errno == EINTR) {
      }
    }
    if (is_the_file_at(file_descriptor_, path_)) return;
    ::close(file_descriptor_);
  }
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());  // before it is given back: nobody else's file can be meant
  ::close(file_descriptor_);
}

}  // namespace brisk
