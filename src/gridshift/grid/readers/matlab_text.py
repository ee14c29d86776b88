"""MATLAB source text to statements: comments, continuations, strings and brackets, nothing more."""

import re
from dataclasses import dataclass


class MatlabError(Exception):
    """Text that is not understood, and the line it is on."""

    def __init__(self, line: int, message: str):
        self.line, self.message = line, shown(message, 200)
        super().__init__(f"line {line}: {self.message}")


def shown(text: str, most: int = 60) -> str:
    """`text` as a message shows it: on one line, printable, cut at `most` characters."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(text[: 4 * most].split()))
    return text if len(text) <= most else text[: most - 3] + "..."


@dataclass(frozen=True)
class Statement:
    """One statement without comments; newlines inside brackets are kept, they end matrix rows."""

    line: int
    text: str


# A quote right after a name, a closing bracket or another quote transposes; elsewhere it opens a
# string. MATLAB also transposes after a space outside brackets; here that is an unclosed string,
# so such a file is refused and not misread.
_PIECES = re.compile(
    r"""(?P<comment>%[^\n]*)
      | (?P<continued>\.\.\.[^\n]*\n)
      | (?P<string>(?<![\w)\]}'.])'(?:[^'\n]|'')*' | "(?:[^"\n]|"")*")
      | (?P<unclosed>(?<![\w)\]}'.])' | ")
      | (?P<opening>[(\[{])
      | (?P<closing>[)\]}])
      | (?P<newline>\n)
      | (?P<separator>[;,])
      | (?P<other>(?:[^%'"()\[\]{};,\n.]|\.(?!\.\.))+ | ')""",
    re.VERBOSE,
)
_PARTNER = {")": "(", "]": "[", "}": "{"}


def split_statements(text: str) -> list[Statement]:
    """Statements of a MATLAB file, in order.

    Raises:
        MatlabError: a bracket or string that is not closed, as in a file that is cut off.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text, ended = text.rstrip("\n") + "\n", text.endswith("\n")
    text = _without_block_comments(text)
    statements: list[Statement] = []
    brackets: list[tuple[str, int]] = []
    parts: list[str] = []
    line = start = 1
    separated = True  # whether the last statement is ended by more than the end of the file
    for match in _PIECES.finditer(text):
        kind, piece = match.lastgroup, match[0]
        if not parts:
            start = line
        if kind == "unclosed":
            raise MatlabError(line, f"a string opened by {piece} is not closed")
        if kind == "opening":
            brackets.append((piece, line))
        elif kind == "closing":
            if not brackets or brackets.pop()[0] != _PARTNER[piece]:
                raise MatlabError(line, f"'{piece}' does not match an opening bracket")
        elif kind == "newline" and brackets and brackets[-1][0] == "(":
            raise MatlabError(line, "'(' is not closed on its line; is the file cut off?")
        if kind in ("newline", "separator") and not brackets:
            if statement := "".join(parts).strip():
                statements.append(Statement(start, statement))
                separated = kind == "separator" or match.end() < len(text)
            parts.clear()
        elif kind == "continued":
            parts.append(" ")
        elif kind != "comment" and (parts or not piece.isspace()):
            parts.append(piece)
        line += kind in ("newline", "continued")
    if brackets:
        raise MatlabError(
            brackets[0][1], f"'{brackets[0][0]}' is never closed; is the file cut off?"
        )
    if parts:
        raise MatlabError(start, "ends in a continuation; is the file cut off?")
    if not ended and not separated and statements[-1].text != "end":
        raise MatlabError(
            statements[-1].line, "the last statement is not ended; is the file cut off?"
        )
    return statements


def _without_block_comments(text: str) -> str:
    """The text with empty lines in place of `%{` to `%}`, which may be nested."""
    if "%{" not in text:
        return text
    lines, depth, opened = text.split("\n"), 0, 0
    for number, line in enumerate(lines, 1):
        mark = line.strip(" \t")
        if mark == "%{":
            depth, opened = depth + 1, number if depth == 0 else opened
        if depth:
            lines[number - 1] = ""
            depth -= mark == "%}"
    if depth:
        raise MatlabError(opened, "'%{' is never closed; is the file cut off?")
    return "\n".join(lines)
