#include "base/machine/isa.h"

#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "base/machine/machine.h"
#include "base/runtime.h"

namespace brisk {

namespace {

constexpr std::array<std::string_view, 5> kIsaNames = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};

Isa detect() {
#if defined(__x86_64__)
  const InstructionSets& sets = instruction_sets();
  __builtin_cpu_init();
  // What the files of each are compiled with (CMakeLists.txt).
  if (!sets.avx2 || !sets.fma || !sets.f16c || !__builtin_cpu_supports("bmi2")) return Isa::baseline;
  if (!sets.avx512f || !sets.avx512bw || !sets.avx512dq || !sets.avx512vl) return Isa::avx2;
  if (!sets.avx512_bf16) return Isa::avx512;
  return sets.amx_tile && sets.amx_bf16 ? Isa::amx : Isa::avx512bf16;
#else
  return Isa::baseline;
#endif
}

}  // namespace

std::string_view isa_name(Isa isa) { return kIsaNames[static_cast<size_t>(isa)]; }

Isa best_isa() {
  static const Isa isa = detect();
  return isa;
}

Isa active_isa() { return Runtime::current().isa(); }

Isa isa_from_name(std::string_view name, std::string_view option) {
  if (name.empty()) return best_isa();
  for (size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] != name) continue;
    const Isa isa = static_cast<Isa>(i);
    if (isa > best_isa()) {
      user_error("{}={}: this machine does not support {}; the best it supports is {}", option, name, name,
                 isa_name(best_isa()));
    }
    return isa;
  }
  user_error("{}={}: unknown; use one of {}", option, name, fmt::join(kIsaNames, ", "));
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}

}  // namespace brisk
