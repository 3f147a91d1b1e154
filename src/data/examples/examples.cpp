#include "data/examples/examples.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"
#include "base/text/printable.h"
#include "base/text/spelling.h"
#include "data/table/label_check.h"

namespace brisk {

int32_t ExampleData::label_of(int64_t row) const {
  if (!labelled_) return -1;
  const uint64_t label = stream_->document_hash((row + 1) * documents_per_row_ - 1);
  if (label >= label_names_.size()) {
    user_error("{}: damaged since it was made: label {} of {}; remove the file", cache_path_, label,
               label_names_.size());
  }
  return static_cast<int32_t>(label);
}

std::string ExampleData::cache_directory() const { return std::filesystem::path(cache_path_).parent_path().string(); }

TextFrame::Lengths ExampleData::lengths_of(int64_t row) const {
  const int64_t document = row * documents_per_row_;
  // The first row of a document is the marker before it.
  return {stream_->document_rows(document).size() - 1, pairs_ ? stream_->document_rows(document + 1).size() - 1 : 0};
}

uint64_t ExampleData::text_hash_of(int64_t row) const {
  const int64_t document = row * documents_per_row_;
  const uint64_t first = stream_->document_hash(document);
  return pairs_ ? hash_mix(first, stream_->document_hash(document + 1)) : first;
}

int64_t ExampleData::place_of(int64_t row, int text) const {
  return stream_->document_rows(row * documents_per_row_ + text).begin + 1;
}

void ExampleData::copy(int64_t place, int64_t count, TokenId* out) const { stream_->copy(place, count, out); }

LabelSet training_labels(const ExampleData& data, bool unusual, std::vector<std::string>* warnings) {
  BRISK_CHECK(data.has_labels(), "data without labels");
  LabelSet labels(data.label_names());
  const std::string where = format_message("{}: column \"{}\"", data.name(), data.label_column());
  if (labels.count() < 2) {
    user_error(
        "{}: only one class (\"{}\" in all {} rows); a classifier needs two or more; set {} to the "
        "column that holds the labels",
        where, labels.count() == 1 ? labels.name(0) : "", data.rows(), data.label_option());
  }
  LabelRows rows;
  for (const std::string& name : labels.names()) rows.emplace_back(name, 0);
  std::vector<int32_t> class_of_name;
  for (const std::string& name : data.label_names()) class_of_name.push_back(labels.find(name));
  for (int64_t row = 0; row < data.rows(); ++row) {
    const auto name = static_cast<size_t>(data.label_of(row));
    ++rows[static_cast<size_t>(class_of_name[name])].second;
  }
  LabelFindings findings = check_labels(rows);
  if (!findings.problem.empty()) {
    if (!unusual) {
      user_error(
          "{}: {}. If another column holds the labels, set {} to it; data.allow_unusual_labels = true trains on this one "
          "as it is",
          where, findings.problem, data.label_option());
    }
    findings.warnings.insert(findings.warnings.begin(), findings.problem);
  }
  for (const std::string& warning : findings.warnings) {
    if (warnings != nullptr) warnings->push_back(fmt::format("{}: {}", where, warning));
  }
  return labels;
}

int64_t shared_texts(const ExampleData& part, const ExampleData& whole) {
  std::vector<uint64_t> known(static_cast<size_t>(whole.rows()));
  for (int64_t row = 0; row < whole.rows(); ++row) known[static_cast<size_t>(row)] = whole.text_hash_of(row);
  std::sort(known.begin(), known.end());
  int64_t shared = 0;
  for (int64_t row = 0; row < part.rows(); ++row) {
    shared += std::binary_search(known.begin(), known.end(), part.text_hash_of(row)) ? 1 : 0;
  }
  return shared;
}

ExampleSet::ExampleSet(std::shared_ptr<const ExampleData> data, const Tokenizer& tokenizer, LabelSet labels)
    : data_(std::move(data)), frame_(tokenizer, data_->has_pairs()), labels_(std::move(labels)) {
  if (data_->has_labels() && labels_.count() > 0) {
    std::vector<std::string> unknown;
    for (const std::string& name : data_->label_names()) {
      label_of_name_.push_back(labels_.find(name));
      if (label_of_name_.back() < 0) unknown.push_back(name);
    }
    if (!unknown.empty()) {
      const std::string nearest = nearest_word(unknown[0], labels_.names());
      int64_t rows = 0;
      for (int64_t row = 0; row < data_->rows(); ++row)
        rows += label_of_name_[static_cast<size_t>(data_->label_of(row))] < 0;
      const size_t shown = std::min<size_t>(unknown.size(), 5);
      std::vector<std::string> named;
      for (size_t i = 0; i < shown; ++i) named.push_back(printable(unknown[i], 40));
      user_error(
          "{}: column \"{}\": {} that the training data does not have: {}{} ({} of {} rows); training has {}{}; fix the "
          "labels, or add examples of them to training",
          data_->name(), data_->label_column(), unknown.size() == 1 ? "a label" : "labels", fmt::join(named, ", "),
          unknown.size() > shown ? fmt::format(", ... ({} in all)", unknown.size()) : "", rows, data_->rows(),
          labels_.text(), nearest.empty() ? "" : format_message("; is \"{}\" meant?", nearest));
    }
  }
  rows_ = all_rows();
}

ExampleSet::ExampleSet(std::shared_ptr<const ExampleData> data)
    : data_(std::move(data)), frame_(data_->has_pairs()), rows_(all_rows()) {}

ChunkList ExampleSet::all_rows() const {
  ChunkListBuilder rows(data_->cache_directory());
  for (int64_t row = 0; row < data_->rows(); ++row) {
    const int64_t length = frame_.rows(data_->lengths_of(row), INT32_MAX);
    rows.add({row, static_cast<int32_t>(length)});
  }
  return std::move(rows).finish();
}

ExampleSet ExampleSet::whole() const {
  BRISK_CHECK(!pieces_, "pieces are no rows");
  return subset(all_rows());
}

int64_t ExampleSet::row_of(int64_t index) const {
  BRISK_CHECK(!pieces_, "a piece is no row");
  return rows_[static_cast<size_t>(index)].begin;
}

int32_t ExampleSet::label(int64_t index) const {
  if (label_of_name_.empty() || pieces_) return -1;
  return label_of_name_[static_cast<size_t>(data_->label_of(row_of(index)))];
}

std::vector<int64_t> ExampleSet::class_counts() const {
  std::vector<int64_t> counts(static_cast<size_t>(labels_.count()));
  if (label_of_name_.empty() || pieces_) return counts;
  for (int64_t i = 0; i < count(); ++i) ++counts[static_cast<size_t>(label(i))];
  return counts;
}

void ExampleSet::append_rows(int64_t index, int64_t max_length, int32_t sequence, MicroBatch& batch) const {
  if (pieces_) {
    const Chunk& piece = rows_[static_cast<size_t>(index)];
    frame_.append(
        {piece.length - frame_.specials(), 0},
        [&](int, int64_t count, TokenId* out) { data_->copy(piece.begin, count, out); }, max_length, sequence, batch);
    return;
  }
  const int64_t row = row_of(index);
  frame_.append(
      data_->lengths_of(row),
      [&](int text, int64_t count, TokenId* out) { data_->copy(data_->place_of(row, text), count, out); }, max_length,
      sequence, batch);
}

void ExampleSet::append(int64_t index, int64_t max_length, int32_t sequence, MicroBatch& batch) const {
  append_rows(index, max_length, sequence, batch);
  const int32_t of_example = label(index);
  const bool weighted = !class_weights_.empty() && of_example >= 0;
  append_picked_first(batch, of_example, weighted ? class_weights_[static_cast<size_t>(of_example)] : 1.0f);
}

void ExampleSet::append_masked(int64_t index, int64_t max_length, int32_t sequence, const Masker& masker, int64_t epoch,
                               MicroBatch& batch) const {
  append_rows(index, max_length, sequence, batch);
  masker.append_picked(epoch, rows_[static_cast<size_t>(index)].begin, batch);
}

ExampleSet ExampleSet::subset(ChunkList rows) const {
  ExampleSet set = *this;
  set.rows_ = std::move(rows);
  return set;
}

ExampleSet ExampleSet::in_pieces(int64_t max_length) const {
  BRISK_CHECK(!has_pairs() && !pieces_ && max_length > frame_.specials(), "max_length = {}", max_length);
  const int64_t specials = frame_.specials(), most = max_length - specials;
  ChunkListBuilder pieces(data_->cache_directory());
  for (int64_t i = 0; i < count(); ++i) {
    const int64_t place = data_->place_of(row_of(i), 0), tokens = full_length(i) - specials;
    int64_t begin = 0;
    do {
      const int64_t length = std::min(most, tokens - begin);
      pieces.add({place + begin, static_cast<int32_t>(length + specials)});
      begin += length;
    } while (begin < tokens);
  }
  ExampleSet set = subset(std::move(pieces).finish());
  set.pieces_ = true;
  return set;
}

ExampleSet ExampleSet::first(int64_t most) const {
  ChunkListBuilder rows(data_->cache_directory());
  for (int64_t i = 0; i < std::min(most, count()); ++i) rows.add(rows_[static_cast<size_t>(i)]);
  return subset(std::move(rows).finish());
}

}  // namespace brisk
