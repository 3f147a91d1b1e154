// Vocabularies of pieces with scores, as SentencePiece makes them, turned into a vocabulary with merges: two pieces
// join if they are a piece together, the one with the best score first.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"

namespace brisk {

std::vector<Merge> merges_by_score(const std::vector<ScoredPiece>& pieces) {
  std::unordered_map<std::string_view, TokenId> ids;
  std::vector<bool> has_size;  // whether a piece has so many bytes: most cuts of a long piece need not be looked up
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].merges) continue;
    ids.emplace(pieces[id].text, static_cast<TokenId>(id));
    has_size.resize(std::max(has_size.size(), pieces[id].text.size() + 1));
    has_size[pieces[id].text.size()] = true;
  }
  struct Candidate {
    Merge merge;
    float score;
    size_t left_size, right_size;
  };
  std::vector<Candidate> candidates;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (!pieces[id].merges) continue;
    const std::string_view whole = pieces[id].text;
    for (size_t cut = decode_utf8(whole, 0).length; cut < whole.size(); cut += decode_utf8(whole, cut).length) {
      if (!has_size[cut] || !has_size[whole.size() - cut]) continue;
      const auto left = ids.find(whole.substr(0, cut)), right = ids.find(whole.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      candidates.push_back(
          {{left->second, right->second, static_cast<TokenId>(id), 0}, pieces[id].score, cut, whole.size() - cut});
    }
  }
  // Among the cuts of one piece the longer left part first, as Hugging Face's converter has it.
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tie(a.score, a.left_size, a.right_size) > std::tie(b.score, b.left_size, b.right_size);
  });
  std::vector<Merge> merges;
  merges.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    candidate.merge.rank = static_cast<uint32_t>(merges.size());
    merges.push_back(candidate.merge);
  }
  return merges;
}

TokenizerParts llama_parts(std::vector<ScoredPiece> pieces, TokenId unknown, std::optional<TokenId> start,
                           std::optional<TokenId> end) {
  TokenizerParts parts;
  parts.model.merges = merges_by_score(pieces);
  parts.model.unknown_token = pieces[unknown].text;
  parts.model.fuse_unknown = true;
  parts.model.byte_fallback = true;
  for (const auto id : {std::optional(unknown), start, end}) {
    if (id) parts.added_tokens.push_back(special_token(*id, pieces[*id].text));
  }
  std::ranges::sort(parts.added_tokens, {}, &AddedToken::id);
  for (ScoredPiece& piece : pieces) parts.model.tokens.push_back(std::move(piece.text));
  parts.start_of_text = start;
  parts.end_of_document = end;
  parts.normalizer =
      R"({"normalizers":[{"prepend":"▁","type":"Prepend"},{"content":"▁","pattern":{"String":" "},"type":"Replace"}],)"
      R"("type":"Sequence"})";
  parts.decoder = R"({"decoders":[{"content":" ","pattern":{"String":"▁"},"type":"Replace"},{"type":"ByteFallback"},)"
                  R"({"type":"Fuse"},{"content":" ","start":1,"stop":0,"type":"Strip"}],"type":"Sequence"})";
  if (start) {
    const std::string& name = parts.model.tokens[*start];
    const auto special = [&](int type) { return nlohmann::json{{"SpecialToken", {{"id", name}, {"type_id", type}}}}; };
    const auto text = [](const char* id, int type) {
      return nlohmann::json{{"Sequence", {{"id", id}, {"type_id", type}}}};
    };
    const nlohmann::json around = {
        {"type", "TemplateProcessing"},
        {"single", nlohmann::json::array({special(0), text("A", 0)})},
        {"pair", nlohmann::json::array({special(0), text("A", 0), special(1), text("B", 1)})},
        {"special_tokens", {{name, {{"id", name}, {"ids", {*start}}, {"tokens", {name}}}}}},
    };
    parts.post_processor = around.dump();
  }
  return parts;
}

}  // namespace brisk
