#!/usr/bin/env bash
# Installs, builds and runs all tests.   scripts/test.sh --fast leaves out the slow ones and the sanitizers (the inner loop).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
scripts/install_dependencies.sh test
fast=0
[ "${1:-}" = "--fast" ] && fast=1

scripts/check_format.sh
scripts/check_modules.sh
scripts/check_headers.sh include/brisk/*.h
# Where there is no GPU to run them on, its kernels are compiled for one kind of GPU and not, as they ship, for two, and without
# optimization: a quarter of the time. scripts/build.sh compiles them as they ship.
gpu_flags=()
nvidia-smi -L >/dev/null 2>&1 || gpu_flags=(--no-warn-unused-cli -DCMAKE_CUDA_ARCHITECTURES=90-real
  -DCMAKE_CUDA_FLAGS='-Xcicc -O0 -Xptxas -O0' -DCMAKE_CUDA_FLAGS_RELEASE='-O0 -DNDEBUG')
cmake -S . -B build-test -G Ninja -DBRISK_TESTS=ON -DBRISK_BENCH=$([ $fast = 1 ] && echo OFF || echo ON) "${gpu_flags[@]}" >/dev/null
cmake --build build-test
if [ $fast = 1 ]; then
  exec ctest --test-dir build-test --output-on-failure -j "$(nproc)" -E Slow
fi
# The same unit tests under the address and undefined-behaviour sanitizers, some fuzzing among them,
# then everything as it ships.
cmake -S . -B build-sanitize -G Ninja -DBRISK_TESTS=ON -DBRISK_SANITIZE=ON -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS='-O1 -g1' >/dev/null
cmake --build build-sanitize --target module_tests
ctest --test-dir build-sanitize --output-on-failure -j "$(nproc)" -E 'Slow|NOT_BUILT'
# Whole programs often wait, for a rank that is gone or for a clock: one test more than there are cores.
ctest --test-dir build-test --output-on-failure -j "$(($(nproc) + 1))"
