#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/parse_json.h"
#include "base/text/printable.h"
#include "data/examples/examples.h"
#include "data/read/source_files.h"
#include "data/token_store/text_hash.h"
#include "data/token_store/token_file_build.h"

// In the token file each row of a table is a document for each of its texts and, where there are labels, one more
// without tokens, whose hash is the label's number. So labels are written, resumed and checked as the tokens are. The
// description holds what else was found.

namespace brisk {

namespace {

constexpr uint64_t kExampleFormat = 1;
constexpr size_t kMostClasses = 100000;
constexpr size_t kLongestLabel = 1000;
constexpr size_t kPlacesNamed = 10;
constexpr double kMostMissing = 0.1;
constexpr TokenId kMarker = 0;  // before each document; nobody reads it

// What a core makes of a piece.
struct PieceRows {
  struct Row {
    size_t text_end, pair_end;  // in tokens
    uint64_t text_hash, pair_hash;
    int32_t label;  // of this piece
  };
  std::vector<TokenId> tokens;
  std::vector<Row> rows;
  std::vector<std::string> labels;
  MissingRows missing;
};

nlohmann::json json_of(const MissingRows& missing, const std::vector<std::string>& labels) {
  nlohmann::json first = nlohmann::json::array();
  for (const MissingRows::Place& place : missing.first) first.push_back({place.file, place.line});
  return {{"rows", missing.rows},
          {"without_text", missing.without_text},
          {"without_label", missing.without_label},
          {"first", first},
          {"labels", labels}};
}

void from_json(const nlohmann::json& json, MissingRows& missing, std::vector<std::string>& labels) {
  missing.rows = json.at("rows").get<int64_t>();
  missing.without_text = json.at("without_text").get<int64_t>();
  missing.without_label = json.at("without_label").get<int64_t>();
  for (const auto& place : json.at("first")) missing.first.push_back({place.at(0), place.at(1)});
  labels = json.at("labels").get<std::vector<std::string>>();
}

// The first few lines of a cell.
std::vector<std::string> words_of(std::string_view cell) {
  constexpr size_t kMost = 4;
  std::vector<std::string> words;
  for (size_t begin = 0; begin < cell.size() && words.size() < kMost;) {
    const size_t end = std::min(cell.find('\n', begin), cell.size());
    words.push_back(in_quotes(cell.substr(begin, end - begin), 40));
    begin = end + 1;
  }
  return words;
}

std::string places_text(const InputTable& table, const MissingRows& missing) {
  std::vector<std::string> places;
  int64_t file = -1;
  for (const MissingRows::Place& place : missing.first) {
    const bool other_file = table.files().size() > 1 && place.file != file;
    file = place.file;
    const std::string& path = table.files()[static_cast<size_t>(file)].path;
    places.push_back(other_file ? fmt::format("{}: {}", path, place.line) : fmt::format("{}", place.line));
  }
  return fmt::format("line{} {}{}", missing.count() == 1 ? "" : "s", fmt::join(places, ", "),
                     missing.count() > std::ssize(places) ? ", ..." : "");
}

std::string missing_text(const InputTable& table, const MissingRows& missing) {
  std::vector<std::string> kinds;
  const char* text = table.options().images ? table.has_pairs() ? "an image or text" : "an image" : "text";
  if (missing.without_text > 0) kinds.push_back(fmt::format("{} without {}", missing.without_text, text));
  if (missing.without_label > 0) kinds.push_back(fmt::format("{} without a label", missing.without_label));
  return fmt::format("{} of {} rows ({}): {}", missing.count(), missing.rows, fmt::join(kinds, ", "),
                     places_text(table, missing));
}

class ExampleFileBuilder {
 public:
  ExampleFileBuilder(const InputTable& table, const TextTokenizers& tokenizers, TokenFileWriter& writer,
                     const TokenizeProgress& progress, double journal_seconds)
      : table_(table),
        tokenizers_(tokenizers),
        writer_(writer),
        progress_(progress),
        journal_seconds_(journal_seconds) {}

  void build() {
    if (!writer_.resumed_at().empty()) resume();
    TablePieceReader reader(table_, position_);
    build_token_file(
        reader, {writer_, progress_, table_.bytes(), journal_seconds_},
        [&](const TextPiece& piece) { return tokenise(piece); },
        [&](const TextPiece& piece, const PieceRows& rows) { take(piece, rows); }, [&] { return place(); });
    finish();
  }

 private:
  void resume() {
    const auto place = parse_json_or_discard<nlohmann::json>(writer_.resumed_at());
    position_ = {place.at("file"), place.at("offset"), place.at("line")};
    from_json(place.at("found"), missing_, labels_);
    for (size_t i = 0; i < labels_.size(); ++i) number_of_.emplace(labels_[i], static_cast<int32_t>(i));
  }

  std::string place() const {
    return nlohmann::json({{"file", position_.file},
                           {"offset", position_.offset},
                           {"line", position_.line},
                           {"found", json_of(missing_, labels_)}})
        .dump();
  }

  PieceRows tokenise(const TextPiece& piece) const {
    PieceRows made;
    made.tokens.reserve(piece.text.size() / 3);
    std::unordered_map<std::string, int32_t> known;
    for_each_row(table_, piece, [&](const TableRow& row) {
      ++made.missing.rows;
      const std::string_view label = trimmed_label(row.label);
      const bool no_text = !has_text(row.text) || (table_.has_pairs() && !has_text(row.pair));
      const bool no_label = table_.has_labels() && label.empty();
      if (no_text || no_label) {
        ++(no_text ? made.missing.without_text : made.missing.without_label);
        if (made.missing.first.size() < kPlacesNamed) made.missing.first.push_back({piece.begin.file, row.line});
        return;
      }
      PieceRows::Row& added = made.rows.emplace_back();
      tokenizers_.text.encode(row.text, made.tokens);
      added.text_end = made.tokens.size();
      added.text_hash = text_hash(row.text);
      if (table_.has_pairs()) {
        tokenizers_.pair.encode(row.pair, made.tokens);
        added.pair_hash = text_hash(row.pair);
      }
      added.pair_end = made.tokens.size();
      if (!table_.has_labels()) return;
      check_label(piece, row.line, label);
      const auto [found, is_new] = known.emplace(label, static_cast<int32_t>(made.labels.size()));
      if (is_new) made.labels.emplace_back(label);
      added.label = found->second;
    });
    return made;
  }

  void check_label(const TextPiece& piece, int64_t line, std::string_view label) const {
    const bool several = label.find('\n') != std::string_view::npos;
    if (label.size() <= kLongestLabel && !several) return;
    const std::string what = several ? fmt::format("several labels or lines ({})", fmt::join(words_of(label), ", "))
                                     : fmt::format("a label of {} bytes", label.size());
    user_error("{}: line {}: {} in column \"{}\"; a row must have one label; set {} to a column of labels",
               path_of(piece), line, what, table_.label_column(), table_.options().option("label_field"));
  }

  const std::string& path_of(const TextPiece& piece) const {
    return table_.files()[static_cast<size_t>(piece.begin.file)].path;
  }

  void take(const TextPiece& piece, const PieceRows& made) {
    std::vector<int32_t> numbers;
    for (const std::string& label : made.labels) {
      const auto [found, is_new] = number_of_.emplace(label, static_cast<int32_t>(labels_.size()));
      if (is_new) labels_.push_back(label);
      numbers.push_back(found->second);
    }
    if (labels_.size() > kMostClasses) {
      user_error("{}: more than {} different labels in column \"{}\"; set {} to a column that holds labels",
                 path_of(piece), kMostClasses, table_.label_column(), table_.options().option("label_field"));
    }
    in_cache([&] { write(made, numbers); });
    missing_.rows += made.missing.rows;
    missing_.without_text += made.missing.without_text;
    missing_.without_label += made.missing.without_label;
    for (const MissingRows::Place& place : made.missing.first) {
      if (missing_.first.size() < kPlacesNamed) missing_.first.push_back(place);
    }
    position_ = piece.ends_file ? SourcePosition{piece.begin.file + 1, 0, 1} : piece.end;
  }

  void write(const PieceRows& made, const std::vector<int32_t>& numbers) {
    size_t begin = 0;
    const auto write_text = [&](size_t end, uint64_t hash) {
      writer_.begin_document(kMarker);
      writer_.append(std::span(made.tokens).subspan(begin, end - begin));
      writer_.end_document(hash);
      begin = end;
    };
    for (const PieceRows::Row& row : made.rows) {
      write_text(row.text_end, row.text_hash);
      if (table_.has_pairs()) write_text(row.pair_end, row.pair_hash);
      if (!table_.has_labels()) continue;
      writer_.begin_document(kMarker);
      writer_.end_document(static_cast<uint64_t>(numbers[static_cast<size_t>(row.label)]));
    }
  }

  void finish() {
    table_.unchanged().check();
    const auto count = static_cast<double>(missing_.count()), rows = static_cast<double>(missing_.rows);
    const std::string paths = fmt::format("{}", fmt::join(table_.options().paths, ", "));
    if (missing_.rows == 0) user_error("{}: no rows; give a file with a row for each text", paths);
    if (count > kMostMissing * rows) {
      if (!table_.options().target_paths.empty()) {
        user_error("{}, {}: {}; more than 10 % of the lines cannot be skipped; are the files aligned, line by line?",
                   paths, fmt::join(table_.options().target_paths, ", "), missing_text(table_, missing_));
      }
      std::string columns = table_.options().option("text_field");
      if (table_.has_labels()) columns += " and " + table_.options().option("label_field");
      if (table_.options().needs_pairs()) columns += " and " + table_.options().option("pair_field");
      const std::string prefix = table_.files().size() > 1 ? "" : paths + ": ";
      user_error("{}{}; more than 10 % of the rows cannot be skipped; fix them, or set {} to other columns than {}",
                 prefix, missing_text(table_, missing_), columns,
                 table_.has_labels() ? format_message("\"{}\" and \"{}\"", table_.text_column(), table_.label_column())
                 : table_.options().needs_pairs()
                     ? format_message("\"{}\" and \"{}\"", table_.text_column(), table_.pair_column())
                     : in_quotes(table_.text_column()));
    }
    in_cache([&] { writer_.commit(kMarker, json_of(missing_, labels_).dump()); });
  }

  const InputTable& table_;
  TextTokenizers tokenizers_;
  TokenFileWriter& writer_;
  const TokenizeProgress& progress_;
  double journal_seconds_;
  SourcePosition position_;
  MissingRows missing_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, int32_t> number_of_;
};

}  // namespace

std::shared_ptr<const ExampleData> open_examples(const InputTable& table, const TextTokenizers& tokenizers,
                                                 const std::string& directory, const TokenizeProgress& progress,
                                                 double journal_seconds) {
  uint64_t tokenizer = tokenizers.text.fingerprint();
  if (const uint64_t other = tokenizers.pair.fingerprint(); other != tokenizer) tokenizer = hash_mix(tokenizer, other);
  const uint64_t key =
      hash_mix(hash_mix(table.content_hash(directory), tokenizer), hash_mix(kExampleFormat, kTokenFileVersion));
  const int64_t vocab_size = std::max(tokenizers.text.vocab_size(), tokenizers.pair.vocab_size());
  TokenCache cache = open_or_make_tokens(directory, key, vocab_size, table.unchanged(), [&](TokenFileWriter& writer) {
    ExampleFileBuilder(table, tokenizers, writer, progress, journal_seconds).build();
  });
  const auto data = std::make_shared<ExampleData>();
  data->stream_ = cache.stream;
  data->pairs_ = table.has_pairs();
  data->labelled_ = table.has_labels();
  data->documents_per_row_ = 1 + (data->pairs_ ? 1 : 0) + (data->labelled_ ? 1 : 0);
  data->reused_ = cache.reused;
  data->cache_path_ = cache.path;
  data->name_ = fmt::format("{}", fmt::join(table.options().paths, ", "));
  data->label_column_ = table.label_column();
  data->label_option_ = table.options().option("label_field");
  from_json(parse_json_or_discard<nlohmann::json>(cache.stream->description()), data->missing_, data->label_names_);
  data->notes_ = table.notes();
  data->notes_.insert(data->notes_.end(), cache.notes.begin(), cache.notes.end());
  if (data->missing_.count() > 0) {
    data->notes_.push_back("skipped: " + missing_text(table, data->missing_));
  }
  return data;
}

}  // namespace brisk
