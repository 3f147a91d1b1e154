#!/usr/bin/env bash
# Four processes on one node, which share its cores; they need no MPI.   sbatch --time=2:00:00 examples/slurm/one_node.sh job.json
#SBATCH --job-name=brisk
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --output=brisk-%j.log
#SBATCH --open-mode=append
set -euo pipefail
job=${1:?usage: sbatch one_node.sh JOB [options of brisk train]}
shift
# srun of Slurm 22.05 and later does not take the number of cores from --cpus-per-task by itself.
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
# --stop auto: the schedule ends before the allocation does, so that its last checkpoint is the best model of that time. (With it no
# --signal: that would come before the end. Slurm's own SIGTERM at the limit saves a checkpoint, should it be needed.)
exec srun --kill-on-bad-exit=1 "${BRISK:-brisk}" train "$job" --stop auto "$@"
