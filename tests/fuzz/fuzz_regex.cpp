// The first line is a pattern, the rest a text. What a search finds is the same whether or not it remembers its states,
// and it takes no more steps than text/regex/regex_search.h promises.
#include <algorithm>
#include <utility>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "text/regex/regex.h"

using namespace brisk;

namespace {

constexpr size_t kMostSteps = 12, kLeastSteps = 10000;

size_t promised_steps(const RegexProgram& program, size_t text_size) {
  size_t levels = 1;
  for (const RegexInstruction& instruction : program.instructions) levels = std::max(levels, instruction.loops + 1ul);
  return kLeastSteps + kMostSteps * levels * program.instructions.size() * (text_size + 1);
}

std::vector<std::pair<size_t, size_t>> matches(const RegexProgram& program, std::string_view text,
                                               RegexSearch::Memory memory) {
  std::vector<std::pair<size_t, size_t>> found;
  RegexSearch search(program, text, memory);
  for_each_match(search, text, [&](const RegexMatch& match) {
    fuzz::require(match.begin <= match.end && match.end <= text.size(), "a match is in the text");
    fuzz::require(found.empty() || match.begin >= found.back().second, "matches do not overlap");
    found.emplace_back(match.begin, match.end);
  });
  fuzz::require(search.steps() <= promised_steps(program, text.size()), "a search takes linear time");
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const size_t line = std::min(input.find('\n'), input.size());
  const std::string_view pattern = input.substr(0, line), text = input.substr(std::min(line + 1, input.size()), 4096);
  fuzz::unless_refused([&] {
    const Regex regex(pattern, "pattern");
    const auto found = matches(regex.program(), text, RegexSearch::Memory::kWhenNeeded);
    fuzz::require(found == matches(regex.program(), text, RegexSearch::Memory::kAtOnce), "memory changes nothing");
  });
  return 0;
}
