#include "text/replace.h"

namespace brisk {

Replace::Replace(const TextPattern& pattern, std::string content, const std::string& place)
    : literal_(pattern.text), content_(std::move(content)) {
  if (pattern.is_regex) regex_.emplace(pattern.text, place);
}

std::string Replace::apply(std::string_view text) const {
  std::string out;
  size_t done = 0;
  const auto replace = [&](size_t begin, size_t end) {
    out.append(text, done, begin - done).append(content_);
    done = end;
  };
  if (regex_) {
    for_each_match(*regex_, text, [&](const Regex::Match& match) { replace(match.begin, match.end); });
  } else if (!literal_.empty()) {
    for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, done)) {
      replace(at, at + literal_.size());
    }
  }
  out.append(text, done);
  return out;
}

}  // namespace brisk
