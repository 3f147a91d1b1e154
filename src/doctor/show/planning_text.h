// A plan for a terminal: lines of at most 100 columns, but for names that are longer.
#pragma once

#include <string>

#include "doctor/planning.h"

namespace brisk {

std::string planning_text(const Planning& planning);

}  // namespace brisk
