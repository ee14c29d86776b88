"""One exception tree: everything a user can cause derives from `GridshiftError`.

The command line prints the message of a `GridshiftError` as one line and exits with 1; any other
exception is a defect of gridshift, of which it prints one line and the name of a file with the
traceback. A message says what was given, what is allowed, and what to do.
"""

from typing import Any


class GridshiftError(ValueError):
    """A known problem with what the user gave; its message stands on its own."""


class GridFileError(GridshiftError):
    """A grid file or name that cannot be read; lists every problem found, not just the first."""

    def __init__(self, source: str, problems: list[str]):
        self.source = source
        self.problems = list(problems)
        super().__init__(f"{source}: " + "; ".join(self.problems))


class OutageError(GridshiftError):
    """An outage that names an unknown element, or one that cannot be studied as asked."""


class IslandingError(OutageError):
    """An outage that cuts buses off from every slack bus."""


class NotConvergedError(GridshiftError):
    """Rows without a solution where the caller demanded one for every row."""


class ScenarioError(GridshiftError):
    """Load scenarios that cannot be drawn or solved: NaN loads, a negative spread, wrong shapes."""


class ContextError(GridshiftError):
    """A context that an adaptation method cannot work with (too few solved rows, wrong width)."""


class SurrogateMismatchError(GridshiftError):
    """A stored surrogate that was trained for another grid or another layout."""


class TableError(GridshiftError):
    """A table of solved cases with other columns, rows or values than are needed."""


class MemoryNeededError(GridshiftError):
    """A request that would take more memory than is free; told before any of it is taken."""


class StorageError(GridshiftError):
    """A folder or file that cannot be written or read."""


class StudyNotWrittenError(StorageError):
    """A study that is finished and whose table or report can't be written; `result` has it."""

    def __init__(self, problem: str, result: Any):
        self.result = result
        super().__init__(f"the study is finished, but its files are not written: {problem}")


class WorkersLostError(GridshiftError):
    """Workers of an executor that died or can't be reached; what they finished is kept."""


class GridshiftWarning(UserWarning):
    """A setting that was ignored, or a result that needs care."""


class RankDeficientWarning(GridshiftWarning):
    """A covariance with fewer independent directions than coordinates; regularisation decides."""
