#include "base/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace brisk {

namespace {

constexpr std::array<std::string_view, 5> kNames = {"baseline", "avx2", "avx512", "avx512bf16", "amx"};

#if defined(__x86_64__)
bool has_avx512_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 5)) != 0;
}

// AMX needs the processor, the kernel, and permission for this process: tile data is state that is off until asked for.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool tile = (d & (1u << 24)) != 0, bf16 = (d & (1u << 22)) != 0;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return tile && bf16 && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

Isa detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) {
    return Isa::baseline;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return Isa::avx2;
  }
  if (!has_avx512_bf16()) return Isa::avx512;
  return has_amx() ? Isa::amx : Isa::avx512bf16;
#else
  return Isa::baseline;
#endif
}

Isa choose() {
  const char* forced = std::getenv("BRISK_ISA");
  if (forced == nullptr || *forced == '\0') return best_isa();
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] != forced) continue;
    const Isa isa = static_cast<Isa>(i);
    if (isa > best_isa()) {
      user_error("BRISK_ISA={}: this machine has no {}; the best it has is {}", forced, forced, isa_name(best_isa()));
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

std::string_view isa_name(Isa isa) { return kNames[static_cast<size_t>(isa)]; }

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
