"""A sweep on a Dask cluster: one task a shard, merged at the end.

    pip install "dask[distributed]"
    python deploy/dask_sweep.py grid.toml --shards 16 --folder /shared/sweep --scheduler tcp://HOST:8786

Without --scheduler it runs on this machine. The folder is one that all workers can write. A task that fails is tried
again, and skips the rows that are there (--resume).
"""

import argparse
import subprocess
from pathlib import Path


def run_shard(lakemark: str, grid: str, index: int, shards: int, threads: int, folder: str) -> str:
    """Runs one shard of the grid; gives the folder of its rows."""
    name = f"shard-{index}"
    command = [lakemark, "simulate", grid, "--shard", f"{index}/{shards}"]
    command += ["--threads", str(threads), "--out", folder, "--name", name, "--resume", "--yes", "--format", "csv"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise RuntimeError(f"shard {index}/{shards}: {ended.stderr.strip()}")
    return str(Path(folder) / name)


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs a sweep of lakemark's simulator on a Dask cluster.")
    parser.add_argument("grid", help="grid file, which all workers can read")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1, help="threads of each shard")
    parser.add_argument("--folder", default="sweep", help="folder for the rows, which all workers can write")
    parser.add_argument("--out", default="sweep.parquet", help="file to merge them into")
    parser.add_argument("--lakemark", default="lakemark", help="the binary, on every worker")
    parser.add_argument("--scheduler", help="address of the cluster's scheduler")
    options = parser.parse_args()

    from dask.distributed import Client, as_completed

    with Client(options.scheduler) if options.scheduler else Client() as client:
        tasks = [
            client.submit(
                run_shard,
                options.lakemark,
                options.grid,
                index,
                options.shards,
                options.threads,
                options.folder,
                retries=2,
                # A shard's rows are files: it is not to be taken for done because an earlier sweep ran it.
                pure=False,
            )
            for index in range(options.shards)
        ]
        for done, task in enumerate(as_completed(tasks), start=1):
            print(f"{done} of {options.shards} shards: {task.result()}")
    folders = [str(Path(options.folder) / f"shard-{index}") for index in range(options.shards)]
    subprocess.run([options.lakemark, "simulate", "merge", options.out, *folders], check=True)


if __name__ == "__main__":
    main()
