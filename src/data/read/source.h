// Text files as a source of documents, read in constant memory.
//
//   Source source({.paths = {"books", "extra/*.jsonl.gz"}});        // files, folders (recursive), globs
//   source.files();                                                 // what was found, sorted, each once
//   source.choose_rule();                                           // reads at most a sample, where the rule is auto
//   TextPieceReader reader(source, {}, cut_between_words);          // then everything, piece by piece: text_pieces.h
//   TextSample sample = source.sample(int64_t{128} << 20);          // or no more than this, from all over
//   for (const std::string& note : source.notes()) say("{}", note); // "a document is a blank-line block (auto: ...)"
//
// Documents without text (blank lines, "") are skipped. Errors are UserErrors with the file, the line, what was found and
// the fix.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/read/unchanged_files.h"

namespace brisk {

// What a document is in a plain text file. A .jsonl file always holds a document a line, whatever this says.
enum class DocumentRule : uint8_t {
  kAuto,   // many small files: file; text with blank lines between paragraphs: block; otherwise: line
  kFile,   // the whole file
  kBlock,  // lines between blank lines
  kLine,   // each line that is not blank
};

DocumentRule document_rule_from(const std::string& name);  // "auto", "file", "block", "line"; UserError otherwise
const char* name_of(DocumentRule rule);

struct SourceOptions {
  std::vector<std::string> paths;
  std::string text_field = "text";  // of a .jsonl object; "article.body.text" for one inside others
  DocumentRule document = DocumentRule::kAuto;
  std::string text_option = "data.text_field";  // what chooses text_field, for messages
};

// How many files of folders were passed over, by extension.
using SkippedFiles = std::map<std::string, int64_t>;

// Which files of a folder are meant: by their names, and what messages call them.
struct FileChoice {
  bool (*is_usable)(const std::string& path) = nullptr;
  const char* kinds = "";
};
extern const FileChoice kTextFiles;  // .txt and .jsonl

// The files that `entries` name, sorted, each once. A folder stands for the files of `choice` in it and below it, for
// example .txt, .jsonl and .ndjson, plain or compressed (.gz, .zst); hidden ones are left out. In a glob, * ? [] match
// within a name and ** matches any number of folders. An entry that names nothing usable is a UserError.
std::vector<std::string> expand_paths(const std::vector<std::string>& entries, SkippedFiles* skipped = nullptr,
                                      const FileChoice& choice = kTextFiles);

// Texts held in memory; views into `storage`.
struct TextSample {
  std::vector<std::string_view> texts;
  std::deque<std::string> storage;  // a deque, so that views of it stay valid
  int64_t bytes = 0;                // of the texts
  bool whole = true;                // it is everything there is
};

class Source {
 public:
  explicit Source(SourceOptions options);  // finds the files; reads none of them yet

  const SourceOptions& options() const { return options_; }
  const std::vector<std::string>& files() const { return paths_; }
  bool is_json(size_t file) const { return json_[file]; }
  bool is_named(size_t file) const;         // by its own name, not found in a folder
  int64_t bytes() const { return bytes_; }  // on the disk
  int64_t bytes_of(size_t file) const { return sizes_[file]; }

  // A hash of everything that decides the documents: the files' bytes and order, the rule, the field. Their names and
  // dates are not part of it. The hashes of large files are kept in `memo_directory` (data/token_store/file_memo.h) where one is
  // given, so that a corpus of terabytes is not read at each start.
  uint64_t content_hash(const std::string& memo_directory = "") const;

  // The files as they were when the source was made; to be checked before anything made of them is kept.
  const UnchangedFiles& unchanged() const { return unchanged_; }

  // The rule for .txt files. Auto is decided by at most `sample_bytes` of text from the beginnings of the files.
  DocumentRule choose_rule(int64_t sample_bytes = int64_t{64} << 20);
  DocumentRule rule() const { return rule_; }  // kAuto until choose_rule()

  // All documents where they fit into `most_bytes`, otherwise about that many bytes: from each file its share, spread
  // over it (the beginning, where it is compressed). Uses thread_pool().
  TextSample sample(int64_t most_bytes);

  // What the user should know: which rule `auto` chose and why, files skipped.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  int64_t expected_bytes(size_t file) const;  // of text; a guess where it is compressed

  SourceOptions options_;
  DocumentRule rule_;
  std::vector<std::string> paths_;
  std::vector<int64_t> sizes_;
  UnchangedFiles unchanged_;
  std::vector<bool> json_;
  int64_t bytes_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace brisk
