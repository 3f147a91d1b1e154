// What tests of the rules ask of a finding.
//
//   const Finding finding = first_finding(readings, "padding", 1.42);     // the first, with this predicted gain
//   expect_fix(finding, "training.padding", "\"none\"");
//   EXPECT_FALSE(finds(others, "padding"));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "doctor/judge/rules.h"

namespace brisk::test {

inline constexpr const char* kClassifier =
    R"({"task": "classify", "model": {"type": "bert", "d_model": 256, "num_layers": 4}})";

inline std::string names_of(const std::vector<Finding>& findings) {
  std::string names;
  for (const Finding& finding : findings) names += finding.id + ": " + finding.cause + "\n";
  return names;
}

inline bool finds(const Readings& readings, const std::string& id) {
  const std::vector<Finding> findings = judge(readings);
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.id == id; });
}

// That the job takes it, and is another one then. (Whatever else changes is Fix::also.)
inline void expect_it_can_be_set(const Job& job, const Fix& fix) {
  const std::string text = job_to_json_text(job);
  std::vector<std::string> notes, settings = {fix.key + "=" + fix.value};
  for (const auto& [key, value] : fix.also) settings.push_back(key + "=" + value);
  if (fix.key == "training.padding" && text.find("\"padding\"") == std::string::npos)
    settings.clear();  // no option yet
  try {
    const Job fixed = job_from_json_text(text, "job.json", settings, notes);
    EXPECT_EQ(job_to_json_text(fixed) == text, settings.empty()) << fix.key << " = " << fix.value;
  } catch (const UserError& error) {
    ADD_FAILURE() << error.what();
  }
}

// The first finding, which is to be `id`, with what every finding must have.
inline Finding first_finding(const Readings& readings, const std::string& id, double gain) {
  const std::vector<Finding> findings = judge(readings);
  if (findings.empty()) {
    ADD_FAILURE() << "no finding; expected " << id;
    return {};
  }
  const Finding& first = findings.front();
  EXPECT_EQ(first.id, id) << names_of(findings);
  EXPECT_NEAR(first.predicted_gain, gain, 0.0005) << first.cause;
  EXPECT_FALSE(first.evidence.empty());
  EXPECT_TRUE(first.cause.ends_with(".")) << first.cause;
  EXPECT_TRUE(first.fix.has_value());
  if (first.fix && first.fix->is_setting()) {
    expect_it_can_be_set(readings.job, *first.fix);
  } else {
    EXPECT_TRUE(first.fix && !first.fix->advice.empty());
  }
  EXPECT_EQ(first.sameness == Sameness::changes_maths, !first.change.empty());
  return first;
}

inline void expect_fix(const Finding& finding, const std::string& key, const std::string& value) {
  ASSERT_TRUE(finding.fix.has_value());
  EXPECT_EQ(finding.fix->key, key);
  EXPECT_EQ(finding.fix->value, value);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

}  // namespace brisk::test
