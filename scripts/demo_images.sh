#!/usr/bin/env bash
# Installs what is missing, builds brisk, draws 3,000 images of lines of text, trains a small model that reads them, and asks it for
# lines that it has not seen.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
# Kernels for NVIDIA GPUs take a minute more to compile: not where there is no GPU.
scripts/build.sh $([ -e /dev/nvidiactl ] || echo -DBRISK_CUDA=OFF)
mkdir -p runs
c++ -O2 -std=c++20 -I tests scripts/make_text_images.cpp tests/support/text_images.cpp -o build/make_text_images
rm -rf runs/lines runs/new-lines runs/demo-images
build/make_text_images lines runs/lines 3000
build/make_text_images lines runs/new-lines 12 2
build/brisk train examples/demo-images.json --output runs/demo-images
echo
build/brisk predict runs/demo-images --images runs/new-lines/images --beam 4
echo "what they say:"
cat runs/new-lines/lines.tsv
