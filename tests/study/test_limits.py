"""Ratings from a table, by season, with a second limit: against pandapower and loops."""

import numpy as np
import pandapower
import pandapower.networks
import pandas as pd
import pytest

from gridshift.errors import GridshiftError, ScenarioError
from gridshift.grid.equations import branch_loading
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.study.limits import Rating, read_ratings, with_limits
from gridshift.study.report import render
from gridshift.study.screening import ScreenConfig
from gridshift.study.set_up import set_up
from gridshift.study.sweep import screen

TABLE = (
    "element,normal_mva,emergency_mva,emergency_ka\nline:9,38,39.5,\nline:0,,150,\nline:3,,,0.6\n"
)


def written(tmp_path, text, name="ratings.csv"):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def studied(case30, tmp_path, **options):
    (tmp_path / "list.txt").write_text("line:5\nline:21\n")
    config = ScreenConfig(
        grid="case30", contingencies=str(tmp_path / "list.txt"), num_scenarios=60, workers=1,
        **options,
    )  # fmt: skip
    return screen(config, network=case30, folder=tmp_path / "out")


def test_probabilities_of_both_limits_are_those_of_pandapowers_currents(case30, tmp_path):
    found = studied(
        case30,
        tmp_path,
        ratings=written(tmp_path, TABLE),
        seasonal_factor=0.9,
        emergency_rating=1.3,
    )
    row = found.row("line:21")
    net = pandapower.networks.case30()
    net.line.loc[21, "in_service"] = False
    loads = sample_loads(case30, named_rng("case30", "scenarios"), 60, spread=0.2, regime="drawn")
    ka = []
    for p, q in zip(loads.load_p * 100, loads.load_q * 100, strict=True):
        net.load["p_mw"], net.load["q_mvar"] = p, q
        pandapower.runpp(net, numba=False, tolerance_mva=1e-8)
        ka.append(net.res_line.i_ka.to_numpy())
    ka, own = np.array(ka), (net.line.max_i_ka * net.line.df * net.line.parallel).to_numpy()
    normal, per_mva = 0.9 * own, 1 / (np.sqrt(3) * 135)
    normal[9] = 0.9 * 38 * per_mva
    emergency = 1.3 * normal
    emergency[9], emergency[0], emergency[3] = np.array([39.5 * per_mva, 150 * per_mva, 0.6]) * 0.9
    ka[:, 21] = 0
    lines = [case30.branch_labels.index(f"line:{k}") for k in range(41)]
    overloaded = (ka > normal).mean(0)
    beyond = (ka > emergency).mean(0)
    assert np.array_equal(row.branch_overload_probability[lines], overloaded)
    assert np.array_equal(row.branch_emergency_probability[lines], beyond)
    assert 0 < beyond[9] < overloaded[9] < 1
    assert row.any_overload == (ka > normal).any(1).mean()
    assert row.any_emergency == (ka > emergency).any(1).mean()
    assert row.emergency_probability == beyond.max()
    assert beyond[int(row.emergency_branch.removeprefix("line:"))] == beyond.max()
    frame = found.branches.set_index(["outage", "branch"])
    assert frame.loc[("line:21", "line:9")].emergency_probability == beyond[9]
    page = render(found)
    assert '"emergency":true' in page
    assert "seasonal factor 0.9" in page


def test_another_table_of_the_same_name_is_computed_anew_and_equal_ones_are_found(case30, tmp_path):
    path = written(tmp_path, TABLE)
    first = studied(case30, tmp_path, ratings=path)
    assert studied(case30, tmp_path, ratings=path).cost["resumed"] == 2
    written(tmp_path, TABLE.replace("38,39.5", "57,60"))
    second = studied(case30, tmp_path, ratings=path)
    assert second.cost["resumed"] == 0
    at = case30.branch_labels.index("line:9")
    changed = [study.row("line:5").branch_loading[at] for study in (first, second)]
    assert changed[0] == pytest.approx(1.5 * changed[1], rel=1e-9)


def test_an_emergency_rating_alone_keeps_the_normal_one_and_both_units_agree(case30, tmp_path):
    kv = float(case30.bus_kv[case30.branch_from[3]])
    by_mva = with_limits(case30, ratings={"line:3": Rating(normal_mva=100, emergency_mva=140)})
    as_ka = Rating(normal_ka=100 / (np.sqrt(3) * kv), emergency_ka=140 / (np.sqrt(3) * kv))
    by_ka = with_limits(case30, ratings={"line:3": as_ka})
    assert by_mva.branch_rating[3] == pytest.approx([1.0, 1.0])
    assert by_ka.branch_rating[3] == pytest.approx(by_mva.branch_rating[3], rel=1e-12)
    assert by_mva.branch_emergency[3] == pytest.approx(1.4)
    assert by_ka.branch_emergency[3] == pytest.approx(1.4)
    alone = with_limits(case30, ratings={"line:3": Rating(emergency_mva=500)})
    assert np.array_equal(alone.branch_rating, case30.branch_rating)
    assert alone.branch_emergency[3] == pytest.approx(5 / case30.branch_rating[3, 0])
    assert np.isinf(np.delete(alone.branch_emergency, 3)).all()


def test_equal_circuits_with_different_ratings_are_not_taken_for_equal(tmp_path):
    net = pandapower.networks.case9()
    net.line = pd.concat([net.line, net.line.iloc[[2]]], ignore_index=True)
    network = read_grid(net)
    (tmp_path / "list.txt").write_text("line:2\nline:9\n")
    config = {"grid": "case9", "contingencies": str(tmp_path / "list.txt"), "num_scenarios": 20,
              "workers": 1}  # fmt: skip
    same = screen(ScreenConfig(**config), network=network)
    assert any(row.equal_to for row in same.rows)
    path = written(tmp_path, "element,normal_mva\nline:9,30\n")
    found = screen(ScreenConfig(ratings=path, **config), network=network)
    assert not any(row.equal_to for row in found.rows)
    loads = sample_loads(network, named_rng("case9", "scenarios"), 20, spread=0.2, regime="drawn")
    for row in found.rows:
        left = with_limits(network.without([row.outage]), ratings={"line:9": Rating(normal_mva=30)})
        loading = branch_loading(left, solve(left, loads).voltage)
        expected = (loading > 1).any(1).mean()
        assert row.any_overload == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("element,normal_mva\nline:99,20\n", "rates line:99, which case30 doesn't have"),
        ("element,normal_mva\nline:9,-1\n", "row 1: normal_mva -1 of line:9 must be a positive"),
        ("element,normal_mva\nline:9,1\nline:9,2\n", "row 2: line:9 is there twice"),
        ("line,mva\nline:9,1\n", "columns line, mva; ratings are in columns element"),
        ("element,emergency_mva\nline:9,1\n", "emergency rating of line:9 is below its normal"),
        ("element,normal_mva,normal_ka\nline:9,1,1\n", "in MVA and in kA"),
    ],
)
def test_a_table_that_means_nothing_is_refused_by_element(case30, tmp_path, text, told):
    with pytest.raises(GridshiftError, match=told):
        studied(case30, tmp_path, ratings=written(tmp_path, text))


def test_a_rating_in_ka_of_a_transformer_or_none_to_multiply_is_refused(case30, tmp_path):
    case14 = read_grid("case14")
    label = next(label for label in case14.elements if label.startswith("trafo"))
    with pytest.raises(GridshiftError, match="is not clear, as its ends have"):
        with_limits(case14, ratings={label: Rating(normal_ka=1)})
    with pytest.raises(GridshiftError, match="emergency rating but no normal one"):
        with_limits(case14, ratings={"line:0": Rating(emergency_mva=1)})
    with pytest.raises(GridshiftError, match="cannot read ratings"):
        read_ratings(tmp_path / "none.csv")
    with pytest.raises(GridshiftError, match="must be at least 1"):
        ScreenConfig(grid="case14", emergency_rating=0.8)
    with pytest.raises(GridshiftError, match="seasonal_factor must be a positive"):
        ScreenConfig(grid="case14", seasonal_factor=0)


@pytest.fixture
def study_of(tmp_path):
    """A study file with these limits, beside a table of ratings."""
    written(tmp_path, TABLE)

    def write(limits):
        text = f'grid = "case30"\nscenarios = 10\n[limits]\n{limits}'
        return written(tmp_path, text, "study.toml")

    return write


def test_the_limits_of_a_study_file_hold_where_no_others_are_given(case30, study_of, tmp_path):
    path = study_of('v_min = 0.97\nv_max = 1.03\nratings = "ratings.csv"\nseasonal_factor = 0.9\n')
    for config in (
        ScreenConfig.of_study(path, v_max=1.05),
        set_up(ScreenConfig(grid="case30", study=path, v_max=1.05), case30).config,
    ):
        assert config.ratings == str(tmp_path / "ratings.csv")
        assert (config.v_min, config.v_max, config.seasonal_factor) == (0.97, 1.05, 0.9)
    with pytest.raises(ScenarioError, match=r"line 4: limits\.seasonal_factor"):
        ScreenConfig.of_study(study_of('seasonal_factor = "winter"\n'))


def test_a_season_is_a_factor_or_a_table_and_is_chosen_by_name(case30, study_of, tmp_path):
    seasons = 'seasons = { summer = 0.9, winter = "ratings.csv" }\n'
    path = study_of('season = "summer"\n' + seasons)
    own = case30.branch_rating
    for season, factor in ((None, 0.9), ("summer", 0.9), ("winter", 1.0)):
        bare = ScreenConfig(grid="case30", study=path, season=season)
        for config in (ScreenConfig.of_study(path, season=season), bare):
            limited = set_up(config, case30).config.limited(case30)
            np.testing.assert_allclose(limited.branch_rating[1], factor * own[1])
            at_9 = 0.38 if season == "winter" else 0.9 * own[9]
            np.testing.assert_allclose(limited.branch_rating[9], at_9)
    option = set_up(ScreenConfig(grid="case30", study=path, seasonal_factor=1.1), case30).config
    assert option.seasonal_factor == 1.1
    with pytest.raises(
        ScenarioError, match=r"no season 'witner' in limits.seasons; did you mean w"
    ):
        ScreenConfig.of_study(path, season="witner")
    with pytest.raises(GridshiftError, match="season winter is one of a study file"):
        ScreenConfig(grid="case30", season="winter")
    for limits, told in (
        ('season = "spring"\n' + seasons, "line 4: limits.season: no season 'spring'"),
        ('season = "summer"\nseasonal_factor = 0.8\n' + seasons, "line 5: .* chosen already"),
        ("[limits.seasons]\nsummer = -1\n", r"line 5: limits.seasons.summer: -1 must be a pos"),
        ("seasons = { a = [1] }\n", "line 4: .* give a table of numbers or texts"),
    ):
        with pytest.raises(ScenarioError, match=told):
            ScreenConfig.of_study(study_of(limits))
