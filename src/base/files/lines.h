// The lines of a run's log (metrics.jsonl, ledger.jsonl, samples.jsonl), in constant memory: there may be millions.
//
//   for_each_log_line(run + "/metrics.jsonl", [&](const LogLine& line) {
//     if (line.whole) use(line.text);
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace brisk {

struct LogLine {
  std::string_view text;  // without its line end; of one that is too long, its beginning
  int64_t number = 1;
  bool ended = true;      // by a line end: the last line of a killed process is not
  bool too_long = false;  // longer than file_kind::kLongestLogLine: no line of ours
};

// UserError as read_file() where it cannot be read; nothing where there is no such file.
void for_each_log_line(const std::string& path, const std::function<void(const LogLine& line)>& use);

}  // namespace brisk
