// The figures and phrases of a plan that text and JSON share.
//
//   for (const ComparedFigure& figure : compared_figures(planning.jobs[0], planning.jobs[1])) ...
#pragma once

#include <string>
#include <vector>

#include "doctor/planning.h"

namespace brisk {

// One line of two jobs side by side.
struct ComparedFigure {
  enum class Kind : uint8_t { parameters, flop, bytes, seconds, tokens, speed };
  std::string name;  // "feed-forward: parameters"
  Kind kind = Kind::parameters;
  double first = -1, second = -1;  // negative: unknown, or there is no such component
  double ratio() const { return first > 0 && second >= 0 ? second / first : -1; }
};
// Totals first, then component by component.
std::vector<ComparedFigure> compared_figures(const JobPlan& first, const JobPlan& second);
std::string figure_text(ComparedFigure::Kind kind, double value);

std::string machine_name(const Planning& planning);  // that is planned for
std::string summary_of(const JobPlan& plan);         // one line
// The command that trains what a line of "what would it take" predicts; empty: none does.
std::string command_that_checks(const JobPlan& plan, const Outlook& outlook);

}  // namespace brisk
