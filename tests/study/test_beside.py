"""Surrogates measured beside an exact study: against loops over the same scenarios."""

import json

import numpy as np
import pytest
import scipy.stats

from gridshift.adapt.base import Base
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Method
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.errors import ContextError, GridshiftError
from gridshift.grid.layout import Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.study.beside import rank_correlation
from gridshift.study.limits import with_limits
from gridshift.study.risk import risk_of
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen
from tests.adapt.grids import Exact


def config(tmp_path, **options):
    (tmp_path / "list.txt").write_text("line:2\nline:4\nline:9\nline:13\n")
    given = {
        "contingencies": str(tmp_path / "list.txt"), "num_scenarios": 60, "workers": 2,
        "num_holdout": 5, "v_min": 1.0, "v_max": 1.1, "rating_mva": 165.0,
    }  # fmt: skip
    return ScreenConfig(grid="case14", **(given | options))


def test_errors_and_missed_violations_are_those_of_a_loop_over_the_scenarios(case14, tmp_path):
    asked = config(tmp_path, beside=("ridge:20",))
    study = screen(asked, network=case14)
    (found,) = study.beside
    loads = sample_loads(case14, named_rng("case14", "scenarios"), 60, spread=0.2, regime="drawn")
    limited = with_limits(case14, v_min=1.0, v_max=1.1, rating_mva=165.0)
    layout, base = Layout.of(case14), Base.untrained(case14, SurrogateConfig())
    errors, missed, violated, severities = [], 0, 0, {}
    for outage in ("line:2", "line:4", "line:9", "line:13"):
        left = case14.without([outage])
        drawn = sample_loads(
            case14, named_rng("case14", "context", outage=outage), 20, spread=0.2, regime="mixed"
        )
        predictor = METHODS["ridge"].fit(base, Context.of(generate(left, drawn)))
        exact = solve(left, loads).voltage
        x, y = layout.pack_inputs(left, loads), layout.pack_outputs(left, loads, exact)
        y_hat = predictor.predict(x)
        errors.append(np.abs(y - y_hat).mean())
        there = with_limits(left, v_min=1.0, v_max=1.1, rating_mva=165.0)
        predicted = layout.unpack_voltage(x, y_hat)
        severities[outage] = risk_of(there, predicted).excess
        for a, b in zip(exact, predicted, strict=True):
            truly, said = (risk_of(there, v[None]).excess > 0 for v in (a, b))
            violated += truly
            missed += truly and not said
    assert limited.num_buses == 14
    assert found["mae"]["overall"] == pytest.approx(np.mean(errors), rel=1e-6)
    assert (found["num_violated"], found["num_missed"]) == (violated, missed)
    assert found["missed_violations"] == pytest.approx(missed / violated)
    assert 0 < violated < 240
    exact = {row.outage: row.excess for row in study.rows}
    order = sorted(severities)
    expected = scipy.stats.spearmanr([severities[o] for o in order], [exact[o] for o in order])
    assert found["rank_correlation"] == pytest.approx(expected.statistic)
    assert found["cost"]["num_solves"] == 80
    assert (found["method"], found["num_context"], found["num_outages"]) == ("ridge", 20, 4)


def test_the_exact_rows_don_t_depend_on_what_is_measured_beside(case14, tmp_path):
    def rows(study):
        return json.dumps(
            [row.stored() | {"cost": None} for row in study.rows], default=np.ndarray.tolist
        )

    alone = screen(config(tmp_path), network=case14, folder=tmp_path / "out")
    both = screen(
        config(tmp_path, beside=("ridge:20", "tangent2")), network=case14, folder=tmp_path / "out"
    )
    assert both.cost["resumed"] == 4
    assert rows(alone) == rows(both)
    assert [one["method"] for one in both.beside] == ["ridge", "tangent2"]
    again = screen(both.config, network=case14, folder=tmp_path / "out")  # from the folder
    assert [one["mae"] for one in again.beside] == [one["mae"] for one in both.beside]
    assert [one["cost"]["fit_s"] for one in again.beside] == [
        one["cost"]["fit_s"] for one in both.beside
    ]


def test_exact_predictions_agree_in_everything_and_a_failing_method_says_why(
    case14, tmp_path, monkeypatch
):
    def fails(base, context):
        raise ContextError("not today")

    for name, adapt in (
        ("perfect", lambda base, context: Exact(context.network)),
        ("broken", fails),
    ):
        method = Method(
            name=name, summary="", needs=("network",), source="test", adapt=adapt,
            uses_surrogate=False,
        )  # fmt: skip
        monkeypatch.setitem(METHODS, name, method)
    perfect, broken = screen(config(tmp_path, beside=("perfect", "broken")), network=case14).beside
    assert perfect["mae"]["overall"] < 1e-9
    assert perfect["rank_correlation"] == pytest.approx(1)
    assert (perfect["num_missed"], perfect["num_false"]) == (0, 0)
    assert (broken["num_failed"], broken["num_outages"]) == (4, 0)
    assert broken["problem"] == "not today"
    assert np.isnan(broken["rank_correlation"])


def test_what_cannot_be_measured_is_refused_before_anything_is_solved(case14, tmp_path):
    seen = []
    for given, told in (
        ({"beside": ("magic",)}, "no method 'magic'"),
        ({"beside": ("icw:many",)}, "size of its context"),
        ({"beside": ("icw:1",)}, "at least 2"),
    ):
        with pytest.raises(GridshiftError, match=told):
            screen(
                config(tmp_path, **given), network=case14, progress=lambda *row: seen.append(row)
            )
    with pytest.raises(GridshiftError, match="beside exact rows"):
        config(tmp_path, method="ridge", beside=("icw",))
    assert not seen


def test_equal_values_share_the_mean_of_their_ranks():
    a, b = np.array([0.0, 0, 1, 2]), np.array([0.0, 1, 1, 5])
    assert rank_correlation(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic)
    assert np.isnan(rank_correlation(np.zeros(3), np.arange(3.0)))
