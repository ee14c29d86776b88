"""Tap changers and shunts that move in steps, against pandapower's own controllers."""

import copy
import warnings

import numpy as np
import pytest

import gridshift as gs
from gridshift.errors import GridshiftWarning
from gridshift.grid.powerflow import solve
from gridshift.grid.readers.powerio_network import read_with_powerio
from gridshift.grid.readers.unfollowed_controls import unfollowed
from gridshift.grid.scenarios import LoadScenarios, nominal_loads
from gridshift.grid.solution import RowStatus
from tests.grid.test_readers_powerio import RAW_33
from tests.reference.small_nets import feeder, tapped, three_windings

AGREED = 1e-8


def read(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gs.from_pandapower(net)


def pandapowers(net, network, loads, row):
    """A copy of the network with the demands of a row, solved with its controllers."""
    import pandapower as pp

    net = copy.deepcopy(net)
    net.load["p_mw"] = loads.load_p[row] * network.base_mva
    net.load["q_mvar"] = loads.load_q[row] * network.base_mva
    pp.runpp(net, run_control=True, tolerance_mva=1e-10, numba=False, max_iteration=30)
    return net


def scaled(network, factors):
    factors = np.array(factors)[:, None]
    power = network.load_power
    return LoadScenarios(load_p=factors * power.real, load_q=factors * power.imag)


def assert_agreement(net, network, loads):
    found = solve(network, loads, tol=1e-10, controls=True)
    assert found.solved.all()
    for row in range(loads.num_rows):
        theirs = pandapowers(net, network, loads, row)
        for at, one in zip(found.positions[row], network.controls, strict=True):
            kind, _, index = one.label.partition(":")
            column = "tap_pos" if kind == "trafo" else "step"
            assert at == theirs[kind][column][int(index)], (row, one.label)
        v = np.abs(found.voltage[row])
        assert np.abs(v - theirs.res_bus.vm_pu.to_numpy()).max() < AGREED
    return found


@pytest.mark.parametrize(
    ("changes", "side"),
    [
        ({}, "lv"),
        ({"tap_step_percent": -1.5}, "lv"),
        ({"tap_side": "lv"}, "lv"),
        ({"tap_side": "lv", "tap_pos": 3}, "hv"),
        ({"tap_pos": 9}, "lv"),
        ({"tap_min": -2, "tap_pos": 2}, "lv"),
    ],
)
def test_a_tap_moves_where_pandapowers_controller_moves_it(changes, side):
    from pandapower.control import DiscreteTapControl

    net = tapped(**changes)
    DiscreteTapControl(net, 0, 0.99, 1.01, side=side)
    network = read(net)
    if side == "hv":  # that bus is the slack's: nothing to do
        assert network.controls == ()
        return
    found = assert_agreement(net, network, scaled(network, [0.1, 1.0, 2.2]))
    assert len(np.unique(found.positions)) > 1


@pytest.fixture(scope="module", name="feeder")
def fixture_feeder():
    return feeder()


def test_levels_shunts_and_several_tap_changers_agree_with_pandapower(feeder):
    network = read(feeder)
    assert [one.label for one in network.controls] == ["trafo:0", "trafo:1", "trafo:2", "shunt:0"]
    found = assert_agreement(feeder, network, scaled(network, [0.3, 1.0, 1.6]))
    assert (np.ptp(found.positions, axis=0) > 0).sum() >= 2
    # rows don't depend on which others are solved with them
    alone = solve(network, scaled(network, [1.6]), tol=1e-10, controls=True)
    assert np.array_equal(alone.positions[0], found.positions[2])
    assert np.array_equal(alone.voltage[0], found.voltage[2])


def test_an_outage_takes_its_tap_changer_along(feeder):
    network = read(feeder)
    lost = copy.deepcopy(feeder)
    lost.trafo.loc[1, "in_service"] = False
    found = solve(
        network.without(["trafo:1"]), loads := scaled(network, [1.3]), tol=1e-10, controls=True
    )
    theirs = pandapowers(lost, network, loads, 0)
    assert np.abs(np.abs(found.voltage[0]) - theirs.res_bus.vm_pu.to_numpy()).max() < AGREED
    assert found.positions[0, 2] == theirs.trafo.tap_pos[2]
    assert found.positions[0, 1] == network.controls[1].first + network.controls[1].start


def test_a_solved_state_is_exported_with_its_positions(feeder):
    network = read(feeder)
    loads = scaled(network, [1.6])
    found = solve(network, loads, tol=1e-10, controls=True)
    net = gs.to_pandapower(feeder, found, loads=loads)
    theirs = pandapowers(feeder, network, loads, 0)
    assert net.trafo.tap_pos.tolist() == theirs.trafo.tap_pos.tolist()
    assert net.shunt.step.tolist() == theirs.shunt.step.tolist()
    for side in ("p_hv_mw", "q_hv_mvar"):
        assert np.abs(net.res_trafo[side] - theirs.res_trafo[side]).max() < 1e-6


def test_a_row_that_moves_without_end_is_marked_and_others_are_not():
    from pandapower.control import DiscreteTapControl

    net = tapped()
    DiscreteTapControl(net, 0, 0.9999, 1.0001)
    network = read(net)
    without = solve(network, scaled(network, [1.0]), tol=1e-10)
    assert without.positions is None
    found = solve(network, scaled(network, [1.0, 40.0]), controls=True)
    assert found.status[0] == RowStatus.UNSETTLED_CONTROLS
    assert found.status[1] not in (RowStatus.SOLVED, RowStatus.UNSETTLED_CONTROLS)
    assert np.isnan(found.voltage).all()


def test_a_file_has_the_controls_of_the_network_and_says_what_is_not_followed(feeder, tmp_path):
    import pandapower as pp
    from pandapower.control import ContinuousTapControl, DiscreteTapControl

    path = tmp_path / "feeder.json"
    pp.to_json(feeder, str(path))
    with pytest.warns(
        GridshiftWarning, match=r"trafo:0, trafo:1, .* move where controls are asked for"
    ):
        network = gs.read_grid(path)
    assert network.controls == read(feeder).controls
    assert gs.read_grid(path).controls == network.controls  # from the cache
    net = three_windings()
    DiscreteTapControl(net, 0, 0.99, 1.01, side="mv", element="trafo3w")
    with pytest.warns(GridshiftWarning, match="trafo3w:0: a DiscreteTapControl is not followed"):
        gs.from_pandapower(net)
    net = tapped()
    ContinuousTapControl(net, 0, 1.0)
    with pytest.warns(GridshiftWarning, match="trafo:0: a ContinuousTapControl is not followed"):
        network = gs.from_pandapower(net)
    found = solve(network, nominal_loads(network), controls=True)
    assert found.positions.shape == (1, 0)
    DiscreteTapControl(net, 0, 0.99, 1.01)
    with pytest.warns(GridshiftWarning, match="trafo:0: a second controller is not followed"):
        assert gs.from_pandapower(net).controls == ()


@pytest.mark.parametrize(
    ("entry", "value"),
    [("_object", "{"), ("_object", "[1]"), ("_object", '{"element": "trafo"}'),
     ("_object", '{"element": "trafo", "element_index": 0, "side": "lv", "vm_lower_pu": "x"}'),
     ("_object", '{"shunt_index": 7, "element_index": [1, 2]}'), ("_class", "Unknown")],
)  # fmt: skip
def test_a_controller_that_says_nothing_sensible_moves_nothing(entry, value, tmp_path):
    import json

    import pandapower as pp
    from pandapower.control import DiscreteTapControl

    net = tapped()
    DiscreteTapControl(net, 0, 0.99, 1.01)
    path = tmp_path / "net.json"
    pp.to_json(net, str(path))
    content = json.loads(path.read_text())
    table = json.loads(content["_object"]["controller"]["_object"])
    table["data"][0][0][entry] = value
    content["_object"]["controller"]["_object"] = json.dumps(table)
    path.write_text(json.dumps(content))
    with pytest.warns(GridshiftWarning, match="not followed|lacks its band"):
        assert gs.read_grid(path).controls == ()


def test_formats_say_what_they_regulate():
    xiidm = (
        '<iidm:load id="L1" p0="1"><iidm:zipModel c0p="1"/></iidm:load><iidm:load id="L2"/>'
        '<iidm:shunt id="S1" voltageRegulatorOn="true"/><iidm:shunt id="S2"/>'
        '<iidm:twoWindingsTransformer id="T1"><iidm:ratioTapChanger regulating="true">'
    )
    ucte = (
        "##C 2007\n##R\nXA____11 XB____11 1 1.25  9  3 110.0\nXA____11 XC____11 1 1.25  9  3\n##E\n"
    )
    epc = (
        'load data [1] id long_id st mw mvar mw_i\n5 "" 345 "1" "load" : 1 90 30 2 0 0 0 1 1\n'
        'svd data [1] id\n7 "" 345 "1" "" : 1 1 5 0.0\n8 "" 345 "1" "" : 1 0 5 0.0\n'
    )
    aux = (
        'DATA (Shunt, [BusNum, ShuntID, ShuntMode])\n{\n  4 "1" "Discrete"\n  6 "1" "Fixed"\n}\n'
        'DATA (Load, [BusNum, LoadID, LoadMW, LoadZMW])\n{\n  5 "1" 90 3.5\n  7 "2" 1 0\n}\n'
    )
    cdf = "BRANCH DATA FOLLOWS\n   4    7  1  1 1 1  0.0\n   4    9  1  1 1 2  0.0\n-999\n"
    expected = {
        "xiidm": [("L1", "load"), ("T1", "tap"), ("S1", "shunt")],
        "ucte": [("XA____11 XB____11 1", "tap")],
        "pslf": [("bus 5", "load"), ("bus 7", "shunt")],
        "powerworld": [("bus 5", "load"), ("bus 4", "shunt")],
        "ieee-cdf": [("4-9", "tap")],
    }
    texts = {"xiidm": xiidm, "ucte": ucte, "pslf": epc, "powerworld": aux, "ieee-cdf": cdf}
    for kind, pairs in expected.items():
        told = list(unfollowed(kind, texts[kind], []))
        assert len(told) == len(pairs), (kind, told)
        for (name, what), words in zip(pairs, told, strict=True):
            assert words.startswith(f"{name}: the {what}"), (kind, told)


def test_controls_of_other_formats_are_named(tmp_path):
    empty = "".join(f"0 / END OF SECTION {k}\n" for k in range(11))
    text = RAW_33.format(load="20.0,10.0,0.0,0.0,0.0,0.0").replace(
        "0 / END OF TRANSFORMER DATA\n",
        "1,2,0,'1 ',1,1,1,0.0,0.0,2,'T1',1,1,1.0\n0.005,0.1,100.0\n"
        "1.02,110.0,0.0,40.0,40.0,40.0,1,2,1.1,0.9,1.01,0.99,33,0,0.0,0.0\n1.0,110.0\n"
        + empty
        + "2,1,0,1,1.03,0.97,0,100.0,' ',10.0,3,5.0\n1,0,0,1,1.03,0.97,0,100.0,' ',10.0,3,5.0\n"
        "0 / END OF SWITCHED SHUNT DATA\nQ\n",
    )
    path = tmp_path / "two.raw"
    path.write_text(text)
    with pytest.warns(GridshiftWarning) as told:
        read_with_powerio(path, path.read_bytes())
    words = [str(one.message) for one in told]
    assert any(w.endswith("T1: the tap changer regulates in the file; it stays where it is")
               for w in words)  # fmt: skip
    assert any("two.raw: bus 2: the shunt is switched" in w for w in words)
