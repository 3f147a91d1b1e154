// Facts about the machine.
//
//   const brisk::Machine machine = brisk::read_machine();
//   if (machine.instructions.amx_bf16) ...   // supported by the processor and the system, and permitted
#pragma once

#include <brisk/error.h>

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

BRISK_API std::vector<std::string> instruction_set_names(const InstructionSets& sets);

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

BRISK_API Machine read_machine();

}  // namespace brisk
