"""What commands train: nothing that isn't used, and nothing before a refusal known beforehand."""

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result

import gridshift as gs
from gridshift.adapt.base import Base
from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.surrogate_config import PAPER_SURROGATE, SurrogateConfig
from gridshift.cli import main
from gridshift.grid.scenarios import sample_loads
from gridshift.trial.choice import choose

FREE = ("tangent", "tangent2", "ridge")
"""Methods that start from nothing that was trained and take no gradient steps."""
OUTAGE = ("--outage", "line:2")
SMALL = ("--context", "20", "--spread", "0.2")
FEW = (*SMALL, "--test", "20")


class TrainedError(AssertionError):
    """A network would have been trained."""


@pytest.fixture(autouse=True)
def asked(monkeypatch, tmp_path) -> list[SurrogateConfig]:
    """Configurations of the surrogates asked for; training one fails, and none is in the cache."""
    configs = []

    def refuse(network, config, **_):
        configs.append(config)
        raise TrainedError

    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("gridshift.adapt.cache.train", refuse)
    monkeypatch.setattr("gridshift.adapt.surrogate.train", refuse)
    monkeypatch.chdir(tmp_path)
    return configs


def gridshift(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def done(*args: str) -> dict:
    result = gridshift(*args, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


@pytest.mark.parametrize("method", FREE)
def test_a_method_that_uses_no_surrogate_trains_none(method, tmp_path):
    done("adapt", "case14", *OUTAGE, *FEW, "--method", method)
    (tmp_path / "outages.txt").write_text("line:2\n")
    common = ("--contingencies", "outages.txt", "--scenarios", "20", "--holdout", "5")
    studied = done("screen", "case14", *SMALL, *common, "--method", method)
    assert studied["surrogate"] is None
    assert studied["cost"]["train_s"] == 0
    assert [row["status"] for row in studied["outages"]] == ["solved"]
    config = gs.ScreenConfig(
        grid="case14", contingencies="outages.txt", method=method, num_scenarios=20,
        num_context=20, num_holdout=5,
    )  # fmt: skip
    assert [row.status for row in gs.screen(config).rows] == ["solved"]


def test_screening_is_exact_unless_a_method_is_named():
    found = done("screen", "case14", "--scenarios", "20")
    assert found["method"] == "newton"
    assert found["surrogate"] is None
    assert {row["num_context"] for row in found["outages"]} == {0}


def test_comparing_methods_that_use_no_surrogate_trains_none():
    for command in ("compare", "pareto"):
        rows = done(command, "case14", *OUTAGE, *FEW, "--methods", ",".join(FREE))["rows"]
        assert {row["method"] for row in rows} == {"newton", *FREE}
        assert {(row["problem"], row["training_s"]) for row in rows} == {("", 0)}


@pytest.mark.parametrize("method", ["tangent", "ridge"])
def test_exporting_a_method_that_uses_no_surrogate_trains_none(method, tmp_path):
    pytest.importorskip("onnxruntime")
    done("export", "case14", *OUTAGE, *SMALL, "--method", method, "--out", "a.onnx")
    assert (tmp_path / "a.onnx").exists()


def test_a_choice_among_methods_that_use_no_surrogate_needs_none():
    network = gs.read_grid("case14").without(["line:2"])
    context = Context.of(generate(network, sample_loads(network, np.random.default_rng(1), 40)))
    found = choose(
        Base.untrained(network, SurrogateConfig()), context, num_rows=10, target_mae=1.0,
        methods={name: METHODS[name] for name in (*FREE, "icw")},
    )  # fmt: skip
    problems = {c.name: c.problem for c in found.ledger}
    assert "starts from a surrogate" in problems.pop("icw")
    assert set(problems.values()) == {""}


@pytest.mark.parametrize(
    "args",
    [
        ("adapt", *OUTAGE, *FEW),
        ("adapt", *OUTAGE, *FEW, "--method", "auto", "--target-mae", "1e-3"),
        ("screen", *SMALL, "--scenarios", "20", "--method", "icw"),
        ("screen", *SMALL, "--scenarios", "20", "--beside", "icw"),
        ("screen", *SMALL, "--scenarios", "20", "--method", "auto", "--target-mae", "1e-3"),
        ("compare", *OUTAGE, *FEW, "--methods", "icw"),
        ("export", *OUTAGE, *SMALL, "--out", "a.onnx"),
    ],
    ids=" ".join,
)
def test_the_seed_and_the_spread_reach_the_surrogate_that_a_command_trains(args, asked):
    command, *options = args
    result = gridshift(command, "case14", *options, "--seed", "7", "--spread", "0.3")
    assert result.exit_code == 1
    assert "TrainedError" in result.stderr  # the guard tells what came up
    assert [(config.seed, config.spread) for config in asked] == [(7, 0.3)]


def test_screen_and_its_command_ask_for_the_same_surrogate(asked):
    config = gs.ScreenConfig(grid="case14", method="icw", seed=1, num_scenarios=20)
    with pytest.raises(TrainedError):
        gs.screen(config)
    gridshift("screen", "case14", "--method", "icw", "--seed", "1", "--scenarios", "20")
    assert asked[0] == asked[1]


def test_train_makes_the_surrogate_that_the_other_commands_train(asked):
    gridshift("train", "case14", "--out", "base")
    gridshift("adapt", "case14", *OUTAGE, *FEW)
    gridshift("train", "case14", "--out", "base", "--paper")
    assert asked[0] == asked[1] == SurrogateConfig()
    assert asked[2] == PAPER_SURROGATE


def test_a_context_too_small_is_a_row_of_the_comparison_before_any_training():
    rows = done("compare", "case14", *OUTAGE, "--methods", "icw,tangent", "--context", "1",
                "--test", "20")["rows"]  # fmt: skip
    problems = {row["method"]: row["problem"] for row in rows}
    assert "needs a context of at least 2" in problems["icw"]
    assert problems["tangent"] == ""


def test_a_base_that_a_method_cannot_start_from_is_refused_in_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    args = ("case14", "--outage", "line:2", "--base", "quadratic")
    for command, method, told in (
        ("adapt", "icw", "take base mlp, or one of the methods compensation"),
        ("adapt", "fine-tune", "base quadratic has none"),
        ("adapt", "pfgnn", "starts from base pfgnn, not from base quadratic"),
        ("adapt", "mmnp", "starts from a model of its own"),
    ):
        result = gridshift(command, *args, "--method", method)
        assert result.exit_code == 1
        assert told in result.stderr
        assert len(result.stderr.splitlines()) == 1
    for wrong in (("--paper",), ("--steps", "10")):
        result = gridshift("train", "case14", "--base", "linear", *wrong, "--out", "x")
        assert result.exit_code == 2
        assert "takes no steps" in result.stderr
    result = gridshift("train", "case14", "--base", "linear", "--transform", "zca", "--out", "x")
    assert result.exit_code == 1
    assert "transform zca is for networks" in result.stderr
