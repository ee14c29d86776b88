"""What a data set of solved cases costs: `python -m benchmarks.data_set`, on an idle machine.

Prints, per case: drawing and solving, arranging, writing; the whole on one thread and on all; the
same files written by pyarrow in the usual way, for each compression; and the size of what varies.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import gridshift as gs
from gridshift.exchange.gridfm import TABLES
from gridshift.threads import usable_cores

CODECS = ("none", "snappy", "lz4", "zstd")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--grid", default="case118")
    parser.add_argument("--scenarios", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where to write, a temporary folder by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as place:
        folder = Path(place)
        made(given.grid, 400, folder, threads=1)  # compiles
        for threads in sorted({1, usable_cores()}):
            size, cost = made(given.grid, given.scenarios, folder, threads=threads)
            parts = ", ".join(f"{name[:-2]} {spent:.2f}" for name, spent in cost.items())
            print(f"{given.grid}, {threads} threads, µs per case: {parts}; {size:.0f} bytes a case")
        made(given.grid, 2000, folder, threads=1, keep=True)
        for codec in CODECS:
            spent, size = pyarrow_alone(folder / given.grid / "raw", codec)
            print(f"pyarrow alone, {codec}: {spent:.1f} µs, {size:.0f} bytes a case")


def made(
    grid: str, count: int, folder: Path, *, threads: int, keep: bool = False
) -> tuple[float, dict[str, float]]:
    """Bytes and the parts of the time, µs, per case."""
    config = gs.DataSetConfig(grid=grid, num_scenarios=count)
    found = gs.write_data_set(config, folder, threads=threads)
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet") if path.is_file())
    if not keep:
        shutil.rmtree(folder / grid)
    return size / count, {name: spent / count * 1e6 for name, spent in found.cost.items()}


def pyarrow_alone(raw: Path, codec: str) -> tuple[float, float]:
    """µs and bytes per case when pyarrow writes all tables, with its own choice of encodings."""
    files = [path for table in TABLES for path in (raw / f"{table}.parquet").rglob("*.parquet")]
    tables = [pq.read_table(path, partitioning=None) for path in files]
    count = sum(len(pa.compute.unique(t["scenario"])) for t in tables) / len(TABLES)
    sinks = [pa.BufferOutputStream() for _ in tables]

    def write() -> None:
        for table, sink in zip(tables, sinks, strict=True):
            pq.write_table(table, sink, compression=codec)

    return timed(write) / count * 1e6, sum(sink.getvalue().size for sink in sinks) / count


def timed(work: Callable[[], None]) -> float:
    """Seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
