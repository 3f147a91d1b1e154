#!/usr/bin/env bash
# brisk under a real Slurm, on this machine alone: installs Debian's Slurm, munge and Open MPI where they are missing, starts a
# controller and a node as processes of its own, with files in a temporary folder, tries what docs/distributed.md says, and ends
# them. As root (a node's daemon wants to be).     scripts/check_slurm.sh [BRISK]
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD
brisk=$(realpath "${1:-build/brisk}")
[ -x "$brisk" ] || { echo "$brisk: not built; scripts/build.sh builds it" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "a Slurm of its own needs root" >&2; exit 2; }
# (libpmix-dev: Slurm's plug-in looks for a libpmix.so without a number.)
packages="slurm-wlm munge openmpi-bin libopenmpi3 libpmix-dev"
# shellcheck disable=SC2086
dpkg -s $packages >/dev/null 2>&1 || apt-get install -y --no-install-recommends $packages >/dev/null

work=$(mktemp -d /tmp/brisk-slurm-XXXXXX)
chmod 755 "$work"
daemons=()
clean() {
  scancel -u root 2>/dev/null || true
  for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
  wait 2>/dev/null || true
  if [ "${keep:-0}" = 1 ]; then echo "logs are in $work"; else rm -rf "$work"; fi
}
trap clean EXIT
fail() { keep=1; echo "FAILED: $*" >&2; tail -n 12 "$work"/slurm*.log "$work"/*.err >&2 || true; exit 1; }
ok() { echo "ok  $*"; }

node=$(hostname -s)
mkdir "$work"/{state,spool,munge}
dd if=/dev/urandom bs=1 count=1024 of="$work/munge/key" status=none
chmod 711 "$work/munge"
chmod 400 "$work/munge/key"
cat > "$work/slurm.conf" <<END
ClusterName=brisk
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
SlurmUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=30
MailProg=/bin/true
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF=$work/slurm.conf
munged --foreground --force --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munge/pid" \
  --log-file="$work/munged.log" --seed-file="$work/munge/seed" > "$work/munged.out" 2>&1 & daemons+=($!)
sleep 1
slurmctld -D -i > "$work/slurmctld.out" 2>&1 & daemons+=($!)
slurmd -D > "$work/slurmd.out" 2>&1 & daemons+=($!)
for _ in $(seq 60); do
  sinfo -h -o %T 2>/dev/null | grep -q idle && break
  sleep 0.5
done
sinfo -h -o %T | grep -q idle || fail "the node does not become idle"
ok "Slurm $(sinfo --version | cut -d' ' -f2), one node of $(nproc) cores"

cd "$work"
export BRISK=$brisk
seq 1 400 | awk '{ print "the cat number", $1, "sat on mat", $1 * 7 % 13, "and looked at bird", $1 * 5 % 11 }' > text.txt
cat > job.json <<END
{"device": "cpu", "data": {"train": "$work/text.txt", "cache_dir": "$work/cache"},
 "model": {"d_model": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 300},
 "training": {"batch_size": 8, "max_length": 24, "max_steps": 60, "precision": "fp32", "logical_ranks": 2,
              "micro_batch_tokens": 128, "logging_steps": 1, "save_steps": 20}}
END
model_of() { echo "$1/checkpoints/$(ls "$1/checkpoints" | tail -1)/model.safetensors"; }
same_bits() { cmp "$(model_of one)" "$(model_of "$1")" || fail "$1 has other bits than one process"; }
"$brisk" train job.json --output one 2> one.err >/dev/null

# One node, environment only; one log.
srun -n 2 "$brisk" train job.json --output plain > plain.out 2> plain.err || fail "srun -n 2"
same_bits plain
grep -q '2 ranks (shared memory)' plain.err || fail "srun -n 2: not over shared memory"
[ "$(grep -c 'step 60/60' plain.err)" = 1 ] || fail "srun -n 2: more than rank 0 talks"
[ "$(wc -l < plain.out)" = 1 ] || fail "srun -n 2: more than rank 0 prints a result"
ok "srun -n 2: shared memory, the bits of one process, one log"

srun --mpi=pmix -n 2 "$brisk" train job.json --output pmix > pmix.out 2> pmix.err || fail "srun --mpi=pmix"
same_bits pmix
grep -q '2 ranks (Open MPI' pmix.err || fail "srun --mpi=pmix: not over Open MPI"
ok "srun --mpi=pmix -n 2: Open MPI, the bits of one process"

# Cores: what the task has, whether it is bound to it or not.
srun -n 1 -c 1 "$brisk" train job.json --output threads > threads.out 2> threads.err || fail "srun -c 1"
grep -q '"threads": 1' threads/summary.json || fail "srun -c 1: more than one thread"
srun -n 1 -c 1 --cpu-bind=none "$brisk" train job.json --output unbound > unbound.out 2> unbound.err || fail "unbound"
grep -q '"threads": 1' unbound/summary.json || fail "srun -c 1 --cpu-bind=none: more than one thread"
ok "SLURM_CPUS_PER_TASK and the binding decide the threads"

# Wrong starts.
code=0
env -u SLURM_JOB_ID "$brisk" train job.json --output alone2 --stop auto 2> alone2.err || code=$?
[ $code = 2 ] && grep -q 'SLURM_JOB_ID is not set' alone2.err || fail "--stop auto outside of Slurm"
code=0
timeout 60 srun --mpi=pmix -n 2 env BRISK_MPI_LIBRARY=libmpich.so.12 "$brisk" train job.json --output mixed \
  > mixed.out 2> mixed.err || code=$?
[ $code = 2 ] && grep -Eq 'libmpich.so.12|MPICH' mixed.err || fail "srun --mpi=pmix with MPICH's library: code $code"
[ ! -e mixed ] || fail "something was written"
ok "wrong starts are refused"

# Signals end in a checkpoint and exit code 130; the run goes on.
longer="--set training.max_steps=1000000 --set training.save_steps=1000000"
for signal in USR1 USR2 TERM; do
  run=signal-$signal
  srun -n 2 "$brisk" train job.json --output $run $longer > $run.out 2> $run.err &
  step=$!
  for _ in $(seq 100); do grep -qE ' left|^epoch [0-9]' $run.err && break; sleep 0.2; done
  id=$(squeue -h -o %i | head -1)
  scancel --signal=$signal "$id".0
  code=0
  wait $step || code=$?
  [ $code = 130 ] || fail "SIG$signal: exit code $code"
  "$brisk" train $run --resume --stop 1u >/dev/null 2> $run-resumed.err || fail "SIG$signal: resume"
  grep -q 'resuming ' $run-resumed.err || fail "SIG$signal: there was no checkpoint"
done
ok "SIGUSR1, SIGUSR2 and SIGTERM: a checkpoint, exit code 130"

# A rank that is killed: which, and exit code 3 of the others.
srun -n 2 "$brisk" train job.json --output killed $longer > killed.out 2> killed.err &
step=$!
for _ in $(seq 100); do grep -qE ' left|^epoch [0-9]' killed.err && break; sleep 0.2; done
victim=$(pgrep -f "train job.json --output killed" | while read -r p; do
  tr '\0' '\n' < /proc/"$p"/environ 2>/dev/null | grep -qx SLURM_PROCID=1 && [ "$(readlink /proc/"$p"/exe)" = "$brisk" ] && echo "$p"; done | head -1) || true
start=$(date +%s%N)
kill -9 "$victim"
code=0
wait $step || code=$?
took=$((($(date +%s%N) - start) / 1000000))
# (srun may end the others before they can say it; then it says it itself.)
grep -Eq "rank 1 of 2 on $node \(process $victim\) has ended; its last step was|task 1: Killed" killed.err ||
  fail "who was killed is not told"
ok "a killed rank is named; srun ended after $took ms with exit code $code"

# The end of the allocation.
sed 's/^#SBATCH --ntasks=4/#SBATCH --ntasks=2/; s/^#SBATCH --cpus-per-task=4/#SBATCH --cpus-per-task=1/' \
  "$repository/examples/slurm/one_node.sh" > one_node.sh
# (So many steps on so little text want a small rate.)
id=$(sbatch --parsable --time=1 --output=auto.err one_node.sh job.json --output auto --set training.optimizer=adamw \
  --set training.learning_rate=1e-5 --set training.divergence_guard=false --set training.save_steps=1000000)
for _ in $(seq 180); do squeue -h -j "$id" 2>/dev/null | grep -q . || break; sleep 0.5; done
grep -q 'training.stop auto: ended after' auto.err || fail "--stop auto: the schedule did not end by itself"
! grep -q 'interrupted' auto.err || fail "--stop auto: it was interrupted"
ok "$(grep 'training.stop auto: ended' auto.err) (of 1 minute)"

# Back into the queue: the same command line goes on, and ends with the same bits.
sed 's/^#SBATCH --ntasks=4/#SBATCH --ntasks=2/; s/^#SBATCH --cpus-per-task=4/#SBATCH --cpus-per-task=1/' \
  "$repository/examples/slurm/requeue.sh" > requeue.sh
sed 's/"max_steps": 60/"max_steps": 6000/; s/"save_steps": 20/"save_steps": 500/' job.json > long.json
"$brisk" train long.json --output long-one >/dev/null 2> long-one.err
id=$(sbatch --parsable --time=5 --begin=now --output=requeue.err requeue.sh long.json --output requeued)
for _ in $(seq 100); do grep -qE ' left|^epoch [0-9]' requeue.err 2>/dev/null && break; sleep 0.2; done
scancel --signal=USR1 "$id".0
for _ in $(seq 100); do squeue -h -j "$id" -o %t | grep -q PD && break; sleep 0.2; done
scontrol update JobId="$id" StartTime=now 2>/dev/null || true
for _ in $(seq 400); do squeue -h -j "$id" 2>/dev/null | grep -q . || break; sleep 0.5; done
grep -q 'SLURM_RESTART_COUNT is 1' requeue.err || fail "the requeued job does not go on by itself"
cmp "$(model_of long-one)" "$(model_of requeued)" || fail "the requeued run has other bits than an undisturbed one"
ok "requeued: goes on by itself, the bits of an undisturbed run"
echo "all of it"
