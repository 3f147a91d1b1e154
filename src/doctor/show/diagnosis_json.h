// A diagnosis as one JSON object: the interface for scripts. What is not known is null; shares of the ledger are percent,
// which sum to 100.
//
//   fmt::print("{}\n", diagnosis_json(diagnosis));
//   write_file_atomically("doctor.schema.json", diagnosis_schema());     // JSON schema, draft 2020-12
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace brisk {

std::string diagnosis_json(const Diagnosis& diagnosis);
std::string diagnosis_schema();

}  // namespace brisk
