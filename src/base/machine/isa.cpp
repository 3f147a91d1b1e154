#include "base/machine/isa.h"

#include <array>
#include <cstdlib>

#include "base/error.h"
#include "base/machine/machine.h"

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

Isa choose() {
  const char* forced = std::getenv("BRISK_ISA");
  if (forced == nullptr || *forced == '\0') return best_isa();
  for (size_t i = 0; i < kIsaNames.size(); ++i) {
    if (kIsaNames[i] != forced) continue;
    const Isa isa = static_cast<Isa>(i);
    if (isa > best_isa()) {
      user_error("BRISK_ISA={}: this machine does not support {}; the best it supports is {}", forced, forced,
                 isa_name(best_isa()));
    }
    return isa;
  }
  user_error("BRISK_ISA={}: unknown; use one of baseline, avx2, avx512, avx512bf16, amx", forced);
}

Isa& active_slot() {
  static Isa isa = choose();
  return isa;
}

}  // namespace

std::string_view isa_name(Isa isa) { return kIsaNames[static_cast<size_t>(isa)]; }

Isa best_isa() {
  static const Isa isa = detect();
  return isa;
}

Isa active_isa() { return active_slot(); }

void set_active_isa(Isa isa) {
  BRISK_CHECK(isa <= best_isa(), "{} is not available", isa_name(isa));
  active_slot() = isa;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i <= static_cast<int>(best_isa()); ++i) isas.push_back(static_cast<Isa>(i));
  return isas;
}

}  // namespace brisk
