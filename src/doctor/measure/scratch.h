// A folder for what the doctor's runs write, removed at the end with all that is in it. One that was killed leaves its folder;
// the next doctor there removes it, which it knows by a lock that nobody holds.
//
//   const ScratchFolder scratch(run_directory_of(job));       // beside the run's own folder: the same disk
//   MeasuredRun run(job, scratch.path() + "/1");
#pragma once

#include <string>

namespace brisk {

class ScratchFolder {
 public:
  // In the first folder above `output` that exists and can be written to, else in the system's one for such things.
  explicit ScratchFolder(const std::string& output);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace brisk
