#include "text/pipeline/pipeline_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/parse_json.h"

namespace brisk {

namespace {

nlohmann::json component_from(const std::string& text) { return parse_own_json<nlohmann::json>(text); }

}  // namespace

PipelineTokenizer::PipelineTokenizer(TokenizerComponents components, const std::vector<std::string>& tokens,
                                     const std::string& path)
    : components_(std::move(components)),
      normalizer_(component_from(components_.normalizer), path + ": normalizer"),
      pre_tokenizer_(component_from(components_.pre_tokenizer), path + ": pre_tokenizer"),
      decoder_(component_from(components_.decoder), path + ": decoder"),
      tokens_(tokens),
      is_added_(tokens_.size()) {
  index_added_tokens();
  const std::string place = path + ": post_processor";
  const TextTemplates around = read_text_templates(component_from(components_.post_processor), place);
  single_ = ids_of(around.single, place);
  if (around.pair_problem.empty()) {
    pair_ = ids_of(around.pair, place);
  } else {
    pair_problem_ = fmt::format("{}: \"pair\" is not one that brisk can use: {}", place, around.pair_problem);
  }
  // The library decodes a token that is looked for in normalized text to what it is looked for.
  for (const AddedToken& token : components_.added_tokens) {
    if (token.normalized) tokens_[token.id] = normalizer_.apply(token.content);
  }
}

void PipelineTokenizer::index_added_tokens() {
  std::vector<AddedTokenFinder::Pattern> before, after;
  for (const AddedToken& token : components_.added_tokens) {
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
}

SequenceTemplate PipelineTokenizer::ids_of(const NamedTemplate& named, const std::string& place) const {
  const auto ids = [&](const std::vector<std::string>& names) {
    std::vector<TokenId> found;
    for (const std::string& name : names) {
      const std::optional<TokenId> id = token_id(name);
      if (!id) {
        user_error("{}: the special token \"{}\" is not in the vocabulary: copy the file again", place, name);
      }
      found.push_back(*id);
    }
    return found;
  };
  return {ids(named.prefix), ids(named.middle), ids(named.suffix), named.second_type};
}

uint64_t PipelineTokenizer::hash_components(std::string_view model_type) const {
  return hash_bytes(components_.pre_tokenizer, hash_bytes(components_.normalizer, hash_bytes(model_type)));
}

uint64_t PipelineTokenizer::hash_added_tokens(uint64_t hash) const {
  for (const AddedToken& token : components_.added_tokens) {
    hash = hash_bytes(token.content, hash_mix(hash, static_cast<uint64_t>(token.id)));
    hash = hash_mix(hash, token.normalized | token.single_word << 1 | token.lstrip << 2 | token.rstrip << 3);
  }
  return hash;
}

void PipelineTokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
  if (before_normalizing_.finds_nothing()) return encode_given(text, true, out);
  before_normalizing_.split(
      text, [&](size_t begin, size_t end) { encode_given(text.substr(begin, end - begin), begin == 0, out); },
      [&](TokenId id) { out.push_back(id); });
}

void PipelineTokenizer::encode_given(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  std::string normalized;
  if (!normalizer_.changes_nothing()) text = normalized = normalizer_.apply(text);
  if (after_normalizing_.finds_nothing()) return encode_plain(text, opens_text, out);
  after_normalizing_.split(
      text,
      [&](size_t begin, size_t end) { encode_plain(text.substr(begin, end - begin), opens_text && begin == 0, out); },
      [&](TokenId id) { out.push_back(id); });
}

void PipelineTokenizer::encode_with_specials(std::string_view text, std::vector<TokenId>& out) const {
  out.insert(out.end(), single_.prefix.begin(), single_.prefix.end());
  encode(text, out);
  out.insert(out.end(), single_.suffix.begin(), single_.suffix.end());
}

std::optional<TokenId> PipelineTokenizer::token_id(std::string_view token) const {
  const auto has_content = [&](const AddedToken& added) { return added.content == token; };
  const auto added = std::ranges::find_if(components_.added_tokens, has_content);
  if (added != components_.added_tokens.end()) return added->id;
  const auto found = std::ranges::find(tokens_, token);
  if (token.empty() || found == tokens_.end()) return std::nullopt;
  return static_cast<TokenId>(found - tokens_.begin());
}

SequenceTemplate PipelineTokenizer::pair_template() const {
  if (!pair_problem_.empty()) user_error("{}; use another tokenizer, or single texts instead of pairs", pair_problem_);
  return pair_;
}

const std::string& PipelineTokenizer::token(TokenId id) const {
  if (id < 0 || id >= vocab_size()) {
    user_error("token id {} is not in the vocabulary, whose ids are 0 to {}; use the tokenizer that wrote the ids", id,
               vocab_size() - 1);
  }
  return tokens_[id];
}

bool PipelineTokenizer::continues_word(TokenId id) const {
  const std::string& found = token(id);
  return !is_added_[id] && token_continues_word(id, found);
}

std::string PipelineTokenizer::decode(std::span<const TokenId> ids) const {
  if (decoder_.joins_pieces()) {
    std::string text;
    for (const TokenId id : ids) text += piece(id);
    return text;
  }
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(token(id));
  return decoder_.decode(std::move(tokens));
}

std::string PipelineTokenizer::piece(TokenId id) const {
  const std::string& found = token(id);
  return is_added_[id] ? found : decoder_.piece(found);
}

void PipelineTokenizer::save(const std::string& path) const { write_file_atomically(path, to_json()); }

}  // namespace brisk
