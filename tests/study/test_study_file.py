"""Study files: what they say, and what is said of those that are wrong."""

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gridshift as gs
from gridshift.errors import GridshiftWarning, OutageError, ScenarioError
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, scenarios
from gridshift.study.chosen_outages import asked_for
from gridshift.study.distributions import Beta, Empirical, TruncatedNormal
from gridshift.study.listed_outages import read_failure_rates
from gridshift.study.screening import ScreenConfig
from gridshift.study.study_file import read_study_file
from gridshift.study.toml_reader import key_lines
from gridshift.study.uncertainty import draw

EXAMPLE = Path(__file__).parents[2] / "examples" / "study.toml"
HEAD = 'grid = "case30"\nscenarios = 8\n'


@pytest.fixture
def study_of(tmp_path):
    """The study of a text, kept in a file."""

    def read(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return read_study_file(path)

    return read


def test_the_example_says_what_it_says():
    study = read_study_file(EXAMPLE)
    assert (study.head.grid, study.head.scenarios, study.head.sampling) == (
        "case118",
        1024,
        "sobol",
    )
    assert study.limits.v_min == 0.94
    assert study.outages.contingencies == "lines"
    described = study.uncertainty
    assert isinstance(described.loads, tuple)
    assert described.loads[0].distribution == TruncatedNormal(sd=0.1, low=0.7, high=1.3)
    assert described.loads[2].distribution == Empirical(values=(0.6, 0.9, 1, 1, 1.1))
    assert described.generation[0].distribution == Beta(a=2, b=3)
    assert described.generation[0].base_mw == 500
    assert described.correlation[1].matrix == ((1, 0.5), (0.5, 1))
    assert described.balance is not None
    assert described.balance.by == "headroom"


def test_the_examples_comments_name_no_key_that_is_not_read(study_of, tmp_path):
    (tmp_path / "profiles.csv").write_text("H0-A_pload;H0-A_qload;time\n0.5;0.4;0\n1;1;1\n")
    text = EXAMPLE.read_text()
    commented = [line.strip("# ") for line in text.splitlines() if line.startswith("#   ")]
    assert {"[loads]", "[table]"} < {*commented}
    at = commented.index("[table]")
    study = study_of(HEAD + "\n".join(commented[:at]))
    assert study.uncertainty.loads is not None
    table = [line for line in commented[at:] if not line.startswith("ignore")]
    study = study_of('grid = "case30"\n' + "\n".join(table))
    assert study.draw(read_grid("case30")).num_rows == 2


def test_a_study_file_without_tables_draws_todays_scenarios(case30, study_of):
    drawn = study_of(HEAD + "seed = 5\n").draw(case30)
    rng = named_rng("case30", "scenarios", seed=5)
    today = scenarios(case30, rng, 8, spread=0.2, regime="drawn")
    np.testing.assert_array_equal(drawn.loads.load_p, today.load_p)
    wide = study_of(HEAD + '[loads]\nspread = 0.4\nregime = "fixed"\n').draw(case30)
    today = scenarios(case30, named_rng("case30", "scenarios"), 8, spread=0.4, regime="fixed")
    np.testing.assert_array_equal(wide.loads.load_q, today.load_q)


def test_a_study_draws_what_its_description_does(case30, study_of):
    study = study_of(HEAD + 'seed = 2\n[[loads.group]]\ndistribution = "normal"\nsd = 0.2\n')
    np.testing.assert_array_equal(
        study.draw(case30).loads.load_p,
        draw(case30, study.uncertainty, 8, seed=2).loads.load_p,
    )


def test_files_are_looked_for_beside_the_study_file(case30, study_of, tmp_path, monkeypatch):
    (tmp_path / "f.csv").write_text("factor,other\n0.5,9\n1.5,9\n")
    (tmp_path / "rho.csv").write_text("load:1,load:2\n1,0.5\n0.5,1\n")
    monkeypatch.chdir("/")
    study = study_of(
        HEAD
        + '[[loads.group]]\ndistribution = "empirical"\nfile = "f.csv"\ncolumn = "factor"\n'
        + '[[correlation]]\nkind = "matrix"\nfile = "rho.csv"\n'
    )
    assert isinstance(study.uncertainty.loads, tuple)
    assert study.uncertainty.loads[0].distribution == Empirical(values=(0.5, 1.5))
    assert study.uncertainty.correlation[0].matrix == ((1, 0.5), (0.5, 1))
    assert study.draw(case30).num_rows == 8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seed = 1\n", "grid: missing; give a text in quotation marks"),
        (HEAD + "sead = 1\n", "line 3: sead: no such key; did you mean seed?"),
        (HEAD + 'seed = "a"\n', "line 3: seed: 'a'; give a whole number"),
        (HEAD + "seed = -1\n", "line 3: seed: -1 must be at least 0"),
        ('grid = "case30"\n', "scenarios: missing; say how many are drawn"),
        ('grid = "case30"\nscenarios = 0\n', "line 2: scenarios: 0 must be at least 1"),
        (HEAD + 'sampling = "best"\n', "line 3: sampling: no sampling 'best'; choose random"),
        (HEAD + "[loads]\nspread = -1\n", "line 4: loads.spread: -1 must be at least 0"),
        (HEAD + '[loads]\nregime = "x"\n', "line 4: loads.regime: no regime 'x'; choose fixed"),
        (
            HEAD + '[loads]\nspread = 1\n[[loads.group]]\ndistribution = "fixed"\n',
            "line 4: loads.spread: give either",
        ),
        (
            HEAD + '[loads.group]\ndistribution = "fixed"\n',
            r"line 3: loads.group: write \[\[loads.group\]\], in two pairs",
        ),
        (HEAD + "[[loads.group]]\nsd = 1\n", r"line 3: loads.group\[1\].distribution: missing; ch"),
        (
            HEAD + '[[loads.group]]\ndistribution = "gauss"\n',
            r"line 4: loads.group\[1\].distribution: no distribution 'gauss'; choose one of fixed",
        ),
        (
            HEAD + '[[loads.group]]\ndistribution = "normal"\nsd = 1\n'
            '[[loads.group]]\ndistribution = "normal"\nsd = -1\n',
            r"line 8: loads.group\[2\].sd: -1 must be greater than 0",
        ),
        (
            HEAD + '[[loads.group]]\ndistribution = "normal"\nsd = 10\n',
            r"line 5: loads.group\[1\].sd: 10 is a standard deviation of 1,000 % of the nominal "
            "power; a share of it is meant, for instance 0.1",
        ),
        (
            HEAD + '[[loads.group]]\ndistribution = "normal"\n',
            r"line 3: loads.group\[1\].sd: missing; give a number",
        ),
        (
            HEAD + '[[loads.group]]\ndistribution = "normal"\nsd = 1\nlow = 3\n',
            r"line 6: loads.group\[1\].low: no such key; there are sd, mean, area, base_mw",
        ),
        (
            HEAD + '[[loads.group]]\ndistribution = "normal"\nsd = 1\nelements = "load:1"\n',
            r"line 6: loads.group\[1\].elements: 'load:1'; give a list of texts",
        ),
        (
            HEAD + '[[loads.group]]\ndistribution = "empirical"\nfile = "none.csv"\ncolumn = "x"\n',
            r"line 5: loads.group\[1\].file: cannot read none.csv",
        ),
        (
            HEAD
            + '[generation]\n[generation.balance]\nby = "given"\nweights = { "gen:1" = "a" }\n',
            r"line 6: generation.balance.weights: {'gen:1': 'a'}; give a table of numbers",
        ),
        (
            HEAD + '[[generation.set_point]]\nelements = ["gen:1"]\nvm_pu = 5\n',
            r"line 5: generation.set_point\[1\].vm_pu: 5 must lie between",
        ),
        (HEAD + "[areas]\nwest = 3\n", "line 4: areas.west: 3 is no table of keys"),
        (HEAD + 'areas = "west"\n', r"line 3: areas: 'west' is no table; write \[areas\]"),
        (
            HEAD + '[[correlation]]\nkind = "matrix"\nelements = ["load:1", "load:2"]\n'
            "matrix = [\n  [1, 0.2],\n  [0.3, 1]\n]\n",
            r"line 6: correlation\[1\].matrix: not symmetric: load:1 with load:2 has 0.2",
        ),
        (
            HEAD + '[table]\nsource = "a.csv"\n[loads]\nspread = 1\n',
            "line 3: table: scenarios",
        ),
        (
            HEAD + "[outages]\nfailure_rates = 3\n",
            "line 4: outages.failure_rates: 3; give a text",
        ),
        (
            HEAD + '[[outages.common_mode]]\nelements = ["line:1"]\nrepair_hours = -2\n',
            r"line 5: outages.common_mode\[1\].repair_hours: -2 must be a number of at least 0",
        ),
        (HEAD + "[limits]\nv_min = 0.9\nv_mox = 2\n", "line 5: limits.v_mox: no such key; did you"),
        ("grid = \n", r"is not TOML: Invalid value \(at line 1, column 8\)"),
    ],
)
def test_what_is_wrong_is_told_with_key_and_line(study_of, text, told):
    with pytest.raises(ScenarioError, match=told):
        study_of(text)


def test_all_problems_are_told_at_once(study_of):
    with pytest.raises(ScenarioError) as caught:
        study_of(HEAD + "a = 1\n[limits]\nb = 2\n[outages]\ncontingencies = 3\n")
    told = str(caught.value)
    assert "line 3: a" in told
    assert "line 5: limits.b" in told
    assert "line 7: outages.contingencies: 3; give a text" in told
    assert "\n" not in told


def test_what_does_not_fit_the_grid_is_told_with_its_line(case30, study_of):
    text = HEAD + '[[loads.group]]\ndistribution = "fixed"\n\n[[loads.group]]\n'
    study = study_of(text + 'elements = ["load:99"]\ndistribution = "fixed"\n')
    told = r"study.toml: line 7: loads.group\[2\].elements: no 'load:99' among the elements"
    with pytest.raises(ScenarioError, match=told):
        study.draw(case30)


def test_a_wide_distribution_in_mw_or_about_a_large_mean_is_none_of_per_cent(case30, study_of):
    text = HEAD + '[[loads.group]]\ndistribution = "normal"\nsd = 3\n'
    assert study_of(text + "mean = 20\nbase_mw = 1\n").draw(case30).num_rows == 8
    assert study_of(text + "mean = 4\n").draw(case30).num_rows == 8


def test_a_missing_file_is_told():
    with pytest.raises(ScenarioError, match=r"study file nowhere.toml: No such file"):
        read_study_file("nowhere.toml")


def test_lines_of_keys_are_where_the_parser_finds_them():
    text = (
        'a = 1\n"b c" = 2\nd.e = 3\n[[t]]\nx = 1\n[t.u]\ny = 2\n[[t]] # again\n'
        "x = 2\n[t.u]\ny = 3\n"
        "[v]\nm = [\n  [1, 2],\n]\n"
    )
    tomllib.loads(text)
    expected = {
        ("a",): 1, ("b c",): 2, ("d",): 3, ("d", "e"): 3, ("t",): 4, ("t", 0): 4, ("t", 0, "x"): 5,
        ("t", 0, "u"): 6, ("t", 0, "u", "y"): 7, ("t", 1): 8, ("t", 1, "x"): 9, ("t", 1, "u"): 10,
        ("t", 1, "u", "y"): 11, ("v",): 12, ("v", "m"): 13,
    }  # fmt: skip
    assert key_lines(text) == expected


def test_outages_that_a_study_lists(case30, study_of, tmp_path):
    rates = tmp_path / "rates.csv"
    rates.write_text(
        'outage,failures_per_year,repair_hours\nline:9,0.1,\n"line:5,line:9",9,9\nline:7,1,x\n'
    )
    text = HEAD + '[outages]\nelements = ["line:9", "gen:0"]\nfailure_rates = "rates.csv"\n'
    text += '[[outages.common_mode]]\nname = "tower"\nelements = ["line:9", "line:5"]\n'
    study = study_of(text + "failures_per_year = 0.02\nrepair_hours = 10\n")
    config = ScreenConfig(**study.options())
    assert config.contingencies == "listed"
    nan = float("nan")
    told = r"line 5: outages.failure_rates: .*row 3: repair_hours 'x' must be"
    with pytest.raises(OutageError, match=told):
        asked_for(case30, config)
    rates.write_text(rates.read_text().replace("x", "2"))
    expected = [
        (("line:9",), "", 0.1, nan),
        (("gen:0",), "", nan, nan),
        (("line:5", "line:9"), "tower", 0.02, 10.0),
    ]
    with pytest.warns(GridshiftWarning, match="not studied, and so not used: line:7$"):
        listed = asked_for(case30, config)
    found = [(one.outage, one.name, one.failures_per_year, one.repair_hours) for one in listed]
    assert str(found) == str(expected)
    assert len(asked_for(case30, replace(config, contingencies="lines"))) == 41 + 2
    both = asked_for(case30, replace(config, contingencies="lines,generators"))
    assert len(both) == 41 + 5 + 1


def test_an_outage_that_is_listed_twice_has_the_rates_of_both(case30, study_of, tmp_path):
    (tmp_path / "list.txt").write_text("line:1; A; 3; 4\nline:2\n")
    (tmp_path / "rates.csv").write_text("outage,failures_per_year,repair_hours\nline:2,5,\n")
    text = (
        '[outages]\ncontingencies = "list.txt"\nelements = ["line:1"]\nfailure_rates = "rates.csv"'
    )
    for causes in (("line:3", 1, 6), ("line:3", 3, 2), ("line:2", "nan", 7)):
        text += f'\n[[outages.common_mode]]\nname = "B"\nelements = ["{causes[0]}"]'
        text += "\nfailures_per_year = {}\nrepair_hours = {}".format(*causes[1:])
    config = ScreenConfig(**study_of(HEAD + text + "\n").options())
    found = {one.outage: one for one in asked_for(case30, config)}
    told = [(one.name, one.failures_per_year, one.repair_hours) for one in found.values()]
    assert told == [("A", 3.0, 4.0), ("B", 5.0, 7.0), ("B", 4.0, 3.0)]


def test_outages_of_a_study_that_the_grid_lacks(case30, study_of, tmp_path):
    study = study_of(HEAD + '[outages]\nelements = ["line:9", "line:99"]\n')
    told = r"study.toml: line 4: outages.elements\[2\]: .*line:99"
    with pytest.raises(OutageError, match=told):
        study.listed(case30)
    (tmp_path / "rates.csv").write_text("outage,failures_per_year\nline:1,-3\n")
    with pytest.raises(OutageError, match=r"row 1: failures_per_year -3 must be a number"):
        read_failure_rates(case30, str(tmp_path / "rates.csv"))
    with pytest.raises(OutageError, match="outages that a study file lists"):
        asked_for(case30, ScreenConfig(grid="case30", contingencies="listed"))


def test_scenarios_that_all_lack_a_solution_violate(study_of):
    text = HEAD + '[[loads.group]]\ndistribution = "fixed"\nvalue = 50\n'
    study = study_of(text + '[outages]\nelements = ["line:1"]\n')
    (row,) = gs.screen(ScreenConfig(**study.options())).rows
    assert (row.unsolved, row.violation_probability, row.reason) == (
        1.0,
        1.0,
        "no scenario has a solution",
    )
    assert 0.5 < row.violation_low < row.violation_high == 1
