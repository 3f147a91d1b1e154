#!/usr/bin/env bash
# Kills and stops each rank of a training, over every transport that this machine has, and says after how long the job has ended,
# with which exit code and message. Fails where it takes more than 30 s, ends with 0, or nobody names the rank.
#     scripts/check_lost_ranks.sh [BRISK]
set -euo pipefail
brisk=$(realpath "${1:-$(dirname "$0")/../build/brisk}")
[ -x "$brisk" ] || { echo "$brisk: not built; scripts/build.sh builds it" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
seq 1 400 | awk '{ print "the cat number", $1, "sat on mat", $1 * 7 % 13, "and looked at bird", $1 * 5 % 11 }' > text.txt
cat > job.json <<'END'
{"device": "cpu", "data": {"train": "text.txt", "cache_dir": "cache"},
 "model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 300},
 "training": {"batch_size": 8, "max_length": 24, "max_steps": 100000000, "precision": "fp32", "threads": 1}}
END
"$brisk" train job.json --output first --stop 5u > first.err 2>&1 || { cat first.err >&2; exit 1; }  # the others find its tokens
bad=0

# lose SIGNAL RANK VARIABLE LAUNCHER...
lose() {
  local signal=$1 rank=$2 variable=$3 run process start code=0 took says verdict=ok
  shift 3
  run=run-$signal-$rank-$variable
  timeout 90 "$@" train job.json --output "$run" > "$run.out" 2> "$run.err" &
  local launcher=$!
  for _ in $(seq 100); do grep -qE ' left|^epoch [0-9]' "$run.err" && break; sleep 0.2; done
  sleep 1
  process=$(for each in $(pgrep -f -- "--output $run\$"); do
    [ "$(readlink "/proc/$each/exe")" = "$brisk" ] && tr '\0' '\n' < "/proc/$each/environ" | grep -qx "$variable=$rank" && echo "$each"
  done | head -1) || true
  start=$(date +%s%N)
  kill -"$signal" "$process"
  wait $launcher || code=$?
  took=$((($(date +%s%N) - start) / 1000000))
  says=$(grep -m1 -oE "rank $rank of 2 on [^;.]*(ended|sign of life)[^;.]*" "$run.err" || true)
  [ $took -le 30000 ] && [ $code != 0 ] && [ $code != 124 ] || verdict=FAILED
  # MPICH's launcher kills the others at once, and says it in its own words.
  [ -n "$says" ] || grep -q 'BAD TERMINATION' "$run.out" "$run.err" || verdict=FAILED
  [ $verdict = ok ] || tail -n 20 "$run.err" >&2
  printf '%-7s %-4s of rank %s, %s: ended after %.1f s with exit code %s; %s\n' $verdict "$signal" "$rank" "${1##*/}" \
    "$(awk "BEGIN { print $took / 1000 }")" $code "${says:-(the launcher alone says it)}"
  [ $verdict = ok ]
}

pids=()
for rank in 0 1; do
  for signal in KILL STOP; do
    lose $signal $rank BRISK_RANK "$brisk" launch -n 2 & pids+=($!)
    command -v mpirun.openmpi >/dev/null && { lose $signal $rank OMPI_COMM_WORLD_RANK mpirun.openmpi --oversubscribe -np 2 "$brisk" & pids+=($!); }
    command -v mpiexec.mpich >/dev/null && { lose $signal $rank PMI_RANK mpiexec.mpich -n 2 "$brisk" & pids+=($!); }
  done
  for each in "${pids[@]}"; do wait "$each" || bad=1; done
  pids=()
done
exit $bad
