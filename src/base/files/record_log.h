// A file that only grows, by whole records: the lines of metrics.jsonl, the events TensorBoard reads.
//
//   RecordLog file(path);                         // creates it where it is not there; UserError where it cannot
//   file.append(line + "\n");                      // in the file when append returns
//   if (!file.problem().empty()) warn("{}", file.problem());
//
// A full disk does not stop training: the file keeps whole records, the rest waits in memory for the next append, and
// problem() says so.
#pragma once

#include <string>
#include <string_view>

namespace brisk {

class RecordLog {
 public:
  explicit RecordLog(std::string path);
  ~RecordLog();
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;

  void append(std::string_view record);
  void sync();  // to the disk itself; call before a checkpoint, so that a power cut leaves no gap in the curve

  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }  // empty: none

 private:
  std::string path_, waiting_, problem_;
  int file_descriptor_ = -1;
};

}  // namespace brisk
