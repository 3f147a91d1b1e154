#include "train/checkpoint_state.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 1;

std::string exact_text(double value) { return fmt::format("{}", value); }

// Fields of a JSON object, with complaints that name file, key, what was found and what was expected.
class StateReader {
 public:
  explicit StateReader(std::string path) : path_(std::move(path)) {
    const std::string text = read_file(path_);
    json_ = Json::parse(text, nullptr, false);
    if (!json_.is_object()) {
      user_error("{}: not a whole state file: found {} bytes that are not a JSON object", path_, text.size());
    }
  }

  int64_t integer(const Json& object, const char* key) const {
    const Json& value = field(object, key);
    if (!value.is_number_integer()) complain(key, value, "an integer");
    return value.get<int64_t>();
  }

  uint64_t unsigned_integer(const char* key) const {
    const Json& value = field(json_, key);
    if (!value.is_number_unsigned()) complain(key, value, "an integer of 0 or more");
    return value.get<uint64_t>();
  }

  std::string string(const char* key) const {
    const Json& value = field(json_, key);
    if (!value.is_string()) complain(key, value, "a string");
    return value.get<std::string>();
  }

  double exact_number(const char* key, const Json& value) const {
    if (!value.is_string()) complain(key, value, "a number as a string");
    const std::string text = value.get<std::string>();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) complain(key, value, "a number as a string");
    return number;
  }

  const Json& object(const char* key) const {
    const Json& value = field(json_, key);
    if (!value.is_object()) complain(key, value, "an object");
    return value;
  }

  const Json& field(const Json& object, const char* key) const {
    if (!object.contains(key)) user_error("{}: not a whole state file: it has no {}", path_, key);
    return object[key];
  }

  const Json& json() const { return json_; }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void complain(const char* key, const Json& value, const char* expected) const {
    user_error("{}: {} is {}, expected {}", path_, key, value.dump(), expected);
  }

  std::string path_;
  Json json_;
};

}  // namespace

std::string checkpoint_state_to_json_text(const CheckpointState& state) {
  Json accumulators = Json::object();
  for (const auto& [name, value] : state.accumulators) accumulators[name] = exact_text(value);
  const Json choices = Json::parse(state.choices_json, nullptr, false);
  BRISK_CHECK(choices.is_object(), "choices are not a JSON object: {}", state.choices_json);
  Json json;
  json["format_version"] = kFormatVersion;
  json["step"] = state.step;
  json["cursor"] = {{"epoch", state.cursor.epoch}, {"step", state.cursor.step}};
  json["tokens_seen"] = state.tokens_seen;
  json["best_validation_loss"] = exact_text(state.best_validation_loss);
  json["best_step"] = state.best_step;
  json["evaluations_without_improvement"] = state.evaluations_without_improvement;
  json["seed"] = state.seed;
  json["accumulators"] = accumulators;
  json["choices"] = choices;
  json["job_fingerprint"] = state.job_fingerprint;
  return json.dump(2) + "\n";
}

CheckpointState read_checkpoint_state(const std::string& checkpoint) {
  const StateReader reader(checkpoint + "/" + kStateFile);
  const int64_t version = reader.integer(reader.json(), "format_version");
  if (version != kFormatVersion) {
    user_error("{}: format_version is {}, expected {}; use the brisk that wrote it", reader.path(), version,
               kFormatVersion);
  }
  CheckpointState state;
  state.step = reader.integer(reader.json(), "step");
  const Json& cursor = reader.object("cursor");
  state.cursor = {.epoch = reader.integer(cursor, "epoch"), .step = reader.integer(cursor, "step")};
  state.tokens_seen = reader.integer(reader.json(), "tokens_seen");
  state.best_validation_loss =
      reader.exact_number("best_validation_loss", reader.field(reader.json(), "best_validation_loss"));
  state.best_step = reader.integer(reader.json(), "best_step");
  state.evaluations_without_improvement = reader.integer(reader.json(), "evaluations_without_improvement");
  state.seed = reader.unsigned_integer("seed");
  for (const auto& [name, value] : reader.object("accumulators").items()) {
    state.accumulators[name] = reader.exact_number(name.c_str(), value);
  }
  state.choices_json = reader.object("choices").dump();
  state.job_fingerprint = reader.string("job_fingerprint");
  return state;
}

}  // namespace brisk
