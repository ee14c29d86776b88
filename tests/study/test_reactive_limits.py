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


def test_certified_predictions_are_the_exact_study(limited):
    asked = config(spread=0.5, num_scenarios=60, seed=2)
    exact = screen(asked)
    predicted = screen(
        config(
            spread=0.5, num_scenarios=60, seed=2, method="tangent2", certify=1e-7, num_holdout=20
        )
    )
    at_limit = 0
    for row in predicted.rows:
        other = exact.row(row.outage)
        if row.status != "solved":
            continue
        assert row.unsolved == pytest.approx(other.unsolved)
        assert row.any_at_limit == pytest.approx(other.any_at_limit)
        at_limit += 0 < row.any_at_limit < 1 and row.certified["predicted"] + (
            row.certified["repaired"]
        ) > 0  # fmt: skip
        np.testing.assert_allclose(row.bus_at_q_max, other.bus_at_q_max)
        # 1e-7 p.u. of power, times the condition of these grids
        np.testing.assert_allclose(row.bus_voltage_mean, other.bus_voltage_mean, atol=1e-6)
    assert at_limit > 5


def test_the_solve_command_tells_what_is_reached():
    said = CliRunner().invoke(
        main, ["solve", "case118", "--scenarios", "20", "--q-limits", "--threads", "1", "--json"]
    )
    told = json.loads(said.stdout)
    assert told["status"] == {"solved": 20}
    assert told["num_rows_at_limits"] == 20
    assert max(told["at_limits"].values()) == 1.0
