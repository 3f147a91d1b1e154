#include "doctor/measure/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = ".brisk-doctor-";
constexpr auto kNewFor = std::chrono::minutes(1);  // a doctor that has just begun may not hold its lock yet

std::string lock_path(const std::string& folder) { return folder + "/.lock"; }

bool is_abandoned(const fs::directory_entry& entry) {
  std::error_code error;
  const std::string name = entry.path().filename().string(), lock = lock_path(entry.path().string());
  if (!name.starts_with(kName) || entry.is_symlink(error) || !entry.is_directory(error)) return false;
  const fs::file_time_type made = fs::last_write_time(lock, error);
  if (error || made > fs::file_time_type::clock::now() - kNewFor) return false;
  try {
    const int file = open_own_file(lock, O_RDWR);
    const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    ::close(file);
    return free;
  } catch (const UserError&) {  // another user's, or no lock at all
    return false;
  }
}

void remove_abandoned(const fs::path& place) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
    if (is_abandoned(*entry)) found.push_back(entry->path());
  }
  for (const fs::path& path : found) fs::remove_all(path, error);  // what is another user's stays
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& output) {
  std::vector<std::filesystem::path> places;
  std::error_code ignored;
  std::filesystem::path above = std::filesystem::absolute(output, ignored).parent_path();
  while (!above.empty() && !std::filesystem::exists(above, ignored) && above != above.parent_path())
    above = above.parent_path();
  places.push_back(above);
  places.push_back(std::filesystem::temp_directory_path(ignored));
  int reason = 0;
  for (const std::filesystem::path& place : places) {
    std::string pattern = (place / (std::string(kName) + "XXXXXX")).string();
    if (::mkdtemp(pattern.data()) != nullptr) {
      path_ = pattern;
      lock_ = open_own_file(lock_path(path_), O_RDWR);
      ::flock(lock_, LOCK_EX | LOCK_NB);  // where there are no locks, a folder may be left
      remove_abandoned(place);
      return;
    }
    reason = errno;
  }
  user_error("{}: cannot make a folder for the doctor's runs: {}", places.back().string(), explain_errno(reason));
}

ScratchFolder::~ScratchFolder() {
  try {
    remove_directory_tree(path_);
  } catch (const UserError& error) {
    warn("{}", error.what());
  }
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace brisk
