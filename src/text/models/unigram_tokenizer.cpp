#include "text/models/unigram_tokenizer.h"

#include <bit>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/parse_json.h"
#include "base/text/base64.h"
#include "base/text/unicode.h"
#include "text/models/word_cache.h"
#include "text/pipeline/replace.h"

namespace brisk {

namespace {

constexpr std::string_view kSpaceMark = "▁";

uint64_t hash_scored(std::string_view token, double score, uint64_t hash) {
  return hash_mix(hash_bytes(token, hash), std::bit_cast<uint64_t>(score));
}

uint64_t hash_model(const UnigramModelParts& model, uint64_t hash) {
  for (size_t id = 0; id < model.tokens.size(); ++id) hash = hash_scored(model.tokens[id], model.scores[id], hash);
  hash = hash_mix(hash, static_cast<uint64_t>(model.unknown.value_or(-1)));
  hash = hash_mix(hash, model.byte_fallback | model.sentencepiece.has_value() << 1);
  if (!model.sentencepiece) return hash;
  const SentencePieceRules& rules = *model.sentencepiece;
  hash = hash_mix(hash, rules.removes_spaces | rules.prefix_space << 1 | rules.ids_from_vocabulary << 2);
  for (const auto* ids : {&rules.outside_text, &rules.user_defined}) {
    hash = hash_mix(hash, ids->size());
    for (const TokenId id : *ids) hash = hash_mix(hash, static_cast<uint64_t>(id));
  }
  for (const auto& [piece, score] : rules.without_id) hash = hash_scored(piece, score, hash);
  return hash;
}

}  // namespace

std::string character_map_text(const nlohmann::json& normalizer) {
  if (!normalizer.is_object()) return "";
  if (const auto found = normalizer.find("precompiled_charsmap"); found != normalizer.end() && found->is_string()) {
    return found->get<std::string>();
  }
  if (const auto parts = normalizer.find("normalizers"); parts != normalizer.end() && parts->is_array()) {
    for (const nlohmann::json& part : *parts) {
      if (std::string text = character_map_text(part); !text.empty()) return text;
    }
  }
  return "";
}

UnigramTokenizer::UnigramTokenizer(UnigramParts parts, const std::string& path)
    : PipelineTokenizer(static_cast<TokenizerComponents&>(parts), parts.model.tokens, path),
      model_(std::move(parts.model), path + ": model"),
      serial_(WordCache::next_serial()) {
  fingerprint_ = hash_added_tokens(hash_model(model(), hash_components("Unigram")));
  if (!model().sentencepiece) return;
  const std::string place = path + ": normalizer";
  const auto bytes = decode_base64(character_map_text(parse_own_json<nlohmann::json>(components().normalizer)));
  if (!bytes) user_error("{}: the character map is not base64: copy the file again", place);
  characters_ = CharacterMap(*bytes, place);
  std::vector<AddedTokenFinder::Pattern> specials;
  for (const AddedToken& token : components().added_tokens) {
    if (token.special) specials.push_back({token.content, token});
  }
  specials_ = AddedTokenFinder(std::move(specials));
}

void UnigramTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
  if (!model().sentencepiece) return PipelineTokenizer::encode(text, out);
  specials_.split(
      text,
      [&](size_t begin, size_t end) {
        model_.encode(normalize_as_sentencepiece(text.substr(begin, end - begin)), out);
      },
      [&](TokenId id) { out.push_back(id); });
}

std::string UnigramTokenizer::normalize_as_sentencepiece(std::string_view text) const {
  const SentencePieceRules& rules = *model().sentencepiece;
  // What the text begins with: its bytes, and what they become.
  const auto next = [&](std::string_view rest) -> std::pair<size_t, std::string_view> {
    if (const size_t size = model_.user_defined_prefix(rest); size > 0) return {size, rest.substr(0, size)};
    if (const CharacterMap::Rule rule = characters_.longest(rest); rule.length > 0) return {rule.length, rule.text};
    const CodePoint character = decode_utf8(rest, 0);
    if (character.value == kInvalidCodePoint && !model().byte_fallback) return {1, "\uFFFD"};
    return {character.length, rest.substr(0, character.length)};
  };
  if (rules.removes_spaces) {
    while (!text.empty()) {
      const auto [size, became] = next(text);
      if (became != " ") break;
      text.remove_prefix(size);
    }
  }
  std::string out;
  if (text.empty()) return out;
  const size_t given = text.size();
  if (rules.prefix_space) out += kSpaceMark;
  bool after_space = rules.removes_spaces;
  while (!text.empty()) {
    auto [size, became] = next(text);
    while (after_space && became.starts_with(' ')) became.remove_prefix(1);
    for (const char c : became) {
      if (c == ' ') {
        out += kSpaceMark;
      } else {
        out += c;
      }
    }
    if (!became.empty()) after_space = rules.removes_spaces && became.ends_with(' ');
    text.remove_prefix(size);
    check_growth(given, out.size(), "character map makes");
  }
  while (rules.removes_spaces && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
  return out;
}

void UnigramTokenizer::encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  pre_tokenizer().split(text, opens_text, [&](std::string_view word) {
    WordCache::of_this_thread().encode(word, serial_, out, [&] { model_.encode(word, out); });
  });
}

bool UnigramTokenizer::token_continues_word(TokenId /*id*/, const std::string& token) const {
  return !token.empty() && !token.starts_with(kSpaceMark);
}

}  // namespace brisk
