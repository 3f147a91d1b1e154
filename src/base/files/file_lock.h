// An inter-process lock; the kernel releases it however the process ends.
//
//   FileLock lock(path + ".lock", [&] { say("another brisk is making {}; waiting for it", path); });
//   if (!file_exists(path)) make(path);        // the other process may have made it meanwhile
//
// Releasing the lock removes its file. On file systems without locks every process gets it, so files must still be
// written under a temporary name and renamed.
#pragma once

#include <functional>
#include <string>

namespace brisk {

class FileLock {
 public:
  // If another process holds the lock, calls `before_waiting` and waits; Cancelled where the runtime is cancelled
  // meanwhile. The folder must exist.
  explicit FileLock(std::string path, const std::function<void()>& before_waiting = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string path_;
  int file_descriptor_ = -1;
};

}  // namespace brisk
