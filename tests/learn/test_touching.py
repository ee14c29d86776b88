"""What users say a change touches, and which pair of buses cases name, on DC power flow."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from gridshift.errors import ContextError
from gridshift.learn.compensation import Touched
from gridshift.learn.estimator import ICWRegressor
from gridshift.learn.estimator_file import load, save
from gridshift.learn.onnx_graph import write_onnx
from gridshift.learn.touching import Buses, identify_pair, touched_of

NAMES = ["a", "b", "c", "d"]
LINES = ((0, 1), (1, 2), (2, 3), (3, 0), (1, 4), (4, 5), (5, 6), (6, 2), (6, 7), (7, 3), (5, 7))
BUSES = {f"bus {k}": [f"theta_{k}"] for k in range(1, 8)}


def cases(num_rows: int, out: int | None = None, seed: int = 0, noise: float = 0.0):
    """Injections (N, 7) and named angles (N, 7) of a grid of 8 buses by B theta = p; 0 is slack."""
    matrix = np.zeros((8, 8))
    for number, (i, j) in enumerate(LINES):
        if number != out:
            b = 1 + number / 10
            matrix[[i, j], [i, j]] += b
            matrix[[i, j], [j, i]] -= b
    rng = np.random.default_rng(seed)
    x = -rng.uniform(0.5, 1.5, (num_rows, 7)) / 10
    y = np.linalg.solve(matrix[1:, 1:], x.T).T + noise * rng.normal(size=(num_rows, 7))
    return x, pd.DataFrame(y, columns=[f"theta_{k}" for k in range(1, 8)])


@pytest.fixture(scope="module")
def base() -> ICWRegressor:
    return ICWRegressor(base="linear").fit(*cases(200))


def error(model: ICWRegressor, out: int) -> float:
    x, y = cases(50, out, seed=9)
    return float(np.abs(model.predict(x) - y.to_numpy()).max() / np.abs(y.to_numpy()).max())


ENDS_OF_6 = {bus: BUSES[bus] for bus in ("bus 5", "bus 6")}


@pytest.mark.parametrize(
    "touching",
    [["theta_5", "theta_6"], [4, 5], ENDS_OF_6, {5: {"angle": "theta_5"}, 6: {"angle": 5}}],
    ids=str,
)
def test_with_the_ends_of_the_line_named_five_cases_are_as_good_as_the_base(base, touching):
    x, y = cases(5, out=6, seed=1)
    adapted = base.adapt(x, y, touching=touching)
    # the base's own penalty is 1e-10, the smallest of the compensation 1e-12
    assert error(adapted, 6) < 1e-5
    assert error(base, 6) > 1e-2
    assert error(base.adapt(x, y, touching=["theta_1"]), 6) > 1e-3


def test_two_lines_out_need_their_pairs_or_all(base):
    touched = touched_of({k: [k] for k in (1, 2, 4, 6)}, y=np.zeros((3, 7)))
    assert touched.branches == tuple(combinations(range(4), 2))
    touched = touched_of(
        {k: [k] for k in (1, 2, 4, 6)}, y=np.zeros((3, 7)), branches=[(4, 6), (1, 2)]
    )
    assert touched.branches == ((2, 3), (0, 1))


def test_angles_in_degrees_are_those_in_radians():
    y = np.random.default_rng(0).uniform(0.9, 1.1, (20, 4))
    degrees = y.copy()
    degrees[:, :2] = np.degrees(y[:, :2])
    in_rad = {"i": ["a", "c"], "j": ["b", "d"]}
    in_deg = {
        "i": {"angle_deg": "a", "magnitude": "c"}, "j": {"angle_deg": "b", "magnitude": "d"}
    }  # fmt: skip
    flows = touched_of(in_rad, y=y, names=NAMES).features("flows", y)
    found = touched_of(in_deg, y=degrees, names=NAMES).features("flows", degrees)
    np.testing.assert_allclose(found, flows, rtol=1e-12)


def test_the_line_that_is_out_is_found_among_all_pairs_of_buses(base):
    x, y = cases(10, out=6, seed=2, noise=1e-6)
    found = base.identify(x, y, BUSES)
    assert found.pair == ("bus 5", "bus 6")
    assert found.ranking[0][0] == found.name == "bus 5 - bus 6"
    assert len(found.ranking) == 21
    by_line = base.identify(x, y, BUSES, branches=[("bus 1", "bus 2"), ("bus 5", "bus 6")])
    assert by_line.pair == ("bus 5", "bus 6")
    adapted = base.adapt(x, y, touching={bus: BUSES[bus] for bus in found.pair})
    assert error(adapted, 6) < error(base, 6) / 100


@pytest.mark.parametrize("seed", range(5))
def test_no_pair_is_named_where_nothing_has_changed(base, seed):
    x, y = cases(10, seed=seed + 20, noise=1e-4)
    assert base.identify(x, y, BUSES).pair is None


def test_of_many_pairs_those_are_tried_whose_angles_have_moved_most():
    rng = np.random.default_rng(3)
    y_base = rng.normal(size=(12, 40)) / 10
    response = rng.uniform(-0.3, 0.3, 40)
    response[[7, 31]] = 1.0, -1.0
    y = y_base + 0.1 * (y_base[:, [7]] - y_base[:, [31]] + 1) * response
    y += 1e-5 * rng.normal(size=y.shape)
    buses = Buses.of({k: [k] for k in range(40)}, None, 40)
    found = identify_pair(y_base, y, y_base, buses)
    assert len(found.ranking) == 600 < 40 * 39 / 2
    assert found.pair == (7, 31)


@pytest.mark.parametrize(
    ("touching", "told"),
    [
        (["theta_9"], "no output 'theta_9'; the outputs are a, b, c, d"),
        ([4], "no output 4; they are numbered 0 to 3"),
        ({"5": ["a"]}, "bus 5 alone has nothing to tell from"),
        ({"5": ["a", "b", "c"]}, "bus 5 has 3 columns"),
        ({"5": []}, "bus 5 has no columns"),
        ({"5": {"phase": "a"}}, "bus 5 has a key 'phase'; known are angle, angle_deg, magnitude"),
        ({"5": ["a"], "8": ["a"]}, "column a is given for bus 5 and for bus 8"),
        ({"5": {"angle": "a"}, "8": {"angle_deg": "b"}}, "give all alike"),
        ({}, "no buses"),
    ],
    ids=str,
)
def test_what_touches_nothing_is_told_on_one_line(touching, told):
    with pytest.raises(ContextError, match=told) as refusal:
        touched_of(touching, y=np.zeros((5, 4)), names=NAMES)
    assert "\n" not in str(refusal.value)


def test_names_without_a_table_and_angles_in_degrees_are_refused(base):
    x, y = cases(10, out=6)
    with pytest.raises(ContextError, match="the outputs have no names; give numbers"):
        base.adapt(x, y.to_numpy(), touching=["theta_5"])
    with pytest.raises(ContextError, match="say angle_deg"):
        base.adapt(x, np.degrees(y) * 9, touching=ENDS_OF_6)
    with pytest.raises(ContextError, match="give at least 2"):
        base.identify(x, y, {"bus 5": ["theta_5"]})
    with pytest.raises(ContextError, match="does not join two of the buses"):
        base.identify(x, y, BUSES, branches=[("bus 5", "bus 9")])
    with pytest.raises(ContextError, match="at least 5 cases"):
        base.identify(x[:4], y[:4], BUSES)
    with pytest.raises(ValueError, match="minimum of 2"):
        base.adapt(x[:1], y[:1], touching=[1])


# files and ONNX


def curved(num_rows: int, seed: int, change: float = 0.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-0.5, 0.5, (num_rows, 3))
    y = np.column_stack([x[:, 0], x[:, 1] * x[:, 2], 1 + 0.1 * x[:, 1], 1 - 0.1 * x[:, 2]])
    flow = y[:, 2] * y[:, 3] * np.sin(y[:, 0] - y[:, 1])
    return x, y + change * flow[:, None] * [1.0, -1.0, 0.1, 0.2]


TOUCHING = [
    (10, [0, 1]), (60, [0, 2, 3]), (10, {"i": [0, 2], "j": [1, 3]}), (60, {"i": [0, 2], "j": [1]}),
    (60, {"i": {"magnitude": 2}, "j": [0]}), (10, ()), (60, ()),
    (60, {"i": {"angle_deg": 0, "magnitude": 2}, "j": {"magnitude": 3}}),
]  # fmt: skip


@pytest.mark.parametrize(("num_rows", "touching"), TOUCHING, ids=str)
@pytest.mark.parametrize("name", ["linear", "quadratic", "mlp"])
def test_compensation_is_stored_bit_for_bit_and_exported_within_round_off(
    name, num_rows, touching, tmp_path
):
    pytest.importorskip("onnxruntime")
    few = {"num_steps": 50, "hidden": 8, "random_state": 0} if name == "mlp" else {}
    fitted = ICWRegressor(base=name, **few).fit(*curved(80, 0))
    adapted = fitted.adapt(*curved(num_rows, 1, change=0.3), touching=touching)
    x, _ = curved(40, 2)
    save(adapted, tmp_path, about={})
    back, _ = load(tmp_path)
    np.testing.assert_array_equal(back.predict(x), adapted.predict(x))
    np.testing.assert_array_equal(back.frozen().predict(x), fitted.predict(x))
    assert back.compensation_.left_out_mae == adapted.compensation_.left_out_mae
    assert (back.held_out_mae_, back.num_context_) == (fitted.held_out_mae_, num_rows)
    model = adapted.model_
    written = write_onnx(tmp_path / "y.onnx", [model], check_on=x, expected=model.predict(x))
    assert written.max_difference <= model.round_off(x).max() < (1e-4 if name == "mlp" else 1e-9)


@pytest.mark.parametrize("features", ["differences", "flows", "squares"])
def test_every_kind_of_features_has_the_same_value_in_the_graph(features, tmp_path):
    pytest.importorskip("onnxruntime")
    from dataclasses import replace

    fitted = ICWRegressor(base="quadratic").fit(*curved(80, 0))
    model = fitted.adapt(*curved(30, 1, change=0.3), touching={"i": [0, 2], "j": [1, 3]}).model_
    own = model.compensation
    touched = Touched(
        angles=(0, None, None), magnitudes=(2, 3, None), others=(1,),
        branches=((0, 1), (1, 0), (1, 2)), angle_unit=0.7,
    )  # fmt: skip
    x, _ = curved(40, 2)
    width = touched.features(features, own.center[None], own.center).shape[1]
    weight = np.random.default_rng(0).normal(size=(width, 4))
    model = replace(
        model,
        compensation=replace(
            own, touched=touched, features=features, rest="nothing", columns=np.empty(0, int),
            weight=weight,
        ),
    )  # fmt: skip
    expected = model.base.predict(x)
    expected = expected + touched.features(features, expected, own.center) @ weight + own.bias
    written = write_onnx(tmp_path / "y.onnx", [model], check_on=x, expected=expected)
    assert written.max_difference < 1e-12


@pytest.mark.parametrize("moments", ["context", "paired"])
@pytest.mark.parametrize("whitening", ["identity", "residual", "zscore", "zca"])
def test_moments_of_a_closed_form_are_those_of_the_context(moments, whitening, tmp_path):
    """Matched on the rows that decide, their mean and (zca) covariance are those of the outputs."""
    pytest.importorskip("onnxruntime")
    fitted = ICWRegressor(moments=moments, whitening=whitening, eps=1e-12).fit(*curved(400, 0))
    x, y = curved(400, 1, change=0.5)
    adapted = fitted.adapt(x, y)
    if moments == "paired" and whitening != "identity":
        np.testing.assert_allclose(adapted.predict(x).mean(0), y.mean(0), atol=1e-9)
    if moments == "paired" and whitening == "zca":
        np.testing.assert_allclose(np.cov(adapted.predict(x).T), np.cov(y.T), atol=1e-6)
    save(adapted, tmp_path, about={})
    back, _ = load(tmp_path)
    np.testing.assert_array_equal(back.predict(x), adapted.predict(x))
    np.testing.assert_array_equal(back.frozen().predict(x), fitted.predict(x))
    model = adapted.model_
    written = write_onnx(tmp_path / "y.onnx", [model], check_on=x, expected=model.predict(x))
    assert written.max_difference < 1e-9


def test_parameters_of_the_network_are_warned_of_where_they_do_nothing():
    with pytest.warns(UserWarning, match="num_steps are for base 'mlp'"):
        ICWRegressor(num_steps=5).fit(*curved(30, 0))


def test_a_closed_form_needs_no_torch(tmp_path):
    import subprocess
    import sys

    program = (
        "import sys, json, numpy as np; from gridshift.learn.estimator import ICWRegressor\n"
        "from gridshift.learn.estimator_file import load, save\n"
        "x = np.random.default_rng(0).normal(size=(50, 3)); y = x @ x[:3]\n"
        "model = ICWRegressor().fit(x, y); save(model.adapt(x, y, touching=[0]), sys.argv[1], "
        "about={}); load(sys.argv[1])[0].predict(x)\n"
        "print(json.dumps('torch' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) is False
