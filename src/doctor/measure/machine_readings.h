// What this machine can do, measured in about a second.
#pragma once

#include "doctor/readings/readings.h"

namespace brisk {

MachineReadings measure_machine(const Job& job);

}  // namespace brisk
