"""A study survives kill -9 at any moment."""

from tests.study.killed import survived


def test_a_study_killed_three_times_ends_with_the_table_of_an_undisturbed_one(tmp_path):
    assert len(survived(3, 1, tmp_path, scenarios=10_000)) == 3
