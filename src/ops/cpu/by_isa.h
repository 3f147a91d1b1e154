// Functions that a *_isa.cpp file defines once per instruction set, and the choice among them.
//
//   BRISK_VECTOR_ISAS(void norm_forward_rows(const NormForward& op, int64_t begin, int64_t end);)
//   BRISK_ACTIVE_ISA(norm_forward_rows)(op, begin, end);  // never for baseline
//
// AMX multiplies matrices and does nothing else: only what has a product inside is there for it too (BRISK_EVERY_ISA).
// Everything else under its name is avx512bf16's, and is compiled once (CMakeLists.txt).
//
// An *_isa.cpp file calls nothing of the standard library that could stay a function of its own: the linker keeps one
// copy of such a function, perhaps the one compiled for a machine with more instructions than this one.
#pragma once

#include "base/machine/isa.h"

#define BRISK_VECTOR_ISAS(declaration) \
  namespace avx2 {                     \
  declaration                          \
  }                                    \
  namespace avx512 {                   \
  declaration                          \
  }                                    \
  namespace avx512bf16 {               \
  declaration                          \
  }

#define BRISK_EVERY_ISA(declaration) \
  BRISK_VECTOR_ISAS(declaration)     \
  namespace amx {                    \
  declaration                        \
  }

#define BRISK_ACTIVE_ISA(function)                                            \
  (::brisk::active_isa() == ::brisk::Isa::amx          ? amx::function        \
   : ::brisk::active_isa() == ::brisk::Isa::avx512bf16 ? avx512bf16::function \
   : ::brisk::active_isa() == ::brisk::Isa::avx512     ? avx512::function     \
                                                       : avx2::function)

namespace brisk {
namespace avx512bf16 {}
namespace amx {
using namespace avx512bf16;  // amx::name is its own where it has one
}
inline bool has_vector_kernels() { return active_isa() != Isa::baseline; }
}  // namespace brisk
