#include "data/read/source.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "data/read/byte_reader.h"
#include "data/read/piece_waves.h"
#include "data/read/pieces.h"
#include "data/read/plain_reader.h"
#include "data/read/source_files.h"
#include "data/token_store/content_hash.h"
#include "text/pipeline/words.h"

namespace brisk {

namespace {

// Many files of this mean size are documents of their own (reviews, mails, articles); few or large ones are
// collections.
constexpr int64_t kManyFiles = 8;
constexpr int64_t kSmallFileBytes = 64 * 1024;

// What text packs to is about a third; nothing is decided by this but how a sample is spread.
constexpr int64_t kUsualPacking = 3;

// At most `most` bytes of the text; `whole` becomes false if there are more.
std::string beginning_of(const std::string& path, int64_t most, bool& whole) {
  const auto reader = open_byte_reader(path);
  std::string text;
  while (std::ssize(text) < most) {
    if (fill_buffer(*reader, text.size() + 1, text)) return text;
  }
  whole = false;
  text.resize(static_cast<size_t>(most));
  return text;
}

}  // namespace

DocumentRule document_rule_from(const std::string& name) {
  for (const DocumentRule rule :
       {DocumentRule::kAuto, DocumentRule::kFile, DocumentRule::kBlock, DocumentRule::kLine}) {
    if (name == name_of(rule)) return rule;
  }
  user_error("data.document: expected auto, file, block or line, found '{}'", name);
}

const char* name_of(DocumentRule rule) {
  switch (rule) {
    case DocumentRule::kAuto: return "auto";
    case DocumentRule::kFile: return "file";
    case DocumentRule::kBlock: return "block";
    case DocumentRule::kLine: return "line";
  }
  return "?";
}

Source::Source(SourceOptions options) : options_(std::move(options)), rule_(options_.document) {
  SkippedFiles skipped;
  const std::vector<std::string> found = expand_paths(options_.paths, &skipped);
  int64_t empty_files = 0;
  for (const std::string& path : found) {
    check_extension(path);
    unchanged_.add(path);
    const int64_t size = file_size(path);
    PlainReader may_be_read(path);
    if (size == 0) {
      // By its name it was meant; in a folder or a glob it is one of many.
      if (std::find(options_.paths.begin(), options_.paths.end(), path) != options_.paths.end()) {
        user_error("{}: the file is empty; give a file with text", path);
      }
      ++empty_files;
      continue;
    }
    bytes_ += size;
    paths_.push_back(path);
    sizes_.push_back(size);
    json_.push_back(is_json_lines(path));
  }
  if (paths_.empty()) {
    user_error("{}: every file is empty ({} of them); give files with text", fmt::join(options_.paths, ", "),
               empty_files);
  }
  if (empty_files > 0) notes_.push_back(fmt::format("{} empty files were skipped", empty_files));
  if (!skipped.empty()) {
    int64_t count = 0;
    std::vector<std::string> kinds;
    for (const auto& [kind, number] : skipped) {
      count += number;
      kinds.push_back(fmt::format("{} {}", number, kind));
    }
    notes_.push_back(fmt::format("{} {} skipped, not text by {}: {}", count, count == 1 ? "file was" : "files were",
                                 count == 1 ? "its name" : "their names", fmt::join(kinds, ", ")));
  }
}

bool Source::is_named(size_t file) const {
  return std::find(options_.paths.begin(), options_.paths.end(), paths_[file]) != options_.paths.end();
}

int64_t Source::expected_bytes(size_t file) const {
  return sizes_[file] * (packing_of(paths_[file]) == Packing::kNone ? 1 : kUsualPacking);
}

uint64_t Source::content_hash(const std::string& memo_directory) const {
  uint64_t hash = hash_bytes(name_of(options_.document));
  bool json = false;
  for (size_t i = 0; i < paths_.size(); ++i) {
    json |= json_[i];
    const auto hash_of = json_[i] ? file_content_hash : text_content_hash;
    const auto kind = static_cast<uint64_t>(packing_of(paths_[i])) * 4 + (json_[i] ? 2 : 1);
    hash = hash_mix(hash_mix(hash, kind), hash_of(paths_[i], memo_directory));
  }
  return json ? hash_bytes(options_.text_field, hash) : hash;
}

DocumentRule Source::choose_rule(int64_t sample_bytes) {
  if (rule_ != DocumentRule::kAuto) return rule_;
  int64_t files = 0, bytes = 0;
  for (size_t i = 0; i < paths_.size(); ++i) {
    files += json_[i] ? 0 : 1;
    bytes += json_[i] ? 0 : expected_bytes(i);
  }
  if (files >= kManyFiles && bytes / files < kSmallFileBytes) {
    rule_ = DocumentRule::kFile;
    notes_.push_back(fmt::format("a document is a file (auto: {} of {} bytes on average)", plural(files, "text file"),
                                 bytes / files));
    return rule_;
  }
  TextShape shape;
  int64_t left = sample_bytes;
  bool whole = true;
  for (size_t i = 0; i < paths_.size() && left > 0; ++i) {
    if (json_[i]) continue;
    // Each file gives what it has, up to a share that leaves something for those after it.
    const std::string text = beginning_of(paths_[i], std::max<int64_t>(left / 4, 1), whole);
    left -= std::ssize(text);
    const TextShape of_file = measure_text_shape(text);
    shape.lines += of_file.lines;
    shape.blocks += of_file.blocks;
  }
  const std::string where =
      whole ? "" : fmt::format(", in {} of them", format_bytes(static_cast<double>(sample_bytes - left)));
  if (shape.blocks > files && shape.lines <= shape.blocks * kLinesOfBlock) {
    rule_ = DocumentRule::kBlock;
    notes_.push_back(
        fmt::format("a document is a block between blank lines (auto: {} blocks of {:.1f} lines on average{})",
                    shape.blocks, static_cast<double>(shape.lines) / static_cast<double>(shape.blocks), where));
  } else {
    rule_ = DocumentRule::kLine;
    if (files > 0) {
      notes_.push_back(fmt::format("a document is a line (auto: {}, {}{})", plural(shape.lines, "line"),
                                   shape.blocks > files ? "almost none of them blank" : "none of them blank", where));
    }
  }
  return rule_;
}

namespace {

struct PieceTexts {
  std::string storage;
  std::vector<size_t> ends;

  void add(std::string_view text) {
    storage += text;
    ends.push_back(storage.size());
  }
};

void append(PieceTexts texts, TextSample& sample) {
  const std::string& storage = sample.storage.emplace_back(std::move(texts.storage));
  for (size_t i = 0, begin = 0; i < texts.ends.size(); begin = texts.ends[i++]) {
    sample.texts.push_back(std::string_view(storage).substr(begin, texts.ends[i] - begin));
  }
  sample.bytes += std::ssize(storage);
}

struct SampleRange {
  SourcePosition start;
  int64_t bytes = 0;
};

int64_t lines_before(const std::string& path, int64_t offset) {
  const auto reader = open_byte_reader(path);
  std::string bytes(size_t{1} << 16, '\0');
  int64_t lines = 1;
  while (offset > 0) {
    const size_t count = reader->read(bytes.data(), std::min(bytes.size(), static_cast<size_t>(offset)));
    if (count == 0) break;
    lines += std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count), '\n');
    offset -= static_cast<int64_t>(count);
  }
  return lines;
}

// Documents from the beginning of a range on; the last one is cut where they would be too many.
PieceTexts read_range(const Source& source, const SampleRange& range) {
  PieceTexts texts;
  TextPieceReader reader(source, range.start, cut_between_words, range.start.offset > 0);
  TextPiece piece;
  while (std::ssize(texts.storage) < range.bytes && reader.next(piece) && piece.begin.file == range.start.file) {
    for_each_document(source, piece, [&](std::string_view text) {
      const int64_t left = range.bytes - std::ssize(texts.storage);
      if (left <= 0) return;
      texts.add(std::ssize(text) > left ? text.substr(0, cut_between_words(text, static_cast<size_t>(left))) : text);
    });
  }
  return texts;
}

}  // namespace

TextSample Source::sample(int64_t most_bytes) {
  choose_rule();
  std::vector<int64_t> expected;
  for (size_t i = 0; i < paths_.size(); ++i) expected.push_back(expected_bytes(i));
  const auto total = std::accumulate(expected.begin(), expected.end(), int64_t{0});
  TextSample sample;
  if (total <= most_bytes) {
    TextPieceReader reader(*this, {}, cut_between_words);
    const auto decode = [&](TextPiece& piece) {
      PieceTexts texts;
      for_each_document(*this, piece, [&](std::string_view text) { texts.add(text); });
      return texts;
    };
    run_waves(reader, decode, [&](const TextPiece&, PieceTexts texts) {
      append(std::move(texts), sample);
      sample.whole = sample.bytes <= most_bytes;
      return sample.whole;
    });
    return sample;
  }

  // The share of very small files is collected until one of them is worth opening.
  constexpr int64_t kRangeBytes = int64_t{1} << 20, kLeastBytes = int64_t{64} << 10;
  std::vector<SampleRange> ranges;
  double due = 0;
  for (size_t i = 0; i < paths_.size(); ++i) {
    due += static_cast<double>(most_bytes) * static_cast<double>(expected[i]) / static_cast<double>(total);
    if (due < kLeastBytes && i + 1 < paths_.size()) continue;
    const auto bytes = static_cast<int64_t>(due);
    due -= static_cast<double>(std::min(bytes, expected[i]));
    const int64_t count = packing_of(paths_[i]) == Packing::kNone ? std::max<int64_t>(1, bytes / kRangeBytes) : 1;
    for (int64_t k = 0; k < count; ++k) {
      const auto offset =
          static_cast<int64_t>(static_cast<double>(sizes_[i]) * static_cast<double>(k) / static_cast<double>(count));
      ranges.push_back({{static_cast<int64_t>(i), offset, 1}, std::max<int64_t>(1, bytes / count)});
    }
  }
  std::vector<PieceTexts> texts(ranges.size());
  run_pieces(std::ssize(ranges), [&](int64_t i) {
    SampleRange& range = ranges[static_cast<size_t>(i)];
    try {
      texts[static_cast<size_t>(i)] = read_range(*this, range);
    } catch (const UserError&) {
      // Only a message needs to know the line, so it is counted now.
      range.start.line = lines_before(paths_[static_cast<size_t>(range.start.file)], range.start.offset);
      read_range(*this, range);
      throw;
    }
  });
  for (PieceTexts& piece : texts) append(std::move(piece), sample);
  sample.whole = false;
  return sample;
}

}  // namespace brisk
