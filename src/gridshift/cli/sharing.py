"""A study on more than one machine: workers of a cluster, shards, `gridshift merge` and `plan`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gridshift.arguments import how_many
from gridshift.cli.bases import usable
from gridshift.cli.folders import require_writable
from gridshift.cli.group import command
from gridshift.cli.options import GRID_KEY, export_option, path_option, top_option
from gridshift.cli.output import duration, emit, progress, table, text
from gridshift.cli.screening_columns import COLUMNS, STUDY_KEYS
from gridshift.cli.study_options import config_of, studied_options
from gridshift.memory import size_text

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from gridshift.adapt.base import Base
    from gridshift.study.chosen_outages import Chosen
    from gridshift.study.screening import Screening
    from gridshift.study.setting import Setting
    from gridshift.study.swept import Shard


class Started(NamedTuple):
    """What a study starts from."""

    setting: "Setting"
    chosen: "Chosen"
    base: "Base | None"
    came_from: str | None
    """The base: `trained`, `reused` or `given`."""
    base_name: str | None
    set_up_s: float


@contextmanager
def workers(scheduler: str, num: int) -> "Iterator[Executor | None]":
    """Who studies the outages: an executor, or None for threads of this process.

    Args:
        scheduler: 'threads', 'processes', or the address of a Dask scheduler.

    Raises:
        WorkersLostError: no scheduler answers there.
    """
    from gridshift.errors import WorkersLostError

    if scheduler == "threads":
        yield None
    elif scheduler == "processes":
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        from gridshift.study.shared import begin_worker

        # a fork of this process would share its threads' locks
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(num, spawn, initializer=begin_worker) as pool:
            yield pool
    elif "://" not in scheduler:
        told = f"'{scheduler}' schedules nothing; name threads, processes, or tcp://host:8786"
        raise click.UsageError(told)
    else:
        try:
            from distributed import Client
        except ImportError as error:
            told = f"{scheduler} is a Dask cluster's; install Dask with pip install gridshift[dask]"
            raise click.UsageError(told) from error
        try:
            client = Client(scheduler, timeout=CONNECT_S)
        except (OSError, TimeoutError, ValueError) as error:
            raise WorkersLostError(
                f"no Dask scheduler answers at {scheduler} ({type(error).__name__}); start one "
                "with 'dask scheduler', or name threads or processes"
            ) from error
        with client:
            yield client.get_executor()


CONNECT_S = 10
"""How long a scheduler may take to answer."""


def finish_part(started: Started, shard: "Shard", folder: Path, *, as_json: bool) -> None:
    """Work on one shard and say what came of it."""
    from gridshift.study.shards import study_shard

    with progress("screening", len(started.chosen.contingencies), unit="outage") as done:
        done(0)
        found = study_shard(
            started.setting, started.chosen, shard, folder=folder, surrogate=started.base,
            progress=lambda num, total, _: done(num, total),
        )  # fmt: skip
    told: dict[str, Any] = {
        "grid": started.setting.network.name,
        "shard": str(shard),
        "num_outages": found.num_outages,
        "num_pieces": found.num_pieces,
        "finished": found.finished,
        "resumed": found.resumed,
        "out": str(folder),
    }

    def render(console) -> None:
        when = "now" if found.finished == found.num_outages else "once all shards are there"
        done = f"shard {shard} is done"
        if shard.number > found.num_pieces:
            done = f"shard {shard} has nothing to do, as the study is {found.num_pieces:,} pieces"
        console.print(
            f"{done}: {folder} has {found.finished:,} of {found.num_outages:,} "
            f"outages\n{when}: gridshift merge {folder}",
            soft_wrap=True,
        )

    emit(told, render, as_json=as_json)


@command(
    keys=STUDY_KEYS,
    columns=COLUMNS,
    examples=[
        "gridshift screen case14 --scenarios 50 --shard 1/2 --out shards14",
        "gridshift screen case14 --scenarios 50 --shard 2/2 --out shards14",
        "gridshift merge shards14 --top 5 --export merged14-files",
        "gridshift merge shards14 --out merged14 --json",
    ],
    writes={
        "out": ("screening.parquet", "summary.json", "report.html"),
        "export_to": ("outages.csv", "branches.parquet", "map.svg"),
    },
)
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR...", type=click.Path(path_type=Path)
)
@top_option
@path_option("--out", help="Folder for table, summary and report.  [default: the first folder]")
@export_option
def merge(
    folders: tuple[Path, ...], top: int, out: Path | None, export_to: Path | None, as_json: bool
) -> None:
    """Make one study of the shards that 'screen --shard' wrote.

    Shards may have shared a folder, or each had its own. Nothing is solved: an outage that is
    missing is an error that names its shard, which is then to be run again.
    """
    from gridshift.cli.screening_table import print_study
    from gridshift.study.shards import merge as merged

    require_writable(out or folders[0])
    require_writable(export_to or folders[0])

    def study() -> "Screening":
        with progress("merging", 0, unit="outage") as done:
            return merged(folders, out=out, progress=lambda num, total, _: done(num, total))

    def show(result: "Screening") -> None:
        emit(
            result.to_json(),
            lambda console: print_study(console, result, top, None),
            as_json=as_json,
        )

    result = shown(study, show)
    if export_to is not None:
        result.export(export_to)


def shown(study: "Callable[[], Screening]", show: "Callable[[Screening], None]") -> "Screening":
    """Make a study and show it, before anything that may fail afterwards.

    Raises:
        StudyNotWrittenError: its files can't be written; it has been shown.
    """
    from gridshift.errors import StudyNotWrittenError

    try:
        result = study()
    except StudyNotWrittenError as error:
        show(error.result)
        raise
    show(result)
    return result


@command(
    keys=GRID_KEY
    | {
        "num_outages": "outages in the ranking",
        "num_solved": "those that are solved: of equal ones only one is",
        "num_rows": "power flows",
        "us_per_row": "of one core of this machine, measured on some of the outages; null where "
        "scenarios are too few to tell",
        "ms_per_outage": "what an outage costs beside its rows; with them where these are null",
        "core_hours": "of this machine's cores",
        "memory_gb": "of one worker, with the program, without rows",
        "merge_memory_gb": "of whoever puts all rows into one table",
        "disk_gb": "of the output folder",
        "start_s": "until a new process can begin",
        "merge_s": "for reading all rows and writing their table at the end",
        "pieces": "that workers are sent",
        "shards": "parts of --minutes on one core",
        "by_workers": "list of `workers`, `wall_s`, `busy` (share of the workers' time that the "
        "power flows take)",
    },
    examples=[
        "gridshift plan case14 --scenarios 5000 --contingencies n-2 --most-pairs 100 --q-limits "
        "--controls --distributed-slack generation",
        "gridshift plan --study study14.toml --contingencies all --area 1 --refuse-splits "
        "--redistribute slack --minutes 1 --json",
    ],
)
@click.argument("grid", metavar="[GRID]", required=False)
@studied_options
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), default=30.0, show_default=True,
    help="How long a shard is to take on one core.",
)  # fmt: skip
def plan(
    grid: str | None, study: Path | None, minutes: float, as_json: bool, **options: Any
) -> None:
    """Tell beforehand what an exact study will cost.

    It tells into how many shards to cut it, too. Some outages are tried with some of the scenarios;
    nothing is written.
    """
    from gridshift.grid.readers import read_grid
    from gridshift.study.chosen_outages import chosen_outages
    from gridshift.study.plan import plan as planned
    from gridshift.study.set_up import set_up

    config = config_of(grid, study, options)
    setting = set_up(config, usable(read_grid(config.grid), "").network)
    found = planned(setting, chosen_outages(setting), minutes_per_shard=minutes)

    def render(console) -> None:
        told, hours = found, found.core_hours
        core = duration(hours * 3600) if hours < 48 else f"{hours:,.0f} hours"
        row = "" if told.us_per_row is None else f"{text(told.us_per_row)} µs a row, "
        console.print(
            f"{told.grid}: {how_many(told.num_outages, 'outage')}, "
            f"{how_many(told.num_rows, 'power flow')}\n"
            f"{row}{text(told.ms_per_outage)} ms an outage{'' if row else ' with its rows'}: "
            f"{core} of one core\n"
            f"memory of a worker {size_text(1e9 * told.memory_gb)}, "
            f"of the merge {size_text(1e9 * told.merge_memory_gb)}, "
            f"disk {size_text(1e9 * told.disk_gb)}\n"
            f"shards of {duration(60 * minutes)}: {told.shards:,}"
        )
        console.print(
            table("", [">workers", ">wall clock", ">busy %"], [
                (on["workers"], duration(on["wall_s"]), f"{on['busy']:.0%}"[:-1])
                for on in told.by_workers
            ])
        )  # fmt: skip

    emit(found.to_json(), render, as_json=as_json)
