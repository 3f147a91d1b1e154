// `brisk doctor --verify`: the job as it was written and the tuned one, both trained to the end.
#pragma once

#include <string>

#include "doctor/diagnosis.h"

namespace brisk {

// One after the other, in runs below `folder`. UserError where one cannot be trained; Cancelled.
Verification verify(const Diagnosis& diagnosis, const std::string& folder);

}  // namespace brisk
