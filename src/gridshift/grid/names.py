"""How elements are shown to people: label, name, end buses and voltage."""

from gridshift.grid.network import Network

MOST_LETTERS = 60
"""Of a name."""


def own_name(given: object, label: str) -> str:
    """A name that a source gives, on one line; empty if it says no more than the label."""
    if given is None or given != given:
        return ""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    name = " ".join(str(given).split())
    if name.lower() in ("", "none", "nan", label, label.partition(":")[2]):
        return ""
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"


def described(network: Network, label: str) -> str:
    """An element or bus as in `line:66 "North-Mill" (bus 42-49, 138 kV)`.

    A bus has its voltage in the brackets, any other label of the grid its name alone.
    """
    name, place = network.names.get(label, ""), _place(network, label)
    return label + (f' "{name}"' if name else "") + (f" ({place})" if place else "")


def described_outage(network: Network, outage: str) -> str:
    """The elements of an outage's text, each described."""
    return ", ".join(described(network, label) for label in outage.split(","))


def bus_parts(network: Network) -> dict[str, int]:
    """Row of each of the source's buses, by its label: one that is made of several has them all."""
    return {
        f"bus:{part}": row
        for row, label in enumerate(network.bus_labels)
        for part in label.removeprefix("bus:").split("+")
    }


def end_buses(network: Network, label: str) -> tuple[int, ...]:
    """Buses that a switchable element joins, without the star point of a transformer."""
    ends: dict[int, None] = {}
    for branch in network.elements.get(label, ()):
        for bus in (int(network.branch_from[branch]), int(network.branch_to[branch])):
            if network.bus_labels[bus] != f"bus:{label}":
                ends[bus] = None
    return tuple(ends)


def kilovolts(values: list[float]) -> str:
    """Base voltages as `138 kV` or `380/110 kV`; empty where none is known."""
    known = dict.fromkeys(f"{value:g}" for value in values if value > 0)
    return "/".join(known) + " kV" if known else ""


def _place(network: Network, label: str) -> str:
    if label in network.bus_rows:
        return kilovolts([float(network.bus_kv[network.bus_rows[label]])])
    ends = end_buses(network, label)
    if not ends:
        return ""
    buses = "-".join(network.bus_labels[bus].removeprefix("bus:") for bus in ends)
    parts = (f"bus {buses}", kilovolts([float(network.bus_kv[bus]) for bus in ends]))
    return ", ".join(part for part in parts if part)
