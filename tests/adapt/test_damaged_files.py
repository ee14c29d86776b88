"""Files of models with any field or array missing, of another type, or out of range.

The checksum always fits, so that nothing but the content is in question.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of

from gridshift.adapt.surrogate import Surrogate, train
from gridshift.errors import StorageError, SurrogateMismatchError
from gridshift.exchange.bus_file import BusColumns
from gridshift.exchange.table_model import TableModel, fit_table
from gridshift.learn.backbones.pfgnn import PfgnnConfig
from gridshift.learn.backbones.transformer import TransformerConfig
from gridshift.learn.estimator import ICWRegressor
from tests.adapt.conftest import quick_config
from tests.tables import solved_cases

REPLACED = (
    None, True, -1, 0, 10_000_000, 10**30, 10**400, -1e308, float("nan"), float("inf"), "x", [],
    [1], {}, {"a": 1},
)  # fmt: skip
SECONDS = 5
"""Longer than any load takes on a busy machine; ten million layers take minutes."""
KINDS = ("mlp", "transformer", "pfgnn", "zca-sas", "table", "compensated")


@pytest.fixture(scope="module")
def stored(grid, training_rows, tmp_path_factory):
    """By kind: folder, base name of the files, and a function that loads and predicts."""
    rows = training_rows.x[:5]
    small = {
        "mlp": {}, "zca-sas": {"transform": "zca-sas"},
        "transformer": {"backbone": TransformerConfig(width=8, num_heads=2, feed_forward=8)},
        "pfgnn": {"backbone": PfgnnConfig(hidden=4, num_layers=2)},
    }  # fmt: skip

    def predict(folder):
        return Surrogate.load(folder, grid).predict(rows)

    found = {}
    for kind, changes in small.items():
        folder = tmp_path_factory.mktemp(kind)
        config = replace(quick_config(), **changes)
        train(grid, config, data=training_rows).save(folder)
        found[kind] = folder, "surrogate", predict
    table = pa.table(solved_cases(0, 40))
    network = ICWRegressor(base="mlp", hidden=4, num_steps=20, random_state=0)
    models = {
        kind: fit_table(regressor, table, inputs="p_*,q_*", outputs="v_*", source="t")
        for kind, regressor in (("table", network), ("compensated", ICWRegressor()))
    }
    models["compensated"] = models["compensated"].adapted(
        pa.table(solved_cases(1, 30, changed=True)), source="t", method="compensation",
        touching=BusColumns(source="t", buses={"0": ["v_0"], "1": ["v_1", "v_2"]}),
    )  # fmt: skip
    for kind, model in models.items():
        folder = tmp_path_factory.mktemp(kind)
        model.save(folder)
        found[kind] = folder, "estimator", lambda f: TableModel.load(f).predict(table, source="t")
    return found


@pytest.fixture
def case(request, stored, tmp_path):
    folder, name, predict = stored[request.param]
    shutil.copytree(folder, tmp_path / "model")
    return tmp_path / "model", name, predict, predict(folder)


def leaves(value, path=()) -> Iterator[tuple]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))


def with_leaf(state, path, value):
    """A copy with another value there; without the field if there is none to put there."""
    if not path:
        return value
    copy, (key, *rest) = dict(state), path
    if rest:
        copy[key] = with_leaf(state[key], rest, value)
    elif value is KeyError:
        del copy[key]
    else:
        copy[key] = value
    return copy


def check(case, what) -> bool:
    """Whether it was refused; if not, it must predict what it did."""
    folder, _, predict, expected = case
    began = time.perf_counter()
    try:
        found = predict(folder)
    except (StorageError, SurrogateMismatchError) as refusal:
        message = str(refusal)
        assert "\n" not in message, what
        assert "surrogate" in message or str(folder) in message, (what, message)
        return True
    finally:
        assert time.perf_counter() - began < SECONDS, what
    np.testing.assert_array_equal(found, expected, err_msg=str(what))
    return False


@pytest.mark.parametrize("case", KINDS, indirect=True)
def test_a_changed_field_is_refused_or_changes_no_prediction(case, stored):
    folder, name, *_ = case
    path = folder / f"{name}.json"
    state = json.loads(path.read_text())
    refused = 0
    paths = [p for p in leaves(state) if p]
    first = stored["mlp"][0] / f"{name}.json"
    if first.exists() and json.loads(first.read_text()) != state:
        # what all networks have is changed in the first, and a third of it in the others
        common = {*leaves(json.loads(first.read_text()))}
        paths = [p for p in paths if p not in common] + [p for p in paths if p in common][::3]
    for number, leaf in enumerate(paths):
        # a fifth of the values for each, in turn
        for value in (KeyError, *REPLACED[number % 5 :: 5]):
            path.write_text(json.dumps(with_leaf(state, leaf, value)))
            refused += check(case, (leaf, value))
    assert refused > len(paths)


@pytest.mark.parametrize("case", KINDS, indirect=True)
def test_a_changed_array_is_refused(case):
    folder, name, *_ = case
    path, numbers = folder / f"{name}.json", folder / f"{name}.safetensors"
    state, tensors = json.loads(path.read_text()), tensors_of(numbers.read_bytes())

    def store(changed):
        content = bytes_of(changed)
        numbers.write_bytes(content)
        state["tensors_sha256"] = hashlib.sha256(content).hexdigest()
        path.write_text(json.dumps(state))

    def first(tensor, value):
        copy = tensor.clone()
        copy.view(-1)[0] = value
        return copy

    for key, tensor in tensors.items():
        others = {
            "missing": None, "longer": torch.cat([tensor, tensor]), "shorter": tensor[:-1],
            "deeper": tensor[None], "half": tensor.half(), "whole": tensor.int(),
        }  # fmt: skip
        if tensor.is_floating_point() and len(tensor):
            others |= {"nan": first(tensor, np.nan), "infinite": first(tensor, -np.inf)}
        for kind, other in others.items():
            if key == "constants" and kind == "nan":
                continue  # an output that varies
            if not len(tensor) and kind in ("longer", "shorter"):
                continue  # none of none are none
            store({k: v for k, v in (tensors | {key: other}).items() if v is not None})
            assert check(case, (key, kind)), (key, kind)
    for key in {"input_scale"} & tensors.keys():
        for value in (0.0, -1.0):
            store(tensors | {key: first(tensors[key], value)})
            assert check(case, (key, value))
    if "input_scale" in tensors:
        store(tensors | {"backbone.more": torch.zeros(2)})
        assert check(case, "one more")


@pytest.mark.parametrize("case", ["mlp", "table"], indirect=True)
@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[" * 100_000, b"\xff", b"[]", b"null", b'{"format": 1}'], ids=repr
)
def test_files_that_are_no_such_files_are_refused(case, content):
    folder, name, *_ = case
    (folder / f"{name}.json").write_bytes(content)
    assert check(case, content)


@pytest.mark.parametrize("case", ["mlp", "table"], indirect=True)
@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\xff" * 100, b"{}"], ids=repr)
def test_numbers_that_are_no_safetensors_are_refused_though_the_checksum_fits(case, content):
    folder, name, *_ = case
    path = folder / f"{name}.json"
    state = json.loads(path.read_text())
    (folder / f"{name}.safetensors").write_bytes(content)
    state["tensors_sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(state))
    assert check(case, content)
