// The rules by which readings become findings. A rule is a pure function: the same readings, the same finding.
//
//   for (const Finding& finding : judge(readings)) ...          // the largest predicted gain first
//   write_file("docs/troubleshooting.md", troubleshooting_markdown());
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/judge/finding.h"
#include "doctor/readings/readings.h"

namespace brisk {

struct Rule {
  std::string_view id;
  std::optional<Finding> (*look)(const Readings&);
  std::string_view symptom;  // as a user sees it: "the GPU's load swings between 0 and 100 %"
  std::string_view meaning;  // of the finding, in general
  std::string_view remedy;   // in general
};

std::span<const Rule> rules();

// The largest predicted gain first. Below 2 % it is no finding, unless that is about quality or shown without a gain. What is
// about quality comes last, but a training that does not learn first of all.
std::vector<Finding> judge(const Readings& readings);

// docs/troubleshooting.md: symptom, finding, fix.
std::string troubleshooting_markdown();

}  // namespace brisk
