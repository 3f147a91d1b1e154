#!/usr/bin/env bash
# Every C++ file is as clang-format writes it (.clang-format).   scripts/check_format.sh --fix rewrites them.
set -euo pipefail
cd "$(dirname "$0")/.."
# Without git, or where it does not trust the folder: what lies in the folders of sources.
list=$(git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cu' '*.cuh' 2>/dev/null) ||
  list=$(find include src tests bench examples -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')
[ -n "$list" ] || { echo "check_format.sh: no C++ files found in $PWD" >&2; exit 1; }
mapfile -t files <<<"$list"
if [ "${1:-}" = "--fix" ]; then
  clang-format -i "${files[@]}"
else
  clang-format --dry-run -Werror "${files[@]}" || { echo "format differs: run scripts/check_format.sh --fix" >&2; exit 1; }
fi
