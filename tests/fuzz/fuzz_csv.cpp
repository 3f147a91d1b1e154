// A .csv, .tsv or .jsonl file of texts and labels; its first line says which, and names the columns or leaves them to
// be found: "csv", "tsv text label", "jsonl article.body label other".
#include <sstream>

#include "data/read/source_files.h"
#include "data/table/input_table.h"
#include "data/table/labels.h"
#include "fuzz/fuzz_input.h"

using namespace brisk;

namespace {

struct Rows {
  std::vector<std::string> texts, pairs, labels;
  std::vector<int64_t> lines;

  bool operator==(const Rows&) const = default;
};

void read(const TableFile& file, std::string_view text, int64_t offset, int64_t line, Rows& rows) {
  for_each_row(file, text, offset, line, [&](const TableRow& row) {
    rows.texts.emplace_back(row.text);
    rows.pairs.emplace_back(row.pair);
    rows.labels.emplace_back(row.label);
    rows.lines.push_back(row.line);
  });
}

void check_rows(const TableFile& file, std::string_view text) {
  Rows whole;
  read(file, text, 0, 1, whole);
  const int64_t lines = 1 + std::count(text.begin(), text.end(), '\n');
  for (size_t i = 0; i < whole.lines.size(); ++i) {
    fuzz::require(whole.lines[i] >= 1 && whole.lines[i] <= lines, "a row begins on a line of the file");
    fuzz::require(i == 0 || whole.lines[i] > whole.lines[i - 1], "rows are in order");
    fuzz::require(whole.texts[i].size() + whole.pairs[i].size() + whole.labels[i].size() <= text.size() ||
                      file.kind == TableKind::kJsonLines,
                  "a row is no longer than the file");
  }
  // A file is read in pieces of whole rows, on several threads: cut anywhere, the rows are the same.
  const size_t cut = last_row_end(file, text.substr(0, text.size() / 2), 0);
  if (cut > 0) {
    Rows pieces;
    const std::string_view first = text.substr(0, cut);
    read(file, first, 0, 1, pieces);
    read(file, text.substr(cut), static_cast<int64_t>(cut), 1 + std::count(first.begin(), first.end(), '\n'), pieces);
    fuzz::require(pieces == whole, "a file read in pieces has the same rows");
  }
  const LabelSet labels(whole.labels);
  for (const std::string& label : whole.labels) {
    if (trimmed_label(label) == label) fuzz::require(labels.find(label) >= 0, "a label of the set is found");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  const size_t cut = std::min(content.find('\n'), content.size());
  const std::string_view text = content.substr(std::min(cut + 1, content.size()));
  std::istringstream words{std::string(content.substr(0, cut))};
  std::string extension;
  TableOptions options;
  words >> extension >> options.text_field >> options.label_field >> options.pair_field;
  if (extension != "csv" && extension != "tsv") extension = "jsonl";
  options.labelled = options.label_field != "-";
  fuzz::unless_refused([&] {
    std::string note;
    const TableFile file = find_columns("a." + extension, text, true, options, nullptr, note);
    fuzz::require(!note.empty() && file.text >= 0, "a column with text was found");
    check_rows(file, text);
  });
  return 0;
}
