"""What the clock promises: everybody in turn, compiled beforehand, on one core."""

import os

import pytest

from gridshift.peers.clock import in_turns, least_cpu_seconds, pinned


def test_programs_take_turns_and_are_warm_before_the_first_round():
    order = []
    runs = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    times = in_turns(runs, rounds=3, at_least=0.0)
    assert order == ["a", "a", "b", "b"] + ["a", "b"] * 3
    assert len(times["a"].cpu) == len(times["b"].wall) == 3
    assert times["a"].calls == 1


def test_a_round_repeats_a_short_function_and_gives_the_time_of_one_call():
    def work():
        return sum(range(20_000))

    timing = in_turns({"work": work}, rounds=3, at_least=0.02)["work"]
    assert timing.calls > 5
    assert timing.cpu_s * timing.calls < 10 * 0.02
    assert min(timing.cpu) <= timing.cpu_s <= max(timing.cpu)


def test_the_fastest_of_some_calls_is_not_the_first():
    calls = []
    least_cpu_seconds(lambda: calls.append(1), repeats=4)
    assert len(calls) == 5


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no such call here")
def test_a_pinned_process_has_one_core_and_gets_the_others_back():
    before = os.sched_getaffinity(0)
    with pinned():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
