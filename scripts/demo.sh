#!/usr/bin/env bash
# Installs what is missing, builds brisk, trains a small language model on the King James Bible (a Debian package carries it), and
# shows the result.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
scripts/install_dependencies.sh demo
# Kernels for NVIDIA GPUs take a minute more to compile: not where there is no GPU.
scripts/build.sh $([ -e /dev/nvidiactl ] || echo -DBRISK_CUDA=OFF)
mkdir -p runs
# "Ge1:1 In the beginning": the label of each verse is left out.
bible -f gen1:1-rev22:21 | sed -E 's/^[^ ]+ //' > runs/bible.txt
rm -rf runs/demo
build/brisk train examples/demo.json --data runs/bible.txt --output runs/demo --sample-tokens 80 --sample-prompt "And God said"
echo
build/brisk generate runs/demo --prompt "And it came to pass" --max-tokens 120 --temperature 0.7 --top-k 40
