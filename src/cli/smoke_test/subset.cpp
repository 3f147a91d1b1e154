#include "cli/smoke_test/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "data/read/source.h"
#include "data/table/labels.h"
#include "data/table/text_table.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kSliverBytes = 200'000;  // of all files together: a vocabulary is trained on it in a moment
constexpr size_t kSliverFiles = 8;
constexpr size_t kSliverRows = 400, kSliverRowsOfClass = 40;
constexpr int64_t kSliverScan = int64_t{32} << 20;  // of a table: rows of all classes may be far apart

TableOptions columns_of(const Job& job, const std::vector<std::string>& paths) {
  return {.paths = paths,
          .text_field = job.data.text_field,
          .label_field = job.data.label_field,
          .pair_field = job.data.pair_field,
          .labelled = job.task == "classify"};
}

// Text is cut after a line; what cannot be cut (a compressed file) is taken whole, so a small one is chosen.
bool can_be_cut(const std::string& path) { return path.ends_with(".txt") || path.ends_with(".jsonl"); }

// ".txt" or ".txt.gz".
std::string endings_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const size_t dot = name.find('.', 1);
  return dot == std::string::npos ? "" : name.substr(dot);
}

}  // namespace

int64_t copy_text_sliver(const std::vector<std::string>& entries, const std::string& folder) {
  std::vector<std::string> files = expand_paths(entries);
  if (std::none_of(files.begin(), files.end(), can_be_cut)) {
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return file_size(a) < file_size(b); });
    files.resize(1);
  }
  std::erase_if(files, [&](const std::string& path) { return files.size() > 1 && !can_be_cut(path); });
  const size_t count = std::min(files.size(), kSliverFiles);
  int64_t bytes = 0;
  make_directories(folder);
  for (size_t i = 0; i < count; ++i) {
    const std::string& path = files[i * files.size() / count];  // evenly spaced: early and late ones
    const MappedFile file(path);
    std::string_view text = file.text();
    const size_t most = static_cast<size_t>(kSliverBytes) / count;
    if (can_be_cut(path) && text.size() > most) {
      const size_t newline = text.rfind('\n', most);
      // One line longer than all that is taken: of .txt any part is text, of .jsonl only the whole line is.
      const size_t whole_line = path.ends_with(".jsonl") ? text.find('\n', most) : most;
      text = text.substr(0, newline != std::string_view::npos ? newline + 1 : whole_line);
    }
    write_file_atomically(fmt::format("{}/{:02}{}", folder, i, endings_of(path)), text);
    bytes += static_cast<int64_t>(text.size());
  }
  return bytes;
}

void copy_table_sliver(const Job& job, const std::vector<std::string>& paths, const std::string& path,
                       RowSliver& sliver) {
  const TextTable table(columns_of(job, paths));
  sliver.labels = table.has_labels();
  sliver.pairs = table.has_pairs();
  std::map<std::string, size_t>& classes = sliver.classes;
  const bool all = classes.empty();
  for (auto& [label, rows] : classes) rows = 0;
  std::string lines;
  size_t count = 0;
  int64_t bytes = 0;
  TableRowReader rows(table);
  TableRow row;
  while (count < kSliverRows && bytes < kSliverScan && rows.next(row)) {
    bytes += std::ssize(row.text) + std::ssize(row.pair);
    const std::string label(trimmed_label(row.label));
    if (row.text.empty() || (label.empty() && table.has_labels()) || (!all && !classes.contains(label))) continue;
    size_t& taken = classes[label];
    if (taken >= (table.has_labels() ? kSliverRowsOfClass : kSliverRows)) continue;
    ++taken;
    ++count;
    Json line = {{"text", row.text}};
    if (table.has_pairs()) line["pair"] = row.pair;
    if (table.has_labels()) line["label"] = label;
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(path, lines);
  sliver.rows += static_cast<int64_t>(count);
}

}  // namespace brisk
