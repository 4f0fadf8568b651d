"""Writes the events of a workload to a file that `railgun bench` and `railgun run` read with its definitions.

python -m bench.workloads.write tiktok --events 1000000 --out tiktok.parquet
railgun bench bench/workloads/tiktok.toml tiktok.parquet
"""

import argparse
import sys
from pathlib import Path

import pyarrow.parquet as pq

from bench.workloads.catalog import SEED, WORKLOADS


def write(name: str, events: int, scale: float, out: Path) -> None:
    """Write the first events of a workload as Parquet."""
    blocks = WORKLOADS[name].blocks(scale, SEED)
    block = next(blocks)
    with pq.ParquetWriter(out, block.schema) as file:
        while events > 0:
            file.write_batch(block.slice(0, events))
            events, block = events - block.num_rows, next(blocks)


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.workloads.write", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("workload", choices=list(WORKLOADS))
    parser.add_argument("--events", type=int, default=1_000_000, help="how many (default 1000000)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of events in a window")
    parser.add_argument("--out", type=Path, required=True, help="FILE.parquet")
    options = parser.parse_args(arguments)
    write(options.workload, options.events, options.scale, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
