#include "data/read/unchanged_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"

namespace brisk {

namespace {

std::string state_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) user_error("{}: cannot read it: {}", path, explain_errno(errno));
  return fmt::format("{} {} {} {}.{:09} {}.{:09}", facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                     facts.st_mtim.tv_nsec, facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec);
}

}  // namespace

void UnchangedFiles::add(const std::string& path) { files_.push_back({path, state_of(path)}); }

void UnchangedFiles::check() const {
  for (const File& file : files_) {
    if (state_of(file.path) == file.state) continue;
    user_error(
        "{}: it changed while it was being read, so nothing made of it was kept; run again when nothing writes "
        "to it any more",
        file.path);
  }
}

uint64_t UnchangedFiles::fingerprint() const {
  uint64_t hash = 0;
  for (const File& file : files_) hash = hash_bytes(file.state, hash);
  return hash;
}

}  // namespace brisk
