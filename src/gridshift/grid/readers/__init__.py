"""Grid files and built-in names to `Network`; the only place that knows file formats."""

from gridshift.grid.network import Network


def read_grid(source: str) -> Network:
    """The grid of a built-in name (`case118`), a pandapower JSON file or a MATPOWER `.m` file."""
    from gridshift.grid.readers.pandapower_nets import from_pandapower_name

    return from_pandapower_name(source)
