#!/usr/bin/env bash
# Installs what is missing, builds brisk, trains a small classifier that tells which collection a fortune is from (a Debian package
# carries them), and asks it.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_dependencies.sh build
scripts/install_dependencies.sh demo
# Kernels for NVIDIA GPUs take a minute more to compile: not where there is no GPU.
scripts/build.sh $([ -e /dev/nvidiactl ] || echo -DBRISK_CUDA=OFF)
mkdir -p runs
# Collections of fortunes, divided by lines with a percent sign: a row of a table each.
fortunes=/usr/share/games/fortunes
printf 'text\tlabel\n' > runs/fortunes.tsv
for collection in computers definitions love politics science songs-poems work; do
  tr '\t\r"' "  '" < "$fortunes/$collection" | awk -v label="$collection" '
    $0 == "%" { if (text != "") print text "\t" label; text = ""; next }
    { text = text (text == "" ? "" : " ") $0 }
    END { if (text != "") print text "\t" label }' >> runs/fortunes.tsv
done
rm -rf runs/demo-classify
build/brisk train examples/demo-classify.json --data runs/fortunes.tsv --output runs/demo-classify
echo
printf '%s\n' "Real programmers do not comment their code." "Love is a fire, but whether it warms your heart or burns down your house, you can never tell." \
  "The committee voted to form another committee." | build/brisk predict runs/demo-classify
