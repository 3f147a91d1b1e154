// SentencePiece's .model, a protocol buffer: pieces (field 1: text, score, type), how it was trained (field 2) and how
// it normalizes (field 3). Unigram models are read as they are; of BPE as much as the Llama family needs. The rest is refused
// by name. Marian has two such files, and a vocab.json with the ids of both.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"
#include "text/models/unigram_tokenizer.h"
#include "text/pipeline/json_fields.h"

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

enum ModelType : uint64_t { kUnigram = 1, kBpe = 2 };
enum PieceType : uint64_t { kNormal = 1, kUnknownPiece = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct Piece {
  std::string text;
  float score = 0;
  uint64_t type = kNormal;
};

struct Model {
  std::vector<Piece> pieces;
  bool has_training = false, has_normalizer = false;
  uint64_t model_type = kUnigram;  // unless it says otherwise
  bool byte_fallback = false;
  bool suffix_spaces = false;
  int64_t start = 1, end = 2;
  std::string normalization, character_map;
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
      model.has_training = true;
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
      model.has_normalizer = true;
      Message normalizer(path, part->bytes);
      while (const auto field = normalizer.next()) {
        if (field->number == 1) model.normalization = field->bytes;
        if (field->number == 2) model.character_map = field->bytes;
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
  if (model.model_type == kUnigram && !(model.has_training && model.has_normalizer)) {
    user_error("{}: cut short: {} pieces, and behind them nothing of how {}: copy it again", path, model.pieces.size(),
               model.has_training ? "it normalizes text" : "it was trained");
  }
  if (model.model_type != kBpe && model.model_type != kUnigram) {
    refuse(fmt::format("is of the type {}", model.model_type < 5 ? kTypes[model.model_type] : "unknown"),
           "Unigram and BPE");
  }
  if (model.model_type == kBpe && !model.character_map.empty()) {
    refuse(format_message("is a BPE that normalizes text by the rule \"{}\"", model.normalization),
           "BPE with the rule \"identity\"");
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

TokenizerParts bpe_parts(const std::string& path, const Model& model) {
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

// The "post_processor" that puts the token behind a text, and behind both of a pair.
std::string ends_with_token(const std::string& name, TokenId id) {
  const nlohmann::json special = {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  const auto text = [](const char* which) { return nlohmann::json{{"Sequence", {{"id", which}, {"type_id", 0}}}}; };
  const nlohmann::json around = {{"type", "TemplateProcessing"},
                                 {"single", nlohmann::json::array({text("A"), special})},
                                 {"pair", nlohmann::json::array({text("A"), special, text("B"), special})},
                                 {"special_tokens", {{name, {{"id", name}, {"ids", {id}}, {"tokens", {name}}}}}}};
  return around.dump();
}

// The components that make a tokenizer.json do nearly the same.
void set_unigram_components(const Model& model, TokenizerComponents& components) {
  nlohmann::json steps = nlohmann::json::array();
  if (!model.character_map.empty()) {
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", encode_base64(model.character_map)}});
  }
  if (model.removes_spaces) {
    steps.push_back({{"type", "Strip"}, {"strip_left", !model.prefix_space}, {"strip_right", true}});
    steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "▁"}});
  }
  if (!steps.empty()) components.normalizer = nlohmann::json{{"type", "Sequence"}, {"normalizers", steps}}.dump();
  components.pre_tokenizer = nlohmann::json{
      {"type", "Metaspace"},
      {"replacement", "▁"},
      {"prepend_scheme", model.prefix_space ? "always" : "never"},
      {"split", true}}.dump();
  nlohmann::json back = nlohmann::json::array({{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                                               {{"type", "ByteFallback"}},
                                               {{"type", "Fuse"}}});
  if (model.prefix_space) back.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  components.decoder = nlohmann::json{{"type", "Sequence"}, {"decoders", back}}.dump();
}

bool comes_out_of_text(const Piece& piece) { return piece.type == kNormal || piece.type == kUserDefined; }

void add_piece_rules(const Piece& piece, TokenId id, SentencePieceRules& rules) {
  if (!comes_out_of_text(piece)) rules.outside_text.push_back(id);
  if (piece.type == kUserDefined) rules.user_defined.push_back(id);
}

// T5's <extra_id_..> and whatever else tokenizer_config.json adds behind the pieces. They are written with their ids, or else
// T5's class says that there are a hundred, the last one first.
std::vector<AddedToken> tokens_behind(const std::string& path, size_t pieces, const nlohmann::json& config) {
  std::vector<AddedToken> added;
  if (!config.is_object()) return added;
  if (const auto listed = config.find("added_tokens_decoder"); listed != config.end() && listed->is_object()) {
    for (const auto& [key, entry] : listed->items()) {
      const bool is_number =
          !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
      if (!is_number || !entry.is_object() || std::stoul(key) < pieces) continue;
      const std::string place = path + ": \"added_tokens_decoder\" of its tokenizer_config.json";
      AddedToken token = special_token(static_cast<TokenId>(std::stoul(key)), json_text(entry, "content", place));
      token.special = json_flag(entry, "special", place, true);
      added.push_back(std::move(token));
    }
    std::ranges::sort(added, {}, &AddedToken::id);
  }
  const auto tokenizer_class = configured_token(config, "tokenizer_class").value_or("");
  if (added.empty() && (config.contains("extra_ids") || tokenizer_class.starts_with("T5"))) {
    constexpr int64_t kUsual = 100, kMost = 100000;
    const int64_t count = config.contains("extra_ids")
                              ? json_integer(config, "extra_ids", path + ": its tokenizer_config.json", 0, kMost)
                              : kUsual;
    for (int64_t i = 0; i < count; ++i) {
      added.push_back(special_token(static_cast<TokenId>(pieces) + static_cast<TokenId>(i),
                                    fmt::format("<extra_id_{}>", count - 1 - i)));
    }
  }
  for (size_t i = 0; i < added.size(); ++i) {
    if (static_cast<size_t>(added[i].id) != pieces + i || added[i].content.empty()) {
      user_error(
          "{}: its tokenizer_config.json gives the token \"{}\" the id {}; expected {}, the next one: copy both again",
          path, added[i].content, added[i].id, pieces + i);
    }
  }
  return added;
}

UnigramParts unigram_parts(const std::string& path, const Model& model, const nlohmann::json& config) {
  UnigramParts parts;
  SentencePieceRules rules{.removes_spaces = model.removes_spaces, .prefix_space = model.prefix_space};
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const Piece& piece = model.pieces[i];
    parts.model.tokens.push_back(piece.text);
    parts.model.scores.push_back(piece.score);
    add_piece_rules(piece, id, rules);
    if (piece.type == kUnknownPiece && !parts.model.unknown) parts.model.unknown = id;
    if (piece.type == kUnknownPiece || piece.type == kControl)
      parts.added_tokens.push_back(special_token(id, piece.text));
    if (piece.type == kUserDefined) parts.added_tokens.push_back({.id = id, .content = piece.text, .special = false});
  }
  if (!parts.model.unknown)
    user_error("{}: no piece for unknown text (<unk>): the file is damaged, copy it again", path);
  for (AddedToken& token : tokens_behind(path, model.pieces.size(), config))
    parts.added_tokens.push_back(std::move(token));
  parts.model.byte_fallback = model.byte_fallback;
  parts.model.sentencepiece = std::move(rules);
  set_unigram_components(model, parts);
  const auto control = [&](int64_t id) -> std::optional<TokenId> {
    if (id < 0 || id >= static_cast<int64_t>(model.pieces.size())) return std::nullopt;
    return model.pieces[id].type == kControl ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
  };
  const std::optional<TokenId> end = control(model.end);
  if (configured_token(config, "tokenizer_class").value_or("").starts_with("T5") && end) {
    parts.post_processor = ends_with_token(model.pieces[*end].text, *end);
  }
  read_special_roles(path, config, parts.model.tokens, parts);
  if (!configured_token(config, "eos_token") && end) parts.end_of_document = end;
  if (!configured_token(config, "bos_token")) parts.start_of_text = control(model.start);
  return parts;
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_sentencepiece(const std::string& path, std::string_view content,
                                                        const nlohmann::json& config) {
  const Model model = read_model(path, content);
  check(path, model);
  if (model.model_type == kBpe) return std::make_unique<BpeTokenizer>(bpe_parts(path, model), path);
  return std::make_unique<UnigramTokenizer>(unigram_parts(path, model, config), path);
}

std::unique_ptr<Tokenizer> tokenizer_from_marian(const std::string& path, std::string_view content,
                                                 const std::string& vocabulary_path, const nlohmann::json& vocabulary) {
  const Model model = read_model(path, content);
  check(path, model);
  if (model.model_type != kUnigram) {
    user_error("{}: Marian's vocabulary is Unigram, this is another SentencePiece model; copy it again", path);
  }
  UnigramParts parts;
  parts.model.tokens = vocabulary_from_json(nlohmann::json{{"vocab", vocabulary}}, vocabulary_path);
  parts.model.scores.resize(parts.model.tokens.size());
  SentencePieceRules rules{.removes_spaces = model.removes_spaces, .prefix_space = model.prefix_space};
  rules.ids_from_vocabulary = true;
  std::unordered_map<std::string_view, TokenId> ids;
  for (size_t id = 0; id < parts.model.tokens.size(); ++id) {
    if (!parts.model.tokens[id].empty()) ids.emplace(parts.model.tokens[id], static_cast<TokenId>(id));
  }
  std::vector<bool> is_piece(parts.model.tokens.size());
  double least = 0;
  for (const Piece& piece : model.pieces) {
    const auto found = ids.find(piece.text);
    if (found == ids.end()) {
      if (comes_out_of_text(piece)) rules.without_id.emplace_back(piece.text, piece.score);
      continue;
    }
    is_piece[found->second] = true;
    parts.model.scores[found->second] = piece.score;
    add_piece_rules(piece, found->second, rules);
    least = std::min<double>(least, piece.score);
  }
  for (size_t id = 0; id < is_piece.size(); ++id) {
    if (is_piece[id]) continue;
    constexpr double kNeverBetter = 5;  // for other programs: an unknown character is worth 10 less than the least
    parts.model.scores[id] = least - kNeverBetter;
    rules.outside_text.push_back(static_cast<TokenId>(id));
  }
  const auto special = [&](const char* name) {
    const auto found = ids.find(name);
    if (found == ids.end()) {
      user_error("{}: no token \"{}\" in it, which Marian's vocabularies have: copy it again", vocabulary_path, name);
    }
    parts.added_tokens.push_back(special_token(found->second, name));
    return found->second;
  };
  parts.end_of_document = special("</s>");
  parts.unknown = parts.model.unknown = special("<unk>");
  parts.padding = special("<pad>");
  for (const auto& [token, id] : ids) {  // the language to translate to, at the beginning of a text
    if (token.starts_with(">>") && token.ends_with("<<") && token.size() > 4) {
      parts.added_tokens.push_back(special_token(id, std::string(token)));
    }
  }
  std::ranges::sort(parts.added_tokens, {}, &AddedToken::id);
  std::ranges::sort(rules.outside_text);
  parts.model.sentencepiece = std::move(rules);
  set_unigram_components(model, parts);
  parts.post_processor = ends_with_token("</s>", *parts.end_of_document);
  return std::make_unique<UnigramTokenizer>(std::move(parts), path);
}

}  // namespace brisk
