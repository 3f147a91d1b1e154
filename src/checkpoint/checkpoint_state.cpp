#include "checkpoint/checkpoint_state.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"

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

  std::string string(const char* key) const { return string(json_, key); }

  std::string string(const Json& object, const char* key) const {
    const Json& value = field(object, key);
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

  // As object(), but of a state written before there was such a thing.
  const Json* object_if_there(const char* key) const { return json_.contains(key) ? &object(key) : nullptr; }

  double exact_number(const Json& object, const char* key) const { return exact_number(key, field(object, key)); }

  std::vector<double> exact_numbers(const Json& object, const char* key) const {
    const Json& list = field(object, key);
    if (!list.is_array()) complain(key, list, "a list");
    std::vector<double> numbers;
    for (const Json& item : list) numbers.push_back(exact_number(key, item));
    return numbers;
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

Json exact_texts(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(exact_text(value));
  return list;
}

Json guard_to_json(const GuardState& guard) {
  Json json;
  json["gradient_norms"] = exact_texts(guard.gradient_norms);
  json["losses"] = exact_texts(guard.losses);
  json["recent_skips"] = guard.recent_skips;
  json["first_loss"] = exact_text(guard.first_loss);
  json["lowest_loss"] = exact_text(guard.lowest_loss);
  json["skipped"] = guard.skipped;
  json["rollbacks"] = guard.rollbacks;
  json["rate_factor"] = exact_text(guard.rate_factor);
  json["healthy"] = guard.healthy;
  return json;
}

GuardState guard_from_json(const StateReader& reader, const Json& json) {
  GuardState guard;
  guard.gradient_norms = reader.exact_numbers(json, "gradient_norms");
  guard.losses = reader.exact_numbers(json, "losses");
  for (const Json& step : reader.field(json, "recent_skips")) {
    if (step.is_number_integer()) guard.recent_skips.push_back(step.get<int64_t>());
  }
  guard.first_loss = reader.exact_number(json, "first_loss");
  guard.lowest_loss = reader.exact_number(json, "lowest_loss");
  guard.skipped = reader.integer(json, "skipped");
  guard.rollbacks = reader.integer(json, "rollbacks");
  guard.rate_factor = reader.exact_number(json, "rate_factor");
  guard.healthy = reader.field(json, "healthy") == true;
  return guard;
}

Json loss_sums_to_json(const LossSums& sums) {
  return {{"loss_sum", exact_text(sums.loss)},
          {"correct", exact_text(sums.correct)},
          {"tokens", exact_text(sums.targets)},
          {"weights", exact_text(sums.weights)}};
}

// Earlier states have no sum that is 0, and no weights where every target weighs 1.
LossSums loss_sums_from_json(const StateReader& reader) {
  const Json& json = reader.object("accumulators");
  const auto sum = [&](const char* key, double otherwise) {
    return json.contains(key) ? reader.exact_number(json, key) : otherwise;
  };
  LossSums sums{.loss = sum("loss_sum", 0), .correct = sum("correct", 0), .targets = sum("tokens", 0)};
  sums.weights = sum("weights", sums.targets);
  return sums;
}

Metrics best_metrics_from_json(const StateReader& reader) {
  Metrics best;
  const auto add = [&](const std::string& name, double value) {
    if (std::isfinite(value)) best.add(standard_metric(name, value));
  };
  if (reader.json().contains("best_validation_loss")) {  // as it was written before metrics were a list
    add("loss", reader.exact_number(reader.json(), "best_validation_loss"));
    constexpr const char* kAccuracy = "best_validation_accuracy";
    const double accuracy = reader.json().contains(kAccuracy) ? reader.exact_number(reader.json(), kAccuracy) : -1;
    if (accuracy >= 0) add("accuracy", accuracy);
    return best;
  }
  for (const auto& [name, value] : reader.object("best_metrics").items()) {
    add(name, reader.exact_number(name.c_str(), value));
  }
  return best;
}

}  // namespace

std::string checkpoint_state_to_json_text(const CheckpointState& state) {
  const Json choices = Json::parse(state.choices_json, nullptr, false);
  BRISK_CHECK(choices.is_object(), "choices are not a JSON object: {}", state.choices_json);
  Json json;
  json["format_version"] = kFormatVersion;
  json["step"] = state.step;
  json["cursor"] = {{"epoch", state.cursor.epoch}, {"step", state.cursor.step}};
  json["tokens_seen"] = state.tokens_seen;
  json["best_metrics"] = Json::object();
  for (const Metric& metric : state.best_metrics) json["best_metrics"][metric.name] = exact_text(metric.value);
  json["best_step"] = state.best_step;
  json["evaluations_without_improvement"] = state.evaluations_without_improvement;
  json["seed"] = state.seed;
  json["accumulators"] = loss_sums_to_json(state.loss_sums);
  json["guard"] = guard_to_json(state.guard);
  if (state.loss_scale) {
    json["loss_scale"] = {{"scale", exact_text(state.loss_scale->scale)},
                          {"good_steps", state.loss_scale->good_steps},
                          {"skipped_steps", state.loss_scale->skipped_steps}};
  }
  json["clock"] = {{"elapsed_seconds", exact_text(state.elapsed_seconds)}, {"progress", exact_text(state.progress)}};
  json["checksums"] = {{"model", state.model_checksum}, {"optimizer", state.optimizer_checksum}};
  json["choices"] = choices;
  json["job_fingerprint"] = state.job_fingerprint;
  if (state.evaluation_due) json["evaluation_due"] = true;
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
  state.best_metrics = best_metrics_from_json(reader);
  state.best_step = reader.integer(reader.json(), "best_step");
  state.evaluations_without_improvement = reader.integer(reader.json(), "evaluations_without_improvement");
  state.seed = reader.unsigned_integer("seed");
  state.loss_sums = loss_sums_from_json(reader);
  if (const Json* guard = reader.object_if_there("guard")) state.guard = guard_from_json(reader, *guard);
  if (const Json* scale = reader.object_if_there("loss_scale")) {
    state.loss_scale = LossScale{.scale = reader.exact_number(*scale, "scale"),
                                 .good_steps = reader.integer(*scale, "good_steps"),
                                 .skipped_steps = reader.integer(*scale, "skipped_steps")};
    if (!(state.loss_scale->scale >= LossScale::kLeast && state.loss_scale->scale <= LossScale::kMost)) {
      user_error("{}: loss_scale.scale is {}, expected {} to {}", reader.path(), state.loss_scale->scale,
                 LossScale::kLeast, LossScale::kMost);
    }
  }
  if (const Json* clock = reader.object_if_there("clock")) {
    state.elapsed_seconds = reader.exact_number(*clock, "elapsed_seconds");
    state.progress = reader.exact_number(*clock, "progress");
  }
  if (const Json* checksums = reader.object_if_there("checksums")) {
    state.model_checksum = reader.string(*checksums, "model");
    state.optimizer_checksum = reader.string(*checksums, "optimizer");
  }
  state.choices_json = reader.object("choices").dump();
  state.job_fingerprint = reader.string("job_fingerprint");
  state.evaluation_due = reader.json().value("evaluation_due", Json(false)) == true;
  return state;
}

}  // namespace brisk
