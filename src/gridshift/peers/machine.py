"""The machine that a comparison ran on."""

import os
import platform
from collections.abc import Mapping
from typing import Any

from llvmlite import binding as llvm

from gridshift.grid.kernels.lanes import vector_bits
from gridshift.machine import processor, versions
from gridshift.threads import usable_cores

PACKAGES = ("gridshift", "numba", "numpy", "lightsim2grid", "pandapower", "power-grid-model")


def describe() -> dict[str, Any]:
    """Processor, instruction set that kernels are compiled for, cores and versions."""
    kind = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    return {
        "processor": f"{processor()} ({kind})",
        "instruction_set": instruction_set(),
        "cores": usable_cores(),
        "python": platform.python_version(),
        "versions": versions(PACKAGES),
    }


def instruction_set() -> str:
    """The vector instructions that the kernels are compiled for."""
    return {512: "AVX-512", 256: "AVX2"}.get(vector_bits(), "vectors of 128 bits")


def machine_line(machine: Mapping[str, Any]) -> str:
    """What was measured on, in one line, from what `describe` found."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"{machine['processor']}, {machine['instruction_set']}, {machine['cores']} cores; "
        f"Python {machine['python']}, {versions}"
    )
