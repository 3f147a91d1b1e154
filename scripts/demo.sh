#!/usr/bin/env bash
# Installs what is missing, builds brisk, trains a small language model on the King James Bible (a Debian package carries it), shows
# the result, and lets the doctor say what each of brisk's defaults gains over one sequence at a time, padded, in fp32.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
scripts/install_dependencies.sh demo
# Kernels for NVIDIA GPUs take a minute more to compile: not where there is no GPU. Those for CPUs are united: faster to
# compile, as fast to within a few percent.
scripts/build.sh -DBRISK_UNITE_KERNELS=ON $([ -e /dev/nvidiactl ] || echo -DBRISK_CUDA=OFF)
mkdir -p runs
# "Ge1:1 In the beginning": the label of each verse is left out.
bible -f gen1:1-rev22:21 | sed -E 's/^[^ ]+ //' > runs/bible.txt
rm -rf runs/demo
build/brisk train examples/demo.json --data runs/bible.txt --output runs/demo --sample-tokens 80 --sample-prompt "And God said"
echo
build/brisk generate runs/demo --prompt "And it came to pass" --max-tokens 120 --temperature 0.7 --top-k 40
echo
build/brisk doctor examples/demo.json --data runs/bible.txt --baseline naive --budget 40s --report runs/doctor.html
echo "runs/doctor.html has it as a page"
