"""A regressor with the names of its columns: fitted, adapted and asked by tables."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gridshift.arguments import how_many, some_of
from gridshift.arrays import Real
from gridshift.errors import GridshiftWarning, RankDeficientWarning, StorageError, TableError
from gridshift.exchange.bus_file import BusColumns
from gridshift.exchange.tables import choose_columns, numbers
from gridshift.learn.estimator import MOMENTS, ICWRegressor
from gridshift.learn.estimator_file import FILES, load, save
from gridshift.learn.model_file import field
from gridshift.learn.onnx_graph import WrittenModel, write_onnx
from gridshift.learn.splits import at_random, folds
from gridshift.learn.touching import Pairs, column
from gridshift.learn.training import Progress

MIN_ROWS = 20
"""Rows below which neither a fit nor its measured error means anything."""
HOLDOUT = 0.1
"""Share of the rows that are not trained on but predicted, to measure the error."""
MIN_CONTEXT = 4
"""Cases that adapting takes at least."""
FOLDS = 10
"""Parts of a context of which one is left out to measure what adaptation gains."""
METHODS = ("frozen", *MOMENTS, "compensation")
"""Ways to adapt: none, by moments, by what the change adds."""
AUTO = "auto"
SHOWN = 10
"""Pairs of buses that a record lists."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableModel:
    """A regressor from the columns `inputs` to the columns `outputs`."""

    regressor: ICWRegressor
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    record: dict[str, Any]
    """How it was made: rows, errors, names of the tables."""

    @property
    def constant_inputs(self) -> list[str]:
        """Inputs that never varied in the table that it was fitted to."""
        return self.record["constant_inputs"]

    def predict(self, table: pa.Table, *, source: str) -> Real:
        """(N, number of outputs) predictions for the rows of a table.

        Raises:
            TableError: the table lacks inputs, or holds something other than numbers in them.

        Warns:
            GridshiftWarning: inputs differ that never varied where the model was fitted.
        """
        x = numbers(table, self.inputs, source=source)
        if len(x) == 0:
            raise TableError(f"{source} has no rows")
        self._warn_of_new_variation(x, source)
        return self.regressor.predict(x)

    def adapted(
        self, table: pa.Table, *, source: str, method: str = AUTO,
        touching: str | BusColumns | None = None, identify: bool = False,
    ) -> "TableModel":  # fmt: skip
        """A model for the state of the grid that these solved cases are of; this one stays.

        `record['context_mae']` tells, for each of `METHODS`, the mean absolute error of the rows of
        the table predicted by a model adapted to the other rows.

        Args:
            table: at least 4 solved cases with the same columns.
            touching: for compensation: patterns of the outputs of the buses that the change
                touches, or these buses with their columns.
            identify: find the two buses among those of `touching`, which is of all buses.

        Raises:
            TableError: columns are missing, values aren't numbers, or the rows are too few; the two
                buses can't be told.
            ContextError: columns of buses that aren't outputs.
        """
        if table.num_rows < MIN_CONTEXT:
            raise TableError(
                f"{source} has {how_many(table.num_rows, 'row')}; a context needs at least "
                f"{MIN_CONTEXT}, for "
                f"moments better as many as there are outputs ({len(self.outputs)})"
            )
        x = numbers(table, self.inputs, source=source)
        y = numbers(table, self.outputs, source=source)
        self._warn_of_new_variation(x, source)
        change, found = self._change(touching), None
        if identify:
            change, found = self._identified(x, y, change, source)
        errors = _left_out_errors(self.regressor, x, y, change)
        chosen = min(errors, key=errors.__getitem__) if method == AUTO else method
        record = self.record | {
            "context": source, "num_context": len(x), "method": chosen, "context_mae": errors,
            "identified": found,
        }  # fmt: skip
        return replace(
            self, regressor=_adapted(self.regressor, chosen, x, y, change), record=record
        )

    def _change(self, touching: str | BusColumns | None) -> "_Change":
        """What the change touches, by numbers of the outputs."""
        if touching is None:
            return _Change()
        if isinstance(touching, str):
            chosen = choose_columns(
                self.outputs, touching, what="touching", source="the model's outputs"
            )
            return _Change(touching=[self.outputs.index(name) for name in chosen])
        buses = {
            bus: {key: column(name, self.outputs, len(self.outputs)) for key, name in each.items()}
            if isinstance(each, dict)
            else [column(name, self.outputs, len(self.outputs)) for name in each]
            for bus, each in touching.buses.items()
        }
        return _Change(touching=buses, branches=touching.branches)

    def _identified(
        self, x: Real, y: Real, change: "_Change", source: str
    ) -> tuple["_Change", dict[str, Any]]:
        """The two buses among which something has changed, and what a record has of it."""
        if not isinstance(change.touching, dict):
            raise TableError("identifying needs all buses and their columns, not columns alone")
        found = self.regressor.identify(x, y, change.touching, branches=change.branches)
        if found.pair is None:
            raise TableError(
                f"{source} doesn't tell between which buses something has changed: {found.reason}; "
                "give more cases, or name the buses"
            )
        told = {
            "pair": found.pair, "reason": found.reason, "doubt": found.doubt,
            "ranking": [{"name": name, "mae": mae} for name, mae in found.ranking[:SHOWN]],
        }  # fmt: skip
        return _Change(touching={bus: change.touching[bus] for bus in found.pair}), told

    def save(self, folder: str | Path) -> None:
        """Write the model; raises StorageError if the folder can't be written."""
        about = {"inputs": self.inputs, "outputs": self.outputs, "record": self.record}
        save(self.regressor, folder, about=about)

    @classmethod
    def load(cls, folder: str | Path) -> "TableModel":
        """Read a model written by `save`.

        Raises:
            StorageError: there is none in the folder, or it is damaged.
        """
        regressor, about = load(folder)
        if not {"inputs", "outputs", "record"} <= about.keys():
            raise StorageError(f"the model in {folder} has no names of columns; fit it by a table")
        with FILES.checked(Path(folder)):
            record = field(about, "record", dict)
            inputs = _names(about, "inputs", regressor.n_features_in_)
            outputs = _names(about, "outputs", regressor.n_outputs_)
            if not {*_names(record, "constant_inputs")} <= {*inputs}:
                raise StorageError("constant inputs that are no inputs")
        return cls(regressor=regressor, inputs=inputs, outputs=outputs, record=record)

    def export(self, path: str | Path, table: pa.Table, *, source: str) -> WrittenModel:
        """Write the model as ONNX, checked on the rows of a table; raises as `write_onnx`."""
        x = numbers(table, self.inputs, source=source)
        return write_onnx(
            path, [self.regressor.model_], check_on=x, expected=self.regressor.model_.predict(x),
            about={
                "inputs": json.dumps([{"name": name} for name in self.inputs]),
                "outputs": json.dumps([{"name": name} for name in self.outputs]),
                "record": json.dumps(self.record),
            },
        )  # fmt: skip

    def _warn_of_new_variation(self, x: Real, source: str) -> None:
        known = dict(zip(self.inputs, self.regressor.base_model_.input_mean, strict=True))
        moved = [
            name
            for name in self.constant_inputs
            if not np.allclose(x[:, self.inputs.index(name)], known[name], rtol=1e-9)
        ]
        if moved:
            warnings.warn(
                f"{source}: {some_of(moved, 6)} never varied in the table that the model was "
                "fitted to, so it doesn't know what they do",
                GridshiftWarning,
                stacklevel=3,
            )


def _names(about: dict[str, Any], name: str, number: int | None = None) -> tuple[str, ...]:
    """The field that lists names, different ones, and so many if that is known."""
    found = field(about, name, list)
    if not all(isinstance(each, str) for each in found) or len({*found}) < len(found):
        raise StorageError(f"field {name} is no list of different names")
    if number not in (None, len(found)):
        raise StorageError(f"{len(found)} names of {name}, not {number}")
    return tuple(found)


def fit_table(
    regressor: ICWRegressor,
    table: pa.Table,
    *,
    inputs: str,
    outputs: str,
    source: str,
    progress: Progress | None = None,
) -> TableModel:
    """Fit a copy of the regressor to a table, and measure it on a tenth of the rows left out.

    Args:
        table: solved cases, one a row.
        inputs: patterns of the columns to predict from, separated by commas.
        outputs: patterns of the columns to predict.
        source: what to call the table in messages.
        progress: called while training with (step, number of steps, loss).

    Raises:
        TableError: patterns that fit no column, or a column in both; values that aren't finite
            numbers; fewer than 20 rows.
    """
    x_names = choose_columns(table.column_names, inputs, what="inputs", source=source)
    y_names = choose_columns(table.column_names, outputs, what="outputs", source=source)
    if both := [name for name in x_names if name in y_names]:
        raise TableError(f"{some_of(both, 6)} of {source} fits both inputs and outputs")
    if table.num_rows < MIN_ROWS:
        raise TableError(
            f"{source} has {how_many(table.num_rows, 'row')}; a fit needs at least {MIN_ROWS}"
        )
    x, y = (numbers(table, names, source=source) for names in (x_names, y_names))
    seed = regressor.random_state if isinstance(regressor.random_state, int) else 0
    train, test = at_random(len(x), HOLDOUT, seed)
    fitted = ICWRegressor(**regressor.get_params()).fit(x[train], y[train], progress=progress)
    error = np.abs(fitted.predict(x[test]) - y[test])
    constant = x[train].min(0) == x[train].max(0)
    return TableModel(
        regressor=fitted,
        inputs=tuple(x_names),
        outputs=tuple(y_names),
        record={
            "table": source,
            "num_rows": len(train),
            "num_holdout": len(test),
            "mae": float(error.mean()),
            "mae_by_output": dict(zip(y_names, error.mean(0).tolist(), strict=True)),
            "mae_of_mean": float(np.abs(y[test] - y[train].mean(0)).mean()),
            "constant_inputs": [name for name, c in zip(x_names, constant, strict=True) if c],
        },
    )


def output_errors(table: pa.Table, model: TableModel, predicted: Real) -> Mapping[str, float]:
    """Mean absolute error of each output, if the table holds all of them as numbers; else none."""
    try:
        y = numbers(table, model.outputs, source="table")
    except TableError:
        return {}
    return dict(zip(model.outputs, np.abs(predicted - y).mean(0).tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class _Change:
    """What `ICWRegressor.adapt` is told of a change."""

    touching: Any = ()
    branches: Pairs | None = None


def _adapted(
    regressor: ICWRegressor, method: str, x: Real, y: Real, change: _Change
) -> ICWRegressor:
    """The regressor adapted by one of `METHODS`."""
    start = regressor.frozen()
    if method == "frozen":
        return start
    if method == "compensation":
        return start.adapt(x, y, touching=change.touching, branches=change.branches)
    start.moments = method
    return start.adapt(x, y)


def _left_out_errors(
    regressor: ICWRegressor, x: Real, y: Real, change: _Change
) -> dict[str, float]:
    """Mean absolute error of each row predicted by a model adapted to the other parts."""
    errors = {"frozen": float(np.abs(regressor.frozen().predict(x) - y).mean())}
    for method in METHODS[1:]:
        left = np.empty_like(y)
        for others, part in folds(len(x), min(FOLDS, len(x))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RankDeficientWarning)
                fold = _adapted(regressor, method, x[others], y[others], change)
            left[part] = np.abs(fold.predict(x[part]) - y[part])
        errors[method] = float(left.mean())
    return errors
