#!/usr/bin/env bash
# A sweep as a job array: task I of N runs shard I/N into its own folder on a shared file system. A task that is requeued
# skips the rows that are there (--resume).
#
#   sbatch --array=0-15 deploy/slurm.sh grid.toml /shared/sweep
#   sbatch --dependency=afterok:JOB --wrap "lakemark simulate merge sweep.parquet '/shared/sweep/shard-*'"
#
#SBATCH --job-name=lakemark-sweep
#SBATCH --cpus-per-task=4
#SBATCH --mem=2G
#SBATCH --time=24:00:00
#SBATCH --requeue
set -euo pipefail

grid=${1:?usage: sbatch --array=0-15 slurm.sh GRID.toml FOLDER}
folder=${2:?usage: sbatch --array=0-15 slurm.sh GRID.toml FOLDER}

# The array begins at 0, so that its task ids are the shards'.
if [[ ${SLURM_ARRAY_TASK_MIN:?submit with --array=0-N} -ne 0 ]]; then
  echo "slurm.sh: the array begins at ${SLURM_ARRAY_TASK_MIN}; allowed: 0" >&2
  exit 2
fi
shards=$((SLURM_ARRAY_TASK_MAX + 1))

# `exec`, so that a signal before the time limit reaches the sweep, which keeps its rows.
exec "${LAKEMARK:-lakemark}" simulate "$grid" \
  --shard "${SLURM_ARRAY_TASK_ID}/${shards}" \
  --threads "${SLURM_CPUS_PER_TASK:-1}" \
  --out "$folder" --name "shard-${SLURM_ARRAY_TASK_ID}" \
  --resume --yes
