// What this process may use of the machine (brisk/machine.h), and its measured memory bandwidth.
//
//   const MemoryBandwidth bandwidth = measure_memory_bandwidth();   // under a second on all threads of the ThreadPool
#pragma once

#include <brisk/machine.h>

#include <cstdint>
#include <string>

namespace brisk {

// Read once; the first call asks Linux for permission to use AMX tiles, which later threads inherit.
const InstructionSets& instruction_sets();

int64_t memory_total();       // bytes
int64_t memory_available();   // bytes
int64_t peak_memory_bytes();  // VmHWM: the most this process has used, files that it maps included
int64_t own_memory_bytes();   // RssAnon: what it uses now, without those files

// Since the system started this process, to a hundredth of a second, including the time to load the program; since it
// was loaded if /proc cannot be read.
double seconds_since_process_start();

// Bytes an ordinary user can still write to the file system that holds `path`, which need not exist yet.
int64_t disk_free_bytes(const std::string& path);

struct MemoryBandwidth {
  double read_gb_per_second = 0;   // sum of one array
  double copy_gb_per_second = 0;   // b = a; bytes read and bytes written are counted, not the write-allocate read
  double triad_gb_per_second = 0;  // c = a + s b; the same
};

// The best of several sweeps over arrays of at least four times the last-level cache (128 MiB to 1 GiB in all), on all threads of
// the ThreadPool.
MemoryBandwidth measure_memory_bandwidth();

}  // namespace brisk
