// Other processes of this machine.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

// Also of one that has ended and that nobody has waited for yet.
bool process_has_ended(int64_t process);

// The same for all processes of a machine until it is started again; empty where the system does not tell.
std::string boot_id();

}  // namespace brisk
