#include "data/read/delimited.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "data/read/source_files.h"

namespace brisk {

namespace {

constexpr size_t kNowhere = std::string_view::npos;

// Goes through a text cell by cell. Both the division into pieces and the reading of them go by it, so that they never
// disagree about where a record ends.
class CellScanner {
 public:
  CellScanner(std::string_view text, const DelimitedFormat& format) : text_(text), format_(format) {}

  struct Cell {
    std::string_view text;  // between the quotes, where there are any
    bool quoted = false;    // it begins with a quote
    bool closed = true;     // and has another that ends it
    bool doubled = false;   // quotes inside are written twice
    char after_quote = 0;   // what follows the closing quote, where that is neither separator nor line end
    bool ends_record = false;
    bool ends_text = false;  // nothing follows, not even a line end
  };

  bool at_end() const { return at_ >= text_.size(); }
  size_t position() const { return at_; }

  Cell next() {
    Cell cell;
    const size_t begin = at_;
    if (format_.quotes && begin < text_.size() && text_[begin] == '"') {
      cell.quoted = true;
      const size_t quote = closing_quote(begin + 1, cell.doubled);
      cell.closed = quote != kNowhere;
      cell.text = text_.substr(begin + 1, cell.closed ? quote - begin - 1 : kNowhere);
      at_ = cell.closed ? quote + 1 : text_.size();
    }
    const size_t rest = at_;
    if (line_end_ < rest || rest == 0) line_end_ = std::min(text_.find('\n', rest), text_.size());
    const size_t separator = text_.substr(0, line_end_).find(format_.separator, rest);
    const bool at_line_end = separator == kNowhere;
    at_ = at_line_end ? line_end_ : separator;
    std::string_view tail = text_.substr(rest, at_ - rest);
    if (at_line_end && tail.ends_with('\r')) tail.remove_suffix(1);
    if (!cell.quoted) {
      cell.text = tail;
    } else if (!tail.empty()) {
      cell.after_quote = tail[0];
    }
    cell.ends_record = at_line_end;
    cell.ends_text = at_ == text_.size();
    if (at_ < text_.size()) ++at_;
    return cell;
  }

 private:
  size_t closing_quote(size_t from, bool& doubled) const {
    for (;;) {
      const size_t quote = text_.find('"', from);
      if (quote == kNowhere) return kNowhere;
      if (quote + 1 >= text_.size() || text_[quote + 1] != '"') return quote;
      doubled = true;
      from = quote + 2;
    }
  }

  std::string_view text_;
  DelimitedFormat format_;
  size_t at_ = 0;
  size_t line_end_ = 0;  // the first line end that is not before the cell
};

void append_undoubled(std::string_view text, std::string& out) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t quote = std::min(text.find('"', begin), text.size());
    out.append(text, begin, quote - begin);
    if (quote < text.size()) out += '"';
    begin = quote + 2;
  }
}

// How a text looks in a format, from as much of it as is whole.
struct Trial {
  bool well_formed = true;  // quotes are closed, and where a cell ends
  bool doubled = false;     // there are quotes inside of quotes
  bool all_quoted = true;
  size_t least_cells = SIZE_MAX, most_cells = 0;

  bool is_table() const { return well_formed && least_cells == most_cells && most_cells > 1; }
};

Trial try_format(std::string_view beginning, const DelimitedFormat& format) {
  Trial trial;
  const size_t whole = whole_records(beginning, format);
  const std::string_view text = whole > 0 ? beginning.substr(0, whole) : beginning;
  size_t cells = 0;
  bool any = false;
  for (CellScanner scanner(text, format); !scanner.at_end();) {
    const CellScanner::Cell cell = scanner.next();
    trial.well_formed &= cell.closed && cell.after_quote == 0;
    trial.all_quoted &= cell.quoted;
    trial.doubled |= cell.quoted && cell.doubled;
    ++cells;
    if (!cell.ends_record) continue;
    if (cells > 1 || cell.quoted || !is_blank(cell.text)) {
      trial.least_cells = std::min(trial.least_cells, cells);
      trial.most_cells = std::max(trial.most_cells, cells);
      any = true;
    }
    cells = 0;
  }
  trial.all_quoted &= any;
  return trial;
}

}  // namespace

void for_each_record(const std::string& path, std::string_view text, const DelimitedFormat& format, int64_t first_line,
                     const RecordBody& body) {
  std::vector<std::string_view> cells;
  std::string undoubled;
  undoubled.reserve(text.size());  // cells are views of it, so it may not move
  int64_t line = first_line, record_line = first_line;
  bool any_quoted = false;
  for (CellScanner scanner(text, format); !scanner.at_end();) {
    const CellScanner::Cell cell = scanner.next();
    if (!cell.closed) {
      user_error(
          "{}: line {}: a quoted cell begins here and is never closed; end it with a quote, or if a text "
          "begins with a quote, write \"\"\" for it",
          path, line);
    }
    if (cell.quoted) line += std::count(cell.text.begin(), cell.text.end(), '\n');
    if (cell.after_quote != 0) {
      user_error(
          "{}: line {}: a quote ends a cell, but '{}' follows instead of '{}' or a line end; a quote inside quotes "
          "is written twice (\"\")",
          path, line, cell.after_quote, format.separator == '\t' ? "tab" : std::string(1, format.separator));
    }
    if (cell.doubled) {
      const size_t begin = undoubled.size();
      append_undoubled(cell.text, undoubled);
      cells.push_back(std::string_view(undoubled).substr(begin));
    } else {
      cells.push_back(cell.text);
    }
    any_quoted |= cell.quoted;
    // A separator at the very end of the text opens one more cell, which has nothing in it.
    if (!cell.ends_record && scanner.at_end()) cells.push_back({});
    if (!cell.ends_record && !scanner.at_end()) continue;
    if (cells.size() > 1 || any_quoted || !is_blank(cells[0])) body(cells, record_line);
    cells.clear();
    undoubled.clear();
    any_quoted = false;
    record_line = ++line;
  }
}

size_t whole_records(std::string_view text, const DelimitedFormat& format) {
  if (!format.quotes) return text.rfind('\n') + 1;  // npos + 1 is 0
  size_t end = 0;
  for (CellScanner scanner(text, format); !scanner.at_end();) {
    const CellScanner::Cell cell = scanner.next();
    if (cell.ends_record && !cell.ends_text) end = scanner.position();
  }
  return end;
}

DelimitedFormat guess_csv_format(std::string_view beginning) {
  beginning = without_byte_order_mark(beginning);
  for (const char separator : {',', ';', '\t', '|'}) {
    const DelimitedFormat format{separator, true};
    if (try_format(beginning, format).is_table()) return format;
  }
  return {};
}

DelimitedFormat guess_tsv_format(std::string_view beginning) {
  beginning = without_byte_order_mark(beginning);
  const DelimitedFormat quoted{'\t', true}, plain{'\t', false};
  const Trial with = try_format(beginning, quoted), without = try_format(beginning, plain);
  return with.is_table() && (with.doubled || with.all_quoted || !without.is_table()) ? quoted : plain;
}

}  // namespace brisk
