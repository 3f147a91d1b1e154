#include "base/random.h"
#include "ops/cpu/simd.h"
#include "ops/peak/peak_kernels.h"

namespace brisk::BRISK_ISA {

namespace {

// Chains enough to hide the latency of two units (4 cycles each): 12 of the 16 or 32 registers.
constexpr int kChains = 12;

template <typename MultiplyAdd>
void burst(int64_t rounds, const MultiplyAdd& multiply_add) {
  Vec acc[kChains];
  const Vec x = set1(0.5f);
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) {
    acc[c] = x;
    asm volatile("" : "+v"(acc[c]));  // each chain its own: equal ones would become one
  }
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) acc[c] = multiply_add(x, acc[c]);
  }
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) asm volatile("" : : "v"(acc[c]));  // somebody wants the results
}

}  // namespace

double multiply_add_burst(Arithmetic arithmetic, int64_t rounds) {
  if (arithmetic == Arithmetic::f32) {
    burst(rounds, [](Vec x, Vec acc) BRISK_INLINE { return fma(acc, x, x); });
    return 2.0 * static_cast<double>(rounds * kChains * kLanes);
  }
#if defined(BRISK_ISA_amx)
  struct alignas(64) Tiles {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
  static constexpr Tiles kTiles;
  _tile_loadconfig(&kTiles);
  // Real numbers: on zeros the unit draws less power and ran a quarter faster than it ever does in a product.
  bf16_t factors[4][512];
  for (uint32_t i = 0; i < 2048; ++i) {
    const uint32_t bits = brisk::random_bits(1, i);
    factors[i / 512][i % 512].bits =
        static_cast<uint16_t>(0x3F00u | (bits & 0x807Fu));  // between 0.5 and 1, either sign
  }
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, factors[0], 64);
  _tile_loadd(5, factors[1], 64);
  _tile_loadd(6, factors[2], 64);
  _tile_loadd(7, factors[3], 64);
  for (int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 4.0 * 2 * 16 * 16 * 32 * static_cast<double>(rounds);
#elif defined(BRISK_ISA_avx512bf16)
  burst(rounds, [](Vec x, Vec acc) BRISK_INLINE { return _mm512_dpbf16_ps(acc, (__m512bh)x, (__m512bh)x); });
  return 4.0 * static_cast<double>(rounds * kChains * kLanes);
#else
  return 0;
#endif
}

}  // namespace brisk::BRISK_ISA
