// Byte-level BPE from and to files: our own JSON, and GPT-2's encoder.json with vocab.bpe.
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "text/byte_alphabet.h"
#include "text/byte_bpe.h"
#include "text/tokenizer_files.h"

namespace brisk {

namespace {

constexpr const char* kGpt2EndOfDocument = "<|endoftext|>";

using IdsByToken = std::unordered_map<std::string_view, TokenId>;  // tokens as written in files

// A place in a file, for errors: "vocab.bpe: line 7" or "tokenizer.json: \"merges\"[5]".
std::string describe_line(const std::string& path, size_t line) { return fmt::format("{}: line {}", path, line); }
std::string describe_element(const std::string& path, const char* key, size_t index) {
  return fmt::format("{}: \"{}\"[{}]", path, key, index);
}

// Fills the pieces from the tokens as written, which are in the order of their ids.
IdsByToken read_tokens(const std::string& path, std::span<const std::string_view> tokens,
                       ByteBpeVocabulary& vocabulary) {
  IdsByToken ids;
  std::array<bool, 256> has_byte{};
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::optional<std::string> piece = byte_alphabet_decode(tokens[i]);
    if (!piece || piece->empty()) {
      user_error(
          "{}: the token of id {} is \"{}\"; expected one or more characters of GPT-2's byte alphabet (such as "
          "\"Ġthe\"): use a byte-level vocabulary, or train one with `brisk tokenizer train`",
          path, i, tokens[i]);
    }
    if (const auto [other, is_new] = ids.try_emplace(tokens[i], static_cast<TokenId>(i)); !is_new) {
      user_error(
          "{}: the token \"{}\" has the ids {} and {}; expected each token once: the file was edited or damaged, "
          "write or copy it again",
          path, tokens[i], other->second, i);
    }
    if (piece->size() == 1) has_byte[static_cast<unsigned char>((*piece)[0])] = true;
    vocabulary.pieces.push_back(*std::move(piece));
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!has_byte[byte]) {
      user_error(
          "{}: no token for the byte 0x{:02X} (\"{}\") among {} tokens; a byte-level vocabulary has all 256 bytes, "
          "so the file is cut short or of another kind: copy it again, or train one with `brisk tokenizer train`",
          path, byte, byte_alphabet_encode(std::string(1, static_cast<char>(byte))), tokens.size());
    }
  }
  return ids;
}

// Adds the merge written as "left right" at `place`.
void add_merge(const std::string& place, std::string_view written, const IdsByToken& ids,
               std::unordered_set<uint64_t>& seen, ByteBpeVocabulary& vocabulary) {
  const size_t space = written.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == written.size() ||
      written.find(' ', space + 1) != std::string_view::npos) {
    user_error(
        "{}: found \"{}\"; expected two tokens with one space between them: the file is cut short, or no list of "
        "merges; copy it again",
        place, written);
  }
  const std::string_view left = written.substr(0, space), right = written.substr(space + 1);
  const std::string joined = std::string(left) + std::string(right);
  const auto id_of = [&](std::string_view token) {
    const auto found = ids.find(token);
    if (found == ids.end()) {
      user_error(
          "{}: the merge \"{}\" needs the token \"{}\", which is not in the vocabulary; the vocabulary and the "
          "merges must come from the same tokenizer: copy both again",
          place, written, token);
    }
    return found->second;
  };
  const Merge merge = {id_of(left), id_of(right), id_of(joined), static_cast<uint32_t>(vocabulary.merges.size())};
  if (!seen.insert(static_cast<uint64_t>(merge.left) << 32 | static_cast<uint32_t>(merge.right)).second) {
    user_error("{}: the merge \"{}\" occurs twice; expected each merge once: copy the file again", place, written);
  }
  vocabulary.merges.push_back(merge);
}

void check_size(const std::string& path, size_t tokens) {
  constexpr size_t kMost = size_t{1} << 30;
  if (tokens > kMost) user_error("{}: {} tokens; expected at most {}", path, tokens, kMost);
}

}  // namespace

std::unique_ptr<Tokenizer> byte_bpe_from_json(const std::string& path, const nlohmann::json& content) {
  const nlohmann::json& token_array = required_array_of_strings(path, content, "tokens");
  const nlohmann::json& merge_array = required_array_of_strings(path, content, "merges");
  if (const auto words = content.find("words"); words == content.end() || *words != "gpt2") {
    user_error(
        "{}: \"words\" is {}; this brisk knows only \"gpt2\": train the tokenizer again, or use the brisk that "
        "wrote it",
        path, words == content.end() ? "missing" : words->dump());
  }
  check_size(path, token_array.size());
  std::vector<std::string_view> tokens;
  for (const nlohmann::json& token : token_array) tokens.push_back(token.get_ref<const std::string&>());

  ByteBpeVocabulary vocabulary;
  const IdsByToken ids = read_tokens(path, tokens, vocabulary);
  std::unordered_set<uint64_t> seen;
  for (size_t i = 0; i < merge_array.size(); ++i) {
    add_merge(describe_element(path, "merges", i), merge_array[i].get_ref<const std::string&>(), ids, seen, vocabulary);
  }
  if (const auto end = content.find("end_of_document"); end != content.end() && !end->is_null()) {
    const auto found = end->is_string() ? ids.find(end->get_ref<const std::string&>()) : ids.end();
    if (found == ids.end()) {
      user_error("{}: \"end_of_document\" is {}, which is none of the tokens; expected one of them, such as \"{}\"",
                 path, end->dump(), kGpt2EndOfDocument);
    }
    vocabulary.end_of_document = found->second;
  }
  return std::make_unique<ByteBpe>(std::move(vocabulary));
}

std::unique_ptr<Tokenizer> byte_bpe_from_gpt2(const std::string& vocabulary_path, const nlohmann::json& content,
                                              const std::string& merges_path, std::string_view merges) {
  if (!content.is_object()) {
    user_error(
        "{}: found a JSON {}, expected an object of tokens and their ids as in GPT-2's encoder.json: copy the file "
        "again",
        vocabulary_path, content.type_name());
  }
  check_size(vocabulary_path, content.size());
  std::vector<std::string_view> tokens(content.size());
  for (const auto& [token, id] : content.items()) {
    if (!id.is_number_integer() || id < 0 || id >= content.size()) {
      user_error(
          "{}: the id of \"{}\" is {}; expected a whole number from 0 to {}, as there are {} tokens: the file was "
          "edited or damaged, copy it again",
          vocabulary_path, token, id.dump(), content.size() - 1, content.size());
    }
    std::string_view& slot = tokens[id.get<size_t>()];
    if (slot.data() != nullptr) {
      user_error("{}: the id {} belongs to both \"{}\" and \"{}\"; expected each id once: copy the file again",
                 vocabulary_path, id.dump(), slot, token);
    }
    slot = token;
  }

  ByteBpeVocabulary vocabulary;
  const IdsByToken ids = read_tokens(vocabulary_path, tokens, vocabulary);
  std::unordered_set<uint64_t> seen;
  size_t line_number = 0;
  for (size_t begin = 0; begin < merges.size();) {
    const size_t newline = std::min(merges.find('\n', begin), merges.size());
    std::string_view line = merges.substr(begin, newline - begin);
    begin = newline + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    add_merge(describe_line(merges_path, line_number), line, ids, seen, vocabulary);
  }
  if (vocabulary.merges.empty()) {
    user_error("{}: no merges in it; expected lines such as \"Ġ t\": copy GPT-2's vocab.bpe again", merges_path);
  }
  // Every token of more than a byte, but the special one, is made by a merge: a file of merges that was cut between
  // two lines shows itself here.
  std::vector<bool> is_made(tokens.size());
  for (const Merge& merge : vocabulary.merges) is_made[merge.result] = true;
  if (const auto end = ids.find(kGpt2EndOfDocument); end != ids.end()) vocabulary.end_of_document = end->second;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const bool is_special = tokens[id].starts_with("<|") && tokens[id].ends_with("|>");
    if (!is_made[id] && !is_special && vocabulary.pieces[id].size() > 1) {
      user_error(
          "{}: no merge makes the token \"{}\" (id {}) of {}; the merges are cut short or of another tokenizer: "
          "copy both files again",
          merges_path, tokens[id], id, vocabulary_path);
    }
  }
  return std::make_unique<ByteBpe>(std::move(vocabulary));
}

void ByteBpe::save(const std::string& path) const {
  std::vector<std::string> tokens, merges;
  for (const std::string& piece : vocabulary_.pieces) tokens.push_back(byte_alphabet_encode(piece));
  for (const Merge& merge : vocabulary_.merges) merges.push_back(tokens[merge.left] + " " + tokens[merge.right]);
  const auto end = vocabulary_.end_of_document;
  const nlohmann::json end_token = end ? nlohmann::json(tokens[*end]) : nlohmann::json(nullptr);
  write_file_atomically(path,
                        fmt::format("{{\"format\": \"{}\",\n\"words\": \"gpt2\",\n\"end_of_document\": {},\n"
                                    "\"tokens\": [\n{}],\n\"merges\": [\n{}]}}\n",
                                    kByteBpeFormat, end_token.dump(), json_elements(tokens), json_elements(merges)));
}

}  // namespace brisk
