"""`gridshift doctor`: what is installed here, and what of it gridshift will use."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import click

from gridshift.cli.group import command
from gridshift.cli.output import emit, table
from gridshift.machine import processor
from gridshift.threads import usable_cores


@command(
    keys={
        "ok": "whether nothing that gridshift needs is missing",
        "checks": "list of `name`, `status` (`ok`, `note`, `problem`) and `detail`",
    },
    examples=["gridshift doctor", "gridshift doctor --json"],
)
def doctor(as_json: bool) -> None:
    """Tell what is installed, and whether the caches work.

    The exit code is 1 if something that gridshift needs is missing.
    """
    checks = list(_checks())
    problems = [check["name"] for check in checks if check["status"] == "problem"]

    def render(console) -> None:
        rows = [(check["name"], check["status"], check["detail"]) for check in checks]
        console.print(table("gridshift doctor", ("check", "status", "found"), rows))

    emit({"ok": not problems, "checks": checks}, render, as_json=as_json)
    if problems:
        raise click.ClickException(f"needs attention: {', '.join(problems)}")


def _checks() -> Iterator[dict[str, Any]]:
    yield _check("gridshift", version("gridshift"))
    yield _check("python", f"{platform.python_version()} ({sys.executable})")
    yield _check("machine", f"{platform.system()} {platform.machine()}, {processor()}")
    yield from _packages()
    yield _threads()
    yield _check("instruction set", _instruction_set())
    yield _compile_cache()
    yield _gpu()
    yield _surrogate_cache()


def _check(name: str, detail: str, status: str = "ok") -> dict[str, Any]:
    return {"name": name, "status": status, "detail": detail}


def _packages() -> Iterator[dict[str, Any]]:
    from packaging.requirements import Requirement

    for text in requires("gridshift") or []:
        needed = Requirement(text)
        if needed.marker and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version(needed.name)
        except PackageNotFoundError:
            yield _check(needed.name, f"missing; {needed.specifier} is needed", "problem")
            continue
        fits = needed.specifier.contains(found, prereleases=True)
        detail = found if fits else f"{found}, but {needed.specifier} is needed"
        yield _check(needed.name, detail, "ok" if fits else "problem")


def _instruction_set() -> str:
    """The widest vector instructions that compiled kernels will use."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    known = ("avx512f", "avx2", "fma", "avx", "sse4.2", "sve", "neon")
    found = [name for name in known if features.get(name)]
    return f"{llvm.get_host_cpu_name()}: {', '.join(found) or 'no vector instructions'}"


def _threads() -> dict[str, Any]:
    import torch

    limits = {
        name: os.environ[name]
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        if name in os.environ
    }
    told = "".join(f", {name}={value}" for name, value in limits.items())
    return _check("threads", f"{usable_cores()} usable, torch uses {torch.get_num_threads()}{told}")


def _compile_cache() -> dict[str, Any]:
    """Where compiled kernels are kept, so that only the first run waits for the compiler."""
    from gridshift.grid.kernels import FOLDER
    from gridshift.grid.kernels.steps import power_balance

    if FOLDER is None:
        detail = "no folder can be written, so kernels compile each time; set NUMBA_CACHE_DIR"
        return _check("compile cache", detail, "note")
    folder = Path(power_balance.stats.cache_path or "")
    kept = len(list(folder.rglob("*.nbi")))
    return _check("compile cache", f"{folder}, {kept or 'no'} kernels compiled so far")


def _gpu() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return _check("gpu", "none; nothing needs one")
    return _check("gpu", f"{torch.cuda.get_device_name(0)}, CUDA {torch.version.cuda}")


def _surrogate_cache() -> dict[str, Any]:
    from gridshift.caches import cache_folder, can_write, temporary_folder

    folder = cache_folder()
    if can_write(folder):
        return _check("surrogate cache", str(folder))
    detail = f"{folder} can't be written, so {temporary_folder()}; set GRIDSHIFT_CACHE"
    return _check("surrogate cache", detail, "note")
