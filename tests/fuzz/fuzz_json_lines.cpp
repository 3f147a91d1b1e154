// A .jsonl file; its first line is the name of the field that holds the text.
#include "data/read/json_lines.h"
#include "data/read/source_files.h"
#include "fuzz/fuzz_input.h"

using namespace brisk;

namespace {

std::vector<std::string> texts_of(std::string_view bytes, const std::string& field) {
  std::vector<std::string> texts;
  read_json_lines("a.jsonl", bytes, field, 1, [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  const size_t cut = std::min(content.find('\n'), content.size());
  const std::string field(content.substr(0, cut));
  const std::string_view lines = content.substr(std::min(cut + 1, content.size()));
  fuzz::unless_refused([&] { check_text("a.jsonl", lines, 0, 1); });
  fuzz::unless_refused([&] {
    const std::vector<std::string> texts = texts_of(lines, field);
    for (const std::string& text : texts) fuzz::require(has_text(text), "a text is not blank");
    // A file is read in pieces of whole lines, on several threads: cut anywhere, the texts are the same.
    const size_t middle = std::min(lines.find('\n', lines.size() / 2), lines.size());
    std::vector<std::string> in_pieces = texts_of(lines.substr(0, middle), field);
    for (std::string& text : texts_of(lines.substr(middle), field)) in_pieces.push_back(std::move(text));
    fuzz::require(texts == in_pieces, "a file read in pieces has the same texts");
  });
  return 0;
}
