"""Files of other programs to `Network`, read by powerio: PSS/E, XIIDM, UCTE and more."""

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.arguments import some_of
from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.controls import MOVE_ON_REQUEST, Control
from gridshift.grid.names import own_name
from gridshift.grid.network import BusKind, Network
from gridshift.grid.pi_model import PiModel
from gridshift.grid.readers.placeholders import UNLIMITED_MVA
from gridshift.grid.readers.psse_controls import Place, psse_controls, switched_shunts
from gridshift.grid.readers.psse_loads import varying_loads
from gridshift.grid.readers.unfollowed_controls import unfollowed
from gridshift.grid.supplied import supplied_part

ENDINGS = {
    ".raw": "psse", ".rawx": "psse-rawx", ".xiidm": "xiidm", ".jiidm": "jiidm", ".uct": "ucte",
    ".aux": "powerworld", ".epc": "pslf", ".cdf": "ieee-cdf",
}  # fmt: skip
"""Ending of a file, and what powerio calls its format. CGMES is not among them: powerio 0.11.6
reads lines between different base voltages, and transformers, otherwise than pypowsybl does."""
OTHER_PHYSICS = ("CALCULATION_VIEW",)
"""Ends of the codes by which powerio tells that it calculates with something else than the file
holds, such as boundary lines without their impedance."""
MOST_SHARE = 1e3
"""Largest part of a load as a multiple of the whole: beyond, its parts cancel each other."""
CLEAN = re.compile(r"[^\s,:]+")
"""Names that can be part of a label."""
Row = Mapping[str, Any]


def read_with_powerio(path: Path, content: bytes) -> Network:
    """The grid that a file describes, with the names of its elements.

    A generator holds the voltage of its own bus; what a bus is given by generators that hold none
    is a fixed injection. What powerio doesn't take over, and what this model doesn't, are warnings.

    Raises:
        GridFileError: powerio is missing or can't read it, or it has parts that can't be
            represented, all in one message.

    Warns:
        GridshiftWarning: what is left out, or taken for something else.
    """
    try:
        import powerio
    except ImportError:
        told = "needs powerio, which isn't installed; pip install 'gridshift[formats]'"
        raise GridFileError(str(path), [told]) from None
    kind = ENDINGS[path.suffix.lower()]
    try:
        module = powerio.parse(str(path), format=kind)
    except (ValueError, OSError) as error:
        told = " ".join(str(error).split())
        raise GridFileError(str(path), [f"powerio can't read it: {told}"]) from None
    odd = [one for one in module.diagnostics if one.code.endswith(OTHER_PHYSICS)]
    if odd:
        raise GridFileError(str(path), [" ".join(one.message.split()) for one in odd])
    notes = [*_powerio_notes(module.diagnostics)]
    source = module.value
    if type(source).__name__ != "BalancedNetwork":
        raise GridFileError(str(path), ["holds no three-phase network in balanced operation"])
    if source.n_switches:
        source = source.merge_buses(closed_switches=True).network
    text, followed = content.decode("utf-8", "replace"), set()
    built = _Built(source, path, notes)
    if kind in ("psse", "psse-rawx"):
        built.take_varying_loads(text, rawx=kind == "psse-rawx")
        followed = built.take_controls(text, rawx=kind == "psse-rawx")
    notes += unfollowed(kind, text, source.branches, followed)
    network = built.network()
    for note in notes:
        warnings.warn(f"{path.name}: {note}", GridshiftWarning, stacklevel=4)
    return network


def _powerio_notes(diagnostics: Sequence[Any]) -> Iterator[str]:
    """One sentence for each thing that powerio says, with how often it does."""
    first: dict[str, str] = {}
    for one in diagnostics:
        first.setdefault(one.code, " ".join(one.message.split()))
    counts = Counter(one.code for one in diagnostics)
    for code, message in first.items():
        more = counts[code] - 1
        yield f"powerio says: {message}" + (f" (and {more} more of {code})" if more else "")


class _Built:
    """The arrays of a network, table after table."""

    def __init__(self, source: Any, path: Path, notes: list[str]):
        self._source, self._path, self._notes = source, path, notes
        self._base = float(source.base_mva)
        self._names: dict[str, str] = {}
        self._problems: list[str] = []
        self._buses = [bus for bus in source.buses if bus["kind"] != "ISOLATED"]
        self._row = {bus["id"]: row for row, bus in enumerate(self._buses)}
        count = len(self._buses)
        self._labels = [self._label("bus", bus) for bus in self._buses]
        self._shunt, self._fixed = np.zeros((2, count), complex)
        self._drawn, self._v_set = np.zeros(count), np.full(count, np.nan)
        self._gens: list[tuple[str, int, float]] = []
        self._loads: list[list[Any]] = [
            [self._label("load", load), self._row[load["bus"]], complex(load["p"], load["q"])]
            for load in self._present(source.loads)
        ]
        in_service = (load["uid"] for load in self._present(source.loads))
        self._load_row = {uid: row for row, uid in enumerate(in_service)}
        self._current, self._impedance = np.zeros((2, len(self._loads)), complex)
        for shunt in self._present(source.shunts):
            self._shunt[self._row[shunt["bus"]]] += complex(shunt["g"], shunt["b"]) / self._base
        self._take_generators()
        self._take_compensators()
        self._take_dc_lines()
        if source.storage:
            self._problems.append("storage isn't supported; make it loads or generators")
        self._take_branches()

    def _label(self, kind: str, item: Row) -> str:
        """The label of an element; its name in the source, if it is another."""
        uid = str(item.get("uid") or "").removeprefix("bus-")
        fits = CLEAN.fullmatch(uid) and f"{kind}:{uid}" not in self._names
        label = f"{kind}:{uid}" if fits else f"{kind}:{len(self._names) + 1}"
        name = own_name(item.get("name"), label) or own_name(uid, label)
        self._names[label] = name
        return label

    def _present(self, items: Sequence[Row]) -> Iterator[Row]:
        """Elements in service at buses that are."""
        return (item for item in items if item["in_service"] and item["bus"] in self._row)

    def _hold(self, label: str, bus: int, p: float, magnitude: float) -> None:
        """A generator that holds its bus at a magnitude, and gives MW."""
        known = self._v_set[bus]
        if np.isfinite(known) and abs(known - magnitude) > 1e-9:
            told = f"{label} would hold {self._labels[bus]} at {magnitude:g} p.u., others at "
            self._notes.append(told + f"{known:g}; the first counts")
        else:
            self._v_set[bus] = magnitude
        self._gens.append((label, bus, p))

    def _inject(self, bus: int, power: complex) -> None:
        self._fixed[bus] += power / self._base
        self._drawn[bus] += max(0.0, -power.real) / self._base

    def _take_generators(self) -> None:
        for gen in self._present(self._source.generators):
            bus, label = self._row[gen["bus"]], self._label("gen", gen)
            if not gen["voltage_regulation_on"] or self._buses[bus]["kind"] == "PQ":
                self._inject(bus, complex(gen["pg"], gen["qg"]))
                continue
            held = gen["regulated_bus"]
            if held not in (None, gen["bus"]):
                there = self._labels[self._row[held]] if held in self._row else held
                told = f"{label} holds the voltage of {there} in the file; here it holds its own"
                self._notes.append(f"{told} bus at {gen['vg']:g} p.u.")
            self._hold(label, bus, float(gen["pg"]), float(gen["vg"]))

    def _take_compensators(self) -> None:
        for svc in self._present(self._source.static_var_compensators):
            bus, label = self._row[svc["bus"]], self._label("svc", svc)
            if svc["regulating"] and svc["regulation_mode"] == "voltage":
                kv = float(self._buses[bus]["base_kv"])
                self._hold(label, bus, 0.0, float(svc["voltage_setpoint_kv"]) / kv)
            elif svc["regulating"]:
                self._inject(bus, -1j * float(svc["reactive_power_setpoint_mvar"]))

    def _take_dc_lines(self) -> None:
        """DC lines in service are refused: their losses depend on how converters are modelled."""
        for line in self._source.hvdc:
            if line["in_service"]:
                label = self._label("dcline", line)
                told = f"{label} isn't supported; replace it by a load and a generator at its ends"
                self._problems.append(told)

    def _take_branches(self) -> None:
        self._place: dict[str, tuple[int, str]] = {}
        self._controls: tuple[Control, ...] = ()
        columns: list[tuple[str, int, int, complex, complex, complex, complex, bool, float]] = []
        for one in self._source.branches:
            if one["from_id"] not in self._row or one["to_id"] not in self._row:
                continue
            tap = (one["tap"] or 1.0) * np.exp(1j * np.deg2rad(one["shift"]))
            label = self._label("trafo" if one["tap"] or one["shift"] else "line", one)
            self._place[str(one["uid"])] = len(columns), label
            z = complex(one["r"], one["x"])
            if not z and one["in_service"]:
                self._problems.append(f"{label} has no impedance; join its buses in the file")
            columns.append(
                (label, self._row[one["from_id"]], self._row[one["to_id"]], 1 / z if z else 0j, tap,
                 complex(one["g_fr"], one["b_fr"]), complex(one["g_to"], one["b_to"]),
                 bool(one["in_service"]), float(one["rate_a"] or 0)),
            )  # fmt: skip
        if self._source.n_transformers_3w:
            self._problems += [
                f"{self._label('trafo3w', one)} isn't supported; a star of three transformers is"
                for one in self._source.transformers_3w if one["in_service"]
            ]  # fmt: skip
        labels, start, end, y, tap, from_y, to_y, on, rating = zip(*columns, strict=True) if (
            columns
        ) else [()] * 9  # fmt: skip
        self._branch_labels, self._on = tuple(labels), np.array(on, bool)
        self._ends = np.array(start, np.int64), np.array(end, np.int64)
        model = PiModel(
            np.array(y, complex), np.array(tap, complex), np.array(from_y, complex),
            np.array(to_y, complex), np.ones(len(y), bool),
        )  # fmt: skip
        self._two_ports = model.two_ports().reshape(-1, 4)
        self._rating = np.array(rating, float)

    def take_varying_loads(self, text: str, *, rawx: bool) -> None:
        """Shares of constant current and admittance, which powerio counts as constant power.

        powerio numbers the loads of a bus in the order of the file, in service or not.
        """
        for load in varying_loads(text, rawx=rawx):
            uid = f"bus-{load.bus}" + (f"-{load.number}" if load.number > 1 else "")
            if uid not in self._load_row:
                continue  # at a bus without supply
            row = self._load_row[uid]
            total = self._loads[row][2]
            for shares, part in ((self._current, load.current), (self._impedance, load.admittance)):
                pairs = ((part.real, total.real), (part.imag, total.imag))
                if any(drawn and abs(drawn) > MOST_SHARE * abs(all_of) for drawn, all_of in pairs):
                    told = f"load {load.name} has parts of constant power, current and admittance "
                    self._problems.append(told + "that cancel each other; make it constant power")
                    break
                shares[row] = complex(*(drawn / (all_of or 1.0) for drawn, all_of in pairs))

    def take_controls(self, text: str, *, rawx: bool) -> set[str]:
        """Tap changers, phase shifters and switched shunts; returns what they are called."""
        places = {
            uid: Place(branch, label, self._two_ports[branch])
            for uid, (branch, label) in self._place.items()
        }
        known = [(one["bus"], one["b"]) for one in self._present(self._source.shunts)]
        shunts = [
            one for one in switched_shunts(text, rawx=rawx)
            if any(one.bus == bus and np.isclose(one.now, b) for bus, b in known)
        ]  # fmt: skip
        held = {*np.flatnonzero(np.isfinite(self._v_set)).tolist()}
        found = psse_controls(self._source.branches, places, shunts, self._row, held, self._base)
        self._controls = tuple(found.controls)
        self._notes += found.notes
        if found.controls:
            names = ", ".join(one.label for one in found.controls[:5])
            names += f" and {len(found.controls) - 5} more" if len(found.controls) > 5 else ""
            self._notes.append(f"{names}: {MOVE_ON_REQUEST}")
        return found.followed

    def network(self) -> Network:
        """The grid, without what has no path to a slack bus.

        Raises:
            GridFileError: it can't be represented.
        """
        kind = np.full(len(self._buses), int(BusKind.PQ))
        kind[[bus for _, bus, _ in self._gens]] = BusKind.PV
        slack = [row for row, bus in enumerate(self._buses) if bus["kind"] == "REF"]
        if not slack:
            self._problems.append("no bus is the reference")
        elif not np.isfinite(self._v_set[slack]).all():
            self._problems.append(f"no generator holds {self._labels[slack[0]]}, the reference")
        if self._problems:
            raise GridFileError(str(self._path), self._problems)
        kind[slack] = BusKind.SLACK
        start = np.array(  # some formats have no state, which powerio tells as 0
            [(b["vm"] or 1.0) * np.exp(1j * np.deg2rad(b["va"])) for b in self._buses], complex
        )  # fmt: skip
        held = np.isfinite(self._v_set)
        start[held] *= self._v_set[held] / np.abs(start[held])
        rated = (self._rating > 0) & (self._rating < UNLIMITED_MVA)
        rating = np.where(self._rating > 0, self._rating / self._base, np.inf)
        limits = np.array([[b["vmin"], b["vmax"]] for b in self._buses], float)
        limits[~(limits > 0) | (limits > 10)] = np.nan
        network = Network(
            name=self._path.stem, origin=f"{self._source.source_format} {self._path.name}",
            base_mva=self._base, bus_labels=tuple(self._labels), bus_kind=kind,
            bus_kv=np.array([b["base_kv"] or 0.0 for b in self._buses], float),
            bus_v_min=limits[:, 0], bus_v_max=limits[:, 1], bus_shunt=self._shunt,
            bus_fixed=self._fixed, bus_consumed=self._drawn, bus_v_set=self._v_set, v_start=start,
            load_labels=tuple(load[0] for load in self._loads),
            load_bus=np.array([load[1] for load in self._loads], np.int64),
            load_power=np.array([load[2] / self._base for load in self._loads], complex),
            load_current=self._current, load_impedance=self._impedance,
            gen_labels=tuple(label for label, _, _ in self._gens),
            gen_bus=np.array([bus for _, bus, _ in self._gens], np.int64),
            gen_p=np.array([p for _, _, p in self._gens]) / self._base,
            branch_labels=self._branch_labels, branch_from=self._ends[0], branch_to=self._ends[1],
            branch_y=self._two_ports, branch_in_service=self._on,
            branch_rating=np.stack([rating, rating], axis=1), branch_rated=rated,
            rating_kind="power", controls=self._controls,
            names={label: name for label, name in self._names.items() if name},
        )  # fmt: skip
        dead = network.cut_off_buses()
        if not len(dead):
            return network
        shown = some_of([network.bus_labels[b] for b in dead])
        self._notes.append(f"left out are {shown}: no path to the reference")
        return supplied_part(network).network
