#!/bin/sh
# Writes docs/job.md from the declarations in src/base/job_options.cpp. The test suite checks that the two agree.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
[ -f "$build/CMakeCache.txt" ] || cmake -S "$root" -B "$build" -G Ninja
cmake --build "$build" --target test_base
BRISK_WRITE_JOB_REFERENCE=1 "$build/tests/test_base" --gtest_filter='JobReference.*' --gtest_brief=1
