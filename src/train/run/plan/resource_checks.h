// Whether a job fits into this machine, before anything is allocated or written.
//
//   const MemoryPlan plan = refuse_what_cannot_fit(engine_options);   // UserError: "... would fit", and why
//   refuse_full_disk(plan, run, peak.gflops());
//
// Where it does not, the message says what takes the memory and which setting frees how much: every figure is that of a
// plan made with the setting.
#pragma once

#include <string>
#include <vector>

#include "train/run/setup.h"

namespace brisk {

// Besides what is planned. On a CPU: the program itself, tokenizer and loader. On a GPU: kernels and cuBLASLt's, which
// are loaded when they are first needed, and recorded graphs; what CUDA's context takes is not free when this is asked.
constexpr int64_t kProgramBytes = int64_t{100} << 20;
constexpr int64_t kGpuLibraryBytes = int64_t{256} << 20;

// Bytes that an engine there may take, of one of so many processes that share the machine.
int64_t memory_for_engine(const Device& device, int of_machine = 1);

bool fits_in_memory(const EngineOptions& options, int of_machine = 1);

// UserError where the memory is not there.
MemoryPlan refuse_what_cannot_fit(const EngineOptions& options);

// Bytes of the host's memory for a copy of what is saved, beside a training that takes what is planned; 0: there is no
// room. `host_bytes`: what the process may still take there.
int64_t room_for_copy(const MemoryPlan& plan, const Device& device, int64_t host_bytes);

// A setting that needs less memory, and how much then.
struct MemoryRelief {
  std::string setting;  // as it is written in a job
  int64_t total = 0;
};
// What is free changes by a few megabytes from one start to the next; advice must hold at the next one.
constexpr int64_t kAdviceSlack = int64_t{16} << 20;
bool fits(const MemoryRelief& relief, int64_t available);  // at the next start, too

// Of those that free something, the gentlest first: what changes speed alone, then what changes numbers. `available`:
// the micro-batch is the largest that fits into it, the smallest there is where none does.
std::vector<MemoryRelief> memory_reliefs(const EngineOptions& options, int64_t available);

// The plan as a table, and under it a line for each relief. Empty settings: none frees anything.
std::string explain_memory(const EngineOptions& options, int64_t available);

// UserError where the run's checkpoints need more than the disk has.
void refuse_full_disk(const RunPlan& plan, const RunState& run, double peak_gflops);

}  // namespace brisk
