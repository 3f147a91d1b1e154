#include "base/files/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"

namespace brisk {

namespace {

// The holder removes the lock file, so a process that waited may have locked a file that no longer has a name.
bool is_the_file_at(int file_descriptor, const std::string& path) {
  struct stat held {
  }, found{};
  return ::fstat(file_descriptor, &held) == 0 && ::lstat(path.c_str(), &found) == 0 && held.st_ino == found.st_ino &&
         held.st_dev == found.st_dev;
}

// False where the runtime is cancelled meanwhile.
bool wait_for_lock(int file_descriptor) {
  constexpr std::chrono::milliseconds kPause(20);
  while (::flock(file_descriptor, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (Runtime::current().cancelled()) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

FileLock::FileLock(std::string path, const std::function<void()>& before_waiting) : path_(std::move(path)) {
  bool told = false;
  for (;;) {
    file_descriptor_ = open_own_file(path_, O_RDWR);
    if (::flock(file_descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return;  // this file system has no locks
      if (before_waiting && !std::exchange(told, true)) before_waiting();
      if (!wait_for_lock(file_descriptor_)) {
        ::close(file_descriptor_);
        throw Cancelled();
      }
    }
    if (is_the_file_at(file_descriptor_, path_)) return;
    ::close(file_descriptor_);
  }
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());  // while still holding the lock, so that it cannot be another process's file
  ::close(file_descriptor_);
}

}  // namespace brisk
