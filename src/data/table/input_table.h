// Tables of texts and labels: CSV, TSV and JSON lines, plain or compressed (.gz, .zst), read in constant memory.
//
//   InputTable table({.paths = {"reviews.csv"}});             // reads the beginning of each file, finds the columns
//   for (const std::string& note : table.notes()) say("{}", note);
//       // reviews.csv: text in column "review", labels in "sentiment" (by their names)
//   TableRowReader rows(table);                          // one after the other
//   TableRow row;
//   while (rows.next(row)) use(row.text, row.label);
//
//   TablePieceReader reader(table);                      // or on all cores: data/read/piece_waves.h
//   run_waves(reader, [&](const TextPiece& piece) { for_each_row(table, piece, ...); }, ...);
//
// A column is named by the first row of a file, by its number (from 0) where that is no header, or by the field of a
// JSON object ("article.body.text", data/read/json_lines.h). Columns that are not named are looked for: by the usual names,
// else by what is in the first rows. Errors are UserErrors with the file, the line, what was found
// and the fix. Two aligned files (data/read/aligned_reader.h) are a table of pairs. Where no labels are needed, plain
// text (.txt) is a table of texts, too: its blocks between blank lines or, where there are none, its lines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/read/delimited.h"
#include "data/read/text_pieces.h"
#include "data/read/unchanged_files.h"

namespace brisk {

enum class TableKind : uint8_t { kCsv, kTsv, kJsonLines, kText, kAligned };

bool is_table_file(const std::string& path);  // by its name
// UserError, with the fix, where it is none. Plain text (.txt) is one of texts alone.
TableKind table_kind_of(const std::string& path, bool plain_text = false);

struct TableOptions {
  std::vector<std::string> paths;  // files, folders, globs
  std::string text_field = "";     // "": found
  std::string label_field = "";    // "": found
  std::string pair_field = "";     // the second text; "": none, unless the text's column was found as one of two
  bool labelled = true;            // false: labels are not looked for (to predict, to pretrain)
  // The rows are texts and their translations, in source_field and target_field: both are needed.
  bool translations = false;
  std::vector<std::string> target_paths = {};  // what is aligned with `paths`, file by file; empty: these are tables
  // The rows are images, whose files are named in image_field (a row's text), and their texts in text_field (its pair) or,
  // where `labelled`, their labels in label_field.
  bool images = false;
  std::vector<std::string> notes = {};  // of a table that brisk wrote itself, in place of what was found
  bool of_job = true;                   // these options are data.text_field, ... and not those of a call

  // Both texts of a row must be there.
  bool needs_pairs() const { return translations || (images && !labelled); }

  // What messages call an option: option("text_field"); of translations option("source_field"), of images "image_field".
  std::string option(std::string_view name) const;
};

// One file of a table: how it is read, and where the columns are.
struct TableFile {
  std::string path;
  std::string target_path;  // of two aligned files
  int64_t bytes = 0;        // on the disk
  TableKind kind = TableKind::kCsv;
  DelimitedFormat format;
  bool blocks = false;  // of plain text: a text is what is between blank lines, and not a line
  bool header = false;
  int64_t header_line = 0;
  std::vector<std::string> columns;          // their names; "0", "1", ... without a header
  int64_t text = -1, pair = -1, label = -1;  // which of the columns; -1: none
};

struct TableRow {
  std::string_view text, pair, label;  // empty: there is none
  int64_t line = 0;                    // where it begins
};

class InputTable {
 public:
  explicit InputTable(TableOptions options);

  const TableOptions& options() const { return options_; }
  const std::vector<TableFile>& files() const { return files_; }
  int64_t bytes() const { return bytes_; }
  bool has_pairs() const { return files_[0].pair >= 0; }
  bool has_labels() const { return files_[0].label >= 0; }
  std::string text_column() const { return name_of_column(files_[0].text); }
  std::string pair_column() const { return name_of_column(files_[0].pair); }    // "": none
  std::string label_column() const { return name_of_column(files_[0].label); }  // "": none

  // A hash of everything that decides the rows: the files' bytes, their formats, the columns.
  uint64_t content_hash(const std::string& memo_directory = "") const;

  // The files as they were when the table was opened; to be checked before anything made of them is kept.
  const UnchangedFiles& unchanged() const { return unchanged_; }

  // What was found, for the user.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::string name_of_column(int64_t column) const;
  void open_aligned();

  TableOptions options_;
  std::vector<TableFile> files_;
  UnchangedFiles unchanged_;
  int64_t bytes_ = 0;
  std::vector<std::string> notes_;
};

// The kind, format, header and columns of a file by the beginning of its text (`whole`: that is all there is), as
// InputTable finds them; `note` says what was found. For files of which the columns are known, `like` is the first of
// them.
TableFile find_columns(const std::string& path, std::string_view beginning, bool whole, const TableOptions& options,
                       const TableFile* like, std::string& note);

// Whole rows of the files in order, about 256 KiB at a time.
class TablePieceReader {
 public:
  explicit TablePieceReader(const InputTable& table, SourcePosition start = {});

  bool next(TextPiece& piece);  // false at the end

 private:
  bool next_of_file(TextPiece& piece);
  // The buffer, up to this many bytes or the end of the file.
  void fill(size_t size) { file_ended_ = file_ended_ || fill_buffer(*reader_, size, buffer_); }

  const InputTable& table_;
  SourcePosition at_;
  std::unique_ptr<ByteReader> reader_;
  std::string buffer_;
  bool file_ended_ = false;
  int64_t disk_bytes_before_ = 0;  // of the files before this one
};

using RowBody = std::function<void(const TableRow& row)>;

// The rows of a piece, the header left out. A row with another number of columns than the first is a UserError.
void for_each_row(const InputTable& table, const TextPiece& piece, const RowBody& body);

// The same for text in memory, of which `offset` bytes come before it.
void for_each_row(const TableFile& file, std::string_view text, int64_t offset, int64_t first_line,
                  const RowBody& body);

// Where the last row of `text` ends, line end included, when more may come after it; 0: nowhere.
size_t last_row_end(const TableFile& file, std::string_view text, int64_t offset);

// Reads one row after the other, on one core.
class TableRowReader {
 public:
  explicit TableRowReader(const InputTable& table) : table_(table), pieces_(table) {}

  bool next(TableRow& row);         // false at the end; the row lives until the next call
  const std::string& path() const;  // of the row's file

 private:
  struct HeldRow {
    std::string text, pair, label;
    int64_t line;
  };

  const InputTable& table_;
  TablePieceReader pieces_;
  TextPiece piece_;
  std::vector<HeldRow> rows_;
  size_t at_ = 0;
};

}  // namespace brisk
