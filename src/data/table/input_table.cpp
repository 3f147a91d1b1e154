#include "data/table/input_table.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/runtime.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "data/read/aligned_reader.h"
#include "data/read/json_lines.h"
#include "data/read/source_files.h"
#include "data/token_store/content_hash.h"

namespace brisk {

namespace {

constexpr size_t kBeginningBytes = size_t{1} << 20;  // what columns are found by
constexpr size_t kRowBytes = size_t{256} << 10;      // read at a time
constexpr size_t kLongestRow = size_t{64} << 20;     // a quote that is never closed would hold the file in memory

bool is_table_or_text(const std::string& path) { return is_table_file(path) || is_text_file(path); }

std::unique_ptr<ByteReader> open_table_file(const TableFile& file) {
  if (file.kind == TableKind::kAligned) return std::make_unique<AlignedReader>(file.path, file.target_path);
  return open_byte_reader(file.path);
}

// The files that each entry names, in the order of the entries.
std::vector<std::string> files_in_order(const std::vector<std::string>& entries) {
  std::vector<std::string> files;
  for (const std::string& entry : entries) {
    const std::vector<std::string> found = expand_paths({entry});
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

void for_each_aligned_line(std::string_view text, int64_t first_line, const RowBody& body) {
  for (size_t begin = 0; begin < text.size(); ++first_line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const size_t between = line.find(kBetweenTexts);
    BRISK_CHECK(between != std::string_view::npos, "line {}: one text alone", first_line);
    body({line.substr(0, between), line.substr(between + 1), {}, first_line});
    begin = end + 1;
  }
}

// A line at least, or all there is; `whole` is whether it is all.
std::string beginning_of(ByteReader& reader, bool& whole) {
  std::string text;
  whole = false;
  while (!whole &&
         (text.size() < kBeginningBytes || (text.size() < kLongestRow && text.find('\n') == std::string::npos))) {
    whole = fill_buffer(reader, text.size() + 1, text);
  }
  return text;
}

void for_each_text(const TableFile& file, std::string_view text, int64_t first_line, const RowBody& body) {
  std::vector<std::string_view> documents;
  append_text_documents(text, file.blocks ? DocumentRule::kBlock : DocumentRule::kLine, documents);
  const char* counted = text.data();
  for (const std::string_view document : documents) {
    first_line += std::count(counted, document.data(), '\n');
    counted = document.data();
    body({document, {}, {}, first_line});
  }
}

}  // namespace

bool is_table_file(const std::string& path) {
  const std::string extension = lowercase_extension(unpacked_name(path));
  return extension == ".csv" || extension == ".tsv" || extension == ".tab" || is_json_lines(path);
}

TableKind table_kind_of(const std::string& path, bool plain_text) {
  if (is_json_lines(path)) return TableKind::kJsonLines;
  const std::string extension = lowercase_extension(unpacked_name(path));
  if (extension == ".csv") return TableKind::kCsv;
  if (extension == ".tsv" || extension == ".tab") return TableKind::kTsv;
  if (plain_text && is_text_file(path)) return TableKind::kText;
  static const std::map<std::string, const char*> fixes = {
      {".txt", "plain text has no labels; if it is a table, rename it to .csv or .tsv"},
      {".json", "write one object a line to a .jsonl file (jq -c '.[]' file.json > file.jsonl)"},
      {".xls", "this is a spreadsheet; save it as CSV"},
      {".xlsx", "this is a spreadsheet; save it as CSV"},
      {".parquet", "this is a Parquet table; write it to a .csv or .jsonl file"},
      {".zip", "this is an archive; unpack it first (unzip)"},
  };
  const auto fix = fixes.find(extension);
  user_error("{}: expected a table of texts: .csv, .tsv or .jsonl, plain or compressed (.gz, .zst){}; {}", path,
             plain_text ? ", or .txt" : "", fix == fixes.end() ? "give it the extension of its format" : fix->second);
}

std::string TableOptions::option(std::string_view name) const {
  if (translations && name == "text_field") name = "source_field";
  if (translations && name == "pair_field") name = "target_field";
  if (images && (name == "text_field" || name == "pair_field"))
    name = name == "text_field" ? "image_field" : "text_field";
  return of_job ? fmt::format("data.{}", name) : option_name(name);
}

void InputTable::open_aligned() {
  const std::vector<std::string> sources = files_in_order(options_.paths),
                                 targets = files_in_order(options_.target_paths);
  if (sources.size() != targets.size()) {
    user_error("{} and {}: {} of source text, but {} of target text; give a file with the translations for each",
               fmt::join(options_.paths, ", "), fmt::join(options_.target_paths, ", "),
               plural(std::ssize(sources), "file"), plural(std::ssize(targets), "file"));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    for (const std::string& path : {sources[i], targets[i]}) {
      if (is_table_file(path)) {
        user_error("{}: a table, not a file with a text on each line; name it alone as data.train, with {} and {}",
                   path, options_.option("text_field"), options_.option("pair_field"));
      }
      unchanged_.add(path);
    }
    if (sources[i] == targets[i]) user_error("{}: named as source and as target; give two files", sources[i]);
    TableFile file;
    file.path = sources[i];
    file.target_path = targets[i];
    file.kind = TableKind::kAligned;
    file.columns = {"source", "target"};
    file.text = 0;
    file.pair = 1;
    file.bytes = file_size(sources[i]) + file_size(targets[i]);
    if (file.bytes == 0) user_error("{} and {}: both files are empty", sources[i], targets[i]);
    bytes_ += file.bytes;
    files_.push_back(std::move(file));
  }
}

InputTable::InputTable(TableOptions options) : options_(std::move(options)) {
  if (!options_.target_paths.empty()) {
    open_aligned();
    return;
  }
  SkippedFiles skipped;
  const FileChoice tables = {is_table_file, ".csv, .tsv or .jsonl"};
  const FileChoice texts = {is_table_or_text, ".csv, .tsv, .jsonl or .txt"};
  const std::vector<std::string> paths =
      expand_paths(options_.paths, &skipped, options_.labelled || options_.images ? tables : texts);
  std::string note;
  for (const std::string& path : paths) {
    if (options_.translations && !is_table_file(path)) {
      user_error(
          "{}: no table (.csv, .tsv, .jsonl); if it has a text on each line, name the file with their translations, too: {}",
          path, options_.of_job ? "{\"source\": FILE, \"target\": FILE}" : option_name("target") + " FILE");
    }
    table_kind_of(path, !options_.labelled && !options_.images);
    unchanged_.add(path);
    const int64_t size = file_size(path);
    const auto reader = open_byte_reader(path);
    bool whole = false;
    const std::string beginning = beginning_of(*reader, whole);
    if (!has_text(without_byte_order_mark(beginning)) && whole) {
      // By its name it was meant; in a folder or a glob it is one of many.
      const bool named = std::find(options_.paths.begin(), options_.paths.end(), path) != options_.paths.end();
      if (named || paths.size() == 1) user_error("{}: the file is empty; give a file with a row for each text", path);
      notes_.push_back(fmt::format("{}: empty, skipped", path));
      continue;
    }
    TableFile file = find_columns(path, beginning, whole, options_, files_.empty() ? nullptr : &files_.front(), note);
    if (files_.empty()) notes_ = options_.notes.empty() ? std::vector{note} : options_.notes;
    file.bytes = size;
    bytes_ += size;
    files_.push_back(std::move(file));
  }
  if (files_.empty()) {
    user_error("{}: every file is empty; give files with a row for each text", fmt::join(options_.paths, ", "));
  }
  for (const auto& [kind, count] : skipped)
    notes_.push_back(fmt::format("{} skipped: {}", plural(count, "file"), kind));
}

std::string InputTable::name_of_column(int64_t column) const {
  return column < 0 ? "" : files_[0].columns[static_cast<size_t>(column)];
}

uint64_t InputTable::content_hash(const std::string& memo_directory) const {
  uint64_t hash = 0;
  for (const TableFile& file : files_) {
    const auto hash_of = file.kind == TableKind::kJsonLines ? file_content_hash : text_content_hash;
    hash = hash_mix(hash, hash_of(file.path, memo_directory));
    if (file.kind == TableKind::kAligned) hash = hash_mix(hash, text_content_hash(file.target_path, memo_directory));
    hash = hash_bytes(
        fmt::format("{} {} {} {} {} {}", static_cast<int>(packing_of(file.path)), static_cast<int>(file.kind),
                    static_cast<int>(file.format.separator), file.format.quotes, file.header, file.columns.size()),
        hash);
    for (const int64_t column : {file.text, file.pair, file.label}) {
      // In a JSON file the columns are names, in others places.
      const std::string name = file.kind == TableKind::kJsonLines && column >= 0
                                   ? file.columns[static_cast<size_t>(column)]
                                   : fmt::format("{}", column);
      hash = hash_bytes(name, hash);
    }
  }
  return hash;
}

TablePieceReader::TablePieceReader(const InputTable& table, SourcePosition start) : table_(table), at_(start) {
  for (int64_t file = 0; file < at_.file; ++file) disk_bytes_before_ += table.files()[static_cast<size_t>(file)].bytes;
}

bool TablePieceReader::next(TextPiece& piece) {
  while (at_.file < std::ssize(table_.files())) {
    const TableFile& file = table_.files()[static_cast<size_t>(at_.file)];
    if (!reader_) {
      reader_ = open_table_file(file);
      if (at_.offset > 0) reader_->skip(at_.offset);
      buffer_.clear();
      file_ended_ = false;
    }
    if (next_of_file(piece)) return true;
    reader_.reset();
    disk_bytes_before_ += file.bytes;
    at_ = {at_.file + 1, 0, 1};
  }
  return false;
}

bool TablePieceReader::next_of_file(TextPiece& piece) {
  const TableFile& file = table_.files()[static_cast<size_t>(at_.file)];
  size_t end = 0;
  for (size_t size = kRowBytes; end == 0; size = std::min(2 * std::max(size, buffer_.size()), kLongestRow + 1)) {
    fill(size);
    if (buffer_.empty()) return false;
    end = file_ended_ ? buffer_.size() : last_row_end(file, buffer_, at_.offset);
    if (end == 0 && buffer_.size() > kLongestRow) {
      user_error("{}: line {}: a row of more than {}{}", file.path, at_.line,
                 format_bytes(static_cast<double>(kLongestRow)),
                 file.format.quotes && (file.kind == TableKind::kCsv || file.kind == TableKind::kTsv)
                     ? "; a quote is not closed in it"
                     : "; divide it into several");
    }
  }
  const std::string_view text = std::string_view(buffer_).substr(0, end);
  piece.text.assign(text);
  piece.begin = at_;
  at_.offset += static_cast<int64_t>(end);
  at_.line += std::count(text.begin(), text.end(), '\n');
  piece.end = at_;
  piece.opens = piece.closes = true;
  buffer_.erase(0, end);
  piece.ends_file = buffer_.empty() && (file_ended_ || (fill(1), buffer_.empty()));
  piece.disk_bytes = disk_bytes_before_ + reader_->disk_position();
  return true;
}

size_t last_row_end(const TableFile& file, std::string_view text, int64_t offset) {
  const size_t before = text.size();
  if (offset == 0) text = without_byte_order_mark(text);
  size_t end = text.rfind('\n') + 1;  // npos + 1 is 0
  if (file.kind == TableKind::kCsv || file.kind == TableKind::kTsv) end = whole_records(text, file.format);
  if (file.kind == TableKind::kText && file.blocks) end = last_blank_line_end(text);
  return end == 0 ? 0 : end + before - text.size();
}

void for_each_row(const TableFile& file, std::string_view text, int64_t offset, int64_t first_line,
                  const RowBody& body) {
  if (file.kind == TableKind::kAligned) return for_each_aligned_line(text, first_line, body);
  check_text(file.path, text, offset, first_line);
  if (offset == 0) text = without_byte_order_mark(text);
  if (file.kind == TableKind::kText) {
    std::string plain(text);
    make_line_ends_plain(plain);
    return for_each_text(file, plain, first_line, body);
  }
  if (file.kind == TableKind::kJsonLines) {
    std::vector<std::string> fields;
    for (const int64_t column : {file.text, file.pair, file.label}) {
      if (column >= 0) fields.push_back(file.columns[static_cast<size_t>(column)]);
    }
    const size_t pair = 1, label = file.pair >= 0 ? 2 : 1;
    read_json_rows(file.path, text, fields, first_line, [&](std::span<const std::string_view> cells, int64_t line) {
      body({cells[0], file.pair >= 0 ? cells[pair] : std::string_view(),
            file.label >= 0 ? cells[label] : std::string_view(), line});
    });
    return;
  }
  std::string plain_text, plain_pair;
  const auto with_plain_line_ends = [](std::string_view cell, std::string& plain) -> std::string_view {
    if (cell.find("\r\n") == std::string_view::npos) return cell;
    plain = cell;
    make_line_ends_plain(plain);
    return plain;
  };
  for_each_record(file.path, text, file.format, first_line, [&](std::span<const std::string_view> cells, int64_t line) {
    if (cells.size() != file.columns.size()) {
      const bool more = cells.size() > file.columns.size();
      const std::string separator = file.format.separator == '\t' ? "tab" : std::string(1, file.format.separator);
      user_error("{}: line {}: {} columns, expected {} as in the first row{}", file.path, line, cells.size(),
                 file.columns.size(),
                 !more                ? "; is there a line end inside a text? Put quotes around that cell"
                 : file.format.quotes ? fmt::format("; put quotes around a cell that has '{}' in it", separator)
                                      : fmt::format("; a text may not have a {} in it", separator));
    }
    if (file.header && line == file.header_line) return;
    const auto cell = [&](int64_t column) {
      return column < 0 ? std::string_view() : cells[static_cast<size_t>(column)];
    };
    body({with_plain_line_ends(cell(file.text), plain_text), with_plain_line_ends(cell(file.pair), plain_pair),
          cell(file.label), line});
  });
}

void for_each_row(const InputTable& table, const TextPiece& piece, const RowBody& body) {
  for_each_row(table.files()[static_cast<size_t>(piece.begin.file)], piece.text, piece.begin.offset, piece.begin.line,
               body);
}

bool TableRowReader::next(TableRow& row) {
  while (at_ == rows_.size()) {
    rows_.clear();
    at_ = 0;
    if (!pieces_.next(piece_)) return false;
    for_each_row(table_, piece_, [&](const TableRow& found) {
      rows_.push_back({std::string(found.text), std::string(found.pair), std::string(found.label), found.line});
    });
  }
  const HeldRow& held = rows_[at_++];
  row = {held.text, held.pair, held.label, held.line};
  return true;
}

const std::string& TableRowReader::path() const { return table_.files()[static_cast<size_t>(piece_.begin.file)].path; }

}  // namespace brisk
