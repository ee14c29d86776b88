"""Tables and pictures of a study as files, for spreadsheets, papers and other programs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridshift.grid.names import described_outage
from gridshift.pictures import STYLE
from gridshift.storage import replacing
from gridshift.study import figures
from gridshift.study.screening import Screening

NUM_OUTAGES = 5
"""The worst outages, of each of which there is a picture."""
TABLES = ("outages", "buses", "branches", "controls")
"""The last one of a study with controls alone."""


def export(study: Screening, folder: str | Path) -> list[Path]:
    """Write a study's tables as CSV and parquet and its pictures as PNG and SVG; return the paths.

    The tables are the frames of the study, so every value stands beside the labels and names of
    its outage and of its bus or branch; what the units are is in the names of the columns.

    Raises:
        StorageError: one of them cannot be written.
    """
    folder, written = Path(folder), []
    for name in TABLES if study.config.controls else TABLES[:-1]:
        frame = getattr(study, name)
        with replacing(folder / f"{name}.csv") as part:
            frame.to_csv(part, index=False)
        with replacing(folder / f"{name}.parquet") as part:
            frame.to_parquet(part, index=False)
        written += [folder / f"{name}.csv", folder / f"{name}.parquet"]
    for name, size, draw in _pictures(study):
        with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
            figure = Figure(figsize=size, layout="constrained")
            draw(figure)
            for kind in ("png", "svg"):
                path = folder / f"{name}.{kind}"
                with replacing(path) as part, part.open("wb") as file:
                    date = {"Date": None} if kind == "svg" else None  # the same each time
                    figure.savefig(file, format=kind, dpi=200, metadata=date)
                written.append(path)
    return written


def _pictures(
    study: Screening,
) -> Iterator[tuple[str, tuple[float, float], Callable[[Figure], object]]]:
    """Name, size in inches, and what draws it."""

    def one(draw: Callable[..., Axes], *given: str) -> Callable[[Figure], object]:
        return lambda figure: draw(study, *given, axes=figure.subplots())

    def pair(outage: str) -> Callable[[Figure], object]:
        def draw(figure: Figure) -> object:
            left, right = figure.subplots(1, 2)
            figure.suptitle(described_outage(study.network, outage))
            return figures.plot_outage(study, outage, axes=(left, right))

        return draw

    yield "ranking", (8, 6), one(figures.plot_ranking)
    yield "map", (8, 7), one(figures.plot_map)
    yield "heat-voltage", (11, 6), one(figures.plot_heat_map, "voltage")
    yield "heat-loading", (11, 6), one(figures.plot_heat_map, "loading")
    studied = (row.outage for row in study.rows if row.num_scenarios)
    for _, outage in zip(range(NUM_OUTAGES), studied, strict=False):
        yield f"outage-{outage.replace(':', '-').replace(',', '+')}", (11, 5.5), pair(outage)
