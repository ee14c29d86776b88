"""Wrong arguments of the Python interface: one clear line of the right kind, nothing else."""

import numpy as np
import pytest

import gridshift as gs
from gridshift.arguments import how_many
from gridshift.errors import OutageError, ScenarioError
from gridshift.grid.outage_list import select_outages

NO_COUNTS = ["5", 1.5, 5.0, float("nan"), float("inf"), -1, 0, None, [5], True, np.float64(5)]
NO_NUMBERS = ["0.2", float("nan"), float("inf"), -0.1, None, [0.2], True]


@pytest.fixture(scope="module")
def network():
    return gs.read_grid("case14")


def refused(error, function, *args, **kwargs):
    with pytest.raises(error) as caught:
        function(*args, **kwargs)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 300
    return text


@pytest.mark.parametrize("count", NO_COUNTS, ids=repr)
def test_what_is_no_count_is_refused_everywhere(network, count):
    rng = np.random.default_rng(0)
    loads = gs.nominal_loads(network)
    for error, function in [
        (ScenarioError, lambda: gs.nominal_loads(network, count)),
        (ScenarioError, lambda: gs.sample_loads(network, rng, count)),
        (ScenarioError, lambda: gs.rank_by_loading(network, num_rows=count)),
        (OutageError, lambda: gs.enumerate_outages(network, "lines", count)),
        (gs.GridshiftError, lambda: gs.solve(network, loads, threads=count)),
        (gs.GridshiftError, lambda: gs.solve(network, loads, max_iterations=count)),
    ]:
        assert "give a whole number of at least 1" in refused(error, function)


def test_a_number_of_things_is_in_the_singular_for_one_alone():
    assert how_many(1, "row") == "1 row"
    assert how_many(0, "row") == "0 rows"
    assert how_many(2000, "bus", "buses") == "2,000 buses"


@pytest.mark.parametrize("count", [5, np.int64(5), np.uint8(5), np.int32(5)], ids=repr)
def test_numpys_integers_are_counts(network, count):
    loads = gs.sample_loads(network, gs.named_rng("case14", "test", seed=count), count)
    assert loads.num_rows == gs.nominal_loads(network, count).num_rows == 5
    assert gs.solve(network, loads, threads=count, max_iterations=count + 5).solved.all()
    assert len(gs.rank_by_loading(network, num_rows=count, num=count)) == 5


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
def test_what_is_no_size_is_refused(network, value):
    rng, loads = np.random.default_rng(0), gs.nominal_loads(network)
    refused(ScenarioError, gs.sample_loads, network, rng, 5, spread=value)
    refused(gs.GridshiftError, gs.solve, network, loads, tol=value)


@pytest.mark.parametrize("seed", ["1", 1.5, -1, None, float("nan")], ids=repr)
def test_what_is_no_seed_is_refused(network, seed):
    refused(ScenarioError, gs.named_rng, "case14", "test", seed=seed)
    refused(ScenarioError, gs.rank_by_loading, network, seed=seed)


@pytest.mark.parametrize("outage", ["line:1", 3, None, [3], [None], [["line:1"]], b"x"], ids=repr)
def test_what_is_no_list_of_labels_is_no_outage(network, outage):
    for function in (network.without, gs.outage_text, lambda o: gs.assess(network, o)):
        refused(OutageError, function, outage)


def test_an_assessed_outage_is_in_order_whatever_order_it_was_given_in(network):
    assert gs.assess(network, ["line:2", "line:1", "line:2"]).outage == ("line:1", "line:2")


@pytest.mark.parametrize("given", [None, 3, ["lines"], b"lines"], ids=repr)
def test_what_is_no_choice_of_outages_is_refused(network, given):
    refused(OutageError, gs.enumerate_outages, network, given)
    refused(OutageError, gs.read_outages, network, given)
    refused(OutageError, select_outages, network, given)


def test_what_is_no_grid_and_what_are_no_scenarios_is_refused(network):
    for wrong in (None, 3, "case14", np.ones((3, 11))):
        assert "Network" in refused(ScenarioError, gs.solve, wrong, gs.nominal_loads(network))
        assert "LoadScenarios" in refused(ScenarioError, gs.solve, network, wrong)
        assert "Network" in refused(OutageError, gs.assess, wrong, ("line:1",))
        assert "Generator" in refused(ScenarioError, gs.sample_loads, network, wrong, 5)
    texts = np.full((2, network.num_loads), "1")
    refused(ScenarioError, gs.solve, network, gs.LoadScenarios(load_p=texts, load_q=texts))
