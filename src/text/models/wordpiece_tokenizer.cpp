#include "text/models/wordpiece_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/parse_json.h"
#include "base/text/unicode.h"
#include "text/models/word_cache.h"
#include "text/pipeline/bert_words.h"

namespace brisk {

namespace {

uint64_t hash_model(const WordPieceModelParts& model, uint64_t hash) {
  for (const std::string& token : model.tokens) hash = hash_bytes(token, hash);
  hash = hash_bytes(model.continuing_subword_prefix, hash_bytes(model.unknown_token, hash));
  return hash_mix(hash, static_cast<uint64_t>(model.most_characters));
}

bool is_type(const nlohmann::json& component, const char* type) {
  return component.is_object() && component.value("type", "") == type;
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(WordPieceParts parts, const std::string& path)
    : PipelineTokenizer(static_cast<TokenizerComponents&>(parts), parts.model.tokens, path),
      model_(std::move(parts.model), path + ": model"),
      serial_(WordCache::next_serial()) {
  const auto normalizer = parse_own_json<nlohmann::json>(parts.normalizer);
  const auto pre_tokenizer = parse_own_json<nlohmann::json>(parts.pre_tokenizer);
  cuts_given_text_ = (normalizer.is_null() || is_type(normalizer, "BertNormalizer")) &&
                     is_type(pre_tokenizer, "BertPreTokenizer") && !looks_for_tokens_in_normalized();
  if (cuts_given_text_) {
    lowercases_ = this->normalizer().apply("A") == "a";
    isolates_chinese_ = this->normalizer().apply("中") == " 中 ";
    std::vector<TokenId> ids;
    for (int byte = 0; byte < 128; ++byte) {
      const char character = static_cast<char>(byte);
      ids.clear();
      model_.encode_uncached({&character, 1}, ids);
      punctuation_ids_[byte] = ids[0];
    }
  }
  fingerprint_ = hash_added_tokens(hash_model(model_.parts(), hash_components("WordPiece")));
}

void WordPieceTokenizer::encode_given(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  if (!cuts_given_text_) return PipelineTokenizer::encode_given(text, opens_text, out);
  WordCache& cache = WordCache::of_this_thread();
  for (size_t begin = bert_piece_begin(text, 0); begin < text.size();) {
    const size_t end = bert_piece_end(text, begin);
    if (bert_class_of(text[begin]) == BertClass::kPunctuation) {
      out.push_back(punctuation_ids_[static_cast<unsigned char>(text[begin])]);
    } else {
      const std::string_view piece = text.substr(begin, end - begin);
      cache.encode(piece, serial_, out, [&] { encode_piece(piece, out); });
    }
    begin = bert_piece_begin(text, end);
  }
}

void WordPieceTokenizer::encode_piece(std::string_view piece, std::vector<TokenId>& out) const {
  const auto is_plain = [](char byte) { return bert_class_of(byte) == BertClass::kPlain; };
  if (std::ranges::all_of(piece, is_plain)) {
    if (!lowercases_) return model_.encode_uncached(piece, out);
    std::string lower(piece);
    for (char& byte : lower) byte = static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
    return model_.encode_uncached(lower, out);
  }
  if (isolates_chinese_) return encode_around_chinese(piece, out);
  encode_plain(normalizer().apply(piece), false, out);
}

// Chinese is written without spaces, so that pieces are whole sentences; but each character is a word of its own.
void WordPieceTokenizer::encode_around_chinese(std::string_view piece, std::vector<TokenId>& out) const {
  WordCache& cache = WordCache::of_this_thread();
  const auto encode_part = [&](size_t begin, size_t end) {
    const std::string_view part = piece.substr(begin, end - begin);
    const auto append = [&] { encode_plain(normalizer().apply(part), false, out); };
    if (part.size() == piece.size()) return append();  // the cache does not have it: it was asked
    if (!part.empty()) cache.encode(part, serial_, out, append);
  };
  size_t done = 0;
  for (size_t at = 0; at < piece.size();) {
    const CodePoint character = decode_utf8(piece, at);
    const size_t end = at + character.length;
    if (is_bert_chinese(character.value)) {
      encode_part(done, at);
      encode_part(at, end);
      done = end;
    }
    at = end;
  }
  if (done < piece.size()) encode_part(done, piece.size());
}

void WordPieceTokenizer::encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  pre_tokenizer().split(text, opens_text, [&](std::string_view word) { model_.encode(word, out); });
}

bool WordPieceTokenizer::token_continues_word(TokenId /*id*/, const std::string& token) const {
  const std::string& prefix = model_.parts().continuing_subword_prefix;
  return !prefix.empty() && token.size() > prefix.size() && token.starts_with(prefix);
}

}  // namespace brisk
