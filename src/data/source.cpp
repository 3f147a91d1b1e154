#include "data/source.h"

#include <algorithm>

#include "base/error.h"
#include "data/pieces.h"
#include "data/source_files.h"
#include "text/hash.h"

namespace brisk {

namespace {

// Many files of this mean size are documents of their own (reviews, mails, articles); few or large ones are
// collections.
constexpr int64_t kManyFiles = 8;
constexpr int64_t kSmallFileBytes = 64 * 1024;

// Text with a blank line every so many lines on average is in paragraphs; with fewer, a blank line is a stray one.
constexpr int64_t kLinesOfBlock = 100;

constexpr size_t kManyMaps = 10000;

constexpr size_t kHashPieceBytes = size_t{16} << 20;

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
  const std::vector<std::string> found = expand_paths(options_.paths);
  int64_t empty_files = 0;
  for (const std::string& path : found) {
    check_extension(path);
    File file;
    if (found.size() > kManyMaps && file_size(path) < kSmallFileBytes) {
      file.contents = read_file(path);
    } else {
      file.map = MappedFile(path);
    }
    if (file.text().empty()) {
      // By its name it was meant; in a folder or a glob it is one of many.
      if (std::find(options_.paths.begin(), options_.paths.end(), path) != options_.paths.end()) {
        user_error("{}: the file is empty; give a file with text", path);
      }
      ++empty_files;
      continue;
    }
    bytes_ += static_cast<int64_t>(file.text().size());
    paths_.push_back(path);
    opened_.push_back(std::move(file));
  }
  if (paths_.empty()) {
    user_error("{}: every file is empty ({} of them); give files with text", fmt::join(options_.paths, ", "),
               empty_files);
  }
  if (empty_files > 0) notes_.push_back(fmt::format("{} empty files were left out", empty_files));
}

uint64_t Source::content_hash() const {
  struct Piece {
    size_t file, begin;
  };
  std::vector<Piece> pieces;
  for (size_t file = 0; file < opened_.size(); ++file) {
    const size_t size = opened_[file].text().size();
    for (size_t begin = 0; begin < size; begin += kHashPieceBytes) pieces.push_back({file, begin});
  }
  std::vector<uint64_t> hashes(pieces.size());
  run_pieces(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    hashes[static_cast<size_t>(i)] = hash_bytes(opened_[piece.file].text().substr(piece.begin, kHashPieceBytes));
  });
  uint64_t hash = hash_bytes(name_of(options_.document));
  bool json = false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].begin == 0) {
      const bool lines = is_json_lines(paths_[pieces[i].file]);
      json |= lines;
      hash = hash_mix(hash_mix(hash, lines ? 2 : 1), opened_[pieces[i].file].text().size());
    }
    hash = hash_mix(hash, hashes[i]);
  }
  return json ? hash_bytes(options_.text_field, hash) : hash;
}

void Source::choose_rule() {
  int64_t files = 0, bytes = 0, lines = 0, blocks = 0;
  for (size_t i = 0; i < opened_.size(); ++i) {
    if (is_json_lines(paths_[i])) continue;
    const TextShape shape = measure_text_shape(opened_[i].text());
    ++files;
    bytes += static_cast<int64_t>(opened_[i].text().size());
    lines += shape.lines;
    blocks += shape.blocks;
  }
  if (files >= kManyFiles && bytes / files < kSmallFileBytes) {
    rule_ = DocumentRule::kFile;
    notes_.push_back(
        fmt::format("a document is a file (auto: {} text files of {} bytes on average)", files, bytes / files));
  } else if (blocks > files && lines <= blocks * kLinesOfBlock) {
    rule_ = DocumentRule::kBlock;
    notes_.push_back(
        fmt::format("a document is a block between blank lines (auto: {} blocks of {:.1f} lines on average)", blocks,
                    static_cast<double>(lines) / static_cast<double>(blocks)));
  } else {
    rule_ = DocumentRule::kLine;
    if (files > 0) {
      notes_.push_back(fmt::format("a document is a line (auto: {} lines, {})", lines,
                                   blocks > files ? "hardly a blank one between them" : "no blank one between them"));
    }
  }
}

std::span<const std::string_view> Source::documents() {
  if (read_) return documents_;
  for (size_t i = 0; i < opened_.size(); ++i) {
    opened_[i].map.advise_sequential();
    check_text(paths_[i], opened_[i].text());
  }
  if (rule_ == DocumentRule::kAuto) choose_rule();
  int64_t without_text = 0;
  for (size_t i = 0; i < opened_.size(); ++i) {
    const size_t before = documents_.size();
    if (is_json_lines(paths_[i])) {
      without_text += append_json_documents(paths_[i], opened_[i].text(), options_.text_field, decoded_, documents_);
    } else {
      append_text_documents(opened_[i].text(), rule_, documents_);
    }
    if (documents_.size() == before &&
        std::find(options_.paths.begin(), options_.paths.end(), paths_[i]) != options_.paths.end()) {
      user_error("{}: no text in it, only blank lines{}; give a file with text", paths_[i],
                 is_json_lines(paths_[i]) ? fmt::format(" and empty \"{}\" fields", options_.text_field) : "");
    }
  }
  if (documents_.empty())
    user_error("{}: no text in any of the files; give files with text", fmt::join(options_.paths, ", "));
  if (without_text > 0) {
    notes_.push_back(fmt::format("{} objects with an empty \"{}\" were left out", without_text, options_.text_field));
  }
  read_ = true;
  return documents_;
}

}  // namespace brisk
