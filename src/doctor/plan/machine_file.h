// What a plan needs of a machine: of this one, measured, or of another, from the file that `brisk machine --json` wrote
// there.
//
//   const MachineRates there = read_machine_file("big.json", true);     // UserError where it is none
#pragma once

#include <string>

#include "doctor/planning.h"
#include "tensor/device.h"

namespace brisk {

// `may_use_gpu`: of the machine's first GPU, where it has one.
MachineRates read_machine_file(const std::string& path, bool may_use_gpu);
MachineRates machine_rates_of(const MachineReadings& readings, const Device& device);

}  // namespace brisk
