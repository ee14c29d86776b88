"""Names and positions of elements: read where the source has them, shown, and never counted."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandapower as pp
import pandapower.networks
import pytest

from gridshift.grid.names import described, described_outage, own_name
from gridshift.grid.network_file import network_content, network_of
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.matlab_script import run_case
from tests.reference.matpower_equations import case_file


@pytest.fixture
def net():
    net = pp.create_empty_network(name="named")
    for number, place in enumerate([(8.0, 48.0), (8.2, 48.1), (8.4, 48.0)]):
        pp.create_bus(net, 110, name=f"Station {number}", geodata=place)
    pp.create_bus(net, 20, name="Mill")
    pp.create_bus(net, 20, name="Mill B", geodata=(9.0, 47.0))
    pp.create_switch(net, 3, 4, et="b")
    pp.create_ext_grid(net, 0)
    pp.create_load(net, 3, 5, 1, name="paper\nmill")
    kind = "149-AL1/24-ST1A 110.0"
    for start, end, name in ((0, 1, "North-Mill"), (1, 2, None), (0, 2, "2")):
        pp.create_line(net, start, end, 10, kind, name=name)
    pp.create_transformer(net, 2, 3, "25 MVA 110/20 kV", name="T1")
    return net


def test_elements_read_as_label_name_ends_and_voltage(net):
    network = read_grid(net)
    assert described(network, "line:0") == 'line:0 "North-Mill" (bus 0-1, 110 kV)'
    assert described(network, "line:1") == "line:1 (bus 1-2, 110 kV)"
    assert described(network, "line:2") == "line:2 (bus 0-2, 110 kV)"  # '2' says no more
    assert described(network, "trafo:0") == 'trafo:0 "T1" (bus 2-3+4, 110/20 kV)'
    assert described(network, "bus:1") == 'bus:1 "Station 1" (110 kV)'
    assert described(network, "bus:3+4") == 'bus:3+4 "Mill + Mill B" (20 kV)'
    assert described(network, "load:0") == 'load:0 "paper mill"'
    assert described_outage(network, "line:1,line:2") == (
        "line:1 (bus 1-2, 110 kV), line:2 (bus 0-2, 110 kV)"
    )


def test_a_three_winding_transformer_has_three_ends():
    import pandapower.networks

    network = read_grid(pandapower.networks.example_multivoltage())
    label = next(label for label in network.elements if label.startswith("trafo3w"))
    assert described(network, label).count("-") >= 2
    assert "110/20/10 kV" in described(network, label)


def test_positions_are_those_of_the_file_and_fused_buses_lie_where_one_of_them_does(net):
    xy = read_grid(net).bus_xy
    assert np.allclose(xy, [[8, 48], [8.2, 48.1], [8.4, 48], [9, 47]])
    net.bus.geo = None
    assert np.isnan(read_grid(net).bus_xy).all()


@pytest.mark.parametrize("geo", ["", "[", "3", '{"coordinates": ["a", 1]}', 7, "{}"])
def test_what_is_no_position_refuses_nothing(net, geo):
    net.bus.loc[0, "geo"] = geo
    xy = read_grid(net).bus_xy
    assert np.isnan(xy[0]).all()
    assert np.isfinite(xy[1]).all()


def test_positions_of_an_older_format_are_read_and_a_bad_one_refuses_nothing(net, tmp_path):
    net.bus = net.bus.drop(columns="geo")
    content = json.loads(pp.to_json(net))
    table = {"columns": ["x", "y"], "index": [0, 1], "data": [[1.5, 2.5], ["here", 0]]}
    content["_object"]["bus_geodata"] = {
        "_module": "pandas.core.frame", "_class": "DataFrame", "_object": json.dumps(table),
        "dtype": {}, "orient": "split",
    }  # fmt: skip
    path = tmp_path / "old.json"
    path.write_text(json.dumps(content))
    xy = read_grid(path).bus_xy
    assert xy[0].tolist() == [1.5, 2.5]
    assert np.isnan(xy[1:]).all()


def test_matpowers_bus_names_are_read():
    network = read_grid("tests/cases/rules.m")
    assert network.names["bus:20"] == "it's % no comment"
    assert described(network, "branch:1") == "branch:1 (bus 10-20, 110 kV)"


@pytest.mark.parametrize("cells", ["{'one'}", "{1; 2; 3}", "{}", "{'a', {'b'}}"])
def test_names_that_do_not_fit_the_buses_are_none(tmp_path, cells):
    text = Path("tests/cases/rules.m").read_text()
    start = text.index("mpc.bus_name")
    path = tmp_path / "other.m"
    path.write_text(f"{text[:start]}mpc.bus_name = {cells};\n{text[text.index('};', start) + 2 :]}")
    assert read_grid(path).names == {}


def test_names_and_positions_are_kept_and_are_not_in_the_digest(net):
    network = read_grid(net)
    again, _ = network_of(network_content(network, [], key="one"), key="one")
    assert again.names == network.names
    assert np.array_equal(again.bus_xy, network.bus_xy)
    bare = replace(network, names={}, bus_xy=np.full((4, 2), np.nan))
    assert bare.digest == network.digest
    assert network.without(["line:0"]).names == network.names


def test_a_name_is_one_line_of_bounded_length():
    assert own_name(" a \n b ", "bus:1") == "a b"
    assert own_name(12.0, "bus:1") == "12"
    assert len(own_name("x" * 500, "bus:1")) == 60
    assert [own_name(given, "bus:1") for given in (None, float("nan"), "", "1", "bus:1", 1)] == [
        ""
    ] * 6


def test_areas_are_pandapowers_zones_and_matpowers_areas_and_survive_the_cache():
    net = pp.networks.case30()
    net.bus.loc[3, "zone"] = None
    net.bus["zone"] = net.bus["zone"].astype(object)
    net.bus.loc[4, "zone"] = "North"
    found = read_grid(net)
    assert found.areas["bus:4"] == "North"
    assert "bus:3" not in found.areas
    assert found.areas["bus:5"] == f"{net.bus.zone[5]:g}"
    network, _ = network_of(network_content(found, [], key="k"), key="k")
    assert network.areas == found.areas
    case30 = read_grid(case_file("case30"))
    table = np.asarray(run_case(Path(case_file("case30")).read_text())["bus"])
    assert case30.areas == {f"bus:{row[0]:g}": f"{row[6]:g}" for row in table}
