// What the system counts of this process and of the machine: a difference of two is what a stretch of time took.
//
//   const Counters before = read_counters();
//   ...
//   const Counters used = read_counters() - before;
//   used.major_faults;
#pragma once

#include <cstdint>

namespace brisk {

struct Counters {
  double user_seconds = 0, system_seconds = 0;  // processor time of this process
  double waiting_seconds = -1;                  // of its threads together, ready to run while others had the processors
  double other_seconds = -1;                    // of all other processes; negative: the system does not tell
  int64_t minor_faults = 0, major_faults = 0;
  double throttled_seconds = -1;  // in which the cgroup's quota kept it from running; negative: there is no quota
  double disk_wait_seconds = -1;  // negative: the kernel does not count it

  Counters operator-(const Counters& earlier) const;
};
Counters read_counters();

int64_t swapped_bytes();  // of this process, now; negative: not known
double cgroup_cores();    // its quota of processor time, in cores; negative: there is none

}  // namespace brisk
