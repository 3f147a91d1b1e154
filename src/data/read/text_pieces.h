// Reads the files of a Source in order, as pieces that a core can work on: whole documents, or a part of a long one.
//
//   TextPieceReader reader(source, {}, cut_between_words);
//   TextPiece piece;
//   while (reader.next(piece)) {
//     for_each_document(source, piece, [&](std::string_view text) { ... });   // on any thread
//   }
//
// Memory: a piece is about 256 KiB. A document of more than a megabyte comes in parts of that size, cut where `cut`
// says that nothing changes by it; only one that cannot be cut, such as a line of JSON, is held as a whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/read/byte_reader.h"
#include "data/read/source.h"

namespace brisk {

struct SourcePosition {
  int64_t file = 0;
  int64_t offset = 0;  // bytes of its text before this place
  int64_t line = 1;
};

struct TextPiece {
  std::string text;
  SourcePosition begin, end;
  bool opens = true;       // its first document begins in it
  bool closes = true;      // its last document ends in it
  bool ends_file = false;  // nothing of the file comes after it
  int64_t disk_bytes = 0;  // of all files, read when it was made
};

class TextPieceReader {
 public:
  // A place at or after `from` where a text may be cut in two; text.size() if there is none.
  using Cut = std::function<size_t(std::string_view text, size_t from)>;

  // The rule must be chosen. `start` is the beginning of a document or, where `start_inside_line`, anywhere: then the
  // rest of that line is passed over.
  TextPieceReader(const Source& source, SourcePosition start, Cut cut, bool start_inside_line = false);

  bool next(TextPiece& piece);  // false at the end

 private:
  bool next_of_file(TextPiece& piece);
  void open_file();
  // The buffer, up to this many bytes or the end of the file.
  void fill(size_t size) { file_ended_ = file_ended_ || fill_buffer(*reader_, size, buffer_); }
  void emit(size_t size, bool opens, bool closes, TextPiece& piece);
  bool emit_part(TextPiece& piece);  // of a long document; false if more must be read first
  size_t last_document_end() const;  // in the buffer; 0: none
  size_t open_document_end() const;  // of the one under way; npos: not in the buffer

  const Source& source_;
  Cut cut_;
  SourcePosition at_;
  bool skip_line_;
  std::unique_ptr<ByteReader> reader_;
  std::string buffer_;
  bool file_ended_ = false, inside_document_ = false;
  int64_t disk_bytes_before_ = 0;  // of the files before this one
};

using DocumentBody = std::function<void(std::string_view text)>;

// The documents of a piece, checked and decoded; a part of a long document counts as one. Returns how many had no text.
// Line ends of plain text become LF, in the piece itself: the documents are views of it.
int64_t for_each_document(const Source& source, TextPiece& piece, const DocumentBody& body);

}  // namespace brisk
