#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy; not part of scripts/test.sh, since all files take minutes.
#   scripts/tidy.sh           the .cpp files that differ from main
#   scripts/tidy.sh --all     every .cpp file of src/
#   scripts/tidy.sh FILE...   these
# Flags come from compile_commands.json of BUILD (build-tidy, configured here on first use).
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || { echo "tidy.sh: there is no clang-tidy; apt-get install clang-tidy" >&2; exit 2; }
build=${BUILD:-build-tidy}
[ -f "$build/compile_commands.json" ] ||
  cmake -S . -B "$build" -G Ninja -DBRISK_CUDA=OFF -DBRISK_UNITY=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
case "${1:-}" in
  "") mapfile -t files < <(git diff --name-only --diff-filter=d main -- 'src/*.cpp') ;;
  --all) mapfile -t files < <(git ls-files 'src/*.cpp') ;;
  *) files=("$@") ;;
esac
# Sources that this build does not compile (CUDA's) have no flags; those of several instruction sets are checked once for each.
mapfile -t known < <(for file in "${files[@]}"; do grep -q "/$file\"" "$build/compile_commands.json" && echo "$file"; done)
[ ${#known[@]} -gt 0 ] || { echo "tidy.sh: no file to check"; exit 0; }
printf '%s\n' "${known[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option
