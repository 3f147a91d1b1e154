// llama2.c's tokenizer binary: int32 length of the longest piece, then for each piece float score, int32 length, bytes,
// to the end of the file. Ids 0, 1, 2 are <unk>, <s>, </s>; 3 to 258 the bytes 0x00 to 0xFF; the pieces of text follow.
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"
#include "text/pipeline/replace.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

namespace {

constexpr TokenId kUnknown = 0, kStart = 1, kEnd = 2, kFirstByte = 3, kFirstPiece = kFirstByte + 256;

TokenizerParts make_checked(const std::string& path, std::vector<ScoredPiece> pieces) {
  if (pieces.size() < kFirstPiece) {
    user_error(
        "{}: {} pieces; expected at least {} (<unk>, <s>, </s> and 256 bytes): the file is cut short or no tokenizer "
        "of llama2.c, copy it again",
        path, pieces.size(), kFirstPiece);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string expected = fmt::format("<0x{:02X}>", byte);
    const TokenId id = kFirstByte + byte;
    if (pieces[id].text != expected) {
      user_error(
          "{}: the piece of id {} is \"{}\"; expected \"{}\", as ids 3 to 258 are the 256 bytes: use a tokenizer "
          "exported by llama2.c",
          path, id, byte_alphabet_encode(pieces[id].text), expected);
    }
  }
  pieces[kUnknown].text = "<unk>";
  pieces[kStart].text = "<s>";  // llama2.c has newlines around these two
  pieces[kEnd].text = "</s>";
  const Replace marks_spaces({" ", false}, "▁", path);
  std::unordered_map<std::string, size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) {
    ScoredPiece& piece = pieces[id];
    piece.text = marks_spaces.apply(piece.text);
    piece.merges = id >= kFirstPiece;
    const auto [other, is_new] = ids.try_emplace(piece.text, id);
    if (piece.text.empty() || !is_new || find_invalid_utf8(piece.text)) {
      user_error("{}: the piece of id {} is {}; expected text that no other piece has: copy the file again", path, id,
                 piece.text.empty() ? "empty"
                 : is_new           ? "not UTF-8"
                                    : fmt::format("the same as that of id {}", other->second));
    }
    if (!std::isfinite(piece.score)) {
      user_error("{}: the score of id {} is {}; expected a finite number: copy the file again", path, id, piece.score);
    }
  }
  return llama_parts(std::move(pieces), kUnknown, kStart, kEnd);
}

}  // namespace

TokenizerParts parts_from_llama2c(const std::string& path, std::string_view content) {
  constexpr int32_t kLongestPiece = 4096;  // far above any real vocabulary: a text file read as one shows itself here
  size_t at = 0;
  const auto read = [&](auto& value, const char* what) {
    if (content.size() - at < sizeof(value)) {
      user_error(
          "{}: ends at byte {} within {}; the file is cut short or no tokenizer (expected a tokenizer.json, a "
          "SentencePiece .model, GPT-2's files or llama2.c's): copy it again",
          path, content.size(), what);
    }
    std::memcpy(&value, content.data() + at, sizeof(value));
    at += sizeof(value);
  };
  int32_t longest = 0;
  read(longest, "the length of the longest piece");
  if (longest < 1 || longest > kLongestPiece) {
    user_error(
        "{}: not a tokenizer: neither JSON nor a SentencePiece .model nor a binary of llama2.c, whose first number, the "
        "length of its longest piece, would be {} here; expected a tokenizer.json, a SentencePiece .model, GPT-2's "
        "files or llama2.c's",
        path, longest);
  }
  std::vector<ScoredPiece> pieces;
  while (at < content.size()) {
    ScoredPiece piece;
    int32_t length = 0;
    const std::string what = fmt::format("piece {}", pieces.size());
    read(piece.score, what.c_str());
    read(length, what.c_str());
    if (length < 0 || length > longest) {
      user_error(
          "{}: byte {}: {} has the length {}; expected 1 to {}: the file is damaged or no tokenizer of llama2.c, copy "
          "it again",
          path, at - 4, what, length, longest);
    }
    if (content.size() - at < static_cast<size_t>(length)) {
      user_error("{}: ends at byte {} within {} of {} bytes; the file is cut short: copy it again", path,
                 content.size(), what, length);
    }
    piece.text = content.substr(at, static_cast<size_t>(length));
    pieces.push_back(std::move(piece));
    at += static_cast<size_t>(length);
  }
  return make_checked(path, std::move(pieces));
}

}  // namespace brisk
