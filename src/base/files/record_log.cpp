#include "base/files/record_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/files/files.h"

namespace brisk {

namespace {

// Writes all or nothing: a write cut short by a full disk is undone. Returns a value of errno, 0 for success.
int append_whole(int file_descriptor, std::string_view text) {
  struct stat facts {};
  if (::fstat(file_descriptor, &facts) != 0) return errno;
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(file_descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int reason = count < 0 ? errno : EIO;
      if (written > 0 && ::ftruncate(file_descriptor, facts.st_size) != 0) return errno;
      return reason;
    }
    written += static_cast<size_t>(count);
  }
  return 0;
}

}  // namespace

RecordLog::RecordLog(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) file_descriptor_ = open_own_file(path_, O_WRONLY | O_APPEND);
}

RecordLog::~RecordLog() {
  if (path_.empty()) return;
  if (!waiting_.empty()) append_whole(file_descriptor_, waiting_);  // last attempt
  ::close(file_descriptor_);
}

void RecordLog::append(std::string_view record) {
  if (path_.empty()) return;
  waiting_ += record;
  const int reason = append_whole(file_descriptor_, waiting_);
  if (reason != 0) {
    problem_ = fmt::format("{}: cannot write it: {}; the lines wait in memory", path_, explain_errno(reason));
    return;
  }
  waiting_.clear();
  problem_.clear();
}

void RecordLog::sync() {
  if (path_.empty()) return;
  // EINVAL: a network file system that cannot flush.
  if (::fdatasync(file_descriptor_) != 0 && errno != EINVAL) {
    problem_ = fmt::format("{}: cannot flush it to disk: {}", path_, explain_errno(errno));
  }
}

}  // namespace brisk
