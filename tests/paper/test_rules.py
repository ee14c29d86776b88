"""Rules, verdicts and the sentences that one renderer writes, on numbers made by hand."""

import pytest

from gridshift_paper import claims as rules
from gridshift_paper.claims import NAN, Claim, Count, Note, Undecided, Verdict, decide, note


def broken(rule: rules.Rule, ours: dict[str, float], paper: dict[str, float] | None = None):
    return list(rule.failing(ours, paper or {}))


@pytest.mark.parametrize(
    ("rule", "passes", "fails"),
    [
        (rules.at_least(10), (10, 11), (9.99, NAN)),
        (rules.at_most(10), (10, -1), (10.01, NAN)),
        (rules.above(10), (10.01,), (10, NAN)),
        (rules.below(10), (9.99,), (10, NAN)),
        (rules.between(3, 5), (3, 4, 5), (2.99, 5.01, NAN)),
        (rules.MOSTLY, (2 / 3, 1), (0.5, 0, NAN)),
        (rules.HALF, (0.5, 1), (0.49, NAN)),
        (rules.ALWAYS, (1,), (0.99, NAN)),
    ],
)
def test_a_rule_of_single_numbers(rule, passes, fails):
    assert broken(rule, {str(n): n for n in passes}) == []
    assert broken(rule, {str(n): n for n in fails}) == [str(n) for n in fails]


@pytest.mark.parametrize(
    ("rule", "passes", "fails"),
    [
        (rules.NEAR, (0.8, 1.0, 1.2), (0.79, 1.21, NAN)),
        (rules.FACTOR, (0.8, 1.0, 1.25), (0.79, 1.26, 0, NAN)),
        (rules.SECONDS, (0.5, 2.0), (0.49, 2.01, NAN)),
        (rules.within(0.1), (0.9, 1.1), (0.89, 1.11, NAN)),
    ],
)
@pytest.mark.parametrize("paper", [50.0, 2e-4])
def test_a_rule_against_the_papers_numbers(rule, passes, fails, paper):
    """Shares of the paper's number, so that 0.8 is 20 % below it."""
    nearly = 1 - 1e-12  # 0.8 * 50 and 40 aren't the same number
    for shares, expected in ((passes, []), (fails, [str(n) for n in fails])):
        ours = {str(n): (1 + (n - 1) * nearly) * paper for n in shares}
        assert broken(rule, ours, dict.fromkeys(ours, paper)) == expected


def test_a_number_without_one_of_the_papers_breaks_a_rule_that_compares():
    assert broken(rules.NEAR, {"a": 1.0, "b": 1.0}, {"a": 1.0}) == ["b"]


def test_bounds_by_name():
    rule = rules.above({"a": 1, "b": 10})
    assert broken(rule, {"a": 5, "b": 5}) == ["b"]
    assert rule.needed == "more than 1 (a) and more than 10 (b)"


def test_falling_compares_each_number_with_the_one_before():
    assert broken(rules.FALLING, {"a": 3.0, "b": 2.0, "c": 1.0}) == []
    assert broken(rules.FALLING, {"a": 3.0, "b": 3.0, "c": 1.0}) == ["b"]
    assert broken(rules.FALLING, {"a": 3.0, "b": 2.0, "c": -1.0}) == ["c"]


def test_the_first_is_compared_with_all_others():
    ours = {"icw": 1.0, "mmnp": 0.8, "ttf": 2.0}
    assert broken(rules.first_smallest(), ours) == ["mmnp"]
    assert broken(rules.first_smallest(1.5), ours) == []


def test_one_reading_is_enough():
    rule = rules.in_one(rules.at_most(1))
    assert broken(rule, {"a": 2.0, "b": 0.5}) == []
    assert broken(rule, {"a": 2.0, "b": 3.0}) == ["a", "b"]


TENFOLD = rules.at_least(10)


def claim(numbers, rule=TENFOLD, **more) -> Claim:
    return Claim("ICW gains ten times", "frozen over ICW", lambda rows: numbers, rule, **more)


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ({"N-1": 12.0, "N-2": 30.0}, Verdict.HOLDS),
        ({"N-1": 12.0, "N-2": 3.0}, Verdict.FAILS),
        ({"N-1": 12.0, "N-2": NAN}, Verdict.OPEN),
        # one number that breaks the rule decides, whatever the missing ones are
        ({"N-1": NAN, "N-2": 3.0}, Verdict.FAILS),
        ({"N-1": NAN, "N-2": NAN}, Verdict.OPEN),
        ({}, Verdict.OPEN),
    ],
)
def test_a_verdict_needs_every_number_unless_one_breaks_the_rule(numbers, verdict):
    found = decide(claim(numbers), {})
    assert found.verdict == verdict
    assert "nan" not in found.ours


def test_what_was_not_measured_is_named():
    found = decide(claim({"N-1": 12.0, "N-2": NAN}), {})
    assert found.ours.startswith("Reason: not measured: N-2. ")


def test_rows_that_cannot_decide_say_why():
    def ours(rows):
        raise Undecided("the paper doesn't define it")

    undecided = Claim("the rank is 12", "rank", ours, rules.at_least(12),
                      beside=Note("Ours", lambda rows: {"by entropy": 2.3}))  # fmt: skip
    found = decide(undecided, {})
    assert found.verdict == Verdict.OPEN
    assert str(found) == (
        "The paper: the rank is 12. Not decided here. Reason: the paper doesn't define it. "
        "Ours: by entropy 2.30."
    )


def test_a_share_of_counts_is_compared_and_the_counts_are_written():
    found = decide(claim({"seeds": Count(2, 3)}, rules.MOSTLY), {})
    assert found.verdict == Verdict.HOLDS
    assert found.ours == "Frozen over ICW: seeds 2 of 3. Needed: more than half."
    assert decide(claim({"seeds": Count(0, 0)}, rules.MOSTLY), {}).verdict == Verdict.OPEN


def test_a_claim_that_fails_says_why_and_one_that_holds_does_not():
    why = "Rows are few."
    failing = decide(claim({"N-1": 3.0}, paper={"N-1": 13}, why=why), {})
    assert str(failing) == (
        "The paper: ICW gains ten times. This does not hold here. Frozen over ICW: N-1 3.00 "
        "(paper 13). Needed: at least 10. Rows are few."
    )
    assert why not in str(decide(claim({"N-1": 30.0}, why=why), {}))


def test_of_many_numbers_those_that_fail_are_written_or_the_extremes():
    many = {f"n{i}": 10.0 + i for i in range(12)}
    assert "smallest and largest of 12: n0 10.0; n11 21.0." in decide(claim(many), {}).ours
    worse = decide(claim({**many, "n3": 1.0, "n7": 2.0}), {})
    assert "2 of 12 break the rule: n3 1.00; n7 2.00." in worse.ours


def test_a_note_without_numbers_is_not_made():
    assert note(Note("Gain", lambda rows: {"N-1": 2.0}, {"N-1": 3.0}), {}) == (
        "Gain: N-1 2.00 (paper 3.00)."
    )
    assert note(Note("Gain", lambda rows: {"N-1": NAN}), {}) == ""
