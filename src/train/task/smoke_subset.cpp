#include "train/task/smoke_subset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "data/read/source.h"
#include "data/table/input_table.h"
#include "data/table/label_check.h"
#include "data/table/labels.h"
#include "job/job_conditions.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kSubsetBytes = 200'000;  // of all files together: enough to train a vocabulary, quickly
constexpr size_t kSubsetFiles = 8;
constexpr size_t kSubsetRows = 400, kSubsetRowsOfClass = 40;
constexpr int64_t kSubsetScan = int64_t{32} << 20;  // of a table: rows of different classes may be far apart

TableOptions columns_of(const Job& job, const std::vector<std::string>& paths) {
  return {.paths = paths,
          .text_field = job.data.text_field,
          .label_field = job.data.label_field,
          .pair_field = job.data.pair_field,
          .labelled = traits_of_task(job.task).has_labels};
}

// Text is cut after a line; a compressed file cannot be cut and is taken whole, so a small one is chosen.
bool can_be_cut(const std::string& path) { return path.ends_with(".txt") || path.ends_with(".jsonl"); }

// ".txt" or ".txt.gz".
std::string endings_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const size_t dot = name.find('.', 1);
  return dot == std::string::npos ? "" : name.substr(dot);
}

// Copies the beginnings of a few of the files to `folder`, keeping their extensions. Returns the number of bytes.
int64_t copy_text_subset(const std::vector<std::string>& entries, const std::string& folder) {
  std::vector<std::string> files = expand_paths(entries);
  if (std::none_of(files.begin(), files.end(), can_be_cut)) {
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return file_size(a) < file_size(b); });
    files.resize(1);
  }
  std::erase_if(files, [&](const std::string& path) { return files.size() > 1 && !can_be_cut(path); });
  const size_t count = std::min(files.size(), kSubsetFiles);
  int64_t bytes = 0;
  make_directories(folder);
  for (size_t i = 0; i < count; ++i) {
    const std::string& path = files[i * files.size() / count];  // evenly spaced: early and late ones
    const MappedFile file(path);
    std::string_view text = file.text();
    const size_t most = static_cast<size_t>(kSubsetBytes) / count;
    if (can_be_cut(path) && text.size() > most) {
      const size_t newline = text.rfind('\n', most);
      // One line longer than the subset: any part of a .txt is text, but a .jsonl needs the whole line.
      const size_t whole_line = path.ends_with(".jsonl") ? text.find('\n', most) : most;
      text = text.substr(0, newline != std::string_view::npos ? newline + 1 : whole_line);
    }
    write_file_atomically(fmt::format("{}/{:02}{}", folder, i, endings_of(path)), text);
    bytes += static_cast<int64_t>(text.size());
  }
  return bytes;
}

struct TableSubset {
  int64_t rows = 0;
  bool labels = false, pairs = false;     // whether the table has them
  std::map<std::string, size_t> classes;  // rows of each class in the last copy
};

// Copies a few rows of each class of a table to a .jsonl file with the keys text, pair and label. If `subset` already
// has classes, only rows of these are copied.
void copy_table_subset(const Job& job, const std::vector<std::string>& paths, const std::string& path,
                       TableSubset& subset) {
  const InputTable table(columns_of(job, paths));
  subset.labels = table.has_labels();
  subset.pairs = table.has_pairs();
  std::map<std::string, size_t>& classes = subset.classes;
  const bool all = classes.empty();
  for (auto& [label, rows] : classes) rows = 0;
  std::string lines;
  size_t count = 0;
  int64_t bytes = 0;
  TableRowReader rows(table);
  TableRow row;
  while (count < kSubsetRows && bytes < kSubsetScan && rows.next(row)) {
    bytes += std::ssize(row.text) + std::ssize(row.pair);
    const std::string label(trimmed_label(row.label));
    if (row.text.empty() || (label.empty() && table.has_labels()) || (!all && !classes.contains(label))) continue;
    size_t& taken = classes[label];
    if (taken >= (table.has_labels() ? kSubsetRowsOfClass : kSubsetRows)) continue;
    ++taken;
    ++count;
    Json line = {{"text", row.text}};
    if (table.has_pairs()) line["pair"] = row.pair;
    if (table.has_labels()) line["label"] = label;
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(path, lines);
  subset.rows += static_cast<int64_t>(count);
}

}  // namespace

std::string take_text_subset(const Job& job, const std::string& folder, Job& small) {
  int64_t bytes = 0;
  std::vector<std::string> plain;  // plain paths form one source together
  small.data.train.clear();
  for (const DataSource& source : job.data.train) {
    if (source == DataSource(source.path)) {
      plain.push_back(source.path);
      continue;
    }
    DataSource& subset = small.data.train.emplace_back(source);
    subset.path = fmt::format("{}/subset-{}", folder, small.data.train.size());
    bytes += copy_text_subset({source.path}, subset.path);
  }
  if (!plain.empty()) {
    small.data.train.emplace_back(folder + "/subset");
    bytes += copy_text_subset(plain, small.data.train.back().path);
  } else {  // `brisk eval` reads the last source, but takes these two from the job
    const DataSource& last = small.data.train.back();
    if (!last.text_field.empty()) small.data.text_field = last.text_field;
    if (!last.document.empty()) small.data.document = last.document;
  }
  if (!job.data.validation.empty()) {
    bytes += copy_text_subset(job.data.validation, folder + "/validation");
    small.data.validation = {folder + "/validation"};
  }
  return fmt::format("{} of the job's own text", format_bytes(static_cast<double>(bytes)));
}

std::string take_table_subset(const Job& job, const std::string& folder, Job& small) {
  std::vector<std::string> paths;
  for (const DataSource& source : job.data.train) paths.push_back(source.path);
  small.data.train = {DataSource(folder + "/subset.jsonl")};
  TableSubset subset;
  copy_table_subset(job, paths, small.data.train[0].path, subset);
  if (subset.labels && !job.data.allow_unusual_labels) {
    const LabelFindings found = check_labels({subset.classes.begin(), subset.classes.end()}, false);
    if (!found.problem.empty()) user_error("{}: {}", fmt::join(paths, ", "), found.problem);
  }
  if (!job.data.validation.empty()) {
    small.data.validation = {folder + "/validation.jsonl"};
    copy_table_subset(job, job.data.validation, small.data.validation[0], subset);
  }
  small.data.validation_fraction = std::max(0.1, small.data.validation_fraction);
  small.data.text_field = "text";
  small.data.label_field = subset.labels ? "label" : "";
  small.data.pair_field = subset.pairs ? "pair" : "";
  return subset.labels ? fmt::format("{} of the job's own rows, of {} classes", subset.rows, subset.classes.size())
                       : fmt::format("{} of the job's own rows", subset.rows);
}

}  // namespace brisk
