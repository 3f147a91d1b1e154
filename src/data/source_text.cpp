#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "data/pieces.h"
#include "data/source_files.h"
#include "text/unicode.h"

namespace brisk {

namespace {

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos; }

std::string_view without_line_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

// Calls body(line) for each line, its line end left out.
template <typename Body>
void for_each_line(std::string_view text, const Body& body) {
  for (size_t begin = 0; begin < text.size();) {
    const void* newline = std::memchr(text.data() + begin, '\n', text.size() - begin);
    const size_t end = newline ? static_cast<size_t>(static_cast<const char*>(newline) - text.data()) : text.size();
    body(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

int64_t line_of_byte(std::string_view bytes, size_t offset) {
  return 1 + std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
}

std::vector<size_t> cut_at_lines(std::string_view bytes, size_t size) {
  std::vector<size_t> ends;
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = bytes.size();
    if (bytes.size() - begin > size) {
      const size_t newline = bytes.find('\n', begin + size);
      if (newline != std::string_view::npos) end = newline + 1;
    }
    ends.push_back(end);
    begin = end;
  }
  return ends;
}

bool is_json_lines(const std::string& path) {
  const std::string extension = lowercase_extension(path);
  return extension == ".jsonl" || extension == ".ndjson";
}

void check_extension(const std::string& path) {
  static const std::map<std::string, const char*> fixes = {
      {".gz", "compressed; unpack it first (gunzip -k)"},
      {".bz2", "compressed; unpack it first (bunzip2 -k)"},
      {".xz", "compressed; unpack it first (unxz -k)"},
      {".zst", "compressed; unpack it first (unzstd)"},
      {".zip", "an archive; unpack it first (unzip)"},
      {".tar", "an archive; unpack it first (tar -xf)"},
      {".json", "a JSON file; write one object a line to a .jsonl file (jq -c '.[]' file.json > file.jsonl)"},
      {".csv", "a table; write its text column to a .txt or .jsonl file"},
      {".tsv", "a table; write its text column to a .txt or .jsonl file"},
      {".parquet", "a Parquet table; write its text column to a .txt or .jsonl file"},
      {".pdf", "a PDF; extract its text to a .txt file (pdftotext)"},
  };
  const auto found = fixes.find(lowercase_extension(path));
  if (found != fixes.end()) user_error("{}: expected .txt or .jsonl, this is {}", path, found->second);
}

void check_text(const std::string& path, std::string_view bytes) {
  const std::vector<size_t> ends = cut_at_lines(bytes, size_t{4} << 20);
  run_pieces(static_cast<int64_t>(ends.size()), [&](int64_t piece) {
    const size_t begin = piece == 0 ? 0 : ends[static_cast<size_t>(piece) - 1];
    const std::string_view part = bytes.substr(begin, ends[static_cast<size_t>(piece)] - begin);
    const size_t nul = part.find('\0');
    const std::optional<size_t> invalid = find_invalid_utf8(part.substr(0, nul));
    if (!invalid && nul == std::string_view::npos) return;
    const size_t offset = begin + invalid.value_or(nul);
    const int64_t line = line_of_byte(bytes, offset);
    // A file with NUL bytes near its first bad byte is no text in any encoding but UTF-16 and UTF-32.
    if (!invalid || bytes.substr(0, offset + 4096).find('\0') != std::string_view::npos) {
      const size_t first = bytes.find('\0');
      user_error(
          "{}: byte {} (line {}): a NUL byte, so this is binary data, not text; give UTF-8 text "
          "(if it is UTF-16: iconv -f utf-16 -t utf-8)",
          path, first, line_of_byte(bytes, first));
    }
    user_error(
        "{}: byte {} (line {}): not UTF-8: found 0x{:02X}; convert the file (if it is Latin-1: "
        "iconv -f latin1 -t utf-8 FILE > NEW)",
        path, offset, line, static_cast<unsigned>(static_cast<unsigned char>(bytes[offset])));
  });
}

TextShape measure_text_shape(std::string_view text) {
  TextShape shape;
  bool inside = false;
  for_each_line(without_byte_order_mark(text), [&](std::string_view line) {
    const bool blank = is_blank(line);
    shape.lines += blank ? 0 : 1;
    shape.blocks += blank || inside ? 0 : 1;
    inside = !blank;
  });
  return shape;
}

void append_text_documents(std::string_view text, DocumentRule rule, std::vector<std::string_view>& documents) {
  BRISK_CHECK(rule != DocumentRule::kAuto, "the rule is chosen by Source");
  text = without_byte_order_mark(text);
  const char* first = nullptr;  // of the document under way
  const char* last = nullptr;   // past its last line that is not blank
  const auto finish = [&] {
    if (first != nullptr) documents.push_back(without_line_end({first, static_cast<size_t>(last - first)}));
    first = nullptr;
  };
  for_each_line(text, [&](std::string_view line) {
    if (is_blank(line)) {
      if (rule == DocumentRule::kBlock) finish();
      return;
    }
    if (first == nullptr) first = line.data();
    last = line.data() + line.size();
    if (rule == DocumentRule::kLine) finish();
  });
  finish();
}

}  // namespace brisk
