// A folder that is written file by file and holds a model once it is whole. Until then a file in it says that it is not, so
// that who comes after a process that failed or was killed may begin again, and need not guess whose files these are.
//
//   if (!UnfinishedFolder::is(folder)) refuse_if_it_holds_a_model(folder);
//   UnfinishedFolder unfinished(folder);      // makes the folder, too
//   write_file_atomically(folder + "/config.json", text);
//   unfinished.finish();
#pragma once

#include <string>

namespace brisk {

class UnfinishedFolder {
 public:
  static constexpr const char* kMark = ".unfinished";

  // Half-written files of a process that was killed are removed where the folder was unfinished before.
  explicit UnfinishedFolder(const std::string& folder);
  static bool is(const std::string& folder);
  void finish();

 private:
  std::string mark_;
};

}  // namespace brisk
