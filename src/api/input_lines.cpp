#include "api/input_lines.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/terminal/terminal.h"

namespace brisk {

void for_each_input_line(const ReadBytes& read, const std::string& name,
                         const std::function<void(std::string_view line)>& on_line,
                         const std::function<void()>& on_block) {
  constexpr size_t kLongestLine = size_t{64} << 20;
  std::string rest, block(size_t{1} << 16, '\0');
  int64_t line = 1;
  for (size_t size = 0; (size = read(block.data(), block.size())) > 0;) {
    size_t seen = rest.size(), begin = 0;  // no line ends before `seen`
    rest.append(block.data(), size);
    for (size_t end = 0; (end = rest.find('\n', std::max(begin, seen))) != std::string::npos; begin = end + 1, ++line) {
      const bool windows = end > begin && rest[end - 1] == '\r';
      on_line(std::string_view(rest).substr(begin, end - begin - (windows ? 1 : 0)));
    }
    rest.erase(0, begin);
    if (rest.size() > kLongestLine) {
      user_error("{}: line {}: a line of more than {}; divide it into several texts, one on each line", name, line,
                 format_bytes(static_cast<double>(kLongestLine)));
    }
    on_block();
  }
  if (!rest.empty()) on_line(rest);
}

}  // namespace brisk
