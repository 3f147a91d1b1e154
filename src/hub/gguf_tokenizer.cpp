#include "hub/gguf_tokenizer.h"

#include <unordered_map>

#include "base/error.h"
#include "text/byte_alphabet.h"
#include "text/byte_bpe.h"
#include "text/sentencepiece_bpe.h"

namespace brisk {

namespace {

// llama.cpp's kinds of tokens.
enum TokenKind : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUnused = 5, kByte = 6 };

const std::string kSpace = "\u2581";  // SentencePiece writes a space as this block

std::string replace_all(const std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t found = text.find(from, at);
    result.append(text, at, found - at);
    if (found == std::string::npos) break;
    result += to;
    at = found + from.size();
  }
  return result;
}

struct Entries {
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  std::vector<float> scores;

  void add(std::string token, int32_t kind, float score) {
    tokens.push_back(std::move(token));
    kinds.push_back(kind);
    scores.push_back(score);
  }
};

void set_byte_bpe(GgufWriter& writer, const ByteBpeVocabulary& vocabulary, Entries& entries) {
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const bool special = vocabulary.end_of_document == static_cast<TokenId>(id);
    entries.add(special ? vocabulary.pieces[id] : byte_alphabet_encode(vocabulary.pieces[id]),
                special ? kControl : kNormal, 0);
  }
  std::vector<std::string> merges;
  for (const Merge& merge : vocabulary.merges) {
    merges.push_back(entries.tokens[static_cast<size_t>(merge.left)] + " " +
                     entries.tokens[static_cast<size_t>(merge.right)]);
  }
  writer.set("tokenizer.ggml.model", "gpt2");
  writer.set("tokenizer.ggml.pre", "gpt-2");
  writer.set("tokenizer.ggml.merges", merges);
}

void set_sentencepiece(GgufWriter& writer, const SentencePieceVocabulary& vocabulary, Entries& entries) {
  for (size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& piece = vocabulary.pieces[i];
    const float score = vocabulary.scores[i];
    if (id == SentencePieceBpe::kUnknown) {
      entries.add("<unk>", kUnknown, score);
    } else if (id == SentencePieceBpe::kStart || id == SentencePieceBpe::kEnd) {
      entries.add(id == SentencePieceBpe::kStart ? "<s>" : "</s>", kControl, score);
    } else if (id < SentencePieceBpe::kFirstPiece) {
      entries.add(piece, kByte, score);
    } else {
      entries.add(replace_all(piece, " ", kSpace), kNormal, score);
    }
  }
  writer.set("tokenizer.ggml.model", "llama");
  writer.set("tokenizer.ggml.pre", "default");
  writer.set("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(SentencePieceBpe::kUnknown));
  writer.set("tokenizer.ggml.add_space_prefix", true);
}

// A metadata value of the type asked for, or a complaint.
template <typename T>
const T& required(const GgufFile& file, const char* key, const char* expected) {
  const GgufValue* value = file.value(key);
  if (value == nullptr || !std::holds_alternative<T>(*value)) {
    user_error("{}: {} is {}, expected {}; name a tokenizer with --tokenizer", file.path(), key,
               value == nullptr ? "missing" : "of another kind", expected);
  }
  return std::get<T>(*value);
}

std::unique_ptr<Tokenizer> byte_bpe_of(const GgufFile& file) {
  const auto& tokens = required<std::vector<std::string>>(file, "tokenizer.ggml.tokens", "an array of strings");
  const auto& merges = required<std::vector<std::string>>(file, "tokenizer.ggml.merges", "an array of strings");
  std::vector<int64_t> kinds;
  if (const GgufValue* value = file.value("tokenizer.ggml.token_type")) {
    if (const auto* given = std::get_if<std::vector<int64_t>>(value)) kinds = *given;
  }
  ByteBpeVocabulary vocabulary;
  std::unordered_map<std::string_view, TokenId> ids;
  std::vector<bool> has_byte(256);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool special = i < kinds.size() && kinds[i] != kNormal;
    const std::optional<std::string> piece = special ? tokens[i] : byte_alphabet_decode(tokens[i]);
    if (!piece || !ids.emplace(tokens[i], static_cast<TokenId>(i)).second) {
      user_error("{}: token {} (\"{}\") {}; name a tokenizer with --tokenizer", file.path(), i, tokens[i],
                 piece ? "occurs twice" : "is not of a byte-level vocabulary");
    }
    if (!special && piece->size() == 1) has_byte[static_cast<unsigned char>(piece->front())] = true;
    vocabulary.pieces.push_back(*piece);
  }
  for (size_t byte = 0; byte < has_byte.size(); ++byte) {
    if (!has_byte[byte]) {
      user_error(
          "{}: no token for the byte 0x{:02X}; a byte-level vocabulary has all 256: name a tokenizer with "
          "--tokenizer",
          file.path(), byte);
    }
  }
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ', 1);
    const std::string left = merge.substr(0, space), right = space == std::string::npos ? "" : merge.substr(space + 1);
    const auto a = ids.find(left), b = ids.find(right), c = ids.find(left + right);
    if (a == ids.end() || b == ids.end() || c == ids.end()) {
      user_error("{}: the merge \"{}\" is not of its tokens; name a tokenizer with --tokenizer", file.path(), merge);
    }
    vocabulary.merges.push_back({a->second, b->second, c->second, static_cast<uint32_t>(vocabulary.merges.size())});
  }
  if (const GgufValue* end = file.value("tokenizer.ggml.eos_token_id")) {
    const int64_t* id = std::get_if<int64_t>(end);
    if (id == nullptr || *id < 0 || *id >= std::ssize(tokens)) {
      user_error("{}: tokenizer.ggml.eos_token_id is none of its {} tokens", file.path(), tokens.size());
    }
    vocabulary.end_of_document = static_cast<TokenId>(*id);
  }
  return std::make_unique<ByteBpe>(std::move(vocabulary));
}

std::unique_ptr<Tokenizer> sentencepiece_of(const GgufFile& file) {
  const auto& tokens = required<std::vector<std::string>>(file, "tokenizer.ggml.tokens", "an array of strings");
  const auto& scores = required<std::vector<double>>(file, "tokenizer.ggml.scores", "an array of numbers");
  const bool usual = tokens.size() == scores.size() && std::ssize(tokens) > SentencePieceBpe::kFirstPiece &&
                     tokens[SentencePieceBpe::kFirstByte] == "<0x00>" &&
                     tokens[SentencePieceBpe::kFirstPiece - 1] == "<0xFF>";
  if (!usual) {
    user_error(
        "{}: its {} tokens with {} scores do not begin with <unk>, <s>, </s> and the 256 bytes, as Llama's do; name a "
        "tokenizer with --tokenizer",
        file.path(), tokens.size(), scores.size());
  }
  SentencePieceVocabulary vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocabulary.pieces.push_back(replace_all(tokens[i], kSpace, " "));
    vocabulary.scores.push_back(static_cast<float>(scores[i]));
  }
  return std::make_unique<SentencePieceBpe>(std::move(vocabulary));
}

}  // namespace

void set_tokenizer(GgufWriter& writer, const Tokenizer& tokenizer, int64_t vocab_size) {
  Entries entries;
  if (const auto* byte_bpe = dynamic_cast<const ByteBpe*>(&tokenizer)) {
    set_byte_bpe(writer, byte_bpe->vocabulary(), entries);
  } else if (const auto* sentencepiece = dynamic_cast<const SentencePieceBpe*>(&tokenizer)) {
    set_sentencepiece(writer, sentencepiece->vocabulary(), entries);
  } else {
    user_error("this tokenizer has no form in GGUF; byte-level BPE and SentencePiece have one");
  }
  for (int64_t unused = 0; std::ssize(entries.tokens) < vocab_size; ++unused) {
    entries.add(fmt::format("<|unused {}|>", unused), kUnused, 0);
  }
  writer.set("tokenizer.ggml.tokens", entries.tokens);
  writer.set("tokenizer.ggml.scores", entries.scores);
  writer.set("tokenizer.ggml.token_type", entries.kinds);
  // A text begins after the end-of-document token in brisk, so that token stands for both.
  const std::optional<TokenId> end = tokenizer.end_of_document();
  const std::optional<TokenId> start = tokenizer.start_of_text() ? tokenizer.start_of_text() : end;
  if (start) writer.set("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(*start));
  if (end) writer.set("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(*end));
  writer.set("tokenizer.ggml.add_bos_token", start.has_value());
  writer.set("tokenizer.ggml.add_eos_token", false);
}

std::unique_ptr<Tokenizer> tokenizer_of(const GgufFile& file) {
  const auto& kind = required<std::string>(file, "tokenizer.ggml.model", "a string");
  if (kind == "gpt2") {
    const GgufValue* words = file.value("tokenizer.ggml.pre");  // how a text is cut into words
    const std::string* name = words == nullptr ? nullptr : std::get_if<std::string>(words);
    if (name != nullptr && *name != "gpt-2" && *name != "default") {
      user_error("{}: tokenizer.ggml.pre is \"{}\"; brisk cuts words as gpt-2 does: name a tokenizer with --tokenizer",
                 file.path(), *name);
    }
    return byte_bpe_of(file);
  }
  if (kind == "llama") return sentencepiece_of(file);
  user_error("{}: tokenizer.ggml.model is \"{}\"; brisk has gpt2 and llama: name a tokenizer with --tokenizer",
             file.path(), kind);
}

}  // namespace brisk
