#!/usr/bin/env bash
# Writes docs/job.md from the declarations in src/job/job_*_options.cpp; the tests check that the two agree.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh
build/brisk job reference > docs/job.md
