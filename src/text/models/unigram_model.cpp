#include "text/models/unigram_model.h"

#include <algorithm>
#include <cfloat>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/text/unicode.h"

namespace brisk {

namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

UnigramModel::UnigramModel(UnigramModelParts parts, const std::string& place)
    : parts_(std::move(parts)), place_(place), scores_(parts_.scores) {
  BRISK_CHECK(parts_.scores.size() == parts_.tokens.size(), "a token without a score");
  const auto size = static_cast<TokenId>(parts_.tokens.size());
  if (parts_.unknown && (*parts_.unknown < 0 || *parts_.unknown >= size)) {
    user_error("{}: the unknown token has the id {}, but there are {} tokens: copy the file again", place,
               *parts_.unknown, size);
  }
  for (const std::string& token : parts_.tokens) {
    if (token.size() >= kLongestToken) {
      user_error("{}: a token has {} bytes; expected less than {}: the file is damaged, copy it again", place,
                 token.size(), kLongestToken);
    }
  }
  for (TokenId id = 0; id < size; ++id) ids_[parts_.tokens[id]] = id;  // of two that are the same the last counts
  const bool is_own = parts_.sentencepiece.has_value();
  if (is_own) {
    index_sentencepiece();
  } else {
    double least = std::numeric_limits<double>::infinity();
    for (TokenId id = 0; id < size; ++id) {
      if (!parts_.tokens[id].empty()) trie_.insert(parts_.tokens[id], id);
      least = std::min(least, parts_.scores[id]);
    }
    unknown_score_ = least - kUnknownPenalty;
  }
  unknown_ = parts_.unknown.value_or(static_cast<TokenId>(scores_.size()));
  if (parts_.byte_fallback) {
    for (int byte = 0; byte < 256; ++byte) byte_ids_.push_back(find(fmt::format("<0x{:02X}>", byte)));
    if (std::ranges::find(byte_ids_, -1) != byte_ids_.end()) byte_ids_.clear();
  }
}

void UnigramModel::index_sentencepiece() {
  const SentencePieceRules& rules = *parts_.sentencepiece;
  enum class Kind : uint8_t { kNormal, kOutside, kUserDefined };
  std::vector<Kind> kinds(parts_.tokens.size(), Kind::kNormal);
  for (const TokenId id : rules.outside_text) kinds.at(id) = Kind::kOutside;
  for (const TokenId id : rules.user_defined) kinds.at(id) = Kind::kUserDefined;
  float least = FLT_MAX, most = 0.1F;  // which the library takes where all scores are negative, as logarithms are
  const auto see = [&](double score) {
    least = std::min(least, static_cast<float>(score));
    most = std::max(most, static_cast<float>(score));
  };
  for (size_t id = 0; id < kinds.size(); ++id) {
    if (kinds[id] == Kind::kNormal) see(parts_.scores[id]);
  }
  for (const auto& [piece, score] : rules.without_id) see(score);
  for (size_t id = 0; id < kinds.size(); ++id) {
    const std::string& token = parts_.tokens[id];
    if (kinds[id] == Kind::kOutside || token.empty()) continue;
    trie_.insert(token, static_cast<TokenId>(id));
    if (kinds[id] != Kind::kUserDefined) continue;
    user_defined_.insert(token, static_cast<TokenId>(id));
    scores_[id] = static_cast<float>(static_cast<float>(token.size()) * most - 0.1);
  }
  for (const auto& [piece, score] : rules.without_id) {
    if (piece.empty() || piece.size() >= kLongestToken) {
      user_error("{}: a piece has {} bytes; expected 1 to {}: the file is damaged, copy it again", place_, piece.size(),
                 kLongestToken - 1);
    }
    trie_.insert(piece, static_cast<TokenId>(scores_.size()));
    scores_.push_back(score);
  }
  unknown_score_ = least - static_cast<float>(kUnknownPenalty);
}

TokenId UnigramModel::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

size_t UnigramModel::user_defined_prefix(std::string_view text) const {
  size_t longest = 0;
  uint32_t node = ByteTrie::kRoot;
  for (size_t at = 0; at < text.size();) {
    node = user_defined_.child(node, text[at++]);
    if (node == ByteTrie::kNone) break;
    if (user_defined_.id_at(node) >= 0) longest = at;
  }
  return longest;
}

void UnigramModel::encode(std::string_view text, std::vector<TokenId>& out) const {
  parts_.sentencepiece ? find_best<float>(text, out) : find_best<double>(text, out);
}

template <typename Score>
void UnigramModel::find_best(std::string_view text, std::vector<TokenId>& out) const {
  std::vector<Node<Score>> best(text.size() + 1);
  for (size_t begin = 0; begin < text.size();) {
    const double score_here = best[begin].score;
    const size_t character = decode_utf8(text, begin).length;
    const auto offer = [&](size_t length, double score, TokenId token) {
      Node<Score>& node = best[begin + length];
      const auto sum = static_cast<Score>(score + score_here);
      if (node.length == 0 || sum > node.score) node = {sum, token, static_cast<uint32_t>(length)};
    };
    bool has_character = false;
    uint32_t node = ByteTrie::kRoot;
    for (size_t at = begin; at < text.size();) {
      node = trie_.child(node, text[at++]);
      if (node == ByteTrie::kNone) break;
      const TokenId token = trie_.id_at(node);
      if (token < 0) continue;
      offer(at - begin, scores_[token], token);
      has_character = has_character || at - begin == character;
    }
    if (!has_character) offer(character, unknown_score_, unknown_);
    begin += character;
  }

  std::vector<Span> spans;  // from the end
  for (size_t end = text.size(); end > 0;) {
    const Node<Score>& node = best[end];
    const size_t begin = end - node.length;
    if (node.token == unknown_ && !spans.empty() && spans.back().token == unknown_) {
      spans.back().begin = begin;
    } else {
      spans.push_back({begin, end, node.token});
    }
    end = begin;
  }
  for (size_t i = spans.size(); i-- > 0;) append(text, spans[i], out);
}

void UnigramModel::append(std::string_view text, const Span& span, std::vector<TokenId>& out) const {
  const bool is_own = parts_.sentencepiece.has_value();
  const auto size = static_cast<TokenId>(parts_.tokens.size());
  if (span.token != unknown_ && span.token < size) return out.push_back(span.token);
  const std::string_view unknown = text.substr(span.begin, span.end - span.begin);
  // To the library a run of unknown characters is a token where it is one by its text.
  const bool looks_up = !is_own || parts_.sentencepiece->ids_from_vocabulary;
  if (const TokenId found = looks_up ? find(unknown) : -1; found >= 0) return out.push_back(found);
  if (!byte_ids_.empty() && span.token == unknown_) {
    for (const char byte : unknown) out.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    return;
  }
  if (!parts_.unknown) {
    user_error("{}: no token for \"{}\", and no unknown token (\"unk_id\"): use another tokenizer", place_, unknown);
  }
  out.push_back(*parts_.unknown);
}

}  // namespace brisk
