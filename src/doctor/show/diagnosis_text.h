// A diagnosis to read: on a terminal of 100 columns, and as Markdown for an issue or a chat.
//
//   fmt::print("{}", diagnosis_text(diagnosis));
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace brisk {

std::string diagnosis_text(const Diagnosis& diagnosis);
std::string diagnosis_markdown(const Diagnosis& diagnosis);

}  // namespace brisk
