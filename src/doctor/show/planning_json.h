// A plan as one JSON object: the interface for scripts. What is not known is null. Of two jobs the object is the first one's,
// with the second as `other` and the figures of both in `comparison`.
//
//   fmt::print("{}\n", planning_json(planning));
//   write_file_atomically("plan.schema.json", planning_schema());     // JSON schema, draft 2020-12
#pragma once

#include <string>

#include "doctor/planning.h"

namespace brisk {

std::string planning_json(const Planning& planning);
std::string planning_schema();

}  // namespace brisk
