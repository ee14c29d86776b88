"""Files of a study for other programs: labelled tables, pictures in two formats."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gridshift as gs
from gridshift.errors import StorageError


@pytest.fixture(scope="module")
def study():
    config = gs.ScreenConfig(grid="case9", method="newton", num_scenarios=5, workers=1)
    return gs.screen(config)


def test_tables_and_pictures_are_written_and_the_tables_are_the_frames(study, tmp_path):
    written = study.export(tmp_path / "files")
    assert all(path.stat().st_size > 0 for path in written)
    assert {path.suffix for path in written} == {".csv", ".parquet", ".png", ".svg"}
    for name in ("outages", "buses", "branches"):
        frame = getattr(study, name)
        kept = pd.read_parquet(tmp_path / "files" / f"{name}.parquet")
        pd.testing.assert_frame_equal(kept, frame, check_dtype=False, check_categorical=False)
        text = pd.read_csv(tmp_path / "files" / f"{name}.csv")
        assert list(text.columns) == list(frame.columns)
        assert np.allclose(text["rank"] if name == "outages" else text.probability,
                           frame["rank"] if name == "outages" else frame.probability,
                           equal_nan=True)  # fmt: skip


def test_a_study_without_outages_is_exported_too(study, tmp_path):
    from dataclasses import replace

    written = replace(study, rows=()).export(tmp_path)
    assert not [path for path in written if path.name.startswith("outage-")]


def test_a_folder_that_cannot_be_written_is_one_line(study, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        study.export(tmp_path / "file")


def test_the_arrays_of_a_studys_table_know_their_labels(tmp_path):
    config = gs.ScreenConfig(grid="case9", method="newton", num_scenarios=2, workers=1)
    study = gs.screen(config, folder=tmp_path)
    table = pq.read_table(tmp_path / "screening.parquet")
    labels = {
        name: json.loads(table.schema.metadata[name.encode()])
        for name in ("bus_labels", "branch_labels")
    }
    assert labels["bus_labels"] == list(study.network.bus_labels)
    studied = table["status"].to_pylist().index("solved")
    assert len(table["bus_voltage_mean"][studied]) == len(labels["bus_labels"])
    assert len(table["branch_loading"][studied]) == len(labels["branch_labels"])
