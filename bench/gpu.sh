#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: builds brisk, runs every test of the GPU, and measures brisk and its PyTorch twins in turns.
#   bench/gpu.sh [PYTHON]        a python that has torch (and transformers, for the classifiers); python3 unless given
# ROUNDS (3) and SECONDS_EACH (4) can be set. The classifiers' rows have 8 to 256 tokens, 114 on average (bench/peers/length_table.py).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3} rounds=${ROUNDS:-3} each=${SECONDS_EACH:-4}
command -v nvidia-smi >/dev/null || { echo "bench/gpu.sh: there is no nvidia-smi here, so no GPU" >&2; exit 2; }
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv,noheader
cmake -S . -B build-gpu -G Ninja -DBRISK_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native >/dev/null
cmake --build build-gpu --target brisk test_ops test_train
build-gpu/tests/test_ops --gtest_filter='*Cuda*:*Gpu*' --gtest_brief=1
build-gpu/tests/test_train --gtest_filter='*Gpu*:*Cuda*' --gtest_brief=1

compare() {
  "$python" bench/peers/compare.py --python "$python" --brisk build-gpu/brisk --device cuda --rounds "$rounds" --seconds "$each" \
    --modes brisk-bf16,torch-graphs-bf16,torch-compile-bf16,torch-eager-bf16 "$@"
}
compare --shape gpt2 --batch 32 --max-length 1024
compare --shape large --batch 64 --max-length 128
compare --shape small --batch 64 --max-length 128
table=build-gpu/length-table
"$python" bench/peers/length_table.py $table
for model in bert distilbert; do
  "$python" bench/peers/compare_classify.py --python "$python" --brisk build-gpu/brisk --device cuda --model "$model" --data $table/rows.tsv \
    --max-length 256 --batch 256 --rounds "$rounds" --seconds "$each" --vocabulary $table/vocab.txt \
    --modes brisk-bf16,torch-compiled-bf16,torch-grouped-bf16
done
