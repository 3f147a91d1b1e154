#!/usr/bin/env bash
# Writes docs/job.md, and the keys that may change on resume in docs/running.md, from the declarations in
# src/job/job_*_options.cpp; the tests check that they agree.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake -S . -B build-test -G Ninja >/dev/null
cmake --build build-test --target test_job
BRISK_WRITE_JOB_REFERENCE=1 build-test/tests/test_job --gtest_filter='JobReference.*' --gtest_brief=1
