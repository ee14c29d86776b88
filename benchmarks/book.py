"""Records of a benchmark by name, in one parquet file that grows while it runs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gridshift.storage import replacing


class Book:
    """Every record is on disk as soon as it is added, so that a run goes on where it stopped."""

    def __init__(self, path: Path):
        self.path = path
        rows = pq.read_table(path).to_pylist() if path.exists() else []
        self.records: dict[str, dict] = {
            row.pop("record"): {k: v for k, v in row.items() if v is not None} for row in rows
        }

    def add(self, name: str, record: dict) -> None:
        self.records[name] = record
        fields = dict.fromkeys(key for one in self.records.values() for key in one)
        columns = {"record": list(self.records)} | {
            key: [one.get(key) for one in self.records.values()] for key in fields
        }
        with replacing(self.path) as part:
            pq.write_table(pa.table(columns), part, compression="zstd")


def digits(error: float) -> float:
    """An error with the digits that are worth keeping."""
    return float(f"{error:.3g}")


def write_table(page: Path, mark: str, text: str) -> None:
    """Put a table between its marks on a page."""
    begin, end = f"<!-- {mark}:begin -->", f"<!-- {mark}:end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
