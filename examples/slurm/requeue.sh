#!/usr/bin/env bash
# A run that is longer than an allocation: 120 s before the time is over brisk saves a checkpoint, and the job goes back into the
# queue; so it does when it is preempted, or when a rank is lost. Started again, brisk sees SLURM_RESTART_COUNT and goes on with the
# run.   sbatch --time=4:00:00 examples/slurm/requeue.sh job.json --stop 40h
#SBATCH --job-name=brisk
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --output=brisk-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
set -uo pipefail
job=${1:?usage: sbatch requeue.sh JOB [options of brisk train]}
shift
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
srun --kill-on-bad-exit=1 "${BRISK:-brisk}" train "$job" "$@"
code=$?
# 130: interrupted, everything is saved. 3: a rank was lost. 137: one was killed. At most 20 times, whatever happens.
case $code in
  130 | 3 | 137)
    if [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; then
      scontrol requeue "$SLURM_JOB_ID"
      exit 0
    fi ;;
esac
exit $code
