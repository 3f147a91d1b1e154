// The rules by what they look at; rules() has all of them, in this order.
#pragma once

#include <span>

#include "doctor/judge/rules.h"

namespace brisk {

std::span<const Rule> rules_of_result();
std::span<const Rule> rules_of_batch();
std::span<const Rule> rules_of_model();
std::span<const Rule> rules_of_course();
std::span<const Rule> rules_of_machine();
std::span<const Rule> rules_of_ranks();
std::span<const Rule> rules_of_gpu();

}  // namespace brisk
