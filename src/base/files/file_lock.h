// One process at a time does what a lock stands for; the kernel gives it back however the process ends.
//
//   FileLock lock(path + ".lock", [&] { say("another brisk is making {}; waiting for it", path); });
//   if (!file_exists(path)) make(path);        // the other one may have made it meanwhile
//
// The file of the lock is removed with it. Where a file system has no locks, everyone gets one: what is written under
// it must be written to the side and renamed all the same.
#pragma once

#include <functional>
#include <string>

namespace brisk {

class FileLock {
 public:
  // Waits for whoever holds it, after a call of `before_waiting`. The folder must exist.
  explicit FileLock(std::string path, const std::function<void()>& before_waiting = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string path_;
  int file_descriptor_ = -1;
};

}  // namespace brisk
