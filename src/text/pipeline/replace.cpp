#include "text/pipeline/replace.h"

#include "base/error.h"

namespace brisk {

Replace::Replace(const TextPattern& pattern, std::string content, const std::string& place)
    : literal_(pattern.text), content_(std::move(content)) {
  if (pattern.is_regex) regex_.emplace(pattern.text, place);
}

void check_growth(size_t size_before, size_t size_after, const char* who) {
  constexpr size_t kMostGrowth = 256, kAlways = 1 << 16;
  if (size_after > kAlways + kMostGrowth * size_before) {
    user_error("the tokenizer's {} {} bytes or more of a text of {}: check its patterns and replacements", who,
               size_after, size_before);
  }
}

std::string Replace::apply(std::string_view text) const {
  std::string out;
  size_t done = 0;
  const auto replace = [&](size_t begin, size_t end) {
    out.append(text, done, begin - done).append(content_);
    check_growth(text.size(), out.size(), "rules make");
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
