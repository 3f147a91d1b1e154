#!/usr/bin/env bash
# Writes docs/troubleshooting.md from the doctor's rules in src/doctor/judge; the tests check that they agree.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake -S . -B build-test -G Ninja >/dev/null
cmake --build build-test --target test_doctor
BRISK_WRITE_TROUBLESHOOTING=1 build-test/tests/test_doctor --gtest_filter='Troubleshooting.*' --gtest_brief=1
