#!/usr/bin/env bash
# Fuzzes the readers of files that others wrote, with libFuzzer and the address and undefined-behaviour sanitizers.
#   scripts/fuzz.sh [SECONDS] [READER...]     600 seconds each unless said; without readers all of them, one after the other
# Needs clang (Debian: clang). What it learns is kept in build-fuzz/corpus/, an input that is a finding in
# build-fuzz/findings/. Exit status 1 where there is a finding.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift $(($# > 0 ? 1 : 0))
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=($(cd tests/fuzz && ls fuzz_*.cpp | sed 's/fuzz_\(.*\)\.cpp/\1/'))
command -v clang++ >/dev/null || { echo "scripts/fuzz.sh needs clang: apt-get install clang" >&2; exit 2; }

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B build-fuzz -G Ninja -DBRISK_FUZZ=ON -DBRISK_TESTS=OFF -DBRISK_UNITY=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS='-O1 -g1' \
  -DCMAKE_CXX_COMPILER=clang++ "${launcher[@]}" >/dev/null
cmake --build build-fuzz --target "${readers[@]/#/fuzz_}"

mkdir -p build-fuzz/findings
status=0
printf '%-20s %8s %12s %10s %10s %8s\n' reader seconds inputs edges corpus memory
for reader in "${readers[@]}"; do
  corpus=build-fuzz/corpus/$reader log=build-fuzz/$reader.log
  mkdir -p "$corpus"
  seeds=tests/fuzz/corpus/$reader
  [ -d "$seeds" ] || seeds=tests/golden/torch  # the files of the reader's own tests
  dictionary=()
  [ -f "tests/fuzz/$reader.dict" ] && dictionary=("-dict=tests/fuzz/$reader.dict")
  # 16 KiB: every format says all it can in that. 10 s and 256 MiB at once are far more than that much input warrants.
  if ! build-fuzz/tests/fuzz/fuzz_"$reader" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="build-fuzz/findings/$reader-" "${dictionary[@]}" \
    "$corpus" "$seeds" >"$log" 2>&1; then
    echo "$reader: a finding; see $log" >&2
    tail -30 "$log" >&2
    status=1
    continue
  fi
  last() { sed -nE "s/.*$1/\1/p" "$log" | tail -1; }
  printf '%-20s %8s %12s %10s %10s %6s M\n' "$reader" "$(last 'runs in ([0-9]+) second.*')" \
    "$(last 'number_of_executed_units: +([0-9]+)')" "$(last 'cov: ([0-9]+).*')" "$(last 'corp: ([0-9]+).*')" \
    "$(last 'peak_rss_mb: +([0-9]+)')"
done
exit $status
