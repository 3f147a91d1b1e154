#include "doctor/measure/scratch.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"

namespace brisk {

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
    std::string pattern = (place / ".brisk-doctor-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) {
      path_ = pattern;
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
}

}  // namespace brisk
