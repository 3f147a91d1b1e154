// Diagnoses made by hand, to be shown: a rich one, one of a job with nothing worth changing, an interrupted one.
#pragma once

#include "doctor/diagnosis.h"

namespace brisk::test {

Readings made_up_readings();       // of an encoder padded to its longest text
Diagnosis rich_diagnosis();        // four changes kept, one rejected, one that did not run
Diagnosis uneventful_diagnosis();  // nothing found
Diagnosis interrupted_diagnosis();
Diagnosis hostile_diagnosis(const std::string& attack);  // in every name and text

}  // namespace brisk::test
