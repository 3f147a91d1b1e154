#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text/unicode.h"
#include "data/read/byte_reader.h"
#include "data/read/source_files.h"

namespace brisk {

namespace {

std::string_view without_line_end(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
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

int64_t newlines_in(std::string_view bytes) { return std::count(bytes.begin(), bytes.end(), '\n'); }

}  // namespace

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos; }

bool has_text(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") != std::string_view::npos; }

size_t last_blank_line_end(std::string_view text) {
  for (size_t end = text.rfind('\n'); end != std::string_view::npos;) {
    const size_t before = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (is_blank(text.substr(begin, end - begin))) return end + 1;
    end = before;
  }
  return 0;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

bool is_json_lines(const std::string& path) {
  const std::string extension = lowercase_extension(unpacked_name(path));
  return extension == ".jsonl" || extension == ".ndjson" ||
         (extension == ".json" && packing_of(path) != Packing::kNone);
}

bool is_text_file(const std::string& path) {
  const std::string extension = lowercase_extension(unpacked_name(path));
  return extension == ".txt" || is_json_lines(path) || (extension.empty() && packing_of(path) != Packing::kNone);
}

void check_extension(const std::string& path) {
  static const std::map<std::string, const char*> fixes = {
      {".bz2", "compressed with bzip2; compress it with gzip or zstd instead (bunzip2 -k)"},
      {".xz", "compressed with xz; compress it with gzip or zstd instead (unxz -k)"},
      {".zip", "an archive; unpack it first (unzip)"},
      {".tar", "an archive; unpack it first (tar -xf)"},
      {".tgz", "an archive; unpack it first (tar -xf)"},
      {".json", "a JSON file; write one object a line to a .jsonl file (jq -c '.[]' file.json > file.jsonl)"},
      {".csv", "a table; write its text column to a .txt or .jsonl file"},
      {".tsv", "a table; write its text column to a .txt or .jsonl file"},
      {".parquet", "a Parquet table; write its text column to a .txt or .jsonl file"},
      {".pdf", "a PDF; extract its text to a .txt file (pdftotext)"},
  };
  if (is_json_lines(path)) return;
  const auto found = fixes.find(lowercase_extension(unpacked_name(path)));
  if (found != fixes.end()) {
    user_error("{}: expected .txt or .jsonl, plain or compressed (.gz, .zst); this is {}", path, found->second);
  }
}

void check_text(const std::string& path, std::string_view bytes, int64_t offset, int64_t line) {
  const size_t nul = bytes.find('\0');
  const std::optional<size_t> invalid = find_invalid_utf8(bytes.substr(0, nul));
  if (!invalid && nul == std::string_view::npos) return;
  const auto place = [&](size_t at) {
    return fmt::format("byte {} (line {})", offset + static_cast<int64_t>(at), line + newlines_in(bytes.substr(0, at)));
  };
  const std::string_view first_bytes = bytes.substr(0, 4);
  if (offset == 0 && packing_of(path) == Packing::kNone &&
      (first_bytes.starts_with("\x1F\x8B") || first_bytes == "\x28\xB5\x2F\xFD")) {
    user_error("{}: compressed data; rename it to {}{}", path, path, first_bytes[0] == '\x1F' ? ".gz" : ".zst");
  }
  // A file with NUL bytes near its first bad byte is no text in any encoding but UTF-16 and UTF-32.
  if (!invalid || (nul != std::string_view::npos && nul < *invalid + 4096)) {
    user_error(
        "{}: {}: a NUL byte, so this is binary data, not text; give UTF-8 text (if it is UTF-16: iconv -f utf-16 -t "
        "utf-8)",
        path, place(nul));
  }
  user_error(
      "{}: {}: not UTF-8: found 0x{:02X}; convert the file (if it is Latin-1: iconv -f latin1 -t utf-8 FILE > NEW)",
      path, place(*invalid), static_cast<unsigned>(static_cast<unsigned char>(bytes[*invalid])));
}

void make_line_ends_plain(std::string& text) {
  size_t to = text.find("\r\n");
  if (to == std::string::npos) return;
  for (size_t from = to; from < text.size(); ++from) {
    if (text[from] == '\r' && from + 1 < text.size() && text[from + 1] == '\n') continue;
    text[to++] = text[from];
  }
  text.resize(to);
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

std::string_view first_part_of_document(std::string_view text) {
  size_t begin = 0;
  for (size_t newline; (newline = text.find('\n', begin)) != std::string_view::npos; begin = newline + 1) {
    if (!is_blank(text.substr(begin, newline - begin))) break;
  }
  return text.substr(begin);
}

std::string_view last_part_of_document(std::string_view text) {
  for (size_t newline; (newline = text.rfind('\n')) != std::string_view::npos;) {
    if (!is_blank(text.substr(newline + 1))) break;
    text = text.substr(0, newline);
  }
  return without_line_end(text);
}

}  // namespace brisk
