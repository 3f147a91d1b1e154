#!/usr/bin/env bash
# On a machine with NVIDIA GPUs and NCCL: builds brisk, runs every test of ranks on GPUs, and measures what the distributed path
# costs one rank and, where there are several GPUs, how several do.
#   bench/gpu_ranks.sh
# With one GPU the ranks of the tests share it (a host id of its own for each, over sockets): right or wrong, not fast or slow.
# BRISK_NCCL_LIBRARY names a libnccl.so.2 that is not where the system looks, such as pip's (site-packages/nvidia/nccl/lib).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v nvidia-smi >/dev/null || { echo "bench/gpu_ranks.sh: there is no nvidia-smi here, so no GPU" >&2; exit 2; }
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv,noheader
cmake -S . -B build-gpu -G Ninja -DBRISK_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native >/dev/null
cmake --build build-gpu --target brisk test_tensor test_comm test_ops test_train test_program
build-gpu/tests/test_comm --gtest_brief=1 --gtest_filter='Nccl*:GpuOfRank*'
build-gpu/tests/test_tensor --gtest_brief=1 --gtest_filter='*OnGpu*'
build-gpu/tests/test_ops --gtest_brief=1 --gtest_filter='PartsOnGpu*'
BRISK_TIMES=1 build-gpu/tests/test_train --gtest_filter='OneRankOverNccl*' --gtest_brief=1
build-gpu/tests/test_program --gtest_filter='GpuRanks*'

# Tokens/s of 1, 2, 4, ... GPUs, the same work for each.
gpus=$(nvidia-smi --list-gpus | wc -l)
[ "$gpus" -gt 1 ] || { echo "one GPU: no ladder of several"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk 'BEGIN { for (i = 0; i < 200000; ++i) print "the quick brown fox number " i % 977 " jumps over lazy dog " i % 31 }' >"$folder/text.txt"
for ((ranks = 1; ranks <= gpus; ranks *= 2)); do
  cat >"$folder/job.json" <<JOB
{"device": "cuda", "data": {"train": "$folder/text.txt", "cache_dir": "$folder/cache"},
 "model": {"d_model": 768, "num_layers": 12, "num_heads": 12, "vocab_size": 300},
 "training": {"batch_size": $((32 * ranks)), "max_length": 1024, "max_steps": 60, "precision": "bf16"}}
JOB
  build-gpu/brisk launch -n $ranks train "$folder/job.json" --output "$folder/run$ranks" 2>"$folder/log" ||
    { cat "$folder/log" >&2; exit 1; }
  python3 - "$folder/run$ranks/summary.json" $ranks <<'PYTHON'
import json, sys
summary, ranks = json.load(open(sys.argv[1])), int(sys.argv[2])
print(f"{ranks} GPUs: {summary['run_tokens_per_second']:,.0f} tokens/s, {summary['run_tokens_per_second'] / ranks:,.0f} each; "
      f"communication {summary['ledger'].get('communication', 0):.2f} s of {summary['wall_seconds']:.1f}")
PYTHON
done
