#!/usr/bin/env bash
# Trains with ranks that are killed, stopped and interrupted at random moments, on 1, 2 or 4 of them in turn, from checkpoint to
# checkpoint until the run has come to its end, and compares it with one undisturbed process: the same bits, or it fails. Again
# with another seed until the time is over.     scripts/soak_ranks.sh [MINUTES] [BRISK] [SEED OF WHAT HAPPENS]
set -euo pipefail
minutes=${1:-30}
brisk=$(realpath "${2:-$(dirname "$0")/../build/brisk}")
RANDOM=${3:-1}
[ -x "$brisk" ] || { echo "$brisk: not built; scripts/build.sh builds it" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seq 1 600 | awk '{ print "the cat number", $1, "sat on mat", $1 * 7 % 13, "and looked at bird", $1 * 5 % 11 }' > text.txt
ends=$((SECONDS + minutes * 60))
rounds=0 kills=0 stops=0 interrupts=0 starts=0 restarts=0
fail() { echo "FAILED in round $rounds: $*" >&2; tail -n 30 soak.log >&2; exit 1; }

while [ $SECONDS -lt $ends ]; do
  rounds=$((rounds + 1))
  rm -rf one soak
  cat > job.json <<END
{"device": "cpu", "data": {"train": "text.txt", "cache_dir": "cache"},
 "model": {"d_model": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 300, "dropout": 0.1},
 "training": {"batch_size": 16, "max_length": 48, "max_steps": 1500, "precision": "$([ $((rounds % 2)) = 0 ] && echo bf16 || echo fp32)",
              "threads": 1, "logical_ranks": 4, "micro_batch_tokens": 256, "save_steps": 25, "eval_steps": 40, "seed": $rounds}}
END
  "$brisk" train job.json --output one > one.log 2>&1 || fail "undisturbed: $(tail -1 one.log)"
  while true; do
    ranks=$((1 << (RANDOM % 3))) again=$((RANDOM % 3))
    resume=
    [ -d soak ] && resume=--resume
    starts=$((starts + 1))
    "$brisk" launch -n $ranks --restarts $again train job.json --output soak $resume > soak.log 2>&1 &
    launcher=$!
    for _ in $(seq 0 $again); do
      sleep $((RANDOM % 3)).$((RANDOM % 90 + 10))
      kill -0 $launcher 2>/dev/null || break
      mapfile -t all < <(pgrep -P $launcher || true)
      [ ${#all[@]} -gt 0 ] || continue
      victim=${all[$((RANDOM % ${#all[@]}))]}
      what=$((RANDOM % 20))
      if [ $what = 0 ]; then
        kill -STOP "$victim" 2>/dev/null && stops=$((stops + 1))
        for _ in $(seq 35); do
          kill -0 $launcher 2>/dev/null && kill -0 "$victim" 2>/dev/null || break
          sleep 1
        done
        # (With a single rank nobody misses it.)
        if [ ${#all[@]} -gt 1 ] && kill -0 "$victim" 2>/dev/null && kill -0 $launcher 2>/dev/null; then fail "a stopped rank was not noticed in 35 s"; fi
        [ ${#all[@]} -gt 1 ] || kill -9 "$victim" 2>/dev/null || true
      elif [ $what -le 2 ]; then
        kill -TERM $launcher 2>/dev/null && interrupts=$((interrupts + 1))
        break
      else
        kill -9 "$victim" 2>/dev/null && kills=$((kills + 1))
      fi
    done
    code=0
    wait $launcher || code=$?
    restarts=$((restarts + $(grep -c 'restart [0-9]* of' soak.log || true)))
    case $code in
      0) break ;;
      3 | 130 | 137 | 143) ;;
      *) fail "exit code $code" ;;
    esac
    [ $SECONDS -lt $((ends + 600)) ] || fail "it does not come to its end"
  done
  model=checkpoints/$(ls one/checkpoints | tail -1)/model.safetensors
  cmp "one/$model" "soak/$model" || fail "other bits than the undisturbed run"
done
echo "$rounds runs came to their end with the bits of an undisturbed one: $starts starts on 1, 2 or 4 ranks, $restarts restarts by" \
  "brisk launch; $kills ranks killed, $stops stopped, $interrupts launches interrupted"
