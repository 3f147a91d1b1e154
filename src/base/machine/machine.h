// Facts about the machine, and its measured memory bandwidth.
//
//   const Machine machine = read_machine();
//   say("{}: {} cores, {}", machine.cpu_model, machine.cores, format_bytes(machine.memory_total_bytes));
//   if (machine.instructions.amx_bf16) ...   // supported by the processor and the system, and permitted
//   const MemoryBandwidth bandwidth = measure_memory_bandwidth();   // under a second on all threads of the ThreadPool
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brisk {

// Instructions this process may execute: reported by cpuid and, for wide registers, enabled by the operating system.
struct InstructionSets {
  bool avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_bf16 = false, avx512_fp16 = false, avx512_vnni = false;
  bool amx_tile = false, amx_bf16 = false, amx_int8 = false;  // includes the permission that Linux grants on request
};

// Read once; the first call asks Linux for permission to use AMX tiles, which later threads inherit.
const InstructionSets& instruction_sets();
std::vector<std::string> instruction_set_names(const InstructionSets& sets);

struct Cache {
  int level = 0;
  std::string type;  // Data, Instruction, Unified
  int64_t bytes = 0;
  int64_t shared_by = 1;  // logical processors
};

struct Machine {
  std::string cpu_model;
  int64_t cores = 1;               // usable by this process (affinity, cgroup quota)
  int64_t logical_processors = 1;  // of the machine
  InstructionSets instructions;
  std::vector<Cache> caches;           // of the first processor, smallest level first
  int64_t memory_total_bytes = 0;      // or the cgroup's limit, if lower
  int64_t memory_available_bytes = 0;  // without swapping
  std::string huge_pages;              // transparent huge pages: always | madvise | never | unknown
  std::string system;                  // kernel name and release
};

Machine read_machine();

int64_t memory_total();       // bytes
int64_t memory_available();   // bytes
int64_t peak_memory_bytes();  // VmHWM: the most this process has used

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
