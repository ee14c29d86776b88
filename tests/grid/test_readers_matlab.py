"""The MATLAB subset: what is understood has MATLAB's value, everything else is an error."""

import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridshift.grid.readers.matlab_expression import ExpressionError, Workspace, evaluate
from gridshift.grid.readers.matlab_script import run_case
from gridshift.grid.readers.matlab_text import MatlabError, split_statements

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2*3", 7),
        ("-2^2", -4),
        ("2^-1", 0.5),
        ("2^3^2", 64),  # MATLAB's powers associate to the left
        ("10/2/5", 1),
        ("1e3 + 2.5E-1 + 1d2 + .5", 1100.75),
        ("135/sqrt(3)", 135 / 3**0.5),
        ("sin(acos(0.85))", (1 - 0.85**2) ** 0.5),
        ("[1 -2]", [[1, -2]]),
        ("[1 - 2]", [[-1]]),
        ("[1 -2 + 3, 4]", [[1, 1, 4]]),
        ("[1, 2; 3 4\n5 6]", [[1, 2], [3, 4], [5, 6]]),
        ("[a(1, 2) -a(2, 1)]", [[2, -4]]),
        ("a(:, 2)", [[2], [5]]),
        ("a(end, [1 end])", [[4, 6]]),
        ("a(1, 2:3) * 10", [[20, 30]]),
        ("a(:, [1 2]) ./ a(:, [2 3])", [[1 / 2, 2 / 3], [4 / 5, 5 / 6]]),
        ("a / 2", A / 2),
        ("find(a(:, 1) > 2)", [[2]]),
        ("isinf(Inf) & ~isinf(3)", 1),
        ("1 == 1 && 2 ~= 3", 1),
        ("3./4", 0.75),
        ("1:2.5", [[1, 2]]),
        ("0.5:3", [[0.5, 1.5, 2.5]]),
        ("-" * 50_000 + "3", 3),
        ("-" * 50_001 + "3", -3),
        ("~" * 3 + "3", 0),
        ("(" * 20 + "3" + ")" * 20, 3),
        ("[[] 1; []]", 1),
        ("1 + 2 == 3 & 0 < 1 || 0", 1),
    ],
)
def test_expressions_have_matlabs_value(text, expected):
    value = evaluate(text, Workspace({"a": A}))
    np.testing.assert_allclose(value, np.atleast_2d(expected), rtol=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "foo", "foo(1)", "a'", "a(7, 1)", "a(0, 1)", "a(1.5, 1)", "a * a", "1 +", "(1", "[1 2; 3]",
        "a + [1 2]", "1:2:5", "@sin", "a{1}", "3i", "1..2", "max(1, 2)", "'text' + 1", "a(1, 2, 3)",
        "3:3:9", "[a 1]", "a(NaN, 1)", "a(1e300, 1)", "a(Inf, 1)", "a::2", "1 + \u0663",
    ],
)  # fmt: skip
def test_expressions_outside_the_subset_are_errors(text):
    with pytest.raises(ExpressionError):
        evaluate(text, Workspace({"a": A}))


@given(
    st.lists(st.lists(st.floats(allow_nan=False), min_size=3, max_size=3), min_size=1, max_size=5)
)
def test_a_matrix_of_numbers_is_read_to_the_last_bit(rows):
    rows = [[0.0 if abs(x) == float("inf") else x for x in row] for row in rows]
    text = ";\n".join("\t".join(repr(x) for x in row) for row in rows)
    fields = run_case(f"function mpc = f\nmpc.t = [\n{text}\n];\n")
    assert fields["t"].tolist() == rows


@given(st.text(alphabet="ab 12.,;()[]{}'\"%=\n\t+-*/~:", max_size=60))
def test_any_text_either_runs_or_is_refused(text):
    with suppress(MatlabError):  # any other exception is a defect
        run_case("function mpc = f\n" + text)


BOMBS = {
    "parentheses": ("mpc.a = " + "(" * 5000 + "1" + ")" * 5000, "nested more than 25 deep"),
    "brackets": ("mpc.a = " + "[" * 5000 + "1" + "]" * 5000, "nested more than 25 deep"),
    "calls": ("mpc.a = " + "sqrt(" * 5000 + "1" + ")" * 5000, "nested more than 25 deep"),
    "indices": ("x = [1 1]; mpc.a = " + "x(" * 5000 + "1" + ")" * 5000, "more than 25 deep"),
    "to NaN": ("x = 1:NaN", "the range 1:nan needs finite ends"),
    "to Inf": ("x = 1:Inf", "the range 1:inf needs finite ends"),
    "range": ("x = 1:1e12", "more than 20,000,000 numbers"),
    "widest range": ("x = -1e308:1e308", "more than 20,000,000 numbers"),
    "zeros": ("x = zeros(1e9)", "'zeros' is not known"),
    "doubled": ("x = [1 2];" + "x = [x x];" * 60, "more than 20,000,000 numbers"),
    "stacked": ("x = [1 2];" + "x = [x; x];" * 60, "more than 20,000,000 numbers"),
    "copies": ("x = 1:1e6;" + "".join(f"y{i} = x + x;" for i in range(99)), "20,000,000 numbers"),
    "signs": ("x = 1:1e6; y = " + "-" * 99 + "x", "20,000,000 numbers"),
    "picked": ("x = 1:1e5; m = [1]; y = m(x - x + 1, x - x + 1)", "20,000,000 numbers"),
    "written": ("x = 1:1e5; m = [1]; m(x - x + 1, x - x + 1) = 1", "20,000,000 numbers"),
    "comments": ("%{\n" * 100_000, "'%{' is never closed"),
    "branches": ("if 1\n" * 20_000, "'if' without 'end'"),
    "a long name": ("mpc.a = " + "a" * 300_000, "is not known|aaa"),
    "spaces": ("function" + " " * 100_000 + "!", "not understood"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_asks_for_too_much_is_refused_in_one_short_line(name):
    body, message = BOMBS[name]
    tracemalloc.start()
    with pytest.raises(MatlabError, match=message) as caught:
        run_case(f"function mpc = f\n{body};\n")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    # 20 million numbers are 160 MB; a statement holds its value and one operand besides.
    assert peak < 500e6


def test_a_change_of_one_variable_leaves_its_copy_as_it_was():
    fields = run_case("function mpc = f\nmpc.a = [1 2];\nmpc.b = mpc.a;\nmpc.b(1, 2) = 7;\n")
    assert fields["a"].tolist() == [[1, 2]]
    assert fields["b"].tolist() == [[1, 7]]


def test_block_comments_may_be_nested():
    text = "function mpc = f\n%{\n a\n %{\n b\n%}\nmpc.a = 1;\n%}\nmpc.a = 2;\nx"
    with pytest.raises(MatlabError) as caught:
        run_case(text)
    assert caught.value.line == 10
    assert run_case(text[:-1])["a"] == 2


def test_comments_strings_and_continuations_end_where_matlab_ends_them():
    text = (
        "a = 1; % no; b = 2\nc = 'x % y; ''z'''; d = [1 ... and more\n 2 % two\n 3]; e = \"q;'\"\n"
    )
    statements = split_statements(text)
    assert [s.text for s in statements] == [
        "a = 1", "c = 'x % y; ''z'''", "d = [1   2 \n 3]", "e = \"q;'\""
    ]  # fmt: skip
    assert [s.line for s in statements] == [1, 2, 2, 4]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("mpc.a = [1 2\n3 4", 2, "'[' is never closed; is the file cut off?"),
        ("mpc.a = [1 2\n3 4 5];", 2, "row 2 has 3 columns, row 1 has 2"),
        ("mpc.a = 1;\nmpc.a(:, 1) = mpc.a(:, 1", 3, "'(' is not closed"),
        ("mpc.a = 'x", 2, "string"),
        ("mpc.a = 1 + ...", 2, "cut off"),
        ("mpc.a = 1;\nmpc = scale_load(2, mpc);", 3, "'scale_load' is not known"),
        ("mpc.a = 1;\nfor i = 1:3\n mpc.a = i;\nend", 3, "'for' is not understood"),
        ("mpc.a = [1 2];\nmpc.a(:, 3) = 1;", 3, "outside 1 to 2"),
        ("mpc.a = [1 2];\nmpc.a(:, 1) = [];", 3, "values for 1 rows"),
        ("if 1\n mpc.a = 1;", 3, "cut off"),
        ("mpc.a = 1", 2, "the last statement is not ended; is the file cut off?"),
        ("mpc.a += 1;", 2, "not understood"),
        ("disp(mpc.a);", 2, "not understood"),
        ("[a, b] = deal(1, 2);", 2, "not understood"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(body, line, message):
    with pytest.raises(MatlabError) as caught:
        run_case("function mpc = f\n" + body)
    assert caught.value.line == line
    assert message in caught.value.message


def test_a_branch_that_does_not_run_is_passed_over_and_one_that_does_is_not():
    text = (
        "function mpc = f\nmpc.a = 1;\nif {}\n mpc.a = unknown(3);\n if 1\n end\n"
        "else\n mpc.a = 2;\nend\n"
    )
    assert run_case(text.replace("{}", "0"))["a"] == 2
    with pytest.raises(MatlabError, match="'unknown' is not known"):
        run_case(text.replace("{}", "1"))


@pytest.mark.parametrize("ending", [";", "\n", "; % done", "\n% done", ";\nend", "\nend\n"])
def test_a_last_line_may_end_without_a_newline_if_its_statement_is_ended(ending):
    assert run_case("function mpc = f\nmpc.a = 3" + ending)["a"] == 3


def test_column_names_are_matpowers():
    fields = run_case(
        "function mpc = f\n"
        "[F_BUS, T_BUS, BR_R, BR_X, BR_B, RATE_A, RATE_B, RATE_C, TAP, SHIFT, BR_STATUS, PF, QF, "
        "PT] = idx_brch;\nmpc.pt = PT;\ndefine_constants;\nmpc.angmin = ANGMIN;\nmpc.vg = VG;\n"
    )
    assert [fields[k].item() for k in ("pt", "angmin", "vg")] == [16, 12, 6]
