#!/usr/bin/env bash
# Who may include whom (docs/architecture.md): a room includes itself and the rooms below it, nothing upward. And only ops/ knows
# the libraries of matrix products.
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A below=(
  [base]="base"
  [tensor]="tensor base"
  [ops]="ops tensor base"
  [models]="models ops tensor base"
  [text]="text base"
  [data]="data text base"
  [optim]="optim ops tensor base"
  [hub]="hub text tensor base"
  [report]="report text base"
  [train]="train report models data optim hub text ops tensor base"
  [cli]="cli train report models data optim hub text ops tensor base"
)
status=0
for directory in src/*/; do
  room=$(basename "$directory")
  allowed="${below[$room]:-}"
  [ -n "$allowed" ] || { echo "src/$room: a room that scripts/check_rooms.sh does not know" >&2; status=1; continue; }
  while IFS=: read -r file line text; do
    target=$(sed -E 's/.*#include "([^/"]+)\/.*/\1/' <<<"$text")
    case " $allowed " in *" $target "*) ;; *) echo "$file:$line: $room may not include $target" >&2; status=1 ;; esac
  done < <(grep -rnE '#include "[^/"]+/' "$directory" || true)
done
outside=$(grep -rnlE '#include <(dnnl|cblas|cublas|cudnn|mpi|nccl)' src --include='*.h' --include='*.cpp' | grep -v '^src/ops/' || true)
[ -z "$outside" ] || { echo "libraries of products are ops/'s alone: $outside" >&2; status=1; }
exit $status
