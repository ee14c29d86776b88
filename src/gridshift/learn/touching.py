"""What a change touches, as users say it: columns, or buses with their columns.

    ["theta_5", "v_5", "theta_8", "v_8"]                     columns, whatever they mean
    {"5": ["theta_5", "v_5"], "8": ["theta_8", "v_8"]}       buses: angle in rad, then magnitude
    {"5": {"angle_deg": "va_5", "magnitude": "vm_5"}, "8": {"angle_deg": "va_8"}}

Columns are names, if the outputs have names, or numbers from 0. Of buses, the angle *differences*
count; a bus that is left without an angle has a constant one (a slack), one without a magnitude a
constant magnitude (it is controlled).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import pi
from typing import Any

import numpy as np

from gridshift.arguments import how_many, some_of
from gridshift.arrays import Real
from gridshift.errors import ContextError
from gridshift.learn.compensation import Touched
from gridshift.learn.identification import Identified, identify

ANGLES = {"angle": 1.0, "angle_deg": pi / 180}
"""Keys of a bus's angle, and their unit in rad."""
KEYS = (*ANGLES, "magnitude")
LARGEST_ANGLE = 2 * pi
"""Beyond this an angle in rad isn't one."""
MOST_PAIRS = 600
"""Pairs of buses that are held against each other by left-out error."""

Pairs = Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Buses:
    """Buses by name, with the columns of their voltages; read them with `Buses.of`."""

    keys: tuple[Any, ...]
    """As they were given."""
    names: tuple[str, ...]
    angles: tuple[int | None, ...]
    magnitudes: tuple[int | None, ...]
    angle_unit: float
    """rad"""

    @classmethod
    def of(cls, given: Mapping[Any, Any], names: Sequence[str] | None, num: int) -> "Buses":
        """The buses of a mapping, with columns among the names or numbers of so many outputs.

        Raises:
            ContextError: an unknown column or key, a column of two buses, angles in two units.
        """
        if not given:
            raise ContextError("no buses; give a mapping from each bus to its columns")
        if len({str(bus) for bus in given}) < len(given):
            raise ContextError("two buses of one name")
        rows = {str(bus): _columns_of(str(bus), columns) for bus, columns in given.items()}
        units = {key for columns in rows.values() for key in columns if key in ANGLES}
        if len(units) > 1:
            raise ContextError("some buses have an angle and some an angle_deg; give all alike")
        found: dict[str, dict[str, int]] = {}
        owner: dict[int, str] = {}
        for bus, columns in rows.items():
            found[bus] = {key: column(each, names, num) for key, each in columns.items()}
            for key, number in found[bus].items():
                if number in owner:
                    raise ContextError(
                        f"column {columns[key]} is given for bus {owner[number]} and for bus {bus}"
                    )
                owner[number] = bus
        angle = next(iter(units), "angle")
        return cls(
            keys=tuple(given), names=tuple(found),
            angles=tuple(each.get(angle) for each in found.values()),
            magnitudes=tuple(each.get("magnitude") for each in found.values()),
            angle_unit=ANGLES[angle],
        )  # fmt: skip

    def check_angles(self, y: Real) -> None:
        """Pass if the outputs y (N, d) hold angles in the unit that was said.

        Raises:
            ContextError: they can't be in rad.
        """
        for name, number in zip(self.names, self.angles, strict=True):
            largest = 0.0 if number is None else float(np.abs(y[:, number]).max(initial=0.0))
            if self.angle_unit == 1 and largest > LARGEST_ANGLE:
                raise ContextError(
                    f"the angle of bus {name} reaches {largest:.3g}, too much for rad; if it is in "
                    "degrees, say angle_deg"
                )

    def pair(self, i: int, j: int) -> Touched:
        """A change between two of the buses."""
        return Touched(
            angles=(self.angles[i], self.angles[j]),
            magnitudes=(self.magnitudes[i], self.magnitudes[j]),
            branches=((0, 1),), angle_unit=self.angle_unit,
        )  # fmt: skip

    def numbers(self, pairs: Pairs | None) -> list[tuple[int, int]]:
        """Numbers of the two buses of each pair; of all pairs by default.

        Raises:
            ContextError: a pair is none of two known buses.
        """
        if pairs is None:
            return list(combinations(range(len(self.names)), 2))
        at = {name: number for number, name in enumerate(self.names)}
        for pair in pairs:
            ends = [str(bus) for bus in pair]
            if len({*ends}) != 2 or len(ends) != 2 or not {*ends} <= at.keys():
                raise ContextError(
                    f"branch {ends} does not join two of the buses {some_of(self.names, 8)}"
                )
        return [(at[str(i)], at[str(j)]) for i, j in pairs]


def touched_of(
    touching: Any, *, y: Real, names: Sequence[str] | None = None, branches: Pairs | None = None
) -> Touched:
    """What a change touches, from what a user says of it.

    Args:
        touching: columns, or a mapping from buses to their columns, as the module's page shows.
        y: (N, d) outputs, for their number, and to see that angles are in rad.
        names: of the outputs, if they have names.
        branches: pairs of buses between which the change is; by default all pairs.

    Raises:
        ContextError: an unknown column, bus or key; nothing that could be told from.
    """
    if not isinstance(touching, Mapping):
        if branches is not None:
            raise ContextError("branches need a mapping from buses to their columns")
        given = [touching] if isinstance(touching, (str, int)) else list(touching)
        columns = [column(each, names, y.shape[1]) for each in given]
        return Touched(others=tuple(dict.fromkeys(columns)))
    buses = Buses.of(touching, names, y.shape[1])
    buses.check_angles(y)
    touched = Touched(
        angles=buses.angles, magnitudes=buses.magnitudes, branches=tuple(buses.numbers(branches)),
        angle_unit=buses.angle_unit,
    )  # fmt: skip
    if not touched.features("differences", y[:1]).shape[1]:
        raise ContextError(
            f"bus {buses.names[0]} alone has nothing to tell from: an angle counts against another "
            "bus's; name the bus at the other end too"
        )
    return touched


@dataclass(frozen=True, kw_only=True)
class IdentifiedPair(Identified):
    """Between which two buses a change is, as far as rows tell."""

    pair: tuple[Any, Any] | None
    """The two buses, as they were given; None if rows can't tell."""


def identify_pair(
    x: Real, y: Real, y_base: Real, buses: Buses, *, pairs: Pairs | None = None, level: float = 0.05
) -> IdentifiedPair:
    """Between which two buses a change is, as far as cases tell.

    Of many pairs those are held against each other whose angles have moved against each other most,
    at the level of all pairs nonetheless. Otherwise as `learn.identification.identify`; how often
    it is right: docs/bring-your-own-cases.md.

    Args:
        x: (N, X) inputs of rows after the change.
        y: (N, d) their outputs.
        y_base: (N, d) outputs that the base model has for these inputs.
        buses: all that may be concerned.
        pairs: candidates; by default all pairs.
        level: chance of naming a wrong one that is accepted.

    Raises:
        ContextError: fewer than 5 cases, or fewer than 2 buses; a pair of unknown buses.
    """
    if len(buses.names) < 2:
        raise ContextError(f"{len(buses.names)} bus to find a change among; give at least 2")
    buses.check_angles(y)
    numbers = buses.numbers(pairs)
    moved = _moved(y - y_base, buses)
    first, second = np.array(numbers).T
    movement = np.abs(moved[:, first] - moved[:, second]).mean(0)
    kept = [numbers[at] for at in np.argsort(-movement, kind="stable")[:MOST_PAIRS]]
    candidates = {f"{buses.names[i]} - {buses.names[j]}": (i, j) for i, j in kept}
    touched = {name: buses.pair(*pair) for name, pair in candidates.items()}
    far = dict(zip(numbers, movement.tolist(), strict=True))
    found = identify(
        x, y, y_base, touched, level=level * len(kept) / len(numbers),
        movement={name: far[pair] for name, pair in candidates.items()},
    )  # fmt: skip
    pair = None
    if found.name is not None:
        i, j = candidates[found.name]
        pair = buses.keys[i], buses.keys[j]
    return IdentifiedPair(**vars(found), pair=pair)


def _moved(remainder: Real, buses: Buses) -> Real:
    """(N, B) how far each bus's angle has moved; its magnitude where no bus has an angle."""
    columns = buses.angles if any(c is not None for c in buses.angles) else buses.magnitudes
    zero = np.zeros(len(remainder))
    return np.stack([zero if c is None else remainder[:, c] for c in columns], 1)


def column(given: Any, names: Sequence[str] | None, num: int) -> int:
    """The number of the output that is given by name or number.

    Raises:
        ContextError: there is none.
    """
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if not 0 <= given < num:
            raise ContextError(f"no output {given}; they are numbered 0 to {num - 1}")
        return int(given)
    if names is None:
        raise ContextError(
            f"no output {given!r}, for the outputs have no names; give numbers from 0, or a table "
            "with named columns as y"
        )
    if given not in names:
        raise ContextError(f"no output {given!r}; the outputs are {some_of(names, 8)}")
    return list(names).index(str(given))


def _columns_of(bus: str, given: Any) -> dict[str, Any]:
    """Columns of a bus by key, of `KEYS`."""
    if not isinstance(given, Mapping):
        columns = [given] if isinstance(given, (str, int)) else list(given)
        if len(columns) > 2:
            raise ContextError(
                f"bus {bus} has {how_many(len(columns), 'column')}; give angle and magnitude"
            )
        given = dict(zip(("angle", "magnitude"), columns, strict=False))
    if unknown := [key for key in given if key not in KEYS]:
        raise ContextError(f"bus {bus} has a key {unknown[0]!r}; known are {', '.join(KEYS)}")
    if not given:
        raise ContextError(f"bus {bus} has no columns; give its angle, its magnitude or both")
    return dict(given)
