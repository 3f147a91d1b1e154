// The instruction sets brisk has kernels for, and the one in use. BRISK_ISA=avx2 (or avx512, avx512bf16, amx, baseline)
// in the environment forces a lower one, so that every path can be tested on one machine.
//
//   say("kernels for {}", isa_name(active_isa()));
#pragma once

#include <string_view>
#include <vector>

namespace brisk {

// Each includes those before it.
enum class Isa : int { baseline, avx2, avx512, avx512bf16, amx };

std::string_view isa_name(Isa isa);
Isa best_isa();    // the best that the processor and the system support
Isa active_isa();  // the current runtime's (base/runtime.h): best_isa(), or what BRISK_ISA forces
// Empty: best_isa(). UserError, with the option's name, if it is unknown or this machine does not support it.
Isa isa_from_name(std::string_view name, std::string_view option);
std::vector<Isa> available_isas();  // from baseline to best_isa()
inline bool has_bf16_instructions(Isa isa) { return isa >= Isa::avx512bf16; }

}  // namespace brisk
