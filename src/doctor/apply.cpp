#include "doctor/apply.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/parse_json.h"
#include "base/text/printable.h"
#include "doctor/ladder/variants.h"

namespace brisk {

namespace {

using nlohmann::ordered_json;

void set(ordered_json& root, const std::string& key, const ordered_json& value) {
  ordered_json* place = &root;
  for (size_t begin = 0;;) {
    const size_t dot = key.find('.', begin);
    place = &(*place)[key.substr(begin, dot - begin)];
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  *place = value;
}

// What has been changed and why, as comments.
std::string explanation(const Diagnosis& diagnosis) {
  std::string text =
      fmt::format("// {} by brisk doctor: {}.\n", printable(diagnosis.job_path, 200), diagnosis.summary());
  for (const Rung& rung : diagnosis.ladder) {
    if (!rung.kept || !rung.fix.is_setting()) continue;
    text += fmt::format("//   {} = {} (was {}): {:.2f}x [{:.2f}, {:.2f}], {}\n", rung.fix.key, rung.fix.value,
                        setting_of(diagnosis.written, rung.fix.key), rung.gain, rung.gain_low, rung.gain_high,
                        sameness_text(rung.sameness));
    if (!rung.fix.rule.empty()) text += fmt::format("//     {}\n", printable(rung.fix.rule, 300));
  }
  return text;
}

ordered_json baseline_of(const Diagnosis& diagnosis) {
  const Rung& first = diagnosis.ladder.front();
  ordered_json baseline = {{"job", diagnosis.naive ? diagnosis.job_path + ", " + first.step : diagnosis.job_path},
                           {"tokens_per_second", first.tokens_per_second},
                           {"epoch_seconds", first.epoch_seconds}};
  if (diagnosis.verification) {
    const Verification::Side& before = diagnosis.verification->before;
    baseline["quality_metric"] = before.metric;
    baseline["quality"] = before.value;
    if (before.high > before.low) {
      baseline["quality_low"] = before.low;
      baseline["quality_high"] = before.high;
    }
  }
  return baseline;
}

}  // namespace

std::string tuned_job_text(const Diagnosis& diagnosis, const std::string& original, const std::string& apply_path) {
  const std::string stem = std::filesystem::path(apply_path).stem().string();
  Job expected = diagnosis.tuned;
  expected.name = stem;
  expected.output = "runs/" + stem;
  const std::string head = explanation(diagnosis);
  // The user's own file, if the keys that change are not there in other spellings.
  try {
    std::vector<std::string> problems;
    ordered_json root = parse_job_json(original, diagnosis.job_path, problems);
    for (const std::string& setting : diagnosis.settings) {
      const size_t equals = setting.find('=');
      const std::string key = setting.substr(0, equals);
      if (const std::string value = setting_of(diagnosis.written, key); !value.empty())
        set(root, key, parse_own_json<ordered_json>(value));
    }
    for (const Rung& rung : diagnosis.ladder) {
      if (!rung.kept || !rung.fix.is_setting()) continue;
      set(root, rung.fix.key, parse_own_json<ordered_json>(rung.fix.value));
      for (const auto& [key, value] : rung.fix.also) set(root, key, parse_own_json<ordered_json>(value));
    }
    root.erase("name");
    set(root, "output", expected.output);
    root["baseline"] = baseline_of(diagnosis);
    const std::string text = head + root.dump(2) + "\n";
    std::vector<std::string> notes;
    Job read = job_from_json_text(text, apply_path, {}, notes);
    resolve_defaults(read);
    read.name = expected.name;
    read.baseline = expected.baseline;
    read.model.from = expected.model.from;
    if (job_to_json_text(read) == job_to_json_text(expected)) return text;
  } catch (const UserError&) {  // two spellings of one key
  }
  ordered_json root = parse_own_json<ordered_json>(job_to_json_text(expected));
  root["baseline"] = baseline_of(diagnosis);
  return head + root.dump(2) + "\n";
}

}  // namespace brisk
