#include "text/tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "text/files/tokenizer_files.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

namespace {

constexpr const char* kAccepted =
    "expected a tokenizer.json (of `brisk tokenizer train` or Hugging Face), a SentencePiece .model, GPT-2's "
    "encoder.json with vocab.bpe next to it, BERT's vocab.txt, or llama2.c's tokenizer binary";

struct Gpt2Names {
  const char* vocabulary;
  const char* merges;
};
constexpr Gpt2Names kGpt2Names[] = {{"encoder.json", "vocab.bpe"}, {"vocab.json", "merges.txt"}};
constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kSpecialsFile = "special_tokens_map.json";
constexpr const char* kAddedFile = "added_tokens.json";
constexpr const char* kVocabularyFile = "vocab.txt";
constexpr const char* kMarianSource = "source.spm";
constexpr const char* kMarianExtension = ".spm";

nlohmann::json parse_tokenizer_file(const std::string& path, std::string_view text) {
  return parse_json<nlohmann::json>(text, path, "the file is damaged or cut short: write or copy it again");
}

std::unique_ptr<Tokenizer> make(TokenizerParts parts, const std::string& path) {
  return std::make_unique<BpeTokenizer>(std::move(parts), path);
}

// tokenizer_config.json next to `path`, with what older files next to it say and it does not; null if there is none.
nlohmann::json config_next_to(const std::filesystem::path& path) {
  const auto read = [&](const char* name) -> nlohmann::json {
    const std::string sibling = path.parent_path() / name;
    return file_exists(sibling) ? parse_tokenizer_file(sibling, read_file(sibling, file_kind::tokenizer)) : nullptr;
  };
  nlohmann::json config = read(kConfigFile);
  const nlohmann::json specials = read(kSpecialsFile), added = read(kAddedFile);
  if (!config.is_object() && !specials.is_object() && !added.is_object()) return nullptr;
  if (!config.is_object()) config = nlohmann::json::object();
  if (specials.is_object()) {
    for (const auto& [role, token] : specials.items()) {
      if (!config.contains(role) || config[role].is_null()) config[role] = token;
    }
  }
  if (added.is_object() && !config.contains("added_tokens_decoder")) {
    nlohmann::json& list = config["added_tokens_decoder"] = nlohmann::json::object();
    for (const auto& [token, id] : added.items()) {
      if (id.is_number_integer()) list[id.dump()] = {{"content", token}, {"normalized", true}, {"special", false}};
    }
  }
  return config;
}

std::unique_ptr<Tokenizer> load_gpt2(const std::string& vocabulary_path, const std::string& merges_path) {
  for (const auto& [path, other] : {std::pair{vocabulary_path, merges_path}, std::pair{merges_path, vocabulary_path}}) {
    if (!file_exists(path)) {
      user_error("{}: no such file; {} is one half of a GPT-2 tokenizer and needs it: copy it there", path, other);
    }
  }
  const nlohmann::json vocabulary =
      parse_tokenizer_file(vocabulary_path, read_file(vocabulary_path, file_kind::tokenizer));
  return make(parts_from_gpt2(vocabulary_path, vocabulary, merges_path, read_file(merges_path, file_kind::tokenizer),
                              config_next_to(vocabulary_path)),
              vocabulary_path);
}

std::unique_ptr<Tokenizer> load_vocab_txt(const std::string& path) {
  return std::make_unique<WordPieceTokenizer>(
      parts_from_vocab_txt(path, read_file(path, file_kind::tokenizer), config_next_to(path)), path);
}

// The file with the ids of one of Marian's: the target may have its own.
std::string marian_vocabulary(const std::filesystem::path& model) {
  const std::string own = model.parent_path() / "target_vocab.json";
  if (model.filename() == "target.spm" && file_exists(own)) return own;
  return model.parent_path() / "vocab.json";
}

std::unique_ptr<Tokenizer> load_from_directory(const std::filesystem::path& directory) {
  for (const char* name : {kTokenizerFile, "tokenizer.model", "spiece.model", kMarianSource}) {
    if (file_exists(directory / name)) return load_tokenizer(directory / name);
  }
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (file_exists(directory / vocabulary) || file_exists(directory / merges)) {
      return load_gpt2(directory / vocabulary, directory / merges);
    }
  }
  if (file_exists(directory / kVocabularyFile)) return load_vocab_txt(directory / kVocabularyFile);
  user_error(
      "{}: a directory without a tokenizer in it: found neither tokenizer.json nor tokenizer.model, spiece.model nor "
      "source.spm, encoder.json with vocab.bpe nor vocab.txt; {}",
      directory.string(), kAccepted);
}

// "vocab.txt", or "bert-base-uncased-vocab.txt" as people rename it.
bool is_vocab_txt(const std::filesystem::path& path) { return path.filename().string().ends_with(kVocabularyFile); }

// A vocabulary has ids for values, GPT-2's one for the word "model" among them.
bool has_model(const nlohmann::json& json) { return json.contains("model") && !json["model"].is_number(); }

bool is_json_object(std::string_view content) {
  const size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && content[first] == '{';
}

std::unique_ptr<Tokenizer> from_binary(const std::string& path, std::string_view content,
                                       const nlohmann::json& config) {
  // A .model begins with its first piece: a tag, a length, and the tag of the piece's text. llama2.c's binary begins
  // with a small int32, whose upper bytes are zero.
  constexpr char kMessage = 0x0A;
  const bool is_model = content.size() > 2 && content[0] == kMessage && content[2] == kMessage;
  if (is_model) return tokenizer_from_sentencepiece(path, content, config);
  return make(parts_from_llama2c(path, content), path);
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_memory(std::string_view content, const std::string& name) {
  if (content.empty()) user_error("{}: the file is empty; {}", name, kAccepted);
  if (!is_json_object(content)) return from_binary(name, content, nullptr);
  const nlohmann::json json = parse_tokenizer_file(name, content);
  if (json.contains("format")) {
    user_error(
        "{}: a tokenizer written by an older version of brisk, which is not supported any more: train it again with `brisk tokenizer train`",
        name);
  }
  if (!has_model(json)) user_error("{}: a JSON object without a \"model\"; {}", name, kAccepted);
  return tokenizer_from_json(name, json, nullptr);
}

std::unique_ptr<Tokenizer> gpt2_tokenizer_from_memory(std::string_view vocabulary, const std::string& vocabulary_name,
                                                      std::string_view merges, const std::string& merges_name) {
  return make(
      parts_from_gpt2(vocabulary_name, parse_tokenizer_file(vocabulary_name, vocabulary), merges_name, merges, {}),
      vocabulary_name);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (is_directory(path)) return load_from_directory(path);
  if (!file_exists(path)) user_error("{}: no such file; {}", path, kAccepted);

  // The merges of GPT-2 and BERT's vocabulary are text that no content tells apart from any other: they go by their
  // names.
  const std::filesystem::path as_path = path;
  if (is_vocab_txt(as_path)) return load_vocab_txt(path);
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    if (as_path.filename() == merges) return load_gpt2(as_path.parent_path() / vocabulary, path);
  }
  const std::string content = read_file(path, file_kind::tokenizer);
  if (as_path.extension() == kMarianExtension) {
    if (const std::string vocabulary = marian_vocabulary(as_path); file_exists(vocabulary)) {
      return tokenizer_from_marian(path, content, vocabulary,
                                   parse_tokenizer_file(vocabulary, read_file(vocabulary, file_kind::tokenizer)));
    }
  }
  if (content.empty()) return tokenizer_from_memory(content, path);
  if (!is_json_object(content)) return from_binary(path, content, config_next_to(path));

  const nlohmann::json json = parse_tokenizer_file(path, content);
  if (has_model(json)) return tokenizer_from_json(path, json, config_next_to(path));
  for (const auto& [vocabulary, merges] : kGpt2Names) {
    const std::string merges_path = as_path.parent_path() / merges;
    const bool is_format = json.contains("format") && !json["format"].is_number();
    if (as_path.filename() == vocabulary || (!is_format && file_exists(merges_path))) {
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
      user_error("{}: GPT-2's files can only hold byte-level vocabularies with GPT-2's pattern: write a tokenizer.json",
                 path);
    }
    write_file_atomically(as_path.parent_path() / vocabulary, texts->vocabulary, Links::follow);
    write_file_atomically(as_path.parent_path() / merges, texts->merges, Links::follow);
    return;
  }
  if (is_vocab_txt(as_path)) {
    const auto* wordpiece = dynamic_cast<const WordPieceTokenizer*>(&tokenizer);
    if (wordpiece == nullptr) user_error("{}: a vocab.txt can only hold WordPiece: write a tokenizer.json", path);
    return write_file_atomically(path, vocab_txt_of(*wordpiece), Links::follow);
  }
  const std::string extension = as_path.extension();
  if (extension == ".model" || extension == kMarianExtension || extension == ".bin") {
    user_error("{}: brisk reads {} files but does not write them: write a tokenizer.json", path, extension);
  }
  const auto* pipeline = dynamic_cast<const PipelineTokenizer*>(&tokenizer);
  if (pipeline == nullptr) return tokenizer.save(path);
  write_file_atomically(path, pipeline->to_json(), Links::follow);  // a path that the user names: /dev/stdout, too
}

void save_tokenizer_folder(const Tokenizer& tokenizer, const std::string& directory,
                           const TokenizerFolderOptions& options) {
  tokenizer.save(directory + "/" + kTokenizerFile);
  write_file_atomically(directory + "/" + kConfigFile, tokenizer_config_text(tokenizer, options));
  if (const auto* wordpiece = dynamic_cast<const WordPieceTokenizer*>(&tokenizer)) {
    write_file_atomically(directory + "/" + kVocabularyFile, vocab_txt_of(*wordpiece));
  }
}

}  // namespace brisk
