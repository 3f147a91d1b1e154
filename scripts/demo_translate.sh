#!/usr/bin/env bash
# Installs what is missing, builds brisk, makes a parallel text (days and times in English and German), trains a small translator
# on it, and asks it for phrases that it has not seen.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
# Kernels for NVIDIA GPUs take a minute more to compile: not where there is no GPU.
scripts/build.sh $([ -e /dev/nvidiactl ] || echo -DBRISK_CUDA=OFF)
mkdir -p runs
scripts/make_phrases.sh 20000 > runs/phrases.tsv
rm -rf runs/demo-translate
build/brisk train examples/demo-translate.json --data runs/phrases.tsv --output runs/demo-translate
echo
printf '%s\n' "on Tuesday, the third of May 1987, at a quarter past four" "from Friday to Sunday we are at home" "" \
  "we will meet on Monday, the 24th of December 2031, at half past seven" | build/brisk translate runs/demo-translate
