#include "text/tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "text/tokenizer_files.h"

namespace brisk {

namespace {

constexpr const char* kAccepted =
    "expected a tokenizer written by `brisk tokenizer train`, GPT-2's encoder.json with vocab.bpe beside it, or "
    "llama2.c's tokenizer binary";

struct Gpt2Names {
  const char* vocabulary;
  const char* merges;
};
constexpr Gpt2Names kGpt2Names[] = {{"encoder.json", "vocab.bpe"}, {"vocab.json", "merges.txt"}};

nlohmann::json parse_json(const std::string& path, const std::string& text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    user_error("{}: no valid JSON at byte {} of {}; the file is damaged or cut short: write or copy it again", path,
               error.byte, text.size());
  }
}

std::unique_ptr<Tokenizer> load_gpt2(const std::string& vocabulary_path, const std::string& merges_path) {
  for (const auto& [path, other] : {std::pair{vocabulary_path, merges_path}, std::pair{merges_path, vocabulary_path}}) {
    if (!file_exists(path)) {
      user_error("{}: no such file; {} is one half of a GPT-2 tokenizer and needs it: copy it there", path, other);
    }
  }
  const nlohmann::json vocabulary = parse_json(vocabulary_path, read_file(vocabulary_path));
  return byte_bpe_from_gpt2(vocabulary_path, vocabulary, merges_path, read_file(merges_path));
}

std::unique_ptr<Tokenizer> load_from_directory(const std::filesystem::path& directory) {
  const std::string own = directory / "tokenizer.json";
  if (file_exists(own)) return load_tokenizer(own);
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (file_exists(directory / vocabulary) || file_exists(directory / merges)) {
      return load_gpt2(directory / vocabulary, directory / merges);
    }
  }
  user_error(
      "{}: a directory without a tokenizer in it: found neither tokenizer.json nor encoder.json with vocab.bpe; {}",
      directory.string(), kAccepted);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (is_directory(path)) return load_from_directory(path);
  if (!file_exists(path)) user_error("{}: no such file; {}", path, kAccepted);

  // The merges of GPT-2 are text that no content tells apart from any other: they go by their name.
  const std::filesystem::path as_path = path;
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (as_path.filename() == merges) return load_gpt2(as_path.parent_path() / vocabulary, path);
  }

  const std::string content = read_file(path);
  if (content.empty()) user_error("{}: the file is empty; {}", path, kAccepted);
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || content[first] != '{') return sentencepiece_from_llama2c(path, content);

  const nlohmann::json json = parse_json(path, content);
  if (const auto format = json.find("format"); format != json.end() && format->is_string()) {
    if (*format == kByteBpeFormat) return byte_bpe_from_json(path, json);
    if (*format == kSentencePieceFormat) return sentencepiece_from_json(path, json);
    user_error(
        "{}: \"format\" is \"{}\"; expected \"{}\" or \"{}\": train the tokenizer again with this brisk, or use the "
        "brisk that wrote it",
        path, format->get<std::string>(), kByteBpeFormat, kSentencePieceFormat);
  }
  if (json.contains("model") || json.contains("added_tokens")) {
    user_error(
        "{}: a tokenizer.json of the Hugging Face tokenizers library, which brisk does not read; for a byte-level "
        "BPE use the vocab.json and merges.txt that lie beside it, or train one with `brisk tokenizer train`",
        path);
  }
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    const std::filesystem::path merges_path = as_path.parent_path() / merges;
    if (as_path.filename() == vocabulary || file_exists(merges_path)) {
      if (!file_exists(merges_path)) {
        user_error("{}: no such file; {} is one half of a GPT-2 tokenizer and needs it: copy it there",
                   merges_path.string(), path);
      }
      return byte_bpe_from_gpt2(path, json, merges_path, read_file(merges_path));
    }
  }
  user_error("{}: a JSON object without a \"format\", and no vocab.bpe or merges.txt beside it; {}", path, kAccepted);
}

}  // namespace brisk
