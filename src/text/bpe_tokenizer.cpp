#include "text/bpe_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "text/hash.h"
#include "text/json_fields.h"
#include "text/post_processor.h"

namespace brisk {

namespace {

nlohmann::json component_from(const std::string& text) { return nlohmann::json::parse(text); }

uint64_t fingerprint_of(const TokenizerParts& parts, const BpeModelParts& model) {
  uint64_t hash = hash_bytes(parts.normalizer, hash_bytes("BPE"));
  hash = hash_bytes(parts.pre_tokenizer, hash);
  for (const std::string& token : model.tokens) hash = hash_bytes(token, hash);
  for (const Merge& merge : model.merges) {
    hash = hash_mix(hash, static_cast<uint64_t>(merge.left) << 32 | static_cast<uint32_t>(merge.right));
  }
  for (const auto& text : {model.unknown_token, model.continuing_subword_prefix, model.end_of_word_suffix}) {
    hash = text ? hash_bytes(*text, hash) : hash_mix(hash, 1);
  }
  hash = hash_mix(hash, model.fuse_unknown | model.byte_fallback << 1 | model.ignore_merges << 2);
  for (const AddedToken& token : parts.added_tokens) {
    hash = hash_bytes(token.content, hash_mix(hash, static_cast<uint64_t>(token.id)));
    hash = hash_mix(hash, token.normalized | token.single_word << 1 | token.lstrip << 2 | token.rstrip << 3);
  }
  return hash;
}

}  // namespace

BpeTokenizer::BpeTokenizer(TokenizerParts parts, const std::string& path)
    : parts_(std::move(parts)),
      normalizer_(component_from(parts_.normalizer), path + ": normalizer"),
      pre_tokenizer_(component_from(parts_.pre_tokenizer), path + ": pre_tokenizer"),
      decoder_(component_from(parts_.decoder), path + ": decoder"),
      model_(std::move(parts_.model), pre_tokenizer_.gives_bytes()),
      tokens_(model_.parts().tokens),
      is_added_(tokens_.size()) {
  std::vector<AddedTokenFinder::Pattern> before, after;
  for (const AddedToken& token : parts_.added_tokens) {
    const auto index = static_cast<size_t>(token.id);
    if (index >= tokens_.size()) {
      tokens_.resize(index + 1);
      is_added_.resize(index + 1);
    }
    tokens_[index] = token.content;
    is_added_[index] = true;
    if (token.normalized) {
      after.push_back({normalizer_.apply(token.content), token});
    } else {
      before.push_back({token.content, token});
    }
  }
  // Specials come before the other added tokens, where a text is that of both.
  for (auto* patterns : {&before, &after}) {
    std::stable_partition(patterns->begin(), patterns->end(),
                          [](const AddedTokenFinder::Pattern& pattern) { return pattern.token.special; });
  }
  before_normalizing_ = AddedTokenFinder(std::move(before));
  after_normalizing_ = AddedTokenFinder(std::move(after));

  const TextTemplate around = read_text_template(component_from(parts_.post_processor), path + ": post_processor");
  for (const auto& [names, ids] :
       {std::pair{&around.before, &specials_before_}, std::pair{&around.after, &specials_after_}}) {
    for (const std::string& name : *names) {
      const auto found = std::ranges::find(tokens_, name);
      if (found == tokens_.end()) {
        user_error("{}: post_processor: the special token \"{}\" is not in the vocabulary: copy the file again", path,
                   name);
      }
      ids->push_back(static_cast<TokenId>(found - tokens_.begin()));
    }
  }
  // The library decodes a token that is looked for in normalized text to what it is looked for.
  for (const AddedToken& token : parts_.added_tokens) {
    if (token.normalized) tokens_[token.id] = normalizer_.apply(token.content);
  }
  fingerprint_ = fingerprint_of(parts_, model_.parts());
}

void BpeTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
  if (before_normalizing_.finds_nothing()) return encode_normalized(text, true, out);
  before_normalizing_.split(
      text, [&](size_t begin, size_t end) { encode_normalized(text.substr(begin, end - begin), begin == 0, out); },
      [&](TokenId id) { out.push_back(id); });
}

void BpeTokenizer::encode_normalized(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  std::string normalized;
  if (!normalizer_.changes_nothing()) text = normalized = normalizer_.apply(text);
  if (after_normalizing_.finds_nothing()) return encode_plain(text, opens_text, out);
  after_normalizing_.split(
      text,
      [&](size_t begin, size_t end) { encode_plain(text.substr(begin, end - begin), opens_text && begin == 0, out); },
      [&](TokenId id) { out.push_back(id); });
}

void BpeTokenizer::encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  pre_tokenizer_.split(text, opens_text, [&](std::string_view piece) { model_.encode(piece, out); });
}

void BpeTokenizer::encode_with_specials(std::string_view text, std::vector<TokenId>& out) const {
  out.insert(out.end(), specials_before_.begin(), specials_before_.end());
  encode(text, out);
  out.insert(out.end(), specials_after_.begin(), specials_after_.end());
}

const std::string& BpeTokenizer::token_at(TokenId id) const {
  if (id < 0 || id >= vocab_size()) {
    user_error("token id {} is not in the vocabulary, whose ids are 0 to {}; use the tokenizer that wrote the ids", id,
               vocab_size() - 1);
  }
  return tokens_[id];
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids) const {
  if (decoder_.joins_pieces()) {
    std::string text;
    for (const TokenId id : ids) text += piece(id);
    return text;
  }
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(token_at(id));
  return decoder_.decode(std::move(tokens));
}

std::string BpeTokenizer::piece(TokenId id) const {
  const std::string& token = token_at(id);
  return is_added_[id] ? token : decoder_.piece(token);
}

void BpeTokenizer::save(const std::string& path) const { write_file_atomically(path, to_json()); }

}  // namespace brisk
