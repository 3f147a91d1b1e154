// Other processes of this machine.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

// Also of one that has ended and that nobody has waited for yet.
bool process_has_ended(int64_t process);

// "mpirun": of its program, at most 15 characters; empty where there is no such process.
std::string name_of_process(int64_t process);

// The same for all processes of a machine until it is started again; empty where the system does not tell.
std::string boot_id();

std::string host_name();

// Numbers of processes mean the same where this is the same; 0: not known.
uint64_t pid_namespace_of_this_process();

}  // namespace brisk
