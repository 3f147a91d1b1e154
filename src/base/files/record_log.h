// An append-only file of whole records: the lines of metrics.jsonl, TensorBoard events.
//
//   RecordLog file(path);                         // creates it if missing; UserError if that fails
//   file.append(line + "\n");                      // written when append returns
//   if (!file.problem().empty()) warn("{}", file.problem());
//
// A full disk does not stop training: the file only ever holds whole records, the rest is kept in memory until the next append,
// and problem() says so.
#pragma once

#include <string>
#include <string_view>

namespace brisk {

class RecordLog {
 public:
  explicit RecordLog(std::string path);  // an empty one: nothing is written
  ~RecordLog();
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;

  void append(std::string_view record);
  void sync();  // to the disk; call before a checkpoint, so that a power failure leaves no gap in the curve

  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }  // empty if there is none

 private:
  std::string path_, waiting_, problem_;
  int file_descriptor_ = -1;
};

}  // namespace brisk
