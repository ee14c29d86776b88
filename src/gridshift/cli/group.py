"""What surrounds every command: known problems, warnings, Ctrl-C, examples in the help."""

import io
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from gridshift.caches import prepare_font_cache, prepare_kernel_cache
from gridshift.cli.folders import require_separate
from gridshift.errors import GridshiftError, GridshiftWarning


def one_line(text: object) -> str:
    """The text with every run of white space, line ends included, as one blank."""
    return " ".join(str(text).split())


class KnownProblem(click.ClickException):
    """A problem that the user can do something about: one line on standard error, exit code 1."""

    def show(self, file=None) -> None:
        """Print the message on standard error, on one line."""
        click.echo(f"Error: {one_line(self.message)}", err=True)


class Interrupted(KnownProblem):
    """Ctrl-C; the exit code is the shell's for an interrupt."""

    exit_code = 130


@contextmanager
def our_warnings_only() -> Iterator[None]:
    """Show each warning of gridshift once, as one line on standard error, and no library's."""
    seen: set[str] = set()

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        text = one_line(message)
        if issubclass(category, GridshiftWarning) and text not in seen:
            seen.add(text)
            print(f"Warning: {text}", file=sys.stderr)  # what a progress bar may have replaced

    last_resort = logging.lastResort
    logging.lastResort = logging.NullHandler()  # pyright: ignore[reportAttributeAccessIssue]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", GridshiftWarning)
            warnings.showwarning = show
            yield
    finally:
        logging.lastResort = last_resort


SURROGATE_EXAMPLE = "gridshift train case14 --steps 500 --rows 500 --out base14"
"""Makes the surrogate that other examples use."""


class Command(click.Command):
    """A command with a `--json` option, the keys of that object, and examples that tests run."""

    def __init__(self, *args, keys: Mapping[str, str], examples: Sequence[str] = (),
                 columns: Mapping[str, str] | None = None,
                 writes: Mapping[str, Sequence[str]] | None = None, **kwargs):  # fmt: skip
        super().__init__(*args, **kwargs)
        self.writes = dict(writes or {})
        self.keys, self.examples, self.columns = dict(keys), tuple(examples), dict(columns or {})
        self.params.append(
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
        )

    def invoke(self, ctx: click.Context):
        """Run; a message that suggests a command names a grid's file as the user gave it.

        Nothing begins if a file to be written is one to be read.
        """
        require_separate(ctx.params, self.writes)
        try:
            return super().invoke(ctx)
        except GridshiftError as problem:
            grid = str(ctx.params.get("grid") or ctx.params.get("case") or "")
            if not Path(grid).suffix:
                raise
            pattern = rf"('gridshift (?:cases|solve|train)) {re.escape(Path(grid).stem)}(?=[ '])"
            message = re.sub(pattern, lambda found: f"{found[1]} {grid}", str(problem))
            if message == str(problem):
                raise
            raise GridshiftError(message) from problem

    @property
    def shown_examples(self) -> tuple[str, ...]:
        """The examples, after the one that makes the surrogate that they use."""
        uses = any("--surrogate base14" in example for example in self.examples)
        return (SURROGATE_EXAMPLE, *self.examples) if uses else self.examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples below the options."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.shown_examples:
                    formatter.write(pasteable(example, formatter.width, formatter.current_indent))
        super().format_epilog(ctx, formatter)


def pasteable(example: str, width: int, indent: int = 0) -> str:
    """The command in lines of this width; all but the last end in a backslash, as a shell reads.

    An option and its value stay together.
    """
    first, *others = example.split(" --")
    lines, room = [first], width - indent - 2
    for option in others:
        if len(lines[-1]) + len(option) + 3 > room:
            lines.append("   ")
        lines[-1] += f" --{option}"
    return " \\\n".join(" " * indent + line for line in lines) + "\n"


def command(
    *, keys: Mapping[str, str], examples: Sequence[str], columns: Mapping[str, str] | None = None,
    writes: Mapping[str, Sequence[str]] | None = None,
) -> Callable[..., click.Command]:  # fmt: skip
    """Decorator for a function that takes `as_json`.

    `keys` tells what each JSON key means, `columns` what the columns of a table that it writes do,
    `writes` which parameters name what it writes: a file, or a folder with the files put into it.
    """
    return click.command(cls=Command, keys=keys, examples=examples, columns=columns, writes=writes)


class Group(click.Group):
    """The top command: turns what a command raises into a line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they were added, not by the alphabet."""
        return list(self.commands)

    def main(self, *args, **kwargs):
        """Run; what the terminal's or the pipe's encoding lacks becomes a question mark."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context):
        """Run the command; whatever it raises ends in one line and an exit code.

        Raises:
            KnownProblem: a `GridshiftError`, a file that can't be used, too little memory, or a
                defect, which the line says.
            Interrupted: Ctrl-C.
        """
        try:
            with our_warnings_only():
                prepare_kernel_cache()
                prepare_font_cache()
                return super().invoke(ctx)
        except GridshiftError as problem:
            raise KnownProblem(str(problem)) from problem
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None
        except MemoryError as problem:
            raise _out_of_memory(problem) from problem
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except OSError as problem:
            place = f"{problem.filename}: " if problem.filename else ""
            raise KnownProblem(f"{place}{problem.strerror or problem}") from problem
        except Exception as problem:
            if TORCH_OUT_OF_MEMORY in str(problem):
                raise _out_of_memory(problem) from problem
            from gridshift.cli.defects import report_defect

            raise KnownProblem(report_defect(problem)) from problem


TORCH_OUT_OF_MEMORY = "DefaultCPUAllocator: can't allocate memory"


def _out_of_memory(problem: Exception) -> KnownProblem:
    return KnownProblem(f"not enough memory ({problem or 'it does not say for what'})")
