#!/usr/bin/env bash
# Which module may include which (docs/architecture.md): a module includes itself and the modules below it, nothing upward. The
# longest name that fits a path decides, so a sub-module can have rules of its own; what it may include can be a single header,
# too. Only ops/ knows the libraries of matrix products; JSON and files have one reader each; nobody compares the name of a task.
set -euo pipefail
cd "$(dirname "$0")/.."
# module: what it may include besides itself
rules='
base:
job/options: base
job: base
tensor: base
comm: base
ops: tensor base
ops/tape: ops tensor base
models: image ops tensor base
text: base
score: base
image: base
data: text image base
optim: ops tensor base
hub: job text tensor image base
report: job text image base
checkpoint: job hub report models optim data text ops tensor image base
infer: checkpoint job hub report models optim data score text ops tensor image base
train/engine: infer checkpoint job models optim data text ops tensor image comm base
train/record: train/engine infer checkpoint job hub report models optim data score text ops tensor image comm base
train/task: train/engine train/record infer checkpoint job hub report models optim data score text ops tensor image comm base
train/run: train/engine train/record train/task infer checkpoint job hub report models optim data score text ops tensor image comm base
doctor/readings: job base
doctor/judge: doctor/readings job base
doctor/show: doctor/diagnosis.h doctor/planning.h doctor/judge doctor/readings report job base
doctor: train infer checkpoint job hub report models optim data text ops tensor image comm base
bench: train infer checkpoint job hub report models optim data text ops tensor image comm base
api: train infer checkpoint job hub report models optim data score text ops tensor image comm base
cli: api bench doctor train infer checkpoint job hub report models optim data score text ops tensor image comm base
'
grep -rnE '^ *#include "[^"]+/[^"]+"' src | awk -v rules="$rules" '
  function module_of(path) {  # the longest module name that is a folder of this path
    while (path != "") {
      if (path in allowed) return path
      if (!sub(/\/[^\/]*$/, "", path)) path = ""
    }
    return ""
  }
  BEGIN {
    count = split(rules, lines, "\n")
    for (i = 1; i <= count; ++i) if (split(lines[i], parts, ":") >= 2) allowed[parts[1]] = parts[1] " " parts[2]
  }
  {
    split($0, found, ":")
    file = found[1]; sub(/^src\//, "", file); sub(/.*#include "/, ""); sub(/".*/, "")
    from = module_of(file); to = module_of($0)
    if (from == "") { print "src/" file ": a module that scripts/check_modules.sh does not know"; bad = 1; next }
    ok = 0; count = split(allowed[from], names, " ")
    for (i = 1; i <= count && !ok; ++i) ok = $0 == names[i] || to == names[i] || index(to, names[i] "/") == 1
    if (!ok) { print "src/" file ":" found[2] ": " from " may not include " $0; bad = 1 }
  }
  END { exit bad }' >&2
# The library's headers use the standard library and each other.
foreign=$(grep -nE '^ *#include ' -r include | grep -vE '#include <(brisk/[a-z_]+\.h|[a-z_]+)>' || true)
[ -z "$foreign" ] || { echo "headers of include/brisk use the standard library alone: $foreign" >&2; exit 1; }
# These commands are what anybody can write on the library: they include brisk/*.h, and headers of the command line that
# include nothing else either.
declare -A followed
follow() {  # a file below src/, and the headers of cli it includes
  [ -z "${followed[$1]:-}" ] || return 0
  followed[$1]=1
  local line header
  while IFS= read -r line; do
    header=${line#*\"} header=${header%%\"*}
    case $header in
      cli/*) follow "$header" ;;
      *) echo "src/$1:${line%%:*}: $header: train, eval, generate, translate, predict and export use the library by brisk/*.h alone" >&2
         inside=1 ;;
    esac
  done < <(grep -nE '^ *#include "' "src/$1" || true)
}
inside=0
for command in train eval generate translate predict export; do follow cli/commands/$command.cpp; done
[ $inside = 0 ] || exit 1
outside=$(grep -rnlE '#include <(dnnl|cblas|cublas|cudnn|mpi|nccl)' src --include='*.h' --include='*.cpp' | grep -v '^src/ops/' || true)
[ -z "$outside" ] || { echo "libraries of matrix products are used in ops/ alone: $outside" >&2; exit 1; }
parsed=$(grep -rnE '[Jj]son(>?)::(parse|sax_parse|accept)\(|"_json\b' src | grep -v '^src/base/parse_json.cpp:' || true)
[ -z "$parsed" ] || { echo "JSON is read by base/parse_json.h, which limits it: $parsed" >&2; exit 1; }
# (A signal handler may call nothing but the system.)
opened=$(grep -rnE '(^|[^A-Za-z_>])::open(at)?\(|\b(ifstream|ofstream|fopen)\b' src | grep -vE '^src/(base/|cli/mapped_file_fault.cpp:)' || true)
[ -z "$opened" ] || { echo "files are opened by base/files, which refuses pipes, devices and links: $opened" >&2; exit 1; }
named=$(grep -rnE '\btask *(==|!=) *"' src || true)
[ -z "$named" ] || { echo "ask the task or its traits, not its name: $named" >&2; exit 1; }
