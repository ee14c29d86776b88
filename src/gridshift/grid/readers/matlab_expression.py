"""Value of a MATLAB expression: a strict subset, anything outside it is an error."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
    re.VERBOSE,
)

_BINARY: dict[str, Callable[[Real, Real], Real]] = {
    "+": np.add, "-": np.subtract, ".*": np.multiply, "./": np.divide, ".^": np.power,
    "==": np.equal, "~=": np.not_equal, "<": np.less, ">": np.greater, "<=": np.less_equal,
    ">=": np.greater_equal, "&": np.logical_and, "|": np.logical_or,
}  # fmt: skip
_LEVELS = (("||",), ("&&",), ("|",), ("&",), ("==", "~=", "<", ">", "<=", ">="), (":",),
           ("+", "-"), ("*", "/", ".*", "./"))  # fmt: skip
"""Binary operators, loosest first."""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    after_space: bool
    before_space: bool


def evaluate(text: str, variables: Mapping[str, Value]) -> Value:
    """Value of the expression `text`.

    Raises:
        ExpressionError: text outside the subset, an unknown name, or shapes that do not fit.
    """
    parser = _Parser(text, variables)
    value = parser.binary(0)
    parser.expect_end()
    return value


def index_lists(
    text: str, shape: tuple[int, int], variables: Mapping[str, Value]
) -> list[np.ndarray]:
    """Rows and columns, counted from 0, that an index such as `:, [PD, QD]` selects."""
    parser = _Parser(text + ")", variables)
    indices = parser.arguments(shape)
    parser.expect_end()
    if len(indices) != 2:
        raise ExpressionError("an index needs rows and columns")
    return indices


def scalar(number: float) -> Real:
    return np.full((1, 1), float(number))


class _Parser:
    """Recursive descent that evaluates as it goes."""

    def __init__(self, text: str, variables: Mapping[str, Value]):
        self.variables = variables
        self.tokens: list[_Token] = []
        self.next = 0
        self.extent: list[int] = []  # what `end` means, innermost index last
        position, spaced = 0, False
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(
                    f"'{text[position : position + 20].strip()}' is not understood"
                )
            position = match.end()
            if match.lastgroup == "space":
                spaced = True
                continue
            followed = text[position : position + 1] in (" ", "\t")
            self.tokens.append(_Token(str(match.lastgroup), match[0], spaced, followed))
            spaced = False

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
        token = self.peek()
        if token is not None:
            raise ExpressionError(f"{token.text!r} is not understood here")

    def binary(self, level: int, in_matrix: bool = False) -> Value:
        if level == len(_LEVELS):
            return self.unary(in_matrix)
        left = self.binary(level + 1, in_matrix)
        while (token := self.peek()) is not None and token.text in _LEVELS[level]:
            if in_matrix and token.after_space and not token.before_space and token.text in "+-":
                break  # [1 -2] has two elements
            self.next += 1
            left = _apply(token.text, left, self.binary(level + 1, in_matrix))
        return left

    def unary(self, in_matrix: bool) -> Value:
        sign = self.accept("-", "+", "~")
        if sign is None:
            return self.power(in_matrix)
        value = _numbers(self.unary(in_matrix))
        return -value if sign == "-" else value if sign == "+" else (value == 0).astype(float)

    def power(self, in_matrix: bool) -> Value:
        base = self.operand(in_matrix)
        while (operator := self.accept("^", ".^")) is not None:
            sign = self.accept("-", "+")
            exponent = _numbers(self.operand(in_matrix))
            base = _apply(operator, base, -exponent if sign == "-" else exponent)
        return base

    def operand(self, in_matrix: bool) -> Value:
        token = self.peek()
        if token is None:
            raise ExpressionError("ends too early")
        self.next += 1
        if token.kind == "number":
            return scalar(float(re.sub("[dD]", "e", token.text)))
        if token.kind == "string":
            return token.text[1:-1].replace(token.text[0] * 2, token.text[0])
        if token.kind == "name":
            return self.named(token.text, in_matrix)
        if token.text == "(":
            value = self.binary(0)
            self.expect(")")
            return value
        if token.text == "[":
            return self.matrix()
        raise ExpressionError(f"{token.text!r} is not understood here")

    def named(self, name: str, in_matrix: bool) -> Value:
        token = self.peek()
        called = token is not None and token.text == "(" and not (in_matrix and token.after_space)
        if name == "end" and self.extent:
            return scalar(self.extent[-1])
        if name in self.variables:
            return self.indexed(name) if called else self.variables[name]
        if name in CONSTANTS and not called:
            return scalar(CONSTANTS[name])
        if not called or not (name in FUNCTIONS or name == "find"):
            raise ExpressionError(f"'{name}' is not known")
        self.next += 1
        value = _numbers(self.binary(0))
        self.expect(")")
        if name != "find":
            with np.errstate(all="ignore"):
                return np.asarray(FUNCTIONS[name](value), np.float64)
        if value.shape[1] != 1:
            raise ExpressionError("'find' is understood for columns only")
        return np.asarray(np.flatnonzero(value)[:, None] + 1, np.float64)

    def indexed(self, name: str) -> Real:
        value = _numbers(self.variables[name])
        self.next += 1
        indices = self.arguments((value.shape[0], value.shape[1]))
        if len(indices) == 1 and 1 in value.shape:
            picked = value.ravel()[indices[0]]
            return picked[None] if value.shape[0] == 1 else picked[:, None]
        if len(indices) != 2:
            raise ExpressionError(f"an index into {name} needs rows and columns")
        return value[np.ix_(*indices)]

    def arguments(self, shape: tuple[int, int]) -> list[np.ndarray]:
        """Index lists up to the closing parenthesis, counted from 0; `:` is everything."""
        lists: list[np.ndarray] = []
        two = self._has_comma()
        while True:
            extent = shape[len(lists)] if two and len(lists) < 2 else shape[0] * shape[1]
            token, ahead = self.peek(), self.tokens[self.next + 1 : self.next + 2]
            if token is not None and token.text == ":" and ahead and ahead[0].text in (",", ")"):
                self.next += 1
                lists.append(np.arange(extent))
            else:
                self.extent.append(extent)
                number = _numbers(self.binary(0)).ravel()
                self.extent.pop()
                whole = number.astype(np.int64)
                if (whole != number).any() or (whole < 1).any() or (whole > extent).any():
                    raise ExpressionError(f"an index lies outside 1 to {extent}")
                lists.append(whole - 1)
            if self.accept(",") is None:
                self.expect(")")
                return lists

    def _has_comma(self) -> bool:
        depth = 0
        for token in self.tokens[self.next :]:
            if token.text == "," and depth == 0:
                return True
            depth += (token.text in "([") - (token.text in ")]")
            if depth < 0:
                break
        return False

    def matrix(self) -> Real:
        rows: list[Real] = []
        row: list[Real] = []
        while True:
            if self.accept("]"):
                break
            if self.accept(";", "\n"):
                if row:
                    rows.append(np.concatenate(row, axis=1))
                row = []
            elif not self.accept(","):
                row.append(_numbers(self.binary(0, in_matrix=True)))
        if row:
            rows.append(np.concatenate(row, axis=1))
        if len({part.shape[1] for part in rows}) > 1:
            raise ExpressionError("rows of a matrix differ in length")
        return np.concatenate(rows) if rows else np.zeros((0, 0))


def _numbers(value: Value) -> Real:
    if isinstance(value, str):
        raise ExpressionError("a text stands where a number is needed")
    return value


def _apply(operator: str, left: Value, right: Value) -> Value:
    a, b = _numbers(left), _numbers(right)
    if operator == ":":
        return np.arange(_one(a), _one(b) + 1)[None].astype(float)
    if operator in ("&&", "||"):
        both, either = _one(a) and _one(b), _one(a) or _one(b)
        return scalar(bool(both if operator == "&&" else either))
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
