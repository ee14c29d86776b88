"""The ONNX file of an adapted surrogate against our own prediction and against plain numpy."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gridshift.adapt.context import Context
from gridshift.adapt.methods import METHODS
from gridshift.adapt.onnx_export import export_onnx, onnx_parts
from gridshift.adapt.surrogate import train
from gridshift.errors import GridshiftError, StorageError
from gridshift.learn.backbones import MlpConfig
from gridshift.learn.compensation import FEATURES, RESTS
from gridshift.learn.fitted_network import FittedNetwork
from gridshift.learn.linear_terms import LinearTerms
from gridshift.learn.onnx_graph import onnx_bytes, onnx_predict, write_onnx
from gridshift.learn.whitening import Affine
from tests.adapt.conftest import quick_config

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

CURVED = {"tangent2", "tangent2-icw", "icw-sas"}
"""Methods whose prediction is neither a network nor affine in x."""
FAST = [method for method in METHODS.values() if method.fast]


@pytest.fixture(scope="module")
def base(grid, training_rows, surrogates):
    """A surrogate for each transform that a method may ask for."""
    wanted = {method.transform or "zca" for method in FAST}
    more = {t: train(grid, quick_config(t), data=training_rows) for t in wanted - {*surrogates}}
    return surrogates | more


@pytest.mark.filterwarnings("ignore::gridshift.errors.GridshiftWarning")
@pytest.mark.parametrize("method", FAST, ids=lambda method: method.name)
def test_onnxruntime_predicts_what_we_predict_row_by_row(method, base, outage_rows, tmp_path):
    context = Context.of(outage_rows)
    predictor = method.fit(base[method.transform or "zca"], context)
    path = tmp_path / "model.onnx"
    if method.name in CURVED:
        with pytest.raises(GridshiftError, match="has no ONNX form"):
            export_onnx(predictor, path, network=context.network, check_on=context.x)
        assert not path.exists()
        return
    written = export_onnx(predictor, path, network=context.network, check_on=context.x)
    assert (written.num_checked, written.num_bytes) == (len(context.x), path.stat().st_size)
    # a float32 sum of 32 terms, and a tangent that we solve for with float32 factors
    np.testing.assert_allclose(
        onnx_predict(path, context.x), predictor.predict(context.x), rtol=0, atol=2e-6
    )


@pytest.mark.parametrize("base_name", ["linear", "quadratic", "regression"])
@pytest.mark.parametrize("name", ["frozen", "ridge-features", "compensation", "icw-auto"])
@pytest.mark.parametrize("num_context", [8, 60])
def test_onnxruntime_predicts_what_we_predict_from_closed_forms(
    closed_forms, outage_rows, tmp_path, base_name, name, num_context
):
    """Small contexts take the flows or differences, large ones squares and a rest too."""
    context = Context.of(outage_rows.rows(slice(num_context)))
    if (name, base_name) == ("icw-auto", "regression"):
        return  # a network without the transform of its candidates
    predictor = METHODS[name].fit(closed_forms[base_name], context)
    path = tmp_path / "model.onnx"
    export_onnx(predictor, path, network=context.network, check_on=outage_rows.x)
    # the network of transform regression adds float32 sums of a remainder of 1e-4
    np.testing.assert_allclose(
        onnx_predict(path, outage_rows.x), predictor.predict(outage_rows.x), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("rest", RESTS)
def test_every_kind_of_compensation_has_an_onnx_form(closed_forms, outage_rows, features, rest):
    base = closed_forms["quadratic"]
    fitted = METHODS["compensation"].fit(base, Context.of(outage_rows))
    rng, width, varied = np.random.default_rng(0), outage_rows.layout.num_outputs, np.arange(3)
    own = replace(
        fitted.compensation, features=features, rest=rest,
        columns=varied if rest != "nothing" else varied[:0],
    )  # fmt: skip
    x, y = outage_rows.x, base.predict(outage_rows.x)
    num = own.touched.features(features, y, own.center).shape[1] + len(own.columns)
    own = replace(own, weight=rng.normal(size=(num, width)))
    compensated = replace(fitted, compensation=own)
    parts, expected = onnx_parts(compensated), compensated.predict(x)
    found = onnx_predict(onnx_bytes(parts, widths=(x.shape[1], width)), x)
    difference = np.abs(found - expected).max(0)
    assert (difference <= parts[0].round_off(x)).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_metadata_names_every_column_the_grid_and_the_outage(surrogate, outage_rows, tmp_path):
    network, layout = outage_rows.network, outage_rows.layout
    predictor = METHODS["frozen"].fit(surrogate, Context.of(outage_rows))
    path = tmp_path / "model.onnx"
    about = {"method": "frozen"}
    export_onnx(predictor, path, network=network, check_on=outage_rows.x, about=about)
    found = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert [e["name"] for e in json.loads(found["inputs"])] == [e.name for e in layout.inputs]
    assert [e["unit"] for e in json.loads(found["outputs"])] == [e.unit for e in layout.outputs]
    assert (found["grid"], found["outage"], found["method"]) == ("small", "line:1", "frozen")
    assert found["grid_digest"] == network.intact.digest
    assert found["network_digest"] == network.digest


def network(seed: int, bias: float = 0.0) -> FittedNetwork:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    backbone = nn.Module()
    backbone.features = nn.Sequential(
        nn.Linear(3, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 5)
    ).eval()
    backbone.head = nn.Linear(5, 2)
    return FittedNetwork(
        config=MlpConfig(),
        input_mean=rng.normal(size=3),
        input_scale=np.array([1.0, 0.5, 20.0]),
        backbone=backbone,
        transform=Affine(
            name="zscore", shift=np.array([bias, -bias]), whitener=np.array([1.0, 2.0]),
            unwhitener=np.array([1.0, 0.5]),
        ),
    )  # fmt: skip


def test_the_graph_is_the_formula_of_the_network_and_of_its_linear_terms():
    """Against float64 numpy with scipy's erf, written out."""
    from scipy.special import erf

    folded, x = network(0), np.random.default_rng(1).normal(size=(20, 3))
    terms = LinearTerms(
        matrix=np.array([[1.0, -2.0], [0.5, 3.0]]), columns=np.array([0, 2]),
        centre=np.array([0.1, 0.2]), offset=np.array([7.0, -7.0]),
    )  # fmt: skip
    hidden, head = folded.backbone.features, folded.backbone.head
    (weight, bias), (more, shift), (last, offset) = (
        [p.detach().numpy().astype(float) for p in (layer.weight, layer.bias)]
        for layer in (hidden[0], hidden[3], head)
    )
    h = (x - folded.input_mean) / folded.input_scale @ weight.T + bias
    h = h / 2 * (1 + erf(h / np.sqrt(2))) @ more.T + shift
    expected = (h @ last.T + offset) * [1.0, 0.5]
    expected += (x[:, [0, 2]] - terms.centre) @ terms.matrix.T + terms.offset
    found = onnx_predict(onnx_bytes([folded, terms], widths=(3, 2)), x)
    np.testing.assert_allclose(found, expected, atol=1e-5)  # float32 layers, values up to 10


def test_a_large_bias_keeps_its_digits():
    x = np.random.default_rng(2).normal(size=(20, 3))
    small, large = (
        onnx_predict(onnx_bytes([network(0, bias)], widths=(3, 2)), x) for bias in (0.0, 1e6)
    )
    # in float32 a million has a resolution of 0.06
    np.testing.assert_allclose(large - [1e6, -1e6], small, atol=1e-9)


def test_any_number_of_rows_can_be_predicted():
    model = onnx_bytes([network(0)], widths=(3, 2))
    assert [len(onnx_predict(model, np.zeros((n, 3)))) for n in (0, 1, 3000)] == [0, 1, 3000]


def test_a_file_that_predicts_something_else_is_not_written(tmp_path):
    x, folded = np.ones((4, 3)), network(0)
    wrong = folded.predict(x)
    wrong[2, 1] += 1e-3
    with pytest.raises(GridshiftError, match="output 1 of row 2"):
        write_onnx(tmp_path / "model.onnx", [folded], check_on=x, expected=wrong)
    assert not list(tmp_path.iterdir())


def test_layers_without_a_form_here_are_refused_by_name():
    folded = network(0)
    folded.backbone.features.append(nn.BatchNorm1d(5))
    with pytest.raises(GridshiftError, match="BatchNorm1d"):
        onnx_bytes([folded], widths=(3, 2))


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_told_with_the_command_that_installs_it(
    package, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, package, None)
    x, folded = np.ones((4, 3)), network(0)
    with pytest.raises(GridshiftError, match=rf"package {package}.*gridshift\[onnx\]"):
        write_onnx(tmp_path / "m.onnx", [folded], check_on=x, expected=folded.predict(x))


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("here first")
    x, folded = np.ones((4, 3)), network(0)
    with pytest.raises(StorageError, match="cannot write"):
        write_onnx(tmp_path / "file" / "m", [folded], check_on=x, expected=folded.predict(x))
