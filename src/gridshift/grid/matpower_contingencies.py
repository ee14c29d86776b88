"""Lists of outages in MATPOWER's change tables, as `apply_changes` and MOST use them.

Source: MATPOWER 8.1, `idx_ct`, `apply_changes`. Probabilities in the table weigh its change sets
against each other; they are no failures a year and are not used.
"""

from collections.abc import Iterator

import numpy as np

from gridshift.errors import OutageError
from gridshift.grid.readers.matlab_script import run_function
from gridshift.grid.readers.matlab_text import MatlabError
from gridshift.grid.readers.matpower_columns import COLUMN_FUNCTIONS

_CT = COLUMN_FUNCTIONS["idx_ct"]
_STATUS = {
    _CT["CT_TGEN"]: ("gen", COLUMN_FUNCTIONS["idx_gen"]["GEN_STATUS"]),
    _CT["CT_TBRCH"]: ("branch", COLUMN_FUNCTIONS["idx_brch"]["BR_STATUS"]),
}
"""Of each table that an outage can be in, what its rows are called, and the column of their
status."""
NUM_COLUMNS = _CT["CT_NEWVAL"]


def matpower_contingencies(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Row of the table (from 1), name and labels of each change set, which must be an outage.

    An outage sets the status of rows of gen or branch to 0.

    Raises:
        OutageError: no such table, or rows that change something else, all of them.
    """
    try:
        table = run_function(text)
    except MatlabError as error:
        raise OutageError(str(error)) from None
    if isinstance(table, str) or table.ndim != 2 or table.shape[1] != NUM_COLUMNS:
        raise OutageError(f"a change table has {NUM_COLUMNS} columns of numbers")
    problems: list[str] = []
    found: dict[float, tuple[int, str, list[str]]] = {}
    for number, row in enumerate(table, 1):
        label, of = row[_CT["CT_LABEL"] - 1], _STATUS.get(row[_CT["CT_TABLE"] - 1])
        changed, column = row[_CT["CT_ROW"] - 1], row[_CT["CT_COL"] - 1]
        how, value = row[_CT["CT_CHGTYPE"] - 1], row[_CT["CT_NEWVAL"] - 1]
        taken_out = value == 0 and how in (_CT["CT_REP"], _CT["CT_REL"])
        if of is None or column != of[1] or not taken_out or not changed >= 1:
            values = ", ".join(f"{v:g}" for v in row)
            problems.append(
                f"row {number} ({values}) is no outage; an outage sets GEN_STATUS or BR_STATUS of "
                "a row to 0"
            )
            continue
        one = found.setdefault(label, (number, f"{label:g}", []))
        one[2].append(f"{of[0]}:{changed:g}")
    if problems:
        raise OutageError("; ".join(problems))
    return iter([found[label] for label in np.unique([*found])])
