// SentencePiece BPE from and to files: our own JSON, and llama2.c's binary: int32 length of the longest piece, then
// for each piece float score, int32 length, bytes, to the end of the file.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "text/byte_alphabet.h"
#include "text/sentencepiece_bpe.h"
#include "text/tokenizer_files.h"

namespace brisk {

namespace {

std::unique_ptr<Tokenizer> make_checked(const std::string& path, SentencePieceVocabulary vocabulary) {
  const std::vector<std::string>& pieces = vocabulary.pieces;
  if (pieces.size() < SentencePieceBpe::kFirstPiece) {
    user_error(
        "{}: {} pieces; expected at least {} (<unk>, <s>, </s> and 256 bytes): the file is cut short or no tokenizer "
        "of llama2.c, copy it again",
        path, pieces.size(), SentencePieceBpe::kFirstPiece);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string expected = fmt::format("<0x{:02X}>", byte);
    const TokenId id = SentencePieceBpe::kFirstByte + byte;
    if (pieces[id] != expected) {
      user_error(
          "{}: the piece of id {} is \"{}\"; expected \"{}\", as ids 3 to 258 are the 256 bytes: use a tokenizer "
          "exported by llama2.c",
          path, id, byte_alphabet_encode(pieces[id]), expected);
    }
  }
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const auto [other, is_new] = ids.try_emplace(pieces[id], id);
    if (pieces[id].empty() || !is_new) {
      user_error("{}: the piece of id {} is {}; expected bytes that no other piece has: copy the file again", path, id,
                 pieces[id].empty() ? "empty" : fmt::format("the same as that of id {}", other->second));
    }
    if (!std::isfinite(vocabulary.scores[id])) {
      user_error("{}: the score of id {} is {}; expected a finite number: copy the file again", path, id,
                 vocabulary.scores[id]);
    }
  }
  return std::make_unique<SentencePieceBpe>(std::move(vocabulary));
}

}  // namespace

std::unique_ptr<Tokenizer> sentencepiece_from_llama2c(const std::string& path, std::string_view content) {
  constexpr int32_t kLongestPiece = 4096;  // far above any real vocabulary: a text file read as one shows itself here
  size_t at = 0;
  const auto read = [&](auto& value, const char* what) {
    if (content.size() - at < sizeof(value)) {
      user_error(
          "{}: ends at byte {} within {}; the file is cut short or no tokenizer (expected one of `brisk tokenizer "
          "train`, GPT-2 or llama2.c): copy it again",
          path, content.size(), what);
    }
    std::memcpy(&value, content.data() + at, sizeof(value));
    at += sizeof(value);
  };
  int32_t longest = 0;
  read(longest, "the length of the longest piece");
  if (longest < 1 || longest > kLongestPiece) {
    user_error(
        "{}: no tokenizer: neither JSON nor a binary of llama2.c, whose first number, the length of its longest "
        "piece, would be {} here; expected a tokenizer of `brisk tokenizer train`, GPT-2 or llama2.c",
        path, longest);
  }
  SentencePieceVocabulary vocabulary;
  while (at < content.size()) {
    float score = 0;
    int32_t length = 0;
    const std::string what = fmt::format("piece {}", vocabulary.pieces.size());
    read(score, what.c_str());
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
    vocabulary.pieces.emplace_back(content.substr(at, length));
    vocabulary.scores.push_back(score);
    at += length;
  }
  return make_checked(path, std::move(vocabulary));
}

std::unique_ptr<Tokenizer> sentencepiece_from_json(const std::string& path, const nlohmann::json& content) {
  const nlohmann::json& tokens = required_array_of_strings(path, content, "tokens");
  const nlohmann::json& scores = required_array_of_numbers(path, content, "scores");
  if (tokens.size() != scores.size()) {
    user_error("{}: {} tokens but {} scores; expected as many: the file was edited, import it again", path,
               tokens.size(), scores.size());
  }
  SentencePieceVocabulary vocabulary;
  for (size_t id = 0; id < tokens.size(); ++id) {
    std::optional<std::string> piece = byte_alphabet_decode(tokens[id].get_ref<const std::string&>());
    if (!piece) {
      user_error(
          "{}: \"tokens\"[{}]: {} has a character outside GPT-2's byte alphabet; the file was edited, import it "
          "again",
          path, id, tokens[id].dump());
    }
    vocabulary.pieces.push_back(*std::move(piece));
    vocabulary.scores.push_back(scores[id].get<float>());
  }
  return make_checked(path, std::move(vocabulary));
}

void SentencePieceBpe::save(const std::string& path) const {
  std::vector<std::string> tokens;
  for (const std::string& piece : vocabulary_.pieces) tokens.push_back(byte_alphabet_encode(piece));
  write_file_atomically(
      path, fmt::format("{{\"format\": \"{}\",\n\"tokens\": [\n{}],\n\"scores\": [{}]}}\n", kSentencePieceFormat,
                        json_elements(tokens), fmt::join(vocabulary_.scores, ", ")));
}

}  // namespace brisk
