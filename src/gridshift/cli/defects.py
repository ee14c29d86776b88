"""What is said of an error that nobody foresaw: one line, and a file with what a report needs."""

import os
import platform
import shlex
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("gridshift", "click", "numpy", "scipy", "numba", "torch", "pandapower", "pyarrow")


def report_defect(problem: Exception) -> str:
    """The line for the user, after writing the traceback to a file that the line names."""
    what = f"unexpected {type(problem).__name__}: {problem}".removesuffix(": ")
    try:
        handle, path = tempfile.mkstemp(prefix="gridshift-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(_details(problem))
    except OSError:
        traceback.print_exception(problem)  # no folder to write to: better here than nowhere
        return f"{what}; this is a defect of gridshift, please report it with the lines above"
    return f"{what}; this is a defect of gridshift, details in {path}"


def _details(problem: Exception) -> str:
    lines = [
        f"{datetime.now(UTC).isoformat(timespec='seconds')}",
        f"command: {shlex.join(sys.argv)}",
        f"folder: {_folder()}",
        f"python {platform.python_version()} on {platform.platform()}",
        *(_version(name) for name in PACKAGES),
        "",
        *traceback.format_exception(problem),
    ]
    return "\n".join(lines)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "no longer there"


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} is missing"
