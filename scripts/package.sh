#!/usr/bin/env bash
# Builds build/package/brisk_<version>_<architecture>.deb (docs/installing.md).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh package
scripts/build.sh
cpack --config build/CPackConfig.cmake -B build/package
