"""Fields of the struct that a MATPOWER case file returns, by running its statements."""

import re
from collections.abc import Iterator

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.readers.matlab_expression import (
    ExpressionError,
    Value,
    Workspace,
    evaluate,
    index_lists,
    scalar,
)
from gridshift.grid.readers.matlab_text import (
    MatlabError,
    Statement,
    shown,
    split_statements,
)
from gridshift.grid.readers.matpower_columns import COLUMN_FUNCTIONS

_HEADER = re.compile(
    r"function (?:\[? ?(?P<out>\w+(?:[ ,]+\w+)*) ?\]? ?= ?)?(?P<name>\w+) ?(?:\( ?\))?"
)
_NAME = r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*"
_ASSIGNMENT = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\((?P<index>[^=]*)\)\s*)?=(?!=)\s*(?P<value>.*)", re.DOTALL
)
_MANY = re.compile(r"\[(?P<names>[\w\s,]+)\]\s*=\s*(?P<function>\w+)\s*(?:\(\s*\))?")
_PLAIN_MATRIX = re.compile(r"\[([^\[\]{}'\"]*)\]")
_TEXT = re.compile(r"""'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*\"""")
_BLOCK = re.compile(r"(if|for|while|switch|try|parfor)\b")


def run_case(text: str) -> dict[str, Value | tuple[str, ...]]:
    """Fields of the returned struct by name; of cell arrays those that hold texts alone.

    Understood are assignments of matrices, numbers and strings, arithmetic on whole columns,
    MATPOWER's column names, and `if` on a known number. Nothing is skipped: whatever else a file
    contains is an error.

    Raises:
        MatlabError: the first statement that is not understood, with its line.
    """
    out, workspace = _run(text, "a MATPOWER case starts with 'function mpc = name'")
    prefix = f"{out}."
    return {
        name.removeprefix(prefix): value
        for name, value in (workspace.variables | workspace.texts).items()
        if name.startswith(prefix)
    }


def run_function(text: str) -> Value:
    """The matrix or text that a function without arguments returns; statements as in `run_case`.

    Raises:
        MatlabError: the first statement that is not understood, or nothing is returned.
    """
    out, workspace = _run(text, "the file starts with 'function table = name'")
    if out not in workspace.variables:
        raise MatlabError(1, f"'{out}' is returned but never given a value")
    return workspace.variables[out]


def _run(text: str, start: str) -> tuple[str, Workspace]:
    """What the function returns, by its name, and all values at its end."""
    statements = split_statements(text)
    if not statements:
        raise MatlabError(1, "the file has no statements")
    header = _HEADER.fullmatch(" ".join(statements[0].text.split()))
    if header is None or header["out"] is None:
        raise MatlabError(statements[0].line, start)
    out = re.split(r"[\s,]+", header["out"])
    if len(out) > 1:
        raise MatlabError(
            statements[0].line, "case format 1 is not supported; save it with savecase"
        )
    body = statements[1:]
    if body and body[-1].text == "end" and not _closes_a_block(body):
        body = body[:-1]
    workspace = Workspace()
    for statement in _executed(body, workspace):
        try:
            _execute(statement.text, workspace)
        except ExpressionError as error:
            raise MatlabError(statement.line, f"{error} (in: {shown(statement.text)})") from None
    return out[0], workspace


def _closes_a_block(body: list[Statement]) -> bool:
    opened = sum(bool(_BLOCK.match(s.text)) for s in body)
    return opened == sum(s.text == "end" for s in body)


def _executed(body: list[Statement], workspace: Workspace) -> Iterator[Statement]:
    """Statements that run: those under an `if` whose condition is false are passed over."""
    running: list[bool] = []  # for each open block, whether its branch and all around it run
    for statement in body:
        text, runs = statement.text, not running or running[-1]
        if condition := re.match(r"if\b(.*)", text, re.DOTALL):
            running.append(runs and _truth(condition[1], workspace, statement.line))
        elif block := _BLOCK.match(text):
            if runs:
                raise MatlabError(statement.line, f"'{block[1]}' is not understood")
            running.append(False)
        elif text == "else" and running:
            running[-1] = all(running[-2:-1]) and not running[-1]
        elif re.match(r"elseif\b", text):
            raise MatlabError(statement.line, "'elseif' is not understood")
        elif text == "end" and running:
            running.pop()
        elif runs:
            yield statement
    if running:
        raise MatlabError(body[-1].line, "'if' without 'end'; is the file cut off?")


def _truth(text: str, workspace: Workspace, line: int) -> bool:
    try:
        value = evaluate(text, workspace)
    except ExpressionError as error:
        raise MatlabError(line, f"{error} (in: {shown('if' + text)})") from None
    return not isinstance(value, str) and value.size > 0 and bool((value != 0).all())


def _execute(text: str, workspace: Workspace) -> None:
    """Carries out one statement."""
    variables = workspace.variables
    if text == "define_constants":
        for columns in COLUMN_FUNCTIONS.values():
            variables.update({name: scalar(number) for name, number in columns.items()})
    elif many := _MANY.fullmatch(text):
        columns = COLUMN_FUNCTIONS.get(many["function"])
        names = re.split(r"[\s,]+", many["names"].strip())
        if columns is None or len(names) > len(columns):
            raise ExpressionError(f"'{many['function']}' is not understood")
        for name, number in zip(names, columns.values(), strict=False):
            variables[name] = scalar(number)
    elif assignment := _ASSIGNMENT.fullmatch(text):
        _assign(assignment["name"], assignment["index"], assignment["value"], workspace)
    else:
        raise ExpressionError("this statement is not understood")


def _assign(name: str, index: str | None, text: str, workspace: Workspace) -> None:
    variables = workspace.variables
    if text.startswith("{") and text.endswith("}") and index is None:
        variables.pop(name, None)
        workspace.texts[name] = _texts(text)
        return
    workspace.texts.pop(name, None)
    value = _matrix(text, workspace) if _PLAIN_MATRIX.fullmatch(text) else evaluate(text, workspace)
    if index is None:
        # Changing one of two variables in place must leave the other as it is.
        variables[name] = value if isinstance(value, str) else value.copy()
        return
    target = variables.get(name)
    if target is None or isinstance(target, str) or isinstance(value, str):
        raise ExpressionError(f"'{name}' is no matrix of numbers")
    rows, columns = index_lists(index, (target.shape[0], target.shape[1]), workspace)
    if value.size != 1 and value.shape != (len(rows), len(columns)):
        raise ExpressionError(f"{value.shape} values for {len(rows)} rows, {len(columns)} columns")
    target[np.ix_(rows, columns)] = value


def _texts(cells: str) -> tuple[str, ...]:
    """Texts of a cell array such as bus names; none of one that holds anything else."""
    if _TEXT.sub("", cells).strip("{};, \t\r\n"):
        return ()
    found = _TEXT.finditer(cells)
    return tuple(m[0][1:-1].replace(m[0][0] * 2, m[0][0]).strip() for m in found)


def _matrix(text: str, workspace: Workspace) -> Real:
    """Value of a matrix literal without nested brackets; rows of plain numbers are read fast."""
    lines = [line.strip() for line in re.split(r"[;\n]", text[1:-1])]
    rows = [line.replace(",", " ").split() for line in lines if line]
    widths = {len(row) for row in rows}
    if len(widths) == 1 and "_" not in text:
        try:
            return np.array(rows, float)
        except ValueError:
            pass  # an expression or an operator somewhere
    values = []
    for line in filter(None, lines):
        row = evaluate(f"[{line}]", workspace)
        assert not isinstance(row, str)
        if values and row.shape[1] != values[0].shape[1]:
            raise ExpressionError(
                f"row {len(values) + 1} has {row.shape[1]} columns, row 1 has {values[0].shape[1]}"
            )
        values.append(row)
    return np.concatenate(values) if values else np.zeros((0, 0))
