#include "text/models/bpe_tokenizer.h"

#include "base/hash.h"

namespace brisk {

namespace {

uint64_t hash_model(const BpeModelParts& model, uint64_t hash) {
  for (const std::string& token : model.tokens) hash = hash_bytes(token, hash);
  for (const Merge& merge : model.merges) {
    hash = hash_mix(hash, static_cast<uint64_t>(merge.left) << 32 | static_cast<uint32_t>(merge.right));
  }
  for (const auto& text : {model.unknown_token, model.continuing_subword_prefix, model.end_of_word_suffix}) {
    hash = text ? hash_bytes(*text, hash) : hash_mix(hash, 1);
  }
  return hash_mix(hash, model.fuse_unknown | model.byte_fallback << 1 | model.ignore_merges << 2);
}

}  // namespace

BpeTokenizer::BpeTokenizer(TokenizerParts parts, const std::string& path)
    : PipelineTokenizer(static_cast<TokenizerComponents&>(parts), parts.model.tokens, path),
      model_(std::move(parts.model), pre_tokenizer().gives_bytes()) {
  fingerprint_ = hash_added_tokens(hash_model(model_.parts(), hash_components("BPE")));
}

void BpeTokenizer::encode_plain(std::string_view text, bool opens_text, std::vector<TokenId>& out) const {
  pre_tokenizer().split(text, opens_text, [&](std::string_view piece) { model_.encode(piece, out); });
}

bool BpeTokenizer::token_continues_word(TokenId id, const std::string& token) const {
  const BpeModelParts& model = model_.parts();
  if (model.continuing_subword_prefix) return token.starts_with(*model.continuing_subword_prefix);
  if (model.end_of_word_suffix) return false;  // the token before would have to say
  const std::string text = piece(id);
  constexpr std::string_view kSpaces = " \t\n\r\v\f";
  return !text.empty() && kSpaces.find(text[0]) == std::string_view::npos;
}

}  // namespace brisk
