#!/usr/bin/env bash
# Two machines that are one: network namespaces joined by a veth pair, each with a host name of its own, and Open MPI's daemon
# started in the other one. A run over both has the bits of one process, and when the network between them is dropped it ends in
# time, with a message that names the rank.     machines.sh BRISK MPIRUN
set -euo pipefail
brisk=$(realpath "$1") mpirun=$2
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip: install iproute2"
a=brisk-a-$$ b=brisk-b-$$ cable=br$$
ip netns add $a 2>/dev/null || skip "no network namespaces can be made here"
work=$(mktemp -d)
clean() {
  for space in $a $b; do
    ip netns pids $space 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del $space 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean EXIT
ip netns add $b
ip link add ${cable}a type veth peer name ${cable}b 2>/dev/null || skip "no veth pairs can be made here"
ip link set ${cable}a netns $a
ip link set ${cable}b netns $b
ip -n $a addr add 10.213.77.1/24 dev ${cable}a
ip -n $b addr add 10.213.77.2/24 dev ${cable}b
for space in $a $b; do ip -n $space link set lo up; done
ip -n $a link set ${cable}a up
ip -n $b link set ${cable}b up

cd "$work"
on_machine() {  # SPACE NAME COMMAND...
  local space=$1 name=$2
  shift 2
  ip netns exec $space unshare -u sh -c 'hostname "$0"; exec "$@"' "$name" "$@"
}
cat > agent <<END
#!/bin/sh
shift
exec ip netns exec $b unshare -u sh -c 'hostname machine-b; exec sh -c "\$*"' sh "\$@"
END
chmod +x agent
seq 1 400 | awk '{ print "the cat number", $1, "sat on mat", $1 * 7 % 13, "and looked at bird", $1 * 5 % 11 }' > text.txt
cat > job.json <<'END'
{"device": "cpu", "data": {"train": "text.txt", "cache_dir": "cache"},
 "model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 300},
 "training": {"batch_size": 8, "max_length": 24, "max_steps": 30, "precision": "fp32", "threads": 1, "logical_ranks": 2,
              "micro_batch_tokens": 128, "logging_steps": 1}}
END
over_both() {
  on_machine $a machine-a "$mpirun" --allow-run-as-root --host 10.213.77.1:1,10.213.77.2:1 -np 2 --bind-to none \
    --mca plm_rsh_agent "$work/agent" --mca btl tcp,self --mca btl_tcp_if_include 10.213.77.0/24 \
    --mca oob_tcp_if_include 10.213.77.0/24 "$brisk" train job.json "$@"
}
fail() { echo "FAILED: $*"; cat "$work"/*.err 2>/dev/null | tail -40; exit 1; }

"$brisk" train job.json --output one 2> one.err || fail "one process"
timeout 60 bash -c "$(declare -f on_machine over_both); a=$a b=$b mpirun=$mpirun work=$work brisk=$brisk; over_both --output two" \
  2> two.err || fail "two machines"
cmp one/checkpoints/step-00000030/model.safetensors two/checkpoints/step-00000030/model.safetensors ||
  fail "two machines have other bits than one process"
grep -q '"world_size": 2' two/summary.json || fail "there were not two ranks"

# torchrun-style: the ranks find each other by MASTER_ADDR, and hear that data between machines needs MPI.
variables="WORLD_SIZE=2 MASTER_ADDR=10.213.77.1 MASTER_PORT=29511"
on_machine $b machine-b env $variables RANK=1 timeout 30 "$brisk" train job.json --output apart 2> apart1.err & other=$!
code=0
on_machine $a machine-a env $variables RANK=0 timeout 30 "$brisk" train job.json --output apart 2> apart0.err || code=$?
[ $code = 2 ] && grep -q 'rank 0 on machine-a, rank 1 on machine-b.*need MPI' apart0.err || fail "torchrun-style, two machines"
code=0
wait $other || code=$?
[ $code = 2 ] && [ ! -e apart ] || fail "torchrun-style, the second machine: exit code $code"

# Ranks in two pid namespaces of one machine see other processes under each other's numbers.
variables="WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29512"
env $variables RANK=1 timeout 60 unshare --pid --fork "$brisk" train job.json --output pids 2> pids1.err & other=$!
env $variables RANK=0 timeout 60 "$brisk" train job.json --output pids 2> pids0.err || fail "two pid namespaces"
wait $other || fail "two pid namespaces, rank 1"
cmp one/checkpoints/step-00000030/model.safetensors pids/checkpoints/step-00000030/model.safetensors || fail "other bits"

over_both --output dropped --set training.max_steps=1000000 2> dropped.err &
run=$!
for _ in $(seq 100); do
  grep -qE ' left|^epoch [0-9]' dropped.err && break
  sleep 0.2
done
grep -qE ' left|^epoch [0-9]' dropped.err || fail "no step was told"
sleep 2
ip -n $a link set ${cable}a down
start=$(date +%s.%N)
code=0
for _ in $(seq 400); do
  kill -0 $run 2>/dev/null || break
  sleep 0.1
done
kill -0 $run 2>/dev/null && fail "the run goes on 40 s after the network was dropped"
wait $run || code=$?
took=$(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f", $1 - $2 }')
grep -Eq 'rank 1 of 2 on machine-b has given no sign of life for .*; its last step was [1-9]' dropped.err ||
  fail "the message does not name the rank, its host and its step"
[ $code != 0 ] || fail "exit code 0 after the network was dropped"
awk -v took="$took" 'BEGIN { exit !(took <= 30) }' || fail "it took $took s"
[ ! -e dropped/checkpoints ] || for folder in dropped/checkpoints/step-*; do
  [ ! -d "$folder" ] || [ -s "$folder/model.safetensors" ] || fail "$folder is half-written"
done
echo "two machines: the bits of one process; a dropped network ended the run after $took s, exit code $code of mpirun"
