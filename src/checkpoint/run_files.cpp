#include "checkpoint/run_files.h"

#include "base/error.h"
#include "base/files/files.h"
#include "checkpoint/checksum.h"

namespace brisk {

FileChecksums checksums_of_run_files(const std::string& run) {
  FileChecksums checksums;
  for (const char* name : {"tokenizer.json", "target_tokenizer.json", "labels.json"}) {
    const std::string path = run + "/" + name;
    if (file_exists(path)) checksums[name] = checksum_of_file(path);
  }
  return checksums;
}

void check_run_file(const std::string& run, const std::string& name, const FileChecksums& expected,
                    std::string_view fix) {
  const auto found = expected.find(name);
  if (found == expected.end()) return;
  const std::string path = run + "/" + name;
  if (!file_exists(path)) user_error("{}: no such file, which the run was saved with; {}", path, fix);
  const std::string checksum = checksum_of_file(path);
  if (checksum == found->second) return;
  user_error("{}: not the file that the run was saved with (checksum {}, expected {}): it was changed or swapped; {}",
             path, checksum, found->second, fix);
}

}  // namespace brisk
