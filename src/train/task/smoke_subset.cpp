#include "train/task/smoke_subset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "data/read/byte_reader.h"
#include "data/read/source.h"
#include "data/read/source_files.h"
#include "data/table/input_table.h"
#include "data/table/label_check.h"
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

// Adds copies of the beginnings of a few of the files to `folder`, decompressed and cut after a line.
struct TextCopies {
  int64_t bytes = 0;     // copied
  double all_bytes = 0;  // of text in all files, compressed ones as far as they were read
  std::vector<std::pair<std::string, std::string>> origin;
};
void copy_text(const std::vector<std::string>& entries, const std::string& folder, TextCopies& copies) {
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
    copies.origin.emplace_back(copy, path);
    copies.bytes += std::ssize(text);
  }
  copies.all_bytes += disk * read_text / std::max(1.0, read_disk);
}

struct TableCopy {
  int64_t most_rows = 0, most_rows_of_class = 0;
  int64_t rows = 0;                       // copied
  double all_rows = 0;                    // of the tables, estimated where they are long
  bool labels = false, pairs = false;     // whether the table has them
  std::map<std::string, size_t> classes;  // rows of each class in the last copy
};

// Copies a few rows of each class of a table to a .jsonl file with the keys text, pair and label. If `copy` already
// has classes, only rows of these are copied.
void copy_table(const Job& job, const std::vector<std::string>& paths, const std::string& path, TableCopy& copy) {
  const InputTable table(columns_of(job, paths));
  copy.labels = table.has_labels();
  copy.pairs = table.has_pairs();
  std::map<std::string, size_t>& classes = copy.classes;
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
    if (count >= copy.most_rows || row.text.empty() || (label.empty() && table.has_labels()) ||
        (!all && !classes.contains(label)))
      continue;
    size_t& taken = classes[label];
    if (static_cast<int64_t>(taken) >= (table.has_labels() ? copy.most_rows_of_class : copy.most_rows)) continue;
    ++taken;
    ++count;
    Json line = {{"text", row.text}};
    if (table.has_pairs()) line["pair"] = row.pair;
    if (table.has_labels()) line["label"] = label;
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(path, lines);
  copy.rows += count;
  double on_disk = 0;
  for (const TableFile& file : table.files()) on_disk += static_cast<double>(file.bytes);
  copy.all_rows += static_cast<double>(seen) * (whole ? 1 : std::max(1.0, on_disk / static_cast<double>(bytes)));
}

// Copies the first pairs of a table, or of aligned files, to a .jsonl file; what share of them that is, estimated where they
// are long.
double copy_pairs(const Job& job, const std::vector<std::string>& paths, const std::vector<std::string>& targets,
                  int64_t most_rows, const std::string& path, int64_t& copied) {
  const InputTable table({.paths = paths,
                          .text_field = job.data.source_field,
                          .pair_field = job.data.target_field,
                          .labelled = false,
                          .translations = true,
                          .target_paths = targets});
  std::string lines;
  int64_t bytes = 0;
  bool whole = false;
  copied = 0;
  TableRowReader rows(table);
  TableRow row;
  while (copied < most_rows && bytes < kSubsetScan && !(whole = !rows.next(row))) {
    bytes += std::ssize(row.text) + std::ssize(row.pair) + 2;
    if (!has_text(row.text) || !has_text(row.pair)) continue;
    ++copied;
    const Json line = {{"source", row.text}, {"target", row.pair}};
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  write_file_atomically(path, lines);
  return whole ? 1
               : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, table.bytes())));
}

}  // namespace

SmokeSubset take_pairs_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) {
  std::vector<std::string> paths;
  for (const DataSource& source : job.data.train) paths.push_back(source.path);
  make_directories(folder);
  const std::string subset_path = folder + "/subset.jsonl", validation_path = folder + "/validation.jsonl";
  int64_t copied = 0;
  SmokeSubset subset;
  subset.share = copy_pairs(job, paths, job.data.train_target, size.rows, subset_path, copied);
  subset.text = fmt::format("{} of the job's own pairs of texts", copied);
  subset.origin = {{subset_path, paths.front()}};
  small.data.train = {DataSource(subset_path)};
  small.data.train_target.clear();
  small.data.validation_target.clear();
  small.data.source_field = "source";
  small.data.target_field = "target";
  small.data.validation.clear();
  const bool divides = job.data.validation.empty();
  if (size.validation_rows) small.data.validation_fraction = 0;
  const bool copies =
      size.validation_rows ? *size.validation_rows > 0 && (!divides || job.data.validation_fraction > 0) : !divides;
  if (copies) {
    copy_pairs(job, divides ? paths : job.data.validation, divides ? job.data.train_target : job.data.validation_target,
               size.validation_rows.value_or(size.rows), validation_path, copied);
    small.data.validation = {validation_path};
    subset.origin.emplace_back(validation_path, divides ? paths.front() : job.data.validation.front());
  } else if (!size.validation_rows) {
    small.data.validation_fraction = std::max(0.1, small.data.validation_fraction);
  }
  return subset;
}

SmokeSubset take_text_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) {
  TextCopies copies;
  std::vector<std::string> plain;  // plain paths form one source together
  small.data.train.clear();
  make_directories(folder);
  for (const DataSource& source : job.data.train) {
    if (source == DataSource(source.path)) {
      plain.push_back(source.path);
      continue;
    }
    DataSource& copy = small.data.train.emplace_back(source);
    copy.path = fmt::format("{}/subset-{}", folder, small.data.train.size());
    copy_text({source.path}, copy.path, copies);
  }
  if (!plain.empty()) {
    small.data.train.emplace_back(folder + "/subset");
    copy_text(plain, small.data.train.back().path, copies);
  } else {  // `brisk eval` reads the last source, but takes these two from the job
    const DataSource& last = small.data.train.back();
    if (!last.text_field.empty()) small.data.text_field = last.text_field;
    if (!last.document.empty()) small.data.document = last.document;
  }
  SmokeSubset subset{.text = format_bytes(static_cast<double>(copies.bytes)) + " of the job's own text",
                     .share = static_cast<double>(copies.bytes) / std::max(1.0, copies.all_bytes)};
  if (size.validation_rows) {
    constexpr double kFraction = 0.05;  // of the subset: about 2,500 tokens
    small.data.validation.clear();
    small.data.validation_fraction = *size.validation_rows * job.training.max_length >= 2500 ? kFraction : 0.0;
  } else if (!job.data.validation.empty()) {
    small.data.validation = {folder + "/validation"};
    copy_text(job.data.validation, small.data.validation[0], copies);
  }
  subset.origin = std::move(copies.origin);
  subset.origin.emplace_back(folder + "/subset", job.data.train.front().path);
  if (!job.data.validation.empty()) subset.origin.emplace_back(folder + "/validation", job.data.validation.front());
  return subset;
}

SmokeSubset take_table_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) {
  std::vector<std::string> paths;
  for (const DataSource& source : job.data.train) paths.push_back(source.path);
  make_directories(folder);
  small.data.train = {DataSource(folder + "/subset.jsonl")};
  TableCopy copy{.most_rows = size.rows, .most_rows_of_class = size.rows_of_class};
  copy_table(job, paths, small.data.train[0].path, copy);
  if (copy.labels && !job.data.allow_unusual_labels) {
    const LabelFindings found = check_labels({copy.classes.begin(), copy.classes.end()}, false);
    if (!found.problem.empty()) user_error("{}: {}", fmt::join(paths, ", "), found.problem);
  }
  SmokeSubset subset{.text = fmt::format("{} of the job's own rows{}", copy.rows,
                                         copy.labels ? fmt::format(", of {} classes", copy.classes.size()) : ""),
                     .share = static_cast<double>(copy.rows) / std::max(1.0, copy.all_rows),
                     .origin = {{small.data.train[0].path, paths.front()}}};
  small.data.text_field = "text";
  small.data.label_field = copy.labels ? "label" : "";
  small.data.pair_field = copy.pairs ? "pair" : "";
  small.data.validation.clear();
  const bool divides = job.data.validation.empty();
  if (size.validation_rows) small.data.validation_fraction = 0;
  const bool copies =
      size.validation_rows ? *size.validation_rows > 0 && (!divides || job.data.validation_fraction > 0) : !divides;
  if (copies) {
    small.data.validation = {folder + "/validation.jsonl"};
    copy.most_rows = size.validation_rows.value_or(size.rows);
    if (size.validation_rows) copy.most_rows_of_class = std::max<int64_t>(4, *size.validation_rows / 2);
    const std::vector<std::string>& from = divides ? paths : job.data.validation;
    copy_table(job, from, small.data.validation[0], copy);
    subset.origin.emplace_back(small.data.validation[0], from.front());
  } else if (!size.validation_rows) {
    small.data.validation_fraction = std::max(0.1, small.data.validation_fraction);
  }
  return subset;
}

}  // namespace brisk
