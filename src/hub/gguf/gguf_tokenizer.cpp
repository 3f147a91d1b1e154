#include "hub/gguf/gguf_tokenizer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/text/unicode.h"
#include "text/files/tokenizer_files.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {

namespace {

using SortedJson = nlohmann::json;

// llama.cpp's kinds of tokens.
enum TokenKind : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// What llama.cpp calls a way around a vocabulary: "gpt2" with GPT-2's words, or "llama".
std::string family_of(const SortedJson& json) {
  const SortedJson& words = json.at("pre_tokenizer");
  const std::string type = words.is_object() ? words.value("type", "") : "";
  const bool plain = json.at("normalizer").is_null();
  if (plain && type == "ByteLevel" && words.value("use_regex", true) && !words.value("add_prefix_space", false)) {
    return "gpt2";
  }
  if (json.at("model").value("byte_fallback", false) && (type.empty() || type == "Metaspace")) return "llama";
  user_error(
      "the tokenizer splits words in a way that brisk cannot write to GGUF (pre_tokenizer {}); it can write byte-level BPE with GPT-2's "
      "pattern and Llama's SentencePiece; --format huggingface supports any tokenizer",
      type.empty() ? "none" : type);
}

bool puts_space_before(const SortedJson& json) {
  const std::string around = json.at("normalizer").dump() + json.at("pre_tokenizer").dump();
  return around.find("\"Prepend\"") != std::string::npos ||
         (around.find("\"Metaspace\"") != std::string::npos && around.find("\"never\"") == std::string::npos);
}

struct Entries {
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  std::vector<float> scores;
};

bool is_byte_token(const std::string& token) {
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
}

Entries entries_of(const BpeTokenizer& tokenizer, const SortedJson& json, int64_t vocab_size, bool has_bytes) {
  const BpeModelParts& model = tokenizer.model();
  Entries entries;
  entries.tokens = model.tokens;
  entries.tokens.resize(static_cast<size_t>(std::max(vocab_size, tokenizer.vocab_size())));
  entries.kinds.assign(entries.tokens.size(), kNormal);
  for (const SortedJson& added : json.at("added_tokens")) {
    const auto id = added.at("id").get<size_t>();
    entries.tokens.at(id) = added.at("content").get<std::string>();
    entries.kinds[id] = added.at("special").get<bool>() ? kControl : kUserDefined;
  }
  // llama.cpp joins the pair whose token has the best score; here the pair that comes first in the merges.
  const auto worst = static_cast<float>(model.merges.size());
  entries.scores.assign(entries.tokens.size(), -worst);
  for (auto merge = model.merges.rbegin(); merge != model.merges.rend(); ++merge) {
    entries.scores[static_cast<size_t>(merge->result)] = -static_cast<float>(merge->rank);
  }
  int64_t unused = 0;
  for (size_t id = 0; id < entries.tokens.size(); ++id) {
    std::string& token = entries.tokens[id];
    if (token.empty()) {
      token = fmt::format("<|unused {}|>", unused++);
      entries.kinds[id] = kUnused;
    } else if (token == model.unknown_token) {
      entries.kinds[id] = kUnknown;
    } else if (has_bytes && is_byte_token(token)) {
      entries.kinds[id] = kByte;
    }
  }
  return entries;
}

// A metadata value of the type asked for, or a complaint.
template <typename T>
const T& required(const GgufFile& file, const char* key, const char* expected) {
  const GgufValue* value = file.value(key);
  if (value == nullptr || !std::holds_alternative<T>(*value)) {
    user_error("{}: {} is {}, expected {}; name a tokenizer with --tokenizer", file.path(), key,
               value == nullptr ? "missing" : "of the wrong type", expected);
  }
  return std::get<T>(*value);
}

std::optional<TokenId> id_of(const GgufFile& file, const char* key, const std::vector<std::string>& tokens) {
  const GgufValue* value = file.value(key);
  if (value == nullptr) return std::nullopt;
  const int64_t* id = std::get_if<int64_t>(value);
  if (id == nullptr || *id < 0 || *id >= std::ssize(tokens) || tokens[static_cast<size_t>(*id)].empty()) {
    user_error("{}: {} is not one of its {} tokens; name a tokenizer with --tokenizer", file.path(), key,
               tokens.size());
  }
  return static_cast<TokenId>(*id);
}

// The tokens and their kinds, checked: no two alike, none empty, all of them text.
struct Vocabulary {
  std::vector<std::string> tokens;  // empty: unused
  std::vector<int64_t> kinds;

  explicit Vocabulary(const GgufFile& file)
      : tokens(required<std::vector<std::string>>(file, "tokenizer.ggml.tokens", "an array of strings")),
        kinds(required<std::vector<int64_t>>(file, "tokenizer.ggml.token_type", "an array of integers")) {
    if (kinds.size() != tokens.size()) {
      user_error("{}: {} tokens, but {} token types; name a tokenizer with --tokenizer", file.path(), tokens.size(),
                 kinds.size());
    }
    std::unordered_set<std::string_view> seen;
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id].empty() || find_invalid_utf8(tokens[id]) || !seen.insert(tokens[id]).second) {
        user_error("{}: token {} is {}; name a tokenizer with --tokenizer", file.path(), id,
                   tokens[id].empty()              ? "empty"
                   : find_invalid_utf8(tokens[id]) ? "not UTF-8"
                                                   : "a duplicate");
      }
    }
    for (size_t id = 0; id < tokens.size(); ++id) {
      if (kinds[id] == kUnused) tokens[id].clear();
    }
    while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();  // a model's table may be longer
  }
};

TokenizerParts byte_level_parts_of(const GgufFile& file) {
  const GgufValue* words = file.value("tokenizer.ggml.pre");  // how a text is cut into words
  const std::string* name = words == nullptr ? nullptr : std::get_if<std::string>(words);
  if (name != nullptr && *name != "gpt-2" && *name != "default") {
    user_error("{}: tokenizer.ggml.pre is \"{}\"; brisk reads gpt-2: name a tokenizer with --tokenizer", file.path(),
               *name);
  }
  const Vocabulary vocabulary(file);
  const size_t count = vocabulary.tokens.size();
  std::vector<bool> has_byte(256);
  for (size_t id = 0; id < count; ++id) {
    const std::optional<std::string> piece = byte_alphabet_decode(vocabulary.tokens[id]);
    if (vocabulary.kinds[id] == kNormal && !piece) {
      user_error("{}: token {} (\"{}\") is not of a byte-level vocabulary; name a tokenizer with --tokenizer",
                 file.path(), id, vocabulary.tokens[id]);
    }
    if (piece && piece->size() == 1) has_byte[static_cast<unsigned char>(piece->front())] = true;
  }
  for (size_t byte = 0; byte < has_byte.size(); ++byte) {
    if (has_byte[byte]) continue;
    user_error(
        "{}: no token for the byte 0x{:02X}; a byte-level vocabulary has all 256: name a tokenizer with --tokenizer",
        file.path(), byte);
  }
  BpeModelParts model;
  model.tokens = vocabulary.tokens;
  MergeReader reader(model, 0);
  const auto& merges = required<std::vector<std::string>>(file, "tokenizer.ggml.merges", "an array of strings");
  for (size_t i = 0; i < merges.size(); ++i) {
    reader.add(fmt::format("{}: tokenizer.ggml.merges[{}]", file.path(), i), merges[i], model.merges);
  }
  TokenizerParts parts = byte_level_parts(std::move(model));
  parts.added_tokens.clear();
  for (size_t id = 0; id < count; ++id) {
    if (vocabulary.kinds[id] != kControl && vocabulary.kinds[id] != kUserDefined) continue;
    AddedToken token = special_token(static_cast<TokenId>(id), vocabulary.tokens[id]);
    token.special = vocabulary.kinds[id] == kControl;
    parts.added_tokens.push_back(std::move(token));
  }
  parts.end_of_document = id_of(file, "tokenizer.ggml.eos_token_id", vocabulary.tokens);
  parts.start_of_text = id_of(file, "tokenizer.ggml.bos_token_id", vocabulary.tokens);
  if (parts.start_of_text == parts.end_of_document) parts.start_of_text = std::nullopt;
  return parts;
}

TokenizerParts llama_parts_of(const GgufFile& file) {
  const Vocabulary vocabulary(file);
  const size_t count = vocabulary.tokens.size();
  const auto& scores = required<std::vector<double>>(file, "tokenizer.ggml.scores", "an array of numbers");
  std::vector<ScoredPiece> pieces;
  int64_t bytes = 0;
  for (size_t id = 0; id < count; ++id) {
    const int64_t kind = vocabulary.kinds[id];
    if (id >= scores.size() || !std::isfinite(scores[id])) {
      user_error("{}: tokenizer.ggml.scores[{}] is not a number; name a tokenizer with --tokenizer", file.path(), id);
    }
    bytes += kind == kByte && is_byte_token(vocabulary.tokens[id]) ? 1 : 0;
    pieces.push_back({vocabulary.tokens[id], static_cast<float>(scores[id]), kind == kNormal});
  }
  if (bytes != 256) {
    user_error("{}: {} tokens for bytes, expected 256 as Llama's vocabularies have; name a tokenizer with --tokenizer",
               file.path(), bytes);
  }
  const std::optional<TokenId> unknown = id_of(file, "tokenizer.ggml.unknown_token_id", vocabulary.tokens);
  if (vocabulary.tokens[0].empty() && !unknown) {
    user_error(
        "{}: it has no tokenizer.ggml.unknown_token_id, and token 0 is unused; name a tokenizer with --tokenizer",
        file.path());
  }
  return llama_parts(std::move(pieces), unknown.value_or(0),
                     id_of(file, "tokenizer.ggml.bos_token_id", vocabulary.tokens),
                     id_of(file, "tokenizer.ggml.eos_token_id", vocabulary.tokens));
}

}  // namespace

void set_tokenizer(GgufWriter& writer, const Tokenizer& tokenizer, int64_t vocab_size) {
  const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  if (bpe == nullptr) user_error("this tokenizer cannot be written to GGUF; only BPE can");
  const SortedJson json = parse_own_json<SortedJson>(bpe->to_json());
  const std::string family = family_of(json);
  const Entries entries = entries_of(*bpe, json, vocab_size, family == "llama");
  writer.set("tokenizer.ggml.model", family);
  writer.set("tokenizer.ggml.pre", family == "gpt2" ? "gpt-2" : "default");
  writer.set("tokenizer.ggml.tokens", entries.tokens);
  writer.set("tokenizer.ggml.token_type", entries.kinds);
  if (family == "gpt2") {
    std::vector<std::string> merges;
    for (const Merge& merge : bpe->model().merges) {
      merges.push_back(entries.tokens[static_cast<size_t>(merge.left)] + " " +
                       entries.tokens[static_cast<size_t>(merge.right)]);
    }
    writer.set("tokenizer.ggml.merges", merges);
  } else {
    writer.set("tokenizer.ggml.scores", entries.scores);
    writer.set("tokenizer.ggml.add_space_prefix", puts_space_before(json));
    for (size_t id = 0; id < entries.kinds.size(); ++id) {
      if (entries.kinds[id] == kUnknown) writer.set("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(id));
    }
  }
  // A text begins after the end-of-document token in brisk, so that token stands for both.
  const std::optional<TokenId> end = tokenizer.end_of_document();
  const std::optional<TokenId> start = tokenizer.start_of_text() ? tokenizer.start_of_text() : end;
  if (start) writer.set("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(*start));
  if (end) writer.set("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(*end));
  writer.set("tokenizer.ggml.add_bos_token", start.has_value());
  writer.set("tokenizer.ggml.add_eos_token", false);
}

std::unique_ptr<Tokenizer> tokenizer_of(const GgufFile& file) {
  const auto& family = required<std::string>(file, "tokenizer.ggml.model", "a string");
  if (family == "gpt2") return std::make_unique<BpeTokenizer>(byte_level_parts_of(file), file.path());
  if (family == "llama") return std::make_unique<BpeTokenizer>(llama_parts_of(file), file.path());
  user_error("{}: tokenizer.ggml.model is \"{}\"; brisk reads gpt2 and llama: name a tokenizer with --tokenizer",
             file.path(), family);
}

}  // namespace brisk
