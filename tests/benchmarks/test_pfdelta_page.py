"""docs/pfdelta.md shows the measured rows, and exact rows balance by the measure itself."""

import numpy as np
import pyarrow.parquet as pq

import gridshift as gs
from benchmarks import pfdelta
from gridshift.adapt.datasets import generate


def test_the_page_shows_the_measured_rows():
    rows = pq.read_table(pfdelta.RESULTS).to_pylist()
    begin, end = pfdelta.MARKS
    shown = pfdelta.PAGE.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    assert shown.strip() == pfdelta.table([row for row in rows if row["grid"] == "case118"])


def test_the_error_is_the_power_that_a_bus_lacks():
    network = gs.read_grid("case14")
    data = generate(network, gs.nominal_loads(network, 2))
    exact = pfdelta.balance_error(network, data.layout, data.x, data.y)
    assert exact.max() < 1.5e-8  # solved: 1e-8 of active and of reactive power
    y = data.y.copy()
    y[0, data.layout.y_slices["p_slack"]] += 0.3
    y[1, data.layout.y_slices["q_gen"].start + 2] -= 0.2
    error = pfdelta.balance_error(network, data.layout, data.x, y)
    assert abs(error[0, network.slack[0]] - 0.3) < 1e-7
    assert abs(error[1, network.controlled[2]] - 0.2) < 1e-7
    assert (error > 1e-6).sum() == 2


def test_the_nose_is_where_the_next_step_has_no_solution():
    network = gs.read_grid("case14")
    loads = gs.sample_loads(network, gs.named_rng("case14", "nose"), 5)
    near = pfdelta.raised_to_the_nose(network, loads)
    factor = near.load_p[:, 0] / loads.load_p[:, 0]
    for scale, solved in ((factor, True), ((factor / 0.99 + 0.0101), False)):
        raised = gs.LoadScenarios(
            load_p=loads.load_p * scale[:, None], load_q=loads.load_q * scale[:, None]
        )  # fmt: skip
        assert (gs.solve(network, raised).solved == solved).all()
    np.testing.assert_allclose(near.load_q, loads.load_q * factor[:, None])
