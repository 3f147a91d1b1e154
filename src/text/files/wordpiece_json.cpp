// The "model" of a tokenizer.json with WordPiece, read and written:
//
//   {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
//    "vocab": {"[PAD]": 0, ...}}
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/files/tokenizer_files.h"
#include "text/pipeline/json_fields.h"

namespace brisk {

WordPieceModelParts wordpiece_model_from_json(const nlohmann::json& content, const std::string& place) {
  WordPieceModelParts model;
  model.unknown_token = json_text_or_null(content, "unk_token", place).value_or(model.unknown_token);
  model.continuing_subword_prefix =
      json_text_or_null(content, "continuing_subword_prefix", place).value_or(model.continuing_subword_prefix);
  if (content.contains("max_input_chars_per_word")) {
    constexpr int64_t kMost = int64_t{1} << 40;
    model.most_characters = json_integer(content, "max_input_chars_per_word", place, 0, kMost);
  }
  model.tokens = vocabulary_from_json(content, place);
  return model;
}

std::string WordPieceTokenizer::model_json() const {
  const WordPieceModelParts& model = model_.parts();
  return fmt::format(
      "{{\n\"type\": \"WordPiece\", \"unk_token\": {}, \"continuing_subword_prefix\": {}, "
      "\"max_input_chars_per_word\": {},\n\"vocab\": {}\n}}",
      json_quoted(model.unknown_token), json_quoted(model.continuing_subword_prefix), model.most_characters,
      vocabulary_json(model.tokens));
}

}  // namespace brisk
