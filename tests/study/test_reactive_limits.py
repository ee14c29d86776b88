"""A study that keeps reactive limits: what it counts, and what it refuses."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from gridshift.cli import main
from gridshift.errors import GridshiftError
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen


def config(**options):
    given = {"num_scenarios": 20, "workers": 1, "q_limits": True, "contingencies": "lines"}
    return ScreenConfig(grid="case14", **(given | options))


@pytest.fixture(scope="module")
def limited():
    return screen(config())


def test_a_row_counts_what_its_scenarios_reach(limited):
    from gridshift.study.set_up import set_up

    network = read_grid("case14")
    loads = set_up(config(), network).loads.rows(slice(0, 20))
    for row in limited.rows[:4]:
        if row.status != "solved":
            continue
        rows = solve(network.without([row.outage]), loads, q_limits=True)
        side = rows.at_limit[rows.solved]
        assert row.any_at_limit == side.any(1).mean()
        np.testing.assert_allclose(row.bus_at_q_max, (side > 0).mean(0))
        np.testing.assert_allclose(row.bus_at_q_min, (side < 0).mean(0))
        assert row.limit_probability == max(row.bus_at_q_max + row.bus_at_q_min)


def test_tables_have_limits_only_where_they_are_kept(limited):
    assert {"at_q_max", "at_q_min"} <= {*limited.buses.columns}
    plain = screen(config(q_limits=False))
    assert not {"at_q_max", "at_q_min"} & {*plain.buses.columns}
    assert np.isnan(plain.rows[0].any_at_limit)
    assert not len(plain.rows[0].bus_at_q_max)


@pytest.mark.parametrize("options", [{"method": "icw"}, {"beside": ("ridge",)}])
def test_surrogates_are_refused_with_limits(options):
    with pytest.raises(GridshiftError, match="takes every generator to hold its voltage"):
        config(**options)


def test_the_solve_command_tells_what_is_reached():
    said = CliRunner().invoke(
        main, ["solve", "case118", "--scenarios", "20", "--q-limits", "--threads", "1", "--json"]
    )
    told = json.loads(said.stdout)
    assert told["status"] == {"solved": 20}
    assert told["num_rows_at_limits"] == 20
    assert max(told["at_limits"].values()) == 1.0
