#include "data/read/text_pieces.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "data/read/json_lines.h"
#include "data/read/source_files.h"

namespace brisk {

namespace {

constexpr size_t kNoCut = std::string_view::npos;
constexpr size_t kPieceBytes = size_t{256} << 10;
constexpr size_t kLongDocument = size_t{1} << 20;  // is read in parts
constexpr size_t kLongestWhole = size_t{64}
                                 << 20;  // what cannot be cut is held as a whole: in the buffer and as a piece

// The end of the first blank line that is not the first line; npos if there is none.
size_t next_blank_line_end(std::string_view text) {
  for (size_t newline = text.find('\n'); newline != kNoCut;) {
    const size_t next = text.find('\n', newline + 1);
    if (next == kNoCut) return kNoCut;
    if (is_blank(text.substr(newline + 1, next - newline - 1))) return next + 1;
    newline = next;
  }
  return kNoCut;
}

}  // namespace

TextPieceReader::TextPieceReader(const Source& source, SourcePosition start, Cut cut, bool start_inside_line)
    : source_(source), cut_(std::move(cut)), at_(start), skip_line_(start_inside_line) {
  BRISK_CHECK(source.rule() != DocumentRule::kAuto, "the rule is not chosen yet");
  for (int64_t file = 0; file < at_.file; ++file) disk_bytes_before_ += source.bytes_of(static_cast<size_t>(file));
}

bool TextPieceReader::next(TextPiece& piece) {
  while (at_.file < std::ssize(source_.files())) {
    if (!reader_) open_file();
    if (next_of_file(piece)) return true;
    reader_.reset();
    disk_bytes_before_ += source_.bytes_of(static_cast<size_t>(at_.file));
    at_ = {at_.file + 1, 0, 1};
  }
  return false;
}

void TextPieceReader::open_file() {
  reader_ = open_byte_reader(source_.files()[static_cast<size_t>(at_.file)]);
  if (at_.offset > 0) reader_->skip(at_.offset);
  buffer_.clear();
  file_ended_ = inside_document_ = false;
  if (!std::exchange(skip_line_, false)) return;
  for (size_t newline = kNoCut; newline == kNoCut && !file_ended_;) {
    fill(kPieceBytes);
    newline = buffer_.find('\n');
    const size_t passed = newline == kNoCut ? buffer_.size() : newline + 1;
    at_.offset += static_cast<int64_t>(passed);
    at_.line += newline == kNoCut ? 0 : 1;
    buffer_.erase(0, passed);
  }
}

bool TextPieceReader::next_of_file(TextPiece& piece) {
  for (size_t size = kPieceBytes;; size = std::min(2 * std::max(size, buffer_.size()), kLongestWhole + 1)) {
    fill(size);
    if (file_ended_ && buffer_.empty() && !inside_document_) return false;
    if (inside_document_) {
      if (emit_part(piece)) return true;
    } else if (file_ended_ && buffer_.size() <= kLongDocument) {
      emit(buffer_.size(), true, true, piece);
      return true;
    } else if (const size_t end = last_document_end(); end > 0) {
      emit(end, true, true, piece);
      return true;
    } else if (source_.is_json(static_cast<size_t>(at_.file))) {
      if (file_ended_) {
        emit(buffer_.size(), true, true, piece);
        return true;
      }
    } else if (buffer_.size() > kLongDocument && emit_part(piece)) {
      return true;
    }
    if (buffer_.size() > kLongestWhole) {
      user_error(
          "{}: line {}: a document larger than {} that cannot be split automatically; split it into several documents",
          source_.files()[static_cast<size_t>(at_.file)], at_.line, format_bytes(static_cast<double>(kLongestWhole)));
    }
  }
}

bool TextPieceReader::emit_part(TextPiece& piece) {
  const bool opens = !inside_document_;
  const size_t end = opens ? (file_ended_ ? buffer_.size() : kNoCut) : open_document_end();
  if (end <= 2 * kPieceBytes) {
    emit(end, opens, true, piece);
    inside_document_ = false;
    return true;
  }
  const size_t known = std::min(end, buffer_.size());
  if (known <= 2 * kPieceBytes) return false;
  const size_t cut = cut_(std::string_view(buffer_).substr(0, known), kPieceBytes);
  if (cut < known) {
    emit(cut, opens, false, piece);
    inside_document_ = true;
    return true;
  }
  if (end == kNoCut) return false;
  emit(end, opens, true, piece);
  inside_document_ = false;
  return true;
}

void TextPieceReader::emit(size_t size, bool opens, bool closes, TextPiece& piece) {
  const std::string_view text = std::string_view(buffer_).substr(0, size);
  piece.begin = at_;
  piece.text.assign(text);
  at_.offset += static_cast<int64_t>(size);
  at_.line += std::count(text.begin(), text.end(), '\n');
  piece.end = at_;
  piece.opens = opens;
  piece.closes = closes;
  buffer_.erase(0, size);
  piece.ends_file = buffer_.empty() && (file_ended_ || (fill(1), buffer_.empty()));
  piece.disk_bytes = disk_bytes_before_ + reader_->disk_position();
}

size_t TextPieceReader::last_document_end() const {
  if (source_.is_json(static_cast<size_t>(at_.file)) || source_.rule() == DocumentRule::kLine) {
    return buffer_.rfind('\n') + 1;  // npos + 1 is 0
  }
  return source_.rule() == DocumentRule::kBlock ? last_blank_line_end(buffer_) : 0;
}

size_t TextPieceReader::open_document_end() const {
  size_t end = kNoCut;
  if (source_.rule() == DocumentRule::kLine) {
    const size_t newline = buffer_.find('\n');
    end = newline == kNoCut ? kNoCut : newline + 1;
  } else if (source_.rule() == DocumentRule::kBlock) {
    end = next_blank_line_end(buffer_);
  }
  return end == kNoCut && file_ended_ ? buffer_.size() : end;
}

int64_t for_each_document(const Source& source, TextPiece& piece, const DocumentBody& body) {
  const auto file = static_cast<size_t>(piece.begin.file);
  const std::string& path = source.files()[file];
  check_text(path, piece.text, piece.begin.offset, piece.begin.line);
  if (!source.is_json(file)) make_line_ends_plain(piece.text);
  std::string_view text = piece.text;
  if (piece.begin.offset == 0) text = without_byte_order_mark(text);
  if (source.is_json(file)) {
    return read_json_lines(path, text, source.options().text_field, piece.begin.line, body,
                           source.options().text_option);
  }
  if (piece.opens && piece.closes) {
    std::vector<std::string_view> documents;
    append_text_documents(text, source.rule(), documents);
    for (const std::string_view document : documents) body(document);
    return 0;
  }
  if (piece.opens) text = first_part_of_document(text);
  if (piece.closes) text = last_part_of_document(text);
  body(text);
  return 0;
}

}  // namespace brisk
