// The other implementations of gemm: a plain loop for machines without AVX2, and libraries to measure our own against.
#pragma once

#include <string_view>

#include "ops/gemm/gemm.h"

namespace brisk::cpu {

enum class GemmImplementation : uint8_t { own, onednn, blas, reference };

// What BRISK_GEMM asks for, else our own; UserError if it asks for a library that this program was built without.
GemmImplementation gemm_implementation();
std::string_view gemm_implementation_name(GemmImplementation implementation);  // as BRISK_GEMM spells it
bool has_gemm_implementation(GemmImplementation implementation);

// `own` here means that the instruction set has no kernels: BLAS if there is one, else the plain loop.
void gemm_by(GemmImplementation implementation, int64_t m, int64_t n, int64_t k, const GemmOperand& a,
             const GemmOperand& b, const GemmEpilogue& epilogue, Arithmetic arithmetic);

}  // namespace brisk::cpu
