#include "base/files/lines.h"

#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"

namespace brisk {

namespace {

struct CloseDescriptor {
  int number;
  ~CloseDescriptor() { ::close(number); }
};

}  // namespace

void for_each_log_line(const std::string& path, const std::function<void(const LogLine& line)>& use) {
  if (!file_exists(path)) return;
  int64_t size = 0;
  const CloseDescriptor file{open_regular_file(path, &size)};
  if (size > file_kind::log.most_bytes) {
    user_error("{}: it has {}, and {} has at most {}; it is damaged: remove it, or copy it again", path,
               format_bytes(static_cast<double>(size)), file_kind::log.name,
               format_bytes(static_cast<double>(file_kind::log.most_bytes)));
  }
  std::string block(size_t{1} << 18, '\0'), rest;  // `rest`: the beginning of a line that the block before did not end
  LogLine line;
  for (;;) {
    const ssize_t count = ::read(file.number, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) user_error("{}: cannot read it: {}", path, explain_errno(errno));
    if (count == 0) break;
    std::string_view bytes(block.data(), static_cast<size_t>(count));
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      const bool fits = static_cast<int64_t>(rest.size() + piece.size()) <= file_kind::kLongestLogLine;
      if (!fits) line.too_long = true;
      if (end == std::string_view::npos) {
        if (fits) rest += piece;
        break;
      }
      if (rest.empty()) {
        line.text = piece.substr(0, static_cast<size_t>(file_kind::kLongestLogLine));
      } else {
        if (fits) rest += piece;
        line.text = rest;
      }
      use(line);
      rest.clear();
      line = {.number = line.number + 1};
      bytes.remove_prefix(end + 1);
    }
  }
  if (rest.empty() && !line.too_long) return;
  line.text = rest;
  line.ended = false;
  use(line);
}

}  // namespace brisk
