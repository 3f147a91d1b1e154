// SentencePiece's .model, a protocol buffer: pieces (field 1: text, score, type), how it was trained (field 2) and how
// it normalizes (field 3). As much of it is read as a BPE of the Llama family needs; the rest is refused by name.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"

namespace brisk {

namespace {

struct Field {
  uint32_t number = 0;
  uint64_t value = 0;      // of a varint
  float fixed = 0;         // of four bytes
  std::string_view bytes;  // of a text or a message
};

class Message {
 public:
  Message(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  // The next field; nothing at the end.
  std::optional<Field> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    const uint64_t tag = read_varint();
    Field field;
    field.number = static_cast<uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0: field.value = read_varint(); break;
      case 1: take(8); break;
      case 2: field.bytes = take(read_varint()); break;
      case 5: std::memcpy(&field.fixed, take(4).data(), 4); break;
      default: damaged();
    }
    return field;
  }

 private:
  [[noreturn]] void damaged() const {
    user_error(
        "{}: not a SentencePiece model, or cut short (at byte {} of a part of {}): expected a tokenizer.json, a "
        "SentencePiece .model, GPT-2's files or llama2.c's; copy it again",
        path_, at_, bytes_.size());
  }

  uint64_t read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) damaged();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }

  std::string_view take(uint64_t size) {
    if (size > bytes_.size() - at_) damaged();
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }

  const std::string& path_;
  std::string_view bytes_;
  size_t at_ = 0;
};

enum PieceType : uint64_t { kNormal = 1, kUnknownPiece = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Piece {
  std::string text;
  float score = 0;
  uint64_t type = kNormal;
};

struct Model {
  std::vector<Piece> pieces;
  uint64_t model_type = 1;  // unigram, unless it says otherwise
  bool byte_fallback = false;
  bool suffix_spaces = false;
  int64_t start = 1, end = 2;
  std::string normalization;
  bool has_character_map = false;
  bool prefix_space = true, removes_spaces = true, escapes_spaces = true;
};

Piece read_piece(const std::string& path, std::string_view bytes) {
  Piece piece;
  Message message(path, bytes);
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = field->fixed;
    if (field->number == 3) piece.type = field->value;
  }
  return piece;
}

Model read_model(const std::string& path, std::string_view content) {
  Model model;
  Message message(path, content);
  while (const auto part = message.next()) {
    if (part->number == 1) model.pieces.push_back(read_piece(path, part->bytes));
    if (part->number == 2) {
      Message training(path, part->bytes);
      while (const auto field = training.next()) {
        if (field->number == 3) model.model_type = field->value;
        if (field->number == 24) model.suffix_spaces = field->value != 0;
        if (field->number == 35) model.byte_fallback = field->value != 0;
        if (field->number == 41) model.start = static_cast<int32_t>(field->value);
        if (field->number == 42) model.end = static_cast<int32_t>(field->value);
      }
    }
    if (part->number == 3) {
      Message normalizer(path, part->bytes);
      while (const auto field = normalizer.next()) {
        if (field->number == 1) model.normalization = field->bytes;
        if (field->number == 2) model.has_character_map = !field->bytes.empty();
        if (field->number == 3) model.prefix_space = field->value != 0;
        if (field->number == 4) model.removes_spaces = field->value != 0;
        if (field->number == 5) model.escapes_spaces = field->value != 0;
      }
    }
  }
  return model;
}

void check(const std::string& path, const Model& model) {
  const auto refuse = [&](const std::string& found, const char* expected) {
    user_error("{}: this SentencePiece model {}; brisk reads {}: use its tokenizer.json, if there is one", path, found,
               expected);
  };
  static constexpr const char* kTypes[] = {"none", "unigram", "BPE", "words", "characters"};
  if (model.pieces.empty()) refuse("has no pieces", "those that have");
  if (model.model_type != 2) {
    refuse(fmt::format("is of the type {}", model.model_type < 5 ? kTypes[model.model_type] : "unknown"), "BPE");
  }
  if (model.has_character_map) {
    refuse(format_message("normalizes text by the rule \"{}\"", model.normalization), "the rule \"identity\"");
  }
  if (model.suffix_spaces) refuse("has spaces at the ends of words", "those with spaces before them");
  if (!model.escapes_spaces) refuse("keeps spaces as they are", "those that write them as ▁");
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    const auto [other, is_new] = ids.try_emplace(piece.text, id);
    if (piece.text.empty() || !is_new || find_invalid_utf8(piece.text) || !std::isfinite(piece.score)) {
      user_error("{}: the piece of id {} {}: the file is damaged, copy it again", path, id,
                 piece.text.empty() ? "is empty"
                 : !is_new          ? fmt::format("is the same as that of id {}", other->second)
                                    : "is not UTF-8, or its score is not a number");
    }
  }
}

}  // namespace

TokenizerParts parts_from_sentencepiece(const std::string& path, std::string_view content) {
  Model model = read_model(path, content);
  check(path, model);
  std::vector<ScoredPiece> pieces;
  std::optional<TokenId> unknown;
  std::vector<AddedToken> added;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const Piece& piece = model.pieces[i];
    if (piece.type == kUnknownPiece && !unknown) unknown = id;
    if (piece.type == kControl) added.push_back(special_token(id, piece.text));
    if (piece.type == kUserDefined) {
      added.push_back({.id = id, .content = piece.text, .special = false, .normalized = false});
    }
    pieces.push_back({piece.text, piece.score, piece.type == kNormal || piece.type == kUserDefined});
  }
  if (!unknown) user_error("{}: no piece for unknown text (<unk>): the file is damaged, copy it again", path);
  const auto control = [&](int64_t id) -> std::optional<TokenId> {
    if (id < 0 || id >= static_cast<int64_t>(model.pieces.size())) return std::nullopt;
    return model.pieces[id].type == kControl ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
  };
  TokenizerParts parts = llama_parts(std::move(pieces), *unknown, control(model.start), control(model.end));
  parts.model.byte_fallback = model.byte_fallback;
  for (AddedToken& token : added) {
    if (token.id != parts.start_of_text && token.id != parts.end_of_document) {
      parts.added_tokens.push_back(std::move(token));
    }
  }
  std::ranges::sort(parts.added_tokens, {}, &AddedToken::id);
  const auto same_id = [](const AddedToken& a, const AddedToken& b) { return a.id == b.id; };
  const auto twice = std::unique(parts.added_tokens.begin(), parts.added_tokens.end(), same_id);
  parts.added_tokens.erase(twice, parts.added_tokens.end());  // one token may open and end a text

  nlohmann::json steps = nlohmann::json::array();
  const auto add_replace = [&](const char* kind, const char* pattern, const char* by) {
    steps.push_back({{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", by}});
  };
  if (model.removes_spaces) {
    add_replace("Regex", "\\A +| +\\z", "");
    add_replace("Regex", " {2,}", " ");
  }
  if (model.prefix_space) steps.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
  add_replace("String", " ", "▁");
  parts.normalizer = nlohmann::json{{"type", "Sequence"}, {"normalizers", steps}}.dump();
  if (!model.prefix_space) {
    parts.decoder = R"({"decoders":[{"content":" ","pattern":{"String":"▁"},"type":"Replace"},{"type":"ByteFallback"},)"
                    R"({"type":"Fuse"}],"type":"Sequence"})";
  }
  return parts;
}

}  // namespace brisk
