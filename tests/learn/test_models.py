"""A model in closed form, written here, where a network is: files, ONNX, and no torch."""

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from gridshift.errors import StorageError
from gridshift.learn.linear_terms import LinearTerms
from gridshift.learn.model_file import FORMAT, ModelFiles, Stored, array
from gridshift.learn.models import (
    MODELS,
    FittedModel,
    RefoldableModel,
    model_fields,
    restored_model,
)

FILES = ModelFiles(name="line", noun="line", remedy="fit it anew")
ON_ITS_OWN = """
import sys
import gridshift.adapt.methods, gridshift.adapt.surrogate, gridshift.learn.estimator_file
from gridshift import ICWRegressor, METHODS
ICWRegressor(), METHODS["icw"]
import tests.learn.test_models as t
t.there_and_back(t.line(), sys.argv[1])
assert "torch" not in sys.modules
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """y = x @ weight."""

    kind: ClassVar[str] = "line"
    input_mean: np.ndarray
    weight: np.ndarray

    @property
    def varied(self) -> np.ndarray:
        return np.arange(len(self.weight))

    @property
    def terms(self) -> LinearTerms:
        num = len(self.weight)
        return LinearTerms(
            matrix=self.weight.T, columns=np.arange(num), centre=np.zeros(num), offset=np.zeros(2)
        )

    def predict(self, x):
        return self.terms.predict(x)

    def arrays(self):
        return {"input_mean": self.input_mean, "weight": self.weight}

    def about(self):
        return {}

    @classmethod
    def restored(cls, stored):
        return cls(
            input_mean=array(stored.arrays, "input_mean", stored.shape[:1]),
            weight=array(stored.arrays, "weight", stored.shape),
        )

    def add_to_graph(self, graph):
        return self.terms.add_to_graph(graph)

    def round_off(self, x):
        return self.terms.round_off(x)


def line() -> Line:
    rng = np.random.default_rng(0)
    return Line(input_mean=rng.normal(size=3), weight=rng.normal(size=(3, 2)))


def there_and_back(model: Line, folder) -> FittedModel:
    from pathlib import Path

    MODELS["line"] = Line
    try:
        FILES.write(Path(folder), {"model": model_fields(model)}, model.arrays())
        state, arrays = FILES.read(Path(folder))
        return restored_model(Stored(about=state["model"], arrays=arrays, shape=(3, 2)))
    finally:
        del MODELS["line"]


def test_a_closed_form_is_stored_as_a_network_is(tmp_path):
    model, x = line(), np.random.default_rng(1).normal(size=(5, 3))
    assert isinstance(model, FittedModel)
    assert not isinstance(model, RefoldableModel)
    found = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(found.predict(x), x @ model.weight)


def test_a_kind_of_model_that_nobody_knows_is_refused_with_the_known_ones(tmp_path):
    model = line()
    FILES.write(tmp_path, {"model": model_fields(model)}, model.arrays())
    state, arrays = FILES.read(tmp_path)
    with pytest.raises(StorageError, match="no model line; known are network"):
        restored_model(Stored(about=state["model"], arrays=arrays, shape=(3, 2)))


def test_the_roster_the_estimator_and_a_closed_form_do_without_torch(tmp_path):
    subprocess.run([sys.executable, "-c", ON_ITS_OWN, str(tmp_path)], check=True)


def test_a_file_of_the_version_before_is_refused_with_its_format_and_what_to_do(tmp_path):
    model = line()
    FILES.write(tmp_path, {"model": model_fields(model)}, model.arrays())
    path = tmp_path / "line.json"
    path.write_text(path.read_text().replace(f'"format": {FORMAT}', '"format": 1'))
    with pytest.raises(StorageError, match=r"has format 1, and .* reads format 2 only; fit it"):
        FILES.read(tmp_path)
