#!/usr/bin/env bash
# Every header compiles on its own: it includes what it uses.   scripts/check_headers.sh [--all] [FILE...]
#   --all   every source file of src/ as well, each alone: unity builds hide missing includes
#   FILE    these files only; scripts/test.sh has it check the library's headers, 4 s of processor time of about 5 minutes
# CUDA's own files are left out; nvcc compiles each of them alone in the build.
set -euo pipefail
cd "$(dirname "$0")/.."
files=()
case "${1:-}" in
  "") mapfile -t files < <(find include src -name '*.h' | sort) ;;
  --all) mapfile -t files < <(find include src -name '*.h' -o -name '*.cpp' | sort) ;;
  *) files=("$@") ;;
esac

check() {  # prints the compiler's errors for one file
  local flags=(-std=c++20 -fsyntax-only -Iinclude -Isrc)
  case "$1" in
    *_cuda.h | *_cuda.cpp | *_hopper.h | */cuda/*.h | */cuda_runtime.h) return 0 ;;
    *_simd.h | *_isa.cpp | */gemm_prefetch.h | */simd.h)
      flags+=(-DBRISK_ISA=avx512bf16 -DBRISK_ISA_avx512bf16=1 -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512dq
              -mavx512vl -mavx512bf16 -mprefer-vector-width=512) ;;
  esac
  # A header is included and not compiled itself: "#pragma once in main file" is a warning.
  if [[ $1 == *.h ]]; then
    name=${1#src/}
    echo "#include \"${name#include/}\"" | "${CXX:-g++}" "${flags[@]}" -x c++ - || { echo "$1 does not compile on its own" >&2; return 1; }
  else
    "${CXX:-g++}" "${flags[@]}" "$1" || { echo "$1 does not compile on its own" >&2; return 1; }
  fi
}
export -f check
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} bash -c 'check "$1"' _ {}
