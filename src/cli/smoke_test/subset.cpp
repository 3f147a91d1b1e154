#include "cli/smoke_test/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "data/read/byte_reader.h"
#include "data/read/source.h"
#include "data/read/source_files.h"
#include "data/table/input_table.h"
#include "data/table/labels.h"
#include "job/job_conditions.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kSubsetBytes = 200'000;  // of all files together: enough to train a vocabulary, quickly
constexpr size_t kSubsetFiles = 8;
constexpr int64_t kSubsetScan = int64_t{32} << 20;   // of a table: rows of different classes may be far apart
constexpr int64_t kLongestLine = int64_t{64} << 20;  // of a .jsonl: a line is not cut

TableOptions columns_of(const Job& job, const std::vector<std::string>& paths) {
  return {.paths = paths,
          .text_field = job.data.text_field,
          .label_field = job.data.label_field,
          .pair_field = job.data.pair_field,
          .labelled = traits_of_task(job.task).has_labels};
}

// The beginning of `text`, whole lines where there is one within `most` bytes. Any part of a plain text is text, but no
// part of a character is, and JSON needs the whole line.
void cut(std::string& text, size_t most, bool json_lines) {
  if (text.size() <= most) return;
  const size_t newline = text.rfind('\n', most);
  if (newline != std::string::npos) return text.resize(newline + 1);
  if (json_lines) return text.resize(std::min(text.size(), text.find('\n', most)));
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  text.resize(most);
}

}  // namespace

void copy_text_subset(const std::vector<std::string>& entries, const std::string& folder, TextSubset& subset) {
  const std::vector<std::string> files = expand_paths(entries);
  for (const std::string& path : files) check_extension(path);
  const size_t count = std::min(files.size(), kSubsetFiles);
  make_directories(folder);
  double read_text = 0, read_disk = 0, disk = 0;
  for (const std::string& path : files) disk += static_cast<double>(file_size(path));
  for (size_t i = 0; i < count; ++i) {
    const std::string& path = files[i * files.size() / count];  // evenly spaced: early and late ones
    const bool json_lines = is_json_lines(path);
    const std::unique_ptr<ByteReader> reader = open_byte_reader(path);
    const size_t most = static_cast<size_t>(kSubsetBytes) / count;
    std::string text;
    bool ended = fill_buffer(*reader, most + 1, text);
    while (json_lines && !ended && text.find('\n') == std::string::npos && std::ssize(text) < kLongestLine) {
      ended = fill_buffer(*reader, 2 * text.size(), text);
    }
    read_text += static_cast<double>(text.size());
    read_disk += static_cast<double>(std::max<int64_t>(1, reader->disk_position()));
    cut(text, most, json_lines);
    // By these names a folder's files are taken for what they are, whatever the user's are called.
    const std::string copy = fmt::format("{}/{:02}{}", folder, i, json_lines ? ".jsonl" : ".txt");
    write_file_atomically(copy, text);
    subset.origin.emplace_back(copy, path);
    subset.bytes += std::ssize(text);
  }
  subset.all_bytes += disk * read_text / std::max(1.0, read_disk);
}

void copy_table_subset(const Job& job, const std::vector<std::string>& paths, const std::string& path,
                       TableSubset& subset) {
  const InputTable table(columns_of(job, paths));
  subset.labels = table.has_labels();
  subset.pairs = table.has_pairs();
  std::map<std::string, size_t>& classes = subset.classes;
  const bool all = classes.empty();
  for (auto& [label, rows] : classes) rows = 0;
  std::string lines;
  int64_t count = 0, seen = 0, bytes = 0;
  bool whole = false;
  TableRowReader rows(table);
  TableRow row;
  while (bytes < kSubsetScan && !(whole = !rows.next(row))) {
    ++seen;
    bytes += std::ssize(row.text) + std::ssize(row.pair) + std::ssize(row.label);
    const std::string label(trimmed_label(row.label));
    if (count >= subset.most_rows || row.text.empty() || (label.empty() && table.has_labels()) ||
        (!all && !classes.contains(label)))
      continue;
    size_t& taken = classes[label];
    if (static_cast<int64_t>(taken) >= (table.has_labels() ? subset.most_rows_of_class : subset.most_rows)) continue;
    ++taken;
    ++count;
    Json line = {{"text", row.text}};
    if (table.has_pairs()) line["pair"] = row.pair;
    if (table.has_labels()) line["label"] = label;
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(path, lines);
  subset.rows += count;
  double on_disk = 0;
  for (const TableFile& file : table.files()) on_disk += static_cast<double>(file.bytes);
  subset.all_rows += static_cast<double>(seen) * (whole ? 1 : std::max(1.0, on_disk / static_cast<double>(bytes)));
}

}  // namespace brisk
