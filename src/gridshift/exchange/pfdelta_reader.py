"""PFΔ's samples read back: feasible ones (`network`, `solution`), and others (`solved_net`)."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.arrays import Real
from gridshift.errors import TableError
from gridshift.exchange.solved_cases import SolvedCases

SAMPLE = re.compile(r"sample_(\d+)\w*\.json")
DEEPEST = 4


def find_samples(folder: Path) -> list[Path]:
    """Samples in this folder or below it, by number."""
    found = [
        path for depth in range(DEEPEST) for path in folder.glob("*/" * depth + "sample_*.json")
        if SAMPLE.fullmatch(path.name)
    ]  # fmt: skip
    return sorted(found, key=lambda path: (_number(path), str(path)))


def _number(path: Path) -> int:
    match = SAMPLE.fullmatch(path.name)
    assert match is not None
    return int(match[1])


def read_pfdelta(folder: Path, samples: Sequence[Path]) -> SolvedCases:
    """The cases in these files.

    Raises:
        TableError: a file is no sample, or of another grid than the first one.
    """
    cases = [_Sample(path) for path in samples]
    first = cases[0]
    for path, case in zip(samples, cases, strict=True):
        if case.shape != first.shape:
            raise TableError(f"{path} is of another grid than {samples[0]}")

    def stacked(name: str) -> Real:
        return np.array([getattr(case, name) for case in cases])

    return SolvedCases(
        source=str(folder), scenario=np.array([_number(path) - 1 for path in samples]),
        demand_p=stacked("pd"), demand_q=stacked("qd"), bus_p=stacked("pg"), bus_q=stacked("qg"),
        magnitude=stacked("vm"), angle=stacked("va"), gen_bus=first.gen_bus,
        gen_p=stacked("gen_p"), gen_q=stacked("gen_q"), in_service=stacked("on"),
    )  # fmt: skip


class _Sample:
    """One case, in MW, Mvar and degrees."""

    def __init__(self, path: Path):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            self._take(content)
        except OSError as error:
            raise TableError(f"cannot read {path}: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            told = f"no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
            raise TableError(f"{path} is no sample of PFΔ: {told}") from error

    def _take(self, content: Any) -> None:
        network = content["solved_net"] if "solved_net" in content else content["network"]
        found = network if "solved_net" in content else content["solution"]["solution"]
        base, count = float(network["baseMVA"]), len(network["bus"])
        row = {number: at for at, number in enumerate(sorted(map(int, network["bus"])))}
        self.pd, self.qd, self.pg, self.qg = np.zeros((4, count))
        for load in network["load"].values():
            if load.get("status", 1):
                self.pd[row[int(load["load_bus"])]] += base * load["pd"]
                self.qd[row[int(load["load_bus"])]] += base * load["qd"]
        gens = [network["gen"][key] for key in _ordered(network["gen"])]
        self.gen_bus = np.array([row[int(gen["gen_bus"])] for gen in gens], np.int64)
        self.gen_p, self.gen_q = np.zeros((2, len(gens)))
        for at, key in enumerate(_ordered(network["gen"])):
            if network["gen"][key].get("gen_status", 1):
                self.gen_p[at] = base * found["gen"][key]["pg"]
                self.gen_q[at] = base * found["gen"][key]["qg"]
        np.add.at(self.pg, self.gen_bus, self.gen_p)
        np.add.at(self.qg, self.gen_bus, self.gen_q)
        buses = [found["bus"][key] for key in _ordered(network["bus"])]
        self.vm = np.array([float(bus["vm"]) for bus in buses])
        self.va = np.rad2deg([float(bus["va"]) for bus in buses])
        branches = [network["branch"][key] for key in _ordered(network["branch"])]
        self.on = np.array([float(branch["br_status"] != 0) for branch in branches])
        self.shape = (count, tuple(self.gen_bus.tolist()), len(branches))


def _ordered(items: dict[str, Any]) -> list[str]:
    return sorted(items, key=int)
