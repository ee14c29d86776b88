"""Rows on disk: written whole, found by their task only."""

import json
import os

import pyarrow.parquet as pq
import pytest

from gridshift.errors import StorageError
from gridshift.study import store as store_module
from gridshift.study.store import Store, task_key
from gridshift.study.text import json_value

TASK = {"outage": "line:9", "spread": 0.2, "limits": {"v_min": 0.94, "v_max": None}}
ROW = {"outage": "line:9", "severity": 1.5, "cut_off": [], "loading": [0.1, float("nan")]}


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


def test_a_row_file_under_another_tasks_name_is_not_taken(tmp_path):
    store = Store(tmp_path)
    store.save("a" * 32, ROW)
    os.rename(tmp_path / "rows" / f"{'a' * 32}.parquet", tmp_path / "rows" / f"{'b' * 32}.parquet")
    assert store.load("b" * 32) is None


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_a_truncated_row_file_is_ignored_and_can_be_replaced(tmp_path, kept):
    store, key = Store(tmp_path), task_key(TASK)
    store.save(key, ROW)
    path = tmp_path / "rows" / f"{key}.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    assert store.load(key) is None
    store.save(key, ROW)
    assert store.load(key) is not None


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    store, key = Store(tmp_path), task_key(TASK)
    store.save(key, ROW)

    def full_disk(table, path, **options):
        with open(path, "wb") as file:
            file.write(b"PAR1 half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.pq, "write_table", full_disk)
    with pytest.raises(StorageError, match="No space left"):
        store.save(key, ROW | {"severity": 9.0})
    monkeypatch.undo()
    assert [p.name for p in (tmp_path / "rows").iterdir()] == [f"{key}.parquet"]
    found = store.load(key)
    assert found is not None
    assert found["severity"] == 1.5


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="choose another folder"):
        Store(tmp_path / "file" / "out")


def test_the_summary_is_strict_json_and_the_table_has_all_rows(tmp_path):
    rows = [ROW | {"rank": 1}, ROW | {"rank": 2, "severity": float("nan")}]
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
