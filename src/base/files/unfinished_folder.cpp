#include "base/files/unfinished_folder.h"

#include <string_view>

#include "base/files/files.h"

namespace brisk {

bool UnfinishedFolder::is(const std::string& folder) { return file_exists(folder + "/" + kMark); }

UnfinishedFolder::UnfinishedFolder(const std::string& folder) : mark_(folder + "/" + kMark) {
  const bool again = is(folder);
  for (const std::string& name : names_in(folder)) {
    if (is_partial_file(name) && (again || name.starts_with(kMark))) remove_file(folder + "/" + name);
  }
  make_directories(folder);
  write_file_atomically(mark_,
                        "brisk has not finished writing this folder; repeat the command, or remove the folder\n");
}

void UnfinishedFolder::finish() {
  remove_file(mark_);
  mark_.clear();
}

}  // namespace brisk
