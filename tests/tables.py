"""Tables of solved cases as another tool might write them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def solved_cases(seed: int, num_rows: int, *, changed: bool = False) -> dict[str, np.ndarray]:
    """Columns case, p_0..p_3, q_0 (constant), v_0..v_2: no power flow, but like one."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.8, 1.2, (num_rows, 4))
    sensitivity = np.array([[0.02, 0.01, 0], [0, 0.03, 0.01], [0.01, 0, 0.02], [0.02, 0.01, 0.01]])
    if changed:
        sensitivity = sensitivity * [1.5, 0.5, 2.0] + 0.01
    v = 1.05 - p @ sensitivity - 0.01 * (p[:, :3] - 1) ** 2
    columns = {"case": np.arange(num_rows)} | {f"p_{i}": p[:, i] for i in range(4)}
    return columns | {"q_0": np.full(num_rows, 0.3)} | {f"v_{i}": v[:, i] for i in range(3)}


def write(columns: dict[str, np.ndarray], path: Path) -> Path:
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    else:
        pa.csv.write_csv(table, path)
    return path


def write_tables(folder: Path) -> None:
    """`intact.parquet`, and `outage.csv` and `test.csv` of another state."""
    write(solved_cases(0, 300), folder / "intact.parquet")
    write(solved_cases(1, 60, changed=True), folder / "outage.csv")
    write(solved_cases(2, 40, changed=True), folder / "test.csv")
