#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/text/printable.h"
#include "base/text/spelling.h"
#include "data/read/json_lines.h"
#include "data/read/source_files.h"
#include "data/table/column_names.h"
#include "data/table/input_table.h"
#include "image/image_file.h"

namespace brisk {

namespace {

// The names of columns, for a message.
std::string list_of(const std::vector<std::string>& columns) {
  constexpr size_t kMost = 40;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMost, columns.size()); ++i) names.push_back(printable(columns[i], 40));
  if (columns.size() > kMost) names.push_back(fmt::format("... ({} in all)", columns.size()));
  return fmt::format("{}", fmt::join(names, ", "));
}

constexpr size_t kRowsLookedAt = 1000;

bool is_number(std::string_view cell) {
  while (cell.starts_with(' ')) cell.remove_prefix(1);
  while (cell.ends_with(' ')) cell.remove_suffix(1);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  double value = 0;
  const auto [end, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return !cell.empty() && problem == std::errc() && end == cell.data() + cell.size();
}

int64_t count_words(std::string_view text) {
  int64_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    words += !space && !inside;
    inside = !space;
  }
  return words;
}

// What is in the first rows of a column.
struct ColumnLook {
  int64_t cells = 0, numbers = 0;  // with something in them
  int64_t bytes = 0, words = 0;
  std::set<std::string> values;

  double mean_bytes() const { return cells > 0 ? static_cast<double>(bytes) / static_cast<double>(cells) : 0; }
  double mean_words() const { return cells > 0 ? static_cast<double>(words) / static_cast<double>(cells) : 0; }
  bool is_numeric() const { return cells > 0 && numbers == cells; }
};

using Row = std::vector<std::string>;

std::vector<ColumnLook> look_at(const std::vector<Row>& rows, size_t first, size_t columns) {
  std::vector<ColumnLook> looks(columns);
  for (size_t i = first; i < rows.size(); ++i) {
    for (size_t column = 0; column < std::min(columns, rows[i].size()); ++column) {
      const std::string& cell = rows[i][column];
      if (!has_text(cell)) continue;
      ColumnLook& look = looks[column];
      ++look.cells;
      look.numbers += is_number(cell);
      look.bytes += std::ssize(cell);
      look.words += count_words(cell);
      look.values.insert(cell);
    }
  }
  return looks;
}

Row trimmed(Row cells) {
  for (std::string& cell : cells) {
    cell.erase(0, std::min(cell.size(), cell.find_first_not_of(" \t")));
    cell.erase(cell.find_last_not_of(" \t") + 1);
  }
  return cells;
}

bool is_usual_name(const std::string& cell) {
  const std::string name = plain_name(cell);
  const auto is_name = [&](const std::string& other) { return name == other; };
  return std::any_of(kTextNames.begin(), kTextNames.end(), is_name) ||
         std::any_of(kLabelNames.begin(), kLabelNames.end(), is_name) ||
         std::any_of(kPairNames.begin(), kPairNames.end(),
                     [&](const auto& pair) { return name == pair.first || name == pair.second; });
}

// "de", "pt-BR", "zh_cn", "eng_Latn", "German".
bool is_language(const std::string& cell) {
  static constexpr std::string_view kCodes =
      " aa af am ar as az ba be bg bn bo br bs ca co cs cy da de dv el en eo es et eu fa fi fo fr fy ga gd gl gn gu ha he hi "
      "hr ht hu hy ia id ig is it iu ja jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn mr ms mt my nb ne nl nn no oc "
      "om or pa pl ps pt qu rm ro ru rw sa sd se si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt "
      "ug uk ur uz vi wo xh yi yo zh zu "
      "ara ces cmn dan deu ell eng est fas fin fra heb hin hrv hun ind ita jpn kor lit lvs mar mlt nld nob pes pol por ron "
      "rus slk slv spa srp swe swh tam tel tha tur ukr urd vie zho "
      "arabic bengali bulgarian catalan chinese croatian czech danish deutsch dutch english estonian finnish french german "
      "greek hebrew hindi hungarian indonesian italian japanese korean latin latvian lithuanian norwegian persian polish "
      "portuguese romanian russian slovak slovenian spanish swedish thai turkish ukrainian urdu vietnamese ";
  std::string name = cell.substr(0, cell.find_first_of("-_"));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name.size() > 1 && name.find(' ') == std::string::npos &&
         kCodes.find(" " + name + " ") != std::string_view::npos;
}

// Columns that are called by languages, where what is below them are texts: the first row of a dictionary may look so, too.
std::vector<int64_t> language_columns(const Row& names, const std::vector<ColumnLook>& looks) {
  std::vector<int64_t> columns;
  for (size_t column = 0; column < std::min(names.size(), looks.size()); ++column) {
    const ColumnLook& look = looks[column];
    constexpr double kTextWords = 1.5, kTextBytes = 12;  // some languages have no spaces
    const bool has_texts = look.mean_words() > kTextWords || look.mean_bytes() > kTextBytes;
    if (has_texts && is_language(names[column])) columns.push_back(static_cast<int64_t>(column));
  }
  return columns;
}

// Does the first row name the columns? It does where one of them has a usual name or the one that the user gave. Else
// a number in it says no; numbers under a word, or texts under single words that never come again, say yes.
bool has_header(const std::vector<Row>& rows, const TableOptions& options) {
  const Row first = trimmed(rows[0]);
  const std::set<std::string> different(first.begin(), first.end());
  for (const std::string& field : {options.text_field, options.label_field, options.pair_field}) {
    if (!field.empty() && !is_number(field) && different.contains(field)) return true;
  }
  const auto unnamed = std::count(first.begin(), first.end(), "");  // spreadsheets have such columns
  const bool all_different = std::ssize(different) - (unnamed > 0 ? 1 : 0) + unnamed == std::ssize(first);
  if (options.images) return all_different && std::none_of(first.begin(), first.end(), is_image_file);
  if (options.translations) {  // a short text and its translation would pass for two names
    const auto is_name = [&](const std::string& cell) {
      return is_usual_name(cell) ||
             std::any_of(kTranslationNames.begin(), kTranslationNames.end(), [&](const auto& names) {
               return plain_name(cell) == names.first || plain_name(cell) == names.second;
             });
    };
    const bool has_names = std::count_if(first.begin(), first.end(), is_name) > 1 ||
                           language_columns(first, look_at(rows, 1, first.size())).size() > 1;
    return all_different && has_names && std::none_of(first.begin(), first.end(), is_number);
  }
  if (std::any_of(first.begin(), first.end(), is_number)) return false;
  if (all_different && std::any_of(first.begin(), first.end(), is_usual_name) &&
      std::all_of(first.begin(), first.end(), [](const std::string& cell) { return count_words(cell) <= 6; })) {
    return true;
  }
  if (rows.size() < 2 || !all_different) return false;
  const std::vector<ColumnLook> looks = look_at(rows, 1, first.size());
  bool texts_below = false;
  for (size_t column = 0; column < first.size(); ++column) {
    if (first[column].empty()) continue;
    if (looks[column].is_numeric()) return true;
    if (looks[column].values.contains(first[column]) || count_words(first[column]) > 2) return false;
    texts_below |= looks[column].mean_words() > 3;
  }
  return texts_below;
}

// The columns of one file, named or looked for.
class ColumnFinder {
 public:
  ColumnFinder(TableFile& file, const std::vector<Row>& rows, const TableOptions& options)
      : file_(file), options_(options), looks_(look_at(rows, file.header ? 1 : 0, file.columns.size())) {}

  std::string find() {
    if (!options_.text_field.empty()) file_.text = named(options_.text_field, "text_field");
    if (!options_.pair_field.empty()) file_.pair = named(options_.pair_field, "pair_field");
    if (options_.labelled && !options_.label_field.empty()) file_.label = named(options_.label_field, "label_field");
    const bool find_text = file_.text < 0, find_label = options_.labelled && file_.label < 0;
    const bool find_pair = find_text && file_.pair < 0;
    bool by_names = true;
    if (options_.translations) return find_translations();
    if (options_.images) return find_images();
    if (find_text) by_names &= find_text_by_name(find_pair);
    if (find_label) by_names &= find_label_by_name();
    if (find_text && file_.text < 0) find_text_by_content();
    if (find_label && file_.label < 0) find_label_by_content();
    check_different();
    const auto column_text = [&](int64_t column) {
      return file_.header || file_.kind == TableKind::kJsonLines ? in_quotes(name(column))
                                                                 : fmt::format("number {}", column);
    };
    std::string note = fmt::format("{}: {}text in column {}", file_.path,
                                   file_.header || is_json() ? "" : "no header row; ", column_text(file_.text));
    if (file_.pair >= 0) note += fmt::format(", second text in {}", column_text(file_.pair));
    if (file_.label >= 0) note += fmt::format(", labels in {}", column_text(file_.label));
    if (find_text || find_label) {
      note += fmt::format(
          " (found by {}; {} {})", by_names ? "name" : "what is in the first rows", options_.option("text_field"),
          options_.labelled ? fmt::format("and {} choose others", options_.option("label_field")) : "chooses another");
      if (!other_labels_.empty())
        note += fmt::format("; labels might also be in \"{}\"", fmt::join(other_labels_, "\", \""));
    }
    return note;
  }

 private:
  // The columns of a text and its translation.
  std::string find_translations() {
    const bool open = file_.text < 0 || file_.pair < 0;
    const char* how = "by name";
    for (const auto& [source, target] : kTranslationNames) {
      if (file_.text >= 0 && file_.pair >= 0) break;
      const int64_t one = file_.text >= 0 ? file_.text : column_called(source);
      const int64_t two = file_.pair >= 0 ? file_.pair : column_called(target);
      if (one < 0 || two < 0 || one == two) continue;
      file_.text = one;
      file_.pair = two;
    }
    // (The keys of an object have no order.)
    const bool two = file_.columns.size() == 2 && !is_json();
    const std::vector<int64_t> languages =
        file_.header ? language_columns(file_.columns, looks_) : std::vector<int64_t>();
    if (file_.text < 0 && file_.pair < 0 && languages.size() == 2) {
      file_.text = languages[0];
      file_.pair = languages[1];
      how = "as the two languages, in their order";
    } else if (file_.text < 0 && file_.pair < 0 && two) {
      file_.text = 0;
      file_.pair = 1;
      how = "as the first and the second column";
    } else if ((file_.text < 0) != (file_.pair < 0) && file_.columns.size() == 2) {
      (file_.text < 0 ? file_.text : file_.pair) = 1 - std::max(file_.text, file_.pair);
      how = "as the other column";
    }
    if (file_.text < 0 || file_.pair < 0) {
      user_error("{}: which columns hold the texts and their translations is not clear; {}; set {} and {}", file_.path,
                 columns_text(), options_.option("text_field"), options_.option("pair_field"));
    }
    check_different();
    const auto column_text = [&](int64_t column) {
      return file_.header || is_json() ? in_quotes(name(column)) : fmt::format("number {}", column);
    };
    return fmt::format("{}: {}texts in column {}, translations in {}{}", file_.path,
                       file_.header || is_json() ? "" : "no header row; ", column_text(file_.text),
                       column_text(file_.pair),
                       open ? fmt::format(" (found {}; {} and {} choose others)", how, options_.option("text_field"),
                                          options_.option("pair_field"))
                            : "");
  }

  // The columns of images and of their texts or labels.
  std::string find_images() {
    for (const std::string& usual : kImageNames) {
      if (file_.text < 0) file_.text = column_called(usual);
    }
    for (int64_t column = 0; file_.text < 0 && column < std::ssize(file_.columns); ++column) {
      const std::set<std::string>& values = looks_[static_cast<size_t>(column)].values;
      if (is_free(column) && !values.empty() && std::all_of(values.begin(), values.end(), is_image_file))
        file_.text = column;
    }
    int64_t& said = options_.labelled ? file_.label : file_.pair;
    const char* said_option = options_.labelled ? "label_field" : "pair_field";
    for (const std::string& usual : options_.labelled ? kLabelNames : kImageTextNames) {
      if (said < 0) said = column_called(usual);
    }
    if (said < 0 && file_.text >= 0 && file_.columns.size() == 2) said = 1 - file_.text;
    if (file_.text < 0 || said < 0) {
      user_error("{}: which column holds {} is not clear; {}; set {} and {}", file_.path,
                 file_.text < 0      ? "the image files"
                 : options_.labelled ? "the labels"
                                     : "the texts of the images",
                 columns_text(), options_.option("text_field"), options_.option(said_option));
    }
    check_different();
    const auto column_text = [&](int64_t column) {
      return file_.header || is_json() ? in_quotes(name(column)) : fmt::format("number {}", column);
    };
    return fmt::format("{}: {}images in column {}, {} in {}", file_.path,
                       file_.header || is_json() ? "" : "no header row; ", column_text(file_.text),
                       options_.labelled ? "labels" : "texts", column_text(said));
  }

  bool is_json() const { return file_.kind == TableKind::kJsonLines; }
  const std::string& name(int64_t column) const { return file_.columns[static_cast<size_t>(column)]; }
  bool is_free(int64_t column) const { return column != file_.text && column != file_.pair && column != file_.label; }

  std::string columns_text() const {
    if (!file_.header && !is_json()) {
      return fmt::format("it has no header row, and columns 0 to {}", file_.columns.size() - 1);
    }
    return "it has " + list_of(file_.columns);
  }

  int64_t named(const std::string& field, const char* option) const {
    const auto found = std::find(file_.columns.begin(), file_.columns.end(), field);
    if (found != file_.columns.end()) return found - file_.columns.begin();
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), number);
    if (!is_json() && problem == std::errc() && end == field.data() + field.size() && number >= 0 &&
        number < std::ssize(file_.columns)) {
      return number;
    }
    const std::string nearest = nearest_word(field, file_.columns);
    user_error("{}: no column \"{}\" ({}); {}{}", file_.path, field, options_.option(option), columns_text(),
               nearest.empty() || nearest == field ? "" : format_message("; did you mean \"{}\"?", nearest));
  }

  int64_t column_called(const std::string& plain) const {
    for (int64_t column = 0; column < std::ssize(file_.columns); ++column) {
      if (is_free(column) && plain_name(name(column)) == plain) return column;
    }
    return -1;
  }

  bool find_text_by_name(bool pairs) {
    if (pairs) {
      for (const auto& [first, second] : kPairNames) {
        const int64_t one = column_called(first), two = column_called(second);
        if (one < 0 || two < 0) continue;
        file_.text = one;
        file_.pair = two;
        return true;
      }
    }
    for (const std::string& usual : kTextNames) {
      file_.text = column_called(usual);
      // An empty or numeric "title" or "input" is not what is meant.
      if (file_.text >= 0 && !looks_[static_cast<size_t>(file_.text)].is_numeric()) return true;
      file_.text = -1;
    }
    return false;
  }

  bool find_label_by_name() {
    for (const std::string& usual : kLabelNames) {
      file_.label = column_called(usual);
      if (file_.label >= 0) return true;
    }
    return false;
  }

  void find_text_by_content() {
    double most = 0;
    for (int64_t column = 0; column < std::ssize(file_.columns); ++column) {
      const ColumnLook& look = looks_[static_cast<size_t>(column)];
      if (!is_free(column) || look.is_numeric() || look.mean_bytes() <= most) continue;
      most = look.mean_bytes();
      file_.text = column;
    }
    if (file_.text < 0) {
      user_error("{}: no column with text was found; {}; set {} to the one that holds it", file_.path, columns_text(),
                 options_.option("text_field"));
    }
  }

  // Several columns with the same two values are a column for each class: which of them is meant nobody can tell.
  void refuse_column_per_class() const {
    std::map<std::set<std::string>, std::vector<std::string>> columns_with;
    for (int64_t column = 0; column < std::ssize(file_.columns); ++column) {
      const std::set<std::string>& values = looks_[static_cast<size_t>(column)].values;
      if (is_free(column) && values.size() == 2) columns_with[values].push_back(fmt::format("\"{}\"", name(column)));
    }
    for (const auto& [values, columns] : columns_with) {
      if (columns.size() < 2) continue;
      constexpr size_t kMost = 20;
      const auto shown = static_cast<std::ptrdiff_t>(std::min(kMost, columns.size()));
      user_error(
          "{}: columns {}{} all hold \"{}\" and \"{}\", and none is called \"label\": set {} to the one that is meant. A "
          "column for each class is not read: write the class of each text into one column; several classes for a text "
          "(multi-label) are not supported, but a classifier can be trained for each column",
          file_.path, fmt::join(columns.begin(), columns.begin() + shown, ", "),
          columns.size() > kMost ? fmt::format(", ... ({} in all)", columns.size()) : "",
          shortened(*values.begin(), 40), shortened(*values.rbegin(), 40), options_.option("label_field"));
    }
  }

  // The column of fewest different values, where they come again: the last of them, where labels often are.
  void find_label_by_content() {
    refuse_column_per_class();
    std::vector<int64_t> possible;
    size_t fewest = SIZE_MAX;
    for (int64_t column = 0; column < std::ssize(file_.columns); ++column) {
      const ColumnLook& look = looks_[static_cast<size_t>(column)];
      const size_t different = look.values.size();
      if (!is_free(column) || different < 2 || look.mean_bytes() > 50) continue;
      if (look.cells > 10 && static_cast<int64_t>(2 * different) > look.cells) continue;
      possible.push_back(column);
      if (different > fewest) continue;
      fewest = different;
      file_.label = column;
    }
    for (const int64_t column : possible) {
      if (column != file_.label) other_labels_.push_back(name(column));
    }
    if (file_.label < 0) {
      user_error(
          "{}: no column with labels was found (a few values that repeat); {}; set {} "
          "to the one that holds them",
          file_.path, columns_text(), options_.option("label_field"));
    }
  }

  void check_different() const {
    const auto check = [&](int64_t a, int64_t b, const char* a_name, const char* b_name) {
      if (a >= 0 && a == b) {
        user_error("{}: column \"{}\" is both {} and {}; choose two different columns", file_.path, name(a),
                   options_.option(a_name), options_.option(b_name));
      }
    };
    check(file_.text, file_.label, "text_field", "label_field");
    check(file_.text, file_.pair, "text_field", "pair_field");
    check(file_.pair, file_.label, "pair_field", "label_field");
  }

  TableFile& file_;
  const TableOptions& options_;
  std::vector<ColumnLook> looks_;
  std::vector<std::string> other_labels_;  // columns that could hold them, too
};

// The columns of a further file are those of the first, by name, or by place where there are no names.
void take_columns_of(const TableFile& first, TableFile& file, const TableOptions& options) {
  const bool names = first.header || first.kind == TableKind::kJsonLines || first.kind == TableKind::kText;
  const auto same = [&](int64_t column) -> int64_t {
    if (column < 0) return -1;
    const std::string& name = first.columns[static_cast<size_t>(column)];
    if (!names) {
      if (column < std::ssize(file.columns)) return column;
      user_error("{}: no column {}, which {} has; give files with the same columns", file.path, column, first.path);
    }
    const auto found = std::find(file.columns.begin(), file.columns.end(), name);
    if (found != file.columns.end()) return found - file.columns.begin();
    // A JSON object may leave a field out, for as many lines as were looked at.
    if (file.kind == TableKind::kJsonLines) {
      file.columns.push_back(name);
      return std::ssize(file.columns) - 1;
    }
    user_error("{}: no column \"{}\", which {} has; it has {}; give files with the same columns, or set {} and {}",
               file.path, name, first.path, list_of(file.columns), options.option("text_field"),
               options.option("label_field"));
  };
  file.text = same(first.text);
  file.pair = same(first.pair);
  file.label = same(first.label);
}

// The rows of the beginning of a JSON file, a cell for each name.
void read_json_beginning(TableFile& file, std::string_view text, const TableOptions& options, std::vector<Row>& rows) {
  file.columns = json_field_names(file.path, text);
  std::vector<std::string> fields = file.columns;
  // A name may lead through lists ("pages.0.text"), which are no columns by themselves.
  for (const std::string& field : {options.text_field, options.label_field, options.pair_field}) {
    if (!field.empty() && std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
  }
  if (fields.empty()) user_error("{}: no field of the first lines holds text", file.path);
  std::vector<bool> used(fields.size(), false);
  read_json_rows(file.path, text, fields, 1, [&](std::span<const std::string_view> cells, int64_t) {
    for (size_t i = 0; i < cells.size(); ++i) used[i] = used[i] || !cells[i].empty();
    if (rows.size() < kRowsLookedAt) rows.emplace_back(cells.begin(), cells.end());
  });
  for (size_t i = file.columns.size(); i < fields.size(); ++i) {
    if (used[i]) file.columns.push_back(fields[i]);
  }
}

}  // namespace

TableFile find_columns(const std::string& path, std::string_view beginning, bool whole, const TableOptions& options,
                       const TableFile* like, std::string& note) {
  TableFile file;
  file.path = path;
  file.kind = table_kind_of(path, !options.labelled);
  std::vector<Row> rows;
  const auto refuse_without_rows = [&, looked_at = beginning.size()](bool cut) {
    const bool quotes = file.format.quotes && (file.kind == TableKind::kCsv || file.kind == TableKind::kTsv);
    user_error("{}: no row {} the first {}{}; give a file with a row for each text", path,
               cut ? "ends within" : "within", format_bytes(static_cast<double>(looked_at)),
               quotes ? " (is a quote not closed, or has the file no line ends?)"
               : cut  ? " (has the file no line ends?)"
                      : "");
  };
  if (file.kind == TableKind::kText) {
    const TextShape shape = measure_text_shape(beginning);
    file.blocks = shape.blocks > 1 && shape.lines <= shape.blocks * kLinesOfBlock;
    file.columns = {"text"};
    file.text = 0;
    note = fmt::format("{}: plain text; {} is a text", path,
                       file.blocks ? "a block between blank lines" : "each line that is not blank");
    return file;
  }
  if (file.kind == TableKind::kJsonLines) {
    if (!whole) beginning = beginning.substr(0, beginning.rfind('\n') + 1);
    if (beginning.empty()) refuse_without_rows(true);
    check_text(path, beginning, 0, 1);
    read_json_beginning(file, without_byte_order_mark(beginning), options, rows);
  } else {
    if (beginning.find('\n') == std::string_view::npos && beginning.find('\r') != std::string_view::npos) {
      user_error("{}: lines end with CR alone; convert them (tr '\\r' '\\n' < FILE > NEW)", path);
    }
    file.format = file.kind == TableKind::kCsv ? guess_csv_format(beginning) : guess_tsv_format(beginning);
    if (!whole) beginning = beginning.substr(0, last_row_end(file, beginning, 0));
    if (beginning.empty()) refuse_without_rows(true);
    check_text(path, beginning, 0, 1);
    for_each_record(path, without_byte_order_mark(beginning), file.format, 1,
                    [&](std::span<const std::string_view> cells, int64_t line) {
                      if (rows.empty()) file.header_line = line;
                      if (rows.size() < kRowsLookedAt) rows.emplace_back(cells.begin(), cells.end());
                    });
  }
  if (rows.empty()) refuse_without_rows(false);
  if (file.kind != TableKind::kJsonLines) {
    file.columns = trimmed(rows[0]);
    file.header = (like != nullptr && like->header && file.columns == like->columns) || has_header(rows, options);
    if (!file.header) {
      for (size_t i = 0; i < file.columns.size(); ++i) file.columns[i] = fmt::format("{}", i);
    }
    if (file.header && rows.size() == 1 && whole) {
      user_error("{}: a header row ({}) and nothing below it; give a file with a row for each text", path,
                 list_of(file.columns));
    }
  }
  if (like != nullptr) {
    take_columns_of(*like, file, options);
  } else {
    note = ColumnFinder(file, rows, options).find();
  }
  return file;
}

}  // namespace brisk
