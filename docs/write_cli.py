"""Write docs/cli.md from the command definitions (`make docs`); a test keeps it current."""

from inspect import cleandoc
from pathlib import Path

import click

from gridshift.cli import main
from gridshift.cli.group import Command

PAGE = Path(__file__).with_name("cli.md")


def reference() -> str:
    """The page, in Markdown."""
    context = click.Context(main, info_name="gridshift", **main.context_settings)
    parts = [
        "# Command line",
        "<!-- Written by docs/write_cli.py from the command definitions: run `make docs`. -->",
        cleandoc(main.help or ""),
    ]
    for name, command in main.commands.items():
        assert isinstance(command, Command)
        parts += _section(command, click.Context(command, parent=context, info_name=name))
    return "\n\n".join(parts) + "\n"


def _section(command: Command, context: click.Context) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = [
        f"| `{_cell(record[0])}` | {_cell(record[1])} |"
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]
    keys = [f"| `{key}` | {text} |" for key, text in command.keys.items()]
    return [
        f"## {context.command_path}",
        f"    {usage}",
        cleandoc(command.help or ""),
        "\n".join(["| option | meaning |", "|---|---|", *options]),
        "\n".join(["```", *command.shown_examples, "```"]),
        "\n".join(["| JSON key | meaning |", "|---|---|", *keys]),
        *_columns(command),
    ]


def _columns(command: Command) -> list[str]:
    rows = [f"| `{name}` | {_cell(text)} |" for name, text in command.columns.items()]
    head = "| column of `screening.parquet`, key of `outages` | meaning |"
    return ["\n".join([head, "|---|---|", *rows])] if rows else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
