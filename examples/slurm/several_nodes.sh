#!/usr/bin/env bash
# Two nodes with eight processes of two cores each. Between nodes data goes by MPI (Open MPI here, which brisk loads from
# libmpi.so.40), and the run directory lies where all nodes see it.   sbatch --time=8:00:00 examples/slurm/several_nodes.sh job.json
#SBATCH --job-name=brisk
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=2
#SBATCH --output=brisk-%j.log
#SBATCH --open-mode=append
set -euo pipefail
job=${1:?usage: sbatch several_nodes.sh JOB [options of brisk train]}
shift
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
exec srun --mpi=pmix --kill-on-bad-exit=1 "${BRISK:-brisk}" train "$job" --stop auto "$@"
