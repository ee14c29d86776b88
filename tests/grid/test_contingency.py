"""Outages: what is parsed, what splits the grid, what is heaviest."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pandapower
import pandapower.networks
import pytest

from gridshift.errors import OutageError
from gridshift.grid.contingency import (
    assess,
    cut_off_buses,
    enumerate_outages,
    make_outage,
    outage_text,
    parse_outage,
    rank_by_loading,
)
from gridshift.grid.equations import branch_loading
from gridshift.grid.outage_list import read_outages, select_outages
from gridshift.grid.powerflow import RowStatus, nominal
from gridshift.grid.readers import read_grid


@pytest.fixture(scope="module")
def grids():
    return {name: read_grid(name) for name in ("case30", "case118", "case300")}


# --- text and files ------------------------------------------------------------------------


def test_an_outage_is_sorted_by_kind_and_number_and_its_text_reads_back(grids):
    network = grids["case118"]
    outage = parse_outage(network, " line:28, line:9  trafo:1,line:9")
    assert outage == ("line:9", "line:28", "trafo:1")
    assert outage_text(outage) == "line:9,line:28,trafo:1"
    assert parse_outage(network, outage_text(outage)) == outage


def test_an_outage_may_be_a_sequence_of_labels(grids):
    expected = ("line:9", "line:28")
    for labels in (["line:28", "line:9"], ("line:9", "line:28"), np.array(["line:28", "line:9"])):
        assert parse_outage(grids["case118"], labels) == expected


@pytest.mark.parametrize("given", [3, None, [3], ["line:1", None], [["line:1"]], b"line:1", 1.5])
def test_what_is_no_label_is_refused(grids, given):
    with pytest.raises(OutageError, match="names no element; an outage is a list of labels"):
        parse_outage(grids["case30"], given)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "at least one"), ("line:999", "line:999"), ("line:1,lne:2,x", "lne:2, x"), (",", "one")],
)
def test_what_is_no_outage_is_refused_by_name(grids, text, said):
    with pytest.raises(OutageError, match=said):
        parse_outage(grids["case30"], text)


def test_an_element_already_out_of_service_is_no_candidate_and_is_refused(grids):
    left = grids["case30"].without(("line:3",))
    assert ("line:3",) not in enumerate_outages(left)
    with pytest.raises(OutageError, match="line:3 already out of service"):
        parse_outage(left, "line:3,line:4")


def test_a_file_of_outages_skips_comments_and_repeats(grids, tmp_path):
    path = tmp_path / "outages.txt"
    path.write_text("# two of them\nline:9\n\nline:28, line:9  # a pair\nline:9\n")
    assert read_outages(grids["case30"], path) == [("line:9",), ("line:9", "line:28")]
    assert select_outages(grids["case30"], str(path)) == read_outages(grids["case30"], path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_a_file_of_outages_may_have_a_byte_order_mark(grids, tmp_path, encoding):
    path = tmp_path / "outages.txt"
    path.write_bytes("line:1\r\nline:28, line:9  # Dürre\r\n".encode(encoding))
    assert read_outages(grids["case30"], path) == [("line:1",), ("line:9", "line:28")]


def test_all_problems_of_a_file_are_reported_together(grids, tmp_path):
    path = tmp_path / "outages.txt"
    path.write_text("line:9\nline:99\n\ntrafo:7\n")
    with pytest.raises(OutageError, match=r"line 2: .*line:99.*line 4: .*trafo:7"):
        read_outages(grids["case30"], path)


@pytest.mark.parametrize("content", [None, b"# nothing\n", b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_or_is_empty_is_refused(grids, tmp_path, content):
    path = tmp_path / "outages.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OutageError, match=r"outages\.txt"):
        read_outages(grids["case30"], path)


def test_an_unknown_choice_names_the_choices(grids):
    with pytest.raises(OutageError, match=r"lines, trafos, all, .*n-2"):
        select_outages(grids["case30"], "everything")


# --- what splits the grid ------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("case30", 38), ("case118", 166), ("case300", 253)])
def test_the_number_of_lines_that_do_not_split_the_grid_is_the_papers(grids, name, count):
    cut_off = cut_off_buses(grids[name], enumerate_outages(grids[name], "lines"))
    assert sum(len(buses) == 0 for buses in cut_off) == count


@pytest.mark.parametrize("name", ["case30", "case118", "case300"])
def test_single_outages_that_cut_buses_off_are_the_bridges_of_networkx(grids, name):
    network = grids[name]
    graph = nx.MultiGraph()
    graph.add_edges_from(zip(network.branch_from.tolist(), network.branch_to.tolist(), strict=True))
    assert len(network.slack) == 1
    expected = {tuple(sorted(pair)) for pair in nx.bridges(nx.Graph(graph))}
    expected = {pair for pair in expected if graph.number_of_edges(*pair) == 1}
    outages = [(label,) for label in network.elements]
    ends = set()
    for (label,), buses in zip(outages, cut_off_buses(network, outages), strict=True):
        (b,) = network.elements[label]
        if len(buses):
            ends.add(tuple(sorted((int(network.branch_from[b]), int(network.branch_to[b])))))
    assert ends == expected


@pytest.mark.parametrize("size", [1, 2, 3])
def test_buses_cut_off_are_those_that_networkx_does_not_reach(grids, size):
    network = grids["case118"]
    outages = enumerate_outages(network, "all")
    if size > 1:
        rng = np.random.default_rng(size)
        labels = list(network.elements)
        outages = [make_outage(rng.choice(labels, size, replace=False)) for _ in range(60)]
    for outage, buses in zip(outages, cut_off_buses(network, outages), strict=True):
        left = network.without(outage)
        on = left.branch_in_service
        ends = left.branch_from[on].tolist(), left.branch_to[on].tolist()
        graph = nx.Graph(zip(*ends, strict=True))
        graph.add_nodes_from(range(network.num_buses))
        fed = set().union(*(nx.node_connected_component(graph, s) for s in network.slack.tolist()))
        assert buses.tolist() == sorted(set(range(network.num_buses)) - fed)
        np.testing.assert_array_equal(buses, left.cut_off_buses())


def test_one_of_two_parallel_circuits_splits_nothing_and_both_do(grids):
    network = grids["case118"]
    pairs = {}
    for label, (branch,) in network.elements.items():
        ends = tuple(sorted((int(network.branch_from[branch]), int(network.branch_to[branch]))))
        pairs.setdefault(ends, []).append(label)
    parallel = [make_outage(labels) for labels in pairs.values() if len(labels) == 2]
    assert len(parallel) == 7
    singles = [(label,) for outage in parallel for label in outage]
    assert all(len(buses) == 0 for buses in cut_off_buses(network, singles))
    for outage, buses in zip(parallel, cut_off_buses(network, parallel), strict=True):
        np.testing.assert_array_equal(buses, network.without(outage).cut_off_buses())


def test_a_branch_between_two_slack_buses_cuts_nothing_off(grids):
    network = grids["case30"]
    outages = [(label,) for label in network.elements]
    cuts = zip(outages, cut_off_buses(network, outages), strict=True)
    outage, buses = max(cuts, key=lambda cut: len(cut[1]))
    kind = network.bus_kind.copy()
    kind[buses[0]] = 3
    (left,) = cut_off_buses(replace(network, bus_kind=kind), [outage])
    assert len(buses)
    assert buses[0] not in left


def test_case30_without_lines_0_and_1_is_islanded_with_29_buses_cut_off(grids):
    found = assess(grids["case30"], ("line:0", "line:1"))
    assert found.status == RowStatus.ISLANDED
    assert len(found.cut_off) == 29
    assert found.mw_cut_off == pytest.approx(pandapower.networks.case30().load.p_mw.sum())
    assert not found.usable
    assert "separates bus:1" in found.reason


# --- nominal solutions and loading ---------------------------------------------------------


def test_ten_lines_of_case300_keep_the_grid_whole_and_leave_no_nominal_solution(grids):
    network = grids["case300"]
    lines = [39, 85, 87, 148, 152, 153, 158, 229, 253, 266]
    for number in lines:
        found = assess(network, (f"line:{number}",))
        assert found.cut_off == ()
        assert not found.usable
        assert found.status != RowStatus.ISLANDED
    assert assess(network, ("line:228",)).usable


@pytest.mark.parametrize("name", ["case30", "case118"])
def test_loading_is_pandapowers_loading_percent(grids, name):
    network = grids[name]
    net = getattr(pandapower.networks, name)()
    pandapower.runpp(net, numba=False, tolerance_mva=1e-9)
    loading = branch_loading(network, nominal(network).voltage[0])
    for table in ("line", "trafo"):
        for index, percent in net[f"res_{table}"].loading_percent.items():
            (branch,) = network.elements[f"{table}:{index}"]
            # 1e-6: two solutions of 1e-9 MVA mismatch, as a share of the rating
            assert loading[branch] == pytest.approx(percent / 100, rel=1e-6)


def test_a_branch_out_of_service_carries_nothing(grids):
    left = grids["case30"].without(("line:9",))
    (branch,) = left.elements["line:9"]
    loading = branch_loading(left, nominal(left).voltage)
    assert loading.shape == (1, left.num_branches)
    assert loading[0, branch] == 0


@pytest.mark.parametrize(
    ("name", "expected", "rows"),
    [
        ("case30", ["line:9", "line:28"], 50),
        ("case118", ["line:34", "line:128"], 300),  # 128 and 90 are within 1 %
        ("case300", ["line:228"], 30),  # 229 is heavier and has no nominal solution
    ],
)
def test_the_most_loaded_lines_are_the_papers(grids, name, expected, rows):
    ranked = rank_by_loading(grids[name], num_rows=rows, num=len(expected))
    assert [element.label for element in ranked] == expected
    assert all(a.loading >= b.loading for a, b in itertools.pairwise(ranked))
