"""Rows on disk: written whole, found by their task only."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gridshift.errors import StorageError
from gridshift.study import journal, store
from gridshift.study.store import Store, table_of, task_key
from gridshift.study.text import json_value

TASK = {"outage": "line:9", "spread": 0.2, "limits": {"v_min": 0.94, "v_max": None}}
ROW = {
    "outage": "line:9", "severity": 1.5, "loading": np.array([0.1, np.nan]), "cut_off": [],
    "mae": {"v": float("nan")},
}  # fmt: skip


def test_a_saved_row_is_found_again(tmp_path):
    key = task_key(TASK)
    Store(tmp_path / "deep" / "er").save(key, ROW)
    found = Store(tmp_path / "deep" / "er").load(key)
    assert found is not None
    assert found["outage"] == "line:9"
    assert found["severity"] == 1.5
    assert found["loading"][0] == 0.1


def test_the_key_does_not_depend_on_the_order_of_a_tasks_entries():
    assert task_key(TASK) == task_key(dict(reversed(TASK.items())))


@pytest.mark.parametrize("change", [{"spread": 0.2001}, {"outage": "line:8"}, {"seed": 0}])
def test_another_task_has_another_key_and_finds_nothing(tmp_path, change):
    store = Store(tmp_path)
    store.save(task_key(TASK), ROW)
    assert store.load(task_key(TASK | change)) is None


def test_entries_come_back_in_their_order_with_their_types(tmp_path):
    store = Store(tmp_path)
    store.save(task_key(TASK), ROW)
    found = Store(tmp_path).load(task_key(TASK))
    assert found is not None
    assert list(found) == list(ROW)
    assert found["loading"].dtype == np.float64
    assert np.isnan(found["mae"]["v"])


def test_a_record_under_another_tasks_key_is_not_taken(tmp_path):
    store = Store(tmp_path)
    store.save("a" * 32, ROW)
    (path,) = (tmp_path / "rows").iterdir()
    path.write_bytes(path.read_bytes().replace(b"a" * 32, b"b" * 32))
    assert Store(tmp_path).load("b" * 32) is None
    assert Store(tmp_path).load("a" * 32) is None


@pytest.mark.parametrize("kept", [0, 3, 60, -1])
def test_a_torn_record_is_ignored_and_can_be_written_anew(tmp_path, kept):
    store, torn = Store(tmp_path), task_key(TASK)
    store.save("a" * 32, ROW)
    store.save(torn, ROW)
    (path,) = (tmp_path / "rows").iterdir()
    content = path.read_bytes()
    begin = content.rindex(journal.BEGIN)
    path.write_bytes(content[:begin] + content[begin:][:kept])
    again = Store(tmp_path)
    assert again.load(torn) is None
    assert again.load("a" * 32) is not None
    again.save(torn, ROW)
    assert Store(tmp_path).load(torn) is not None


def test_the_newest_undamaged_row_of_a_task_counts(tmp_path):
    store, key = Store(tmp_path), task_key(TASK)
    store.save(key, ROW)
    store.save(key, ROW | {"severity": 9.0})
    assert store.load(key)["severity"] == 9.0
    (path,) = (tmp_path / "rows").iterdir()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert Store(tmp_path).load(key)["severity"] == 1.5


def test_a_write_that_fails_leaves_the_rows_before_it_and_nothing_else(tmp_path, monkeypatch):
    store, key = Store(tmp_path), task_key(TASK)
    store.save(key, ROW)
    (path,) = (tmp_path / "rows").iterdir()
    whole, write = path.read_bytes(), journal.os.write

    def full_disk(file, content):
        write(file, content[:50])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal.os, "write", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        store.save(key, ROW | {"severity": 9.0})
    monkeypatch.undo()
    assert path.read_bytes() == whole
    found = store.load(key)
    assert found is not None
    assert found["severity"] == 1.5


def test_rows_of_two_runs_at_once_are_both_found(tmp_path):
    one, two = Store(tmp_path), Store(tmp_path)
    one.save("a" * 32, ROW)
    two.save("b" * 32, ROW)
    one.save("c" * 32, ROW)
    assert set(Store(tmp_path).keys()) == {"a" * 32, "b" * 32, "c" * 32}


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="choose another folder"):
        Store(tmp_path / "file" / "out")


def test_the_summary_is_strict_json_and_the_table_has_all_rows(tmp_path):
    plain = ROW | {"loading": [0.1, float("nan")]}
    rows = [plain | {"rank": 1}, plain | {"rank": 2, "severity": float("nan")}]
    path = Store(tmp_path).finish(rows, {"worst": float("inf"), "outages": rows})
    summary = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert summary["worst"] is None
    assert summary["outages"][1]["severity"] is None
    assert pq.read_table(tmp_path / "screening.parquet").num_rows == 2


def test_numbers_without_a_json_word_become_none():
    assert json_value({"a": (1.0, float("nan")), "b": {"c": float("-inf")}}) == {
        "a": [1.0, None],
        "b": {"c": None},
    }


def test_a_table_by_buffers_is_that_of_pyarrow(study):
    rows = [row.stored() | {"exact": k % 3 == 0} for k, row in enumerate(study.rows)]
    rows[3]["name"] = "Mühle – 380 kV"
    found, expected = table_of(rows), pa.Table.from_pylist(rows)
    assert any(row["cut_off"] for row in rows)
    assert found.schema == expected.schema
    found.validate(full=True)
    assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN is equal to itself there
    assert table_of([]).num_rows == 0


def test_a_table_in_groups_of_rows_is_that_of_all_at_once(study, tmp_path, monkeypatch):
    rows = [row.stored() for row in study.rows]
    Store(tmp_path / "one").finish(rows, {}, labels={"bus_labels": ["a"]})
    monkeypatch.setattr(store, "TABLE_BYTES", 3 * sum(v.nbytes for v in rows[0].values()
                                                      if isinstance(v, np.ndarray)))  # fmt: skip
    Store(tmp_path / "many").finish(rows, {}, labels={"bus_labels": ["a"]})
    one, many = (pq.ParquetFile(tmp_path / name / "screening.parquet") for name in ("one", "many"))
    assert one.num_row_groups == 1
    assert many.num_row_groups == -(-len(rows) // 3)
    assert many.schema_arrow.equals(one.schema_arrow, check_metadata=True)
    assert repr(many.read().to_pylist()) == repr(one.read().to_pylist())


def in_memory() -> int:
    """Bytes of this process that no file holds."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
def test_rows_that_are_found_again_take_no_memory(tmp_path):
    first, keys = Store(tmp_path), [task_key({"outage": f"line:{i}"}) for i in range(100)]
    for i, key in enumerate(keys):
        first.save(key, {"severity": 1.0, "loading": np.full(1 << 17, float(i))})
    store, before = Store(tmp_path), in_memory()
    rows = [store.load(key) for key in keys]
    assert in_memory() - before < 30e6  # they take 100 MB
    assert [row["loading"].mean() for row in rows if row] == [*range(100)]
    assert all(row["loading"].flags.aligned for row in rows if row)
    assert in_memory() - before < 30e6


def test_a_study_imports_no_pandas(tmp_path):
    code = (
        "import sys, gridshift as gs\n"
        "config = gs.ScreenConfig(grid='case9', num_scenarios=2, workers=1)\n"
        f"gs.screen(config, folder={str(tmp_path)!r})\n"
        "print([name for name in ('pandas', 'torch', 'pandapower') if name in sys.modules])\n"
    )
    told = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            for _ in range(2)]  # fmt: skip
    assert told[1].stdout == "[]\n"  # the first may have read the grid by pandapower
