from dataclasses import replace

import pytest

from gridshift.errors import StorageError
from gridshift_paper.records import Book, Study, crossed


def counting(calls, *, version=1, fail_at=None):
    """A study of one task a seed and number, which notes what it measured."""

    def measure(experiment, number):
        if (experiment.seed, number) == fail_at:
            raise KeyboardInterrupt
        calls.append((experiment.seed, number))
        return [{"square": float(number**2), "part": part} for part in ("a", "b")]

    return Study(
        name="squares", about="squares", measure=measure, version=version,
        keys=lambda scale: crossed(seed=scale.seeds, number=range(3)),
    )  # fmt: skip


def test_a_study_that_was_cut_off_goes_on_with_what_is_missing(tmp_path, tiny):
    calls = []
    with pytest.raises(KeyboardInterrupt):
        Book(tmp_path, tiny).run(counting(calls, fail_at=(0, 2)))
    assert calls == [(0, 0), (0, 1)]
    assert Book(tmp_path, tiny).run(counting(calls)) == 1
    assert calls == [(0, 0), (0, 1), (0, 2)]
    rows = Book(tmp_path, tiny).rows(counting(calls))
    assert list(rows.square) == [0, 0, 1, 1, 4, 4]
    assert list(rows.columns[:4]) == ["seed", "number", "square", "part"]


def test_rows_of_other_settings_never_mix(tmp_path, tiny):
    calls = []
    Book(tmp_path, tiny).run(counting(calls))
    longer = replace(tiny, num_steps=tiny.num_steps + 1)
    assert Book(tmp_path, longer).rows(counting(calls)).empty
    assert Book(tmp_path, tiny).rows(counting(calls, version=2)).empty
    assert len(Book(tmp_path, tiny).rows(counting(calls))) == 6


def test_more_seeds_keep_the_rows_of_the_first_ones(tmp_path, tiny):
    calls = []
    Book(tmp_path, tiny).run(counting(calls))
    assert Book(tmp_path, tiny.with_seeds(2)).run(counting(calls)) == 3
    assert calls[3:] == [(1, 0), (1, 1), (1, 2)]
    assert len(Book(tmp_path, tiny).rows(counting(calls))) == 6


def test_every_row_names_the_run_that_made_it(tmp_path, tiny):
    import json

    book = Book(tmp_path, tiny)
    book.run(counting([]))
    runs = json.loads((book.folder / "runs.json").read_text())
    (run,) = set(book.rows(counting([])).run)
    assert runs[run]["versions"]["numpy"]
    assert runs[run]["scale"]["num_steps"] == tiny.num_steps


def test_a_damaged_file_is_named(tmp_path, tiny):
    book = Book(tmp_path, tiny)
    book.run(counting([]))
    book.path(counting([])).write_bytes(b"PAR1 not really")
    with pytest.raises(StorageError, match=r"squares\.parquet is damaged"):
        book.rows(counting([]))


def test_a_task_that_another_process_added_meanwhile_is_not_there_twice(tmp_path, tiny):
    first, second = Book(tmp_path, tiny), Book(tmp_path, tiny)
    calls = []

    def measure(experiment, **key):
        first.run(counting([]))
        return counting(calls).measure(experiment, **key)

    second.run(replace(counting(calls), measure=measure))
    assert len(calls) == 3
    assert list(second.rows(counting([])).square) == [0, 0, 1, 1, 4, 4]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]"])
def test_a_damaged_list_of_runs_is_named(tmp_path, tiny, content):
    book = Book(tmp_path, tiny)
    book.run(counting([]))
    (book.folder / "runs.json").write_bytes(content)
    with pytest.raises(StorageError, match=r"runs\.json is damaged"):
        Book(tmp_path, tiny.with_seeds(2)).run(counting([]))


def test_rows_that_name_no_task_are_damage(tmp_path, tiny):
    import pyarrow as pa
    import pyarrow.parquet as pq

    book = Book(tmp_path, tiny)
    book.run(counting([]))
    pq.write_table(pa.table({"square": [1.0]}), book.path(counting([])))
    with pytest.raises(StorageError, match="no column 'task'"):
        book.rows(counting([]))
