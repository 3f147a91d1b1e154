#!/usr/bin/env bash
# Every C++ file is as clang-format writes it (.clang-format).   scripts/check_format.sh --fix rewrites them.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cu')
if [ "${1:-}" = "--fix" ]; then
  clang-format -i "${files[@]}"
else
  clang-format --dry-run -Werror "${files[@]}" || { echo "format differs: run scripts/check_format.sh --fix" >&2; exit 1; }
fi
