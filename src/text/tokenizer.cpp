#include "text/tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "text/json_fields.h"
#include "text/tokenizer_files.h"

namespace brisk {

namespace {

constexpr const char* kAccepted =
    "expected a tokenizer.json (of `brisk tokenizer train` or Hugging Face), a SentencePiece .model, GPT-2's "
    "encoder.json with vocab.bpe beside it, or llama2.c's tokenizer binary";

struct Gpt2Names {
  const char* vocabulary;
  const char* merges;
};
constexpr Gpt2Names kGpt2Names[] = {{"encoder.json", "vocab.bpe"}, {"vocab.json", "merges.txt"}};
constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kConfigFile = "tokenizer_config.json";

nlohmann::json parse_json(const std::string& path, std::string_view text) {
  constexpr int64_t kDeepest = 100;  // ten are usual; what is written again goes as deep into the stack
  if (json_depth(text) > kDeepest) {
    user_error("{}: objects and lists nested more than {} deep; the file is damaged: write or copy it again", path,
               kDeepest);
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    user_error("{}: no valid JSON at byte {} of {}; the file is damaged or cut short: write or copy it again", path,
               error.byte, text.size());
  } catch (const nlohmann::json::exception&) {  // a number out of range
    user_error("{}: JSON with a number that is too large; the file is damaged: write or copy it again", path);
  }
}

std::unique_ptr<Tokenizer> make(TokenizerParts parts, const std::string& path) {
  return std::make_unique<BpeTokenizer>(std::move(parts), path);
}

std::unique_ptr<Tokenizer> load_gpt2(const std::string& vocabulary_path, const std::string& merges_path) {
  for (const auto& [path, other] : {std::pair{vocabulary_path, merges_path}, std::pair{merges_path, vocabulary_path}}) {
    if (!file_exists(path)) {
      user_error("{}: no such file; {} is one half of a GPT-2 tokenizer and needs it: copy it there", path, other);
    }
  }
  return gpt2_tokenizer_from_memory(read_file(vocabulary_path), vocabulary_path, read_file(merges_path), merges_path);
}

std::unique_ptr<Tokenizer> load_from_directory(const std::filesystem::path& directory) {
  for (const char* name : {kTokenizerFile, "tokenizer.model"}) {
    if (file_exists(directory / name)) return load_tokenizer(directory / name);
  }
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (file_exists(directory / vocabulary) || file_exists(directory / merges)) {
      return load_gpt2(directory / vocabulary, directory / merges);
    }
  }
  user_error(
      "{}: a directory without a tokenizer in it: found neither tokenizer.json nor tokenizer.model nor encoder.json "
      "with vocab.bpe; {}",
      directory.string(), kAccepted);
}

bool is_json_object(std::string_view content) {
  const size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && content[first] == '{';
}

std::unique_ptr<Tokenizer> from_binary(const std::string& path, std::string_view content) {
  // A .model begins with its first piece: a tag, a length, and the tag of the piece's text. llama2.c's binary begins
  // with a small int32, whose upper bytes are zero.
  constexpr char kMessage = 0x0A;
  const bool is_model = content.size() > 2 && content[0] == kMessage && content[2] == kMessage;
  return make(is_model ? parts_from_sentencepiece(path, content) : parts_from_llama2c(path, content), path);
}

// `config` is the tokenizer_config.json beside it, or null.
std::unique_ptr<Tokenizer> from_json(const std::string& path, const nlohmann::json& json,
                                     const nlohmann::json& config) {
  TokenizerParts parts = parts_from_tokenizer_json(path, json);
  read_ends_of_text(path, config, parts);
  return make(std::move(parts), path);
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_memory(std::string_view content, const std::string& name) {
  if (content.empty()) user_error("{}: the file is empty; {}", name, kAccepted);
  if (!is_json_object(content)) return from_binary(name, content);
  const nlohmann::json json = parse_json(name, content);
  if (json.contains("format")) {
    user_error(
        "{}: a tokenizer of an older brisk, which this one does not read: train it again with `brisk tokenizer train`",
        name);
  }
  if (!json.contains("model")) user_error("{}: a JSON object without a \"model\"; {}", name, kAccepted);
  return from_json(name, json, nullptr);
}

std::unique_ptr<Tokenizer> gpt2_tokenizer_from_memory(std::string_view vocabulary, const std::string& vocabulary_name,
                                                      std::string_view merges, const std::string& merges_name) {
  return make(parts_from_gpt2(vocabulary_name, parse_json(vocabulary_name, vocabulary), merges_name, merges),
              vocabulary_name);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (is_directory(path)) return load_from_directory(path);
  if (!file_exists(path)) user_error("{}: no such file; {}", path, kAccepted);

  // The merges of GPT-2 are text that no content tells apart from any other: they go by their name.
  const std::filesystem::path as_path = path;
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (as_path.filename() == merges) return load_gpt2(as_path.parent_path() / vocabulary, path);
  }
  const std::string content = read_file(path);
  if (!is_json_object(content)) return tokenizer_from_memory(content, path);

  const nlohmann::json json = parse_json(path, content);
  if (json.contains("model")) {
    const std::string config_path = as_path.parent_path() / kConfigFile;
    return from_json(path, json, file_exists(config_path) ? parse_json(config_path, read_file(config_path)) : nullptr);
  }
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    const std::string merges_path = as_path.parent_path() / merges;
    if (as_path.filename() == vocabulary || (!json.contains("format") && file_exists(merges_path))) {
      return load_gpt2(path, merges_path);
    }
  }
  return tokenizer_from_memory(content, path);
}

void save_tokenizer(const Tokenizer& tokenizer, const std::string& path) {
  const std::filesystem::path as_path = path;
  if (path.ends_with('/') || is_directory(path)) {
    make_directories(path);
    return save_tokenizer_folder(tokenizer, path);
  }
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (as_path.filename() != vocabulary && as_path.filename() != merges) continue;
    const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
    const std::optional<Gpt2Texts> texts = bpe ? gpt2_texts(*bpe) : std::nullopt;
    if (!texts) {
      user_error("{}: GPT-2's files hold byte-level vocabularies with GPT-2's words alone: write a tokenizer.json",
                 path);
    }
    write_file_atomically(as_path.parent_path() / vocabulary, texts->vocabulary);
    write_file_atomically(as_path.parent_path() / merges, texts->merges);
    return;
  }
  const std::string extension = as_path.extension();
  if (extension == ".model" || extension == ".bin") {
    user_error("{}: brisk reads {} files but does not write them: write a tokenizer.json", path, extension);
  }
  tokenizer.save(path);
}

void save_tokenizer_folder(const Tokenizer& tokenizer, const std::string& directory) {
  tokenizer.save(directory + "/" + kTokenizerFile);
  write_file_atomically(directory + "/" + kConfigFile, tokenizer_config_text(tokenizer));
}

}  // namespace brisk
