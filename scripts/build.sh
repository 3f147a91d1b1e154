#!/usr/bin/env bash
# Builds build/brisk. Further arguments go to cmake: scripts/build.sh -DBRISK_BENCH=ON
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
cmake -S . -B build -G Ninja -DBRISK_TESTS=OFF -DBRISK_CUDA=AUTO "$@" >/dev/null
cmake --build build
echo "build/brisk is ready: try build/brisk --help" >&2
