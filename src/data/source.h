// Text files to documents.
//
//   Source source({.paths = {"books", "extra/*.jsonl"}});          // files, folders (recursive), globs
//   source.files();                                                 // what was found, sorted, each once
//   std::span<const std::string_view> texts = source.documents();   // read and checked at the first call
//   for (const std::string& note : source.notes()) say("{}", note); // "a document is a blank-line block (auto: ...)"
//
// Plain text is memory-mapped and its documents are views into the files: the corpus is never copied. The texts of
// .jsonl files are decoded, so those are held in memory. Documents without text (blank lines, "") are left out.
// Everything a user can mend is a UserError with the file, the line, what was found and the fix.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

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
  std::string text_field = "text";  // of a .jsonl object
  DocumentRule document = DocumentRule::kAuto;
};

// The files that `entries` name, sorted, each once. A folder stands for the .txt and .jsonl files in it and below it
// (hidden ones left out); in a glob, * ? [] match within a name and ** matches any number of folders.
// An entry that names nothing usable is a UserError.
std::vector<std::string> expand_paths(const std::vector<std::string>& entries);

class Source {
 public:
  explicit Source(SourceOptions options);  // finds and maps the files; reads none of them yet
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::vector<std::string>& files() const { return paths_; }
  int64_t bytes() const { return bytes_; }

  // A hash of everything that decides documents(): the files' bytes and order, the rule, the field. Their names and
  // dates are not part of it. Much cheaper than reading documents (several GB/s a core).
  uint64_t content_hash() const;

  // All documents in the order of the files; views live as long as this object. Uses Team::instance().
  std::span<const std::string_view> documents();

  // What the user should know: which rule `auto` chose and why, files and documents skipped. Complete after
  // documents().
  const std::vector<std::string>& notes() const { return notes_; }

  // The rule in force for .txt files; kAuto until documents() has chosen.
  DocumentRule rule() const { return rule_; }

 private:
  void choose_rule();

  // A process may hold 65,530 maps, so of very many files the small ones are read instead.
  struct File {
    MappedFile map;
    std::string contents;
    std::string_view text() const { return map.size() > 0 ? map.text() : std::string_view(contents); }
  };

  SourceOptions options_;
  DocumentRule rule_;
  std::vector<std::string> paths_;
  std::vector<File> opened_;  // same order as paths_
  int64_t bytes_ = 0;
  bool read_ = false;
  std::vector<std::string_view> documents_;
  std::deque<std::string> decoded_;  // texts of .jsonl files; a deque, so that views of them stay valid
  std::vector<std::string> notes_;
};

}  // namespace brisk
