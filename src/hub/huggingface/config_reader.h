// Reads the fields of a Hugging Face config.json. Null counts as absent, as in transformers; errors (UserError) name the
// file, the key, what was found and what was expected.
//
//   const ConfigReader reader("bert/config.json");
//   model.d_model = reader.size("hidden_size", model_limits::kWidest);       // required, from 1 on
//   model.norm_epsilon = reader.number_or("rms_norm_eps", 1e-6, {.above = 0, .most = 1});
//   model.dropout = reader.share_or("hidden_dropout_prob", 0.1);
//   reader.require("is_decoder", !reader.boolean_or("is_decoder", false), "false");   // only this is supported
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace brisk {

class ConfigReader {
 public:
  struct Range {
    double above, most;
  };

  explicit ConfigReader(const std::string& path);
  ConfigReader(const std::string& path, const std::string& text);  // the content of a file, which is named in errors

  const std::string& path() const { return path_; }
  const nlohmann::ordered_json* find(const char* key) const;

  int64_t size(const char* key, int64_t most) const;
  int64_t size_or(const char* key, int64_t otherwise, int64_t most) const;
  bool boolean_or(const char* key, bool otherwise) const;
  double number_or(const char* key, double otherwise, const Range& range) const;
  double number_in(const nlohmann::ordered_json& object, const char* key, double otherwise, const Range& range) const;
  double share_or(const char* key, double otherwise) const;  // from 0 on, below 1
  std::string text_or(const char* key, const std::string& otherwise) const;
  std::string text_in(const nlohmann::ordered_json& object, const char* key, const std::string& otherwise) const;
  std::vector<std::string> texts_or_none(const char* key) const;  // of an array
  // {"0": "no", "1": "yes"}, every number once and no two texts alike.
  std::vector<std::string> numbered_texts_or_none(const char* key) const;

  // For what brisk computes in one way only.
  void require(const char* key, bool holds, const std::string& expected) const;

 private:
  int64_t checked_size(const char* key, const nlohmann::ordered_json& value, int64_t most) const;
  [[noreturn]] void complain(const char* key, const nlohmann::ordered_json& value, const std::string& expected) const;

  std::string path_;
  std::shared_ptr<const nlohmann::ordered_json> json_;
};

}  // namespace brisk
