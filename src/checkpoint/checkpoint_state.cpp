#include "checkpoint/checkpoint_state.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/parse_json.h"
#include "base/text/printable.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 1;
constexpr JsonLimits kStateJson = {.keys_of_one = 10'000};  // its keys are compared with each other
constexpr std::string_view kBeforeChecksum = ",\n  \"checksum\": \"", kAfterChecksum = "\"\n}\n";
// More than any run has, and far from where sums would overflow.
constexpr int64_t kMostSteps = int64_t{1} << 40, kMostTokens = int64_t{1} << 60;
constexpr double kMostSeconds = 1e10;
constexpr double kAnyNumber = std::numeric_limits<double>::infinity();

std::string exact_text(double value) { return fmt::format("{}", value); }

std::string with_checksum(const std::string& text) {
  return fmt::format("{}{}{:016x}{}", text, kBeforeChecksum, hash_bytes(text), kAfterChecksum);
}

// Fields of a JSON object, with complaints that name file, key, what was found and what was expected.
class StateReader {
 public:
  StateReader(const std::string& text, std::string path) : path_(std::move(path)) {
    json_ = parse_json(text, path_, "incomplete or damaged state file", kStateJson);
    if (!json_.is_object()) {
      user_error("{}: incomplete or damaged state file: found {}, expected a JSON object", path_,
                 json_in_message(json_));
    }
    check_checksum(text);
  }

  int64_t integer(const Json& object, const char* key, int64_t least, int64_t most) const {
    const Json& value = field(object, key);
    if (!value.is_number_integer() || value < least || value > most) {
      complain(key, value, fmt::format("an integer from {} to {}", least, most));
    }
    return value.get<int64_t>();
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

  double number_within(const Json& object, const char* key, double least, double most) const {
    const double number = exact_number(object, key);
    if (!(number >= least && number <= most)) {
      complain(key, field(object, key), fmt::format("a number from {:g} to {:g}", least, most));
    }
    return number;
  }

  const Json& object(const char* key) const {
    const Json& value = field(json_, key);
    if (!value.is_object()) complain(key, value, "an object");
    return value;
  }

  const Json& field(const Json& object, const char* key) const {
    if (!object.contains(key)) user_error("{}: incomplete or damaged state file: it has no {}", path_, key);
    return object[key];
  }

  // As object(), but of a state written before there was such a thing.
  const Json* object_if_there(const char* key) const { return json_.contains(key) ? &object(key) : nullptr; }

  double exact_number(const Json& object, const char* key) const { return exact_number(key, field(object, key)); }

  std::vector<double> exact_numbers(const Json& object, const char* key, double least) const {
    const Json& list = field(object, key);
    if (!list.is_array()) complain(key, list, "a list");
    std::vector<double> numbers;
    for (const Json& item : list) {
      numbers.push_back(exact_number(key, item));
      if (!std::isfinite(numbers.back()) || numbers.back() < least) {
        complain(key, item, fmt::format("finite numbers from {:g} on", least));
      }
    }
    return numbers;
  }

  const Json& json() const { return json_; }
  const std::string& path() const { return path_; }

 private:
  void check_checksum(const std::string& text) const {
    if (!json_.contains("checksum")) return;  // of an earlier brisk
    const size_t end = text.rfind(kBeforeChecksum);
    const std::string before = text.substr(0, end == std::string::npos ? 0 : end);
    if (end != std::string::npos && text == with_checksum(before)) return;
    user_error(
        "{}: its bytes are not those that were saved (their checksum is another): the disk or a copy changed them",
        path_);
  }

  [[noreturn]] void complain(const char* key, const Json& value, const std::string& expected) const {
    user_error("{}: {} is {}, expected {}", path_, printable(key), json_in_message(value), expected);
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
  guard.gradient_norms = reader.exact_numbers(json, "gradient_norms", 0);
  guard.losses = reader.exact_numbers(json, "losses", -kAnyNumber);
  for (const Json& step : reader.field(json, "recent_skips")) {
    if (step.is_number_integer()) guard.recent_skips.push_back(step.get<int64_t>());
  }
  guard.first_loss = reader.number_within(json, "first_loss", -kAnyNumber, kAnyNumber);
  guard.lowest_loss = reader.number_within(json, "lowest_loss", -kAnyNumber, kAnyNumber);
  guard.skipped = reader.integer(json, "skipped", 0, kMostSteps);
  guard.rollbacks = reader.integer(json, "rollbacks", 0, kMostSteps);
  guard.rate_factor = reader.number_within(json, "rate_factor", 0, 1);
  guard.healthy = reader.field(json, "healthy") == true;
  return guard;
}

Json sums_to_json(const CheckpointState& state) {
  const LossSums& line = state.loss_sums;
  const LossSums& epoch = state.epoch_sums;
  Json json = {{"loss_sum", exact_text(line.loss)},
               {"correct", exact_text(line.correct)},
               {"tokens", exact_text(line.targets)},
               {"epoch_loss_sum", exact_text(epoch.loss)},
               {"epoch_weights", exact_text(epoch.weights)},
               {"epoch_correct", exact_text(epoch.correct)},
               {"epoch_targets", exact_text(epoch.targets)},
               {"epoch_steps", exact_text(static_cast<double>(state.epoch_steps))},
               {"epoch_skipped", exact_text(static_cast<double>(state.epoch_skipped))},
               {"recent_loss", exact_text(state.recent_loss)},
               {"recent_weights", exact_text(state.recent_weights)}};
  if (line.weights != line.targets) json["weights"] = exact_text(line.weights);  // where every target weighs 1: none
  return json;
}

// States of an earlier brisk have no sum that is 0.
void read_sums(const StateReader& reader, CheckpointState& state) {
  const Json& json = reader.object("accumulators");
  const auto sum = [&](const char* key, double otherwise = 0) {
    return json.contains(key) ? reader.exact_number(json, key) : otherwise;
  };
  const auto steps = [&](const char* key) -> int64_t {
    if (!json.contains(key)) return 0;
    return std::llround(reader.number_within(json, key, 0, static_cast<double>(kMostSteps)));
  };
  state.loss_sums = {.loss = sum("loss_sum"), .correct = sum("correct"), .targets = sum("tokens")};
  state.loss_sums.weights = sum("weights", state.loss_sums.targets);
  state.epoch_sums = {.loss = sum("epoch_loss_sum"),
                      .correct = sum("epoch_correct"),
                      .targets = sum("epoch_targets"),
                      .weights = sum("epoch_weights")};
  state.epoch_steps = steps("epoch_steps");
  state.epoch_skipped = steps("epoch_skipped");
  state.recent_loss = sum("recent_loss");
  state.recent_weights = sum("recent_weights");
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

LossSums& LossSums::operator+=(const LossSums& other) {
  loss += other.loss;
  correct += other.correct;
  targets += other.targets;
  weights += other.weights;
  return *this;
}

double LossSums::mean_loss() const { return weights > 0 ? loss / weights : std::nan(""); }
double LossSums::accuracy() const { return targets > 0 ? correct / targets : std::nan(""); }

std::string checkpoint_state_to_json_text(const CheckpointState& state) {
  const Json tuned = parse_json_or_discard(state.tuned_settings_json);
  BRISK_CHECK(tuned.is_object(), "tuned settings are not a JSON object: {}", state.tuned_settings_json);
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
  json["accumulators"] = sums_to_json(state);
  json["guard"] = guard_to_json(state.guard);
  if (state.loss_scale) {
    json["loss_scale"] = {{"scale", exact_text(state.loss_scale->scale)},
                          {"good_steps", state.loss_scale->good_steps},
                          {"skipped_steps", state.loss_scale->skipped_steps}};
  }
  json["clock"] = {{"elapsed_seconds", exact_text(state.elapsed_seconds)}, {"progress", exact_text(state.progress)}};
  json["saves"] = {{"interval", state.saves.interval}, {"next", state.saves.next}};
  json["checksums"] = {{"model", state.model_checksum}, {"optimizer", state.optimizer_checksum}};
  json["choices"] = tuned;
  json["run_files"] = state.run_files;
  json["job_fingerprint"] = state.job_fingerprint;
  if (state.evaluation_due) json["evaluation_due"] = true;
  std::string text = json.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  return with_checksum(text);
}

CheckpointState read_checkpoint_state(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + kStateFile;
  return checkpoint_state_from_json_text(read_file(path, file_kind::state), path);
}

CheckpointState checkpoint_state_from_json_text(const std::string& text, const std::string& path) {
  const StateReader reader(text, path);
  const int64_t version = reader.integer(reader.json(), "format_version", 0, kMostSteps);
  if (version != kFormatVersion) {
    user_error("{}: format_version is {}, expected {}; use the brisk that wrote it", reader.path(), version,
               kFormatVersion);
  }
  CheckpointState state;
  state.step = reader.integer(reader.json(), "step", 0, kMostSteps);
  // An epoch has a step at least, and each step takes the cursor one on.
  const Json& cursor = reader.object("cursor");
  state.cursor = {.epoch = reader.integer(cursor, "epoch", 0, state.step),
                  .step = reader.integer(cursor, "step", 0, state.step)};
  state.tokens_seen = reader.integer(reader.json(), "tokens_seen", 0, kMostTokens);
  state.best_metrics = best_metrics_from_json(reader);
  state.best_step = reader.integer(reader.json(), "best_step", -1, state.step);
  state.evaluations_without_improvement =
      reader.integer(reader.json(), "evaluations_without_improvement", 0, kMostSteps);
  state.seed = static_cast<uint64_t>(
      reader.integer(reader.json(), "seed", 0, std::numeric_limits<int64_t>::max()));  // as training.seed
  read_sums(reader, state);
  if (const Json* guard = reader.object_if_there("guard")) state.guard = guard_from_json(reader, *guard);
  if (const Json* scale = reader.object_if_there("loss_scale")) {
    state.loss_scale = LossScale{.scale = reader.exact_number(*scale, "scale"),
                                 .good_steps = reader.integer(*scale, "good_steps", 0, kMostSteps),
                                 .skipped_steps = reader.integer(*scale, "skipped_steps", 0, kMostSteps)};
    if (!(state.loss_scale->scale >= LossScale::kLeast && state.loss_scale->scale <= LossScale::kMost)) {
      user_error("{}: loss_scale.scale is {}, expected {} to {}", reader.path(), state.loss_scale->scale,
                 LossScale::kLeast, LossScale::kMost);
    }
  }
  if (const Json* clock = reader.object_if_there("clock")) {
    state.elapsed_seconds = reader.number_within(*clock, "elapsed_seconds", 0, kMostSeconds);
    state.progress = reader.number_within(*clock, "progress", 0, 1);
  }
  if (const Json* saves = reader.object_if_there("saves")) {
    state.saves = {.interval = reader.integer(*saves, "interval", 0, kMostSteps),
                   .next = reader.integer(*saves, "next", 0, kMostSteps)};
  }
  if (const Json* checksums = reader.object_if_there("checksums")) {
    state.model_checksum = reader.string(*checksums, "model");
    state.optimizer_checksum = reader.string(*checksums, "optimizer");
  }
  if (const Json* files = reader.object_if_there("run_files")) {
    for (const auto& [name, checksum] : files->items()) state.run_files[name] = reader.string(*files, name.c_str());
  }
  state.tuned_settings_json = reader.object("choices").dump();
  state.job_fingerprint = reader.string("job_fingerprint");
  state.evaluation_due = state.step > 0 && reader.json().value("evaluation_due", Json(false)) == true;
  return state;
}

}  // namespace brisk
