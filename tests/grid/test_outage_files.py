"""Lists of outages from other programs: PSS/E's `.con`, MATPOWER's change tables."""

import re
from pathlib import Path

import numpy as np
import pandapower
import pandapower.networks
import pytest

from gridshift.errors import GridshiftWarning, OutageError
from gridshift.grid.after_outage import after_outage
from gridshift.grid.names import end_buses
from gridshift.grid.outage_list import read_contingencies, select_outages
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from gridshift.grid.supplied import supplied_part
from tests.reference.matpower_equations import case_file

CON = """/ of case30
COM made by hand
CONTINGENCY 'LINE 6-8 / both' / double circuit
  DISCONNECT BRANCH FROM BUS 6 TO BUS 8 CKT 1
  open line from bus  8 to bus 28  circuit '1'
END
CONTINGENCY UNIT-2
REMOVE MACHINE 1 FROM BUS 2
END
CONTINGENCY "bus and more"
TRIP BUS 26
REMOVE LOAD '1' FROM BUS 7
REMOVE SWSHUNT FROM BUS 5
REMOVE SHUNT 1 FROM BUS 24
END
CONTINGENCY again
TRIP LINE FROM BUS 8 TO BUS 28
TRIP LINE FROM BUS 8 TO BUS 6
END
END
nothing is read behind the last END
"""


def listed(network, path, text):
    path.write_text(text)
    return read_contingencies(network, path)


def test_contingencies_of_psse_are_those_between_the_buses_of_these_numbers(case30, tmp_path):
    told = r"same as an earlier one are left out: again \(as LINE 6-8 / both\)"
    with pytest.warns(GridshiftWarning, match=told):
        first, second, third = listed(case30, tmp_path / "case30.con", CON)
    assert first.name == "LINE 6-8 / both"
    net = pandapower.networks.case30()  # whose bus 7 is called 8
    ends = [{*map(int, pair)} for pair in net.line[["from_bus", "to_bus"]].to_numpy()]
    expected = [f"line:{ends.index({5, 7})}", f"line:{ends.index({7, 27})}"]
    assert sorted(first.outage) == sorted(expected)
    (gen,) = net.gen.index[net.gen.bus == 1]
    assert second.outage == (f"gen:{gen}",)
    (load,) = net.load.index[net.load.bus == 6]
    assert {*third.outage} == {"bus:25", f"load:{load}", "shunt:4", "shunt:23"}


def test_circuits_between_two_buses_are_told_apart_and_three_windings_found(tmp_path):
    net = pandapower.networks.create_empty_network()
    high, mid, low, far = (pandapower.create_bus(net, kv) for kv in (110.0, 20.0, 10.0, 110.0))
    pandapower.create_ext_grid(net, high)
    for _ in range(2):
        pandapower.create_line(net, high, far, 10.0, "184-AL1/30-ST1A 110.0")
    pandapower.create_transformer3w(net, high, mid, low, "63/25/38 MVA 110/20/10 kV")
    for bus, p in ((mid, 5.0), (far, 10.0)):
        pandapower.create_load(net, bus, p, 1.0)
    pandapower.create_sgen(net, far, 2.0)
    network = read_grid(net)
    text = "\n".join(
        f"CONTINGENCY {k}\n{statement}\nEND"
        for k, statement in enumerate((
            "DISCONNECT BRANCH FROM BUS 3 TO BUS 0 CKT 2",
            "DISCONNECT BRANCH FROM BUS 0 TO BUS 1 TO BUS 2",
            "DISCONNECT THREEWINDING AT BUS 2 TO BUS 1 TO BUS 0 CKT T1",
            "REMOVE UNIT 1 FROM BUS 3",
        ))
    )  # fmt: skip
    found = listed(network, tmp_path / "mine.con", text)
    assert [one.outage for one in found] == [("line:1",), ("trafo3w:0",), ("static:3",)]
    assert {*end_buses(network, "trafo3w:0")} == {0, 1, 2}
    wrong = text.replace("TO BUS 0 CKT 2", "TO BUS 0 CKT 3")
    with pytest.raises(OutageError, match=r"line 2: no circuit '3' between .*: there are line:0"):
        listed(network, tmp_path / "mine.con", wrong)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("CONTINGENCY a\nCLOSE BRANCH FROM BUS 1 TO BUS 2\nEND", "line 2: .*is not understood"),
        ("SINGLE BRANCH IN SUBSYSTEM 'X'\nEND", "line 1: .*is outside of any contingency"),
        ("CONTINGENCY a\nOPEN BRANCH FROM BUS 1 TO BUS 99\nEND", "line 2: no bus 99 in case30"),
        ("CONTINGENCY a\nOPEN BRANCH FROM BUS 1 TO BUS 30\nEND", "line 2: there is no circuit"),
        (
            "CONTINGENCY a\nTRIP BUS 4\nCONTINGENCY b\nTRIP BUS 5\nEND",
            "line 3: 'CONTINGENCY b' begins before 'a' of line 1 has",
        ),
        (
            "CONTINGENCY a\nTRIP BUS 4\nEND\nCONTINGENCY a\nTRIP BUS 5\nEND",
            "line 4: contingency 'a' is another one than in line 1",
        ),
        ("CONTINGENCY a\nTRIP BUS 4\n", "line 1: contingency 'a' has no END"),
        ("CONTINGENCY a\nEND\n", "line 2: contingency 'a' takes nothing out"),
        ("END\n", "has no contingency"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_line(case30, tmp_path, text, told):
    with pytest.raises(OutageError, match=rf"bad\.con: {told}"):
        listed(case30, tmp_path / "bad.con", text)


def test_a_machine_of_the_slack_bus_is_left_out_and_told(case30, tmp_path):
    text = "CONTINGENCY a\nREMOVE UNIT 1 FROM BUS 1\nEND\n" + CON
    with pytest.warns(
        GridshiftWarning, match="with ext_grid:0 are not studied: generators at a slack"
    ):
        found = listed(case30, tmp_path / "case30.con", text)
    assert len(found) == 3


def test_a_change_table_of_matpower_has_an_outage_for_each_of_its_labels():
    table = Path(case_file("case_ACTIVSg200")).with_name("contab_ACTIVSg200.m")
    network = read_grid(case_file("case_ACTIVSg200"))
    rows = re.findall(r"^\s+(\d+)\s+0\s+CT_T(BRCH|GEN)\s+(\d+)\s", table.read_text(), re.MULTILINE)
    kinds = {"BRCH": "branch", "GEN": "gen"}
    expected = [(label, (f"{kinds[kind]}:{row}",)) for label, kind, row in rows]
    found = read_contingencies(network, table)
    assert [(one.name, one.outage) for one in found] == expected
    assert len(found) == 245


def test_a_change_table_may_take_several_out_at_once_and_nothing_else(tmp_path):
    network = read_grid(case_file("case30"))
    head = "function chgtab = some\n[CT_LABEL, CT_PROB, CT_TABLE] = idx_ct;\ndefine_constants;\n"
    rows = ["7 .1 CT_TBRCH 3 BR_STATUS CT_REP 0", "7 .1 CT_TGEN 2 GEN_STATUS CT_REP 0",
            "2 .2 CT_TBRCH 9 BR_STATUS CT_REL 0"]  # fmt: skip
    text = head + "chgtab = [\n" + ";\n".join(rows) + ";\n];\n"
    second, first = listed(network, tmp_path / "some.m", text)
    assert (first.name, first.outage) == ("7", ("branch:3", "gen:2"))
    assert (second.name, second.outage) == ("2", ("branch:9",))
    changed = text.replace("3 BR_STATUS CT_REP 0", "3 RATE_A CT_REL 0.5")
    with pytest.raises(OutageError, match=r"row 1 \(7, 0.1, 3, 3, 6, 2, 0.5\) is no outage"):
        listed(network, tmp_path / "some.m", changed)
    with pytest.raises(OutageError, match="'function table = name'"):
        listed(network, tmp_path / "some.m", "x = 1;\n")
    with pytest.warns(
        GridshiftWarning, match="with gen:9 are not studied: generators that are out"
    ):
        listed(network, tmp_path / "some.m", text.replace("CT_TGEN 2", "CT_TGEN 9"))


def test_static_supply_that_is_out_is_shared_as_pandapower_solves_it():
    net = pandapower.networks.case30()
    pandapower.create_sgen(net, 6, p_mw=6.0, q_mvar=1.5)
    pandapower.create_sgen(net, 20, p_mw=2.0, q_mvar=0.5)
    network = read_grid(net)
    assert select_outages(network, "static") == [("static:6",), ("static:20",)]
    for redistribute in (True, False):
        after = after_outage(network, ("static:6",), redistribute=redistribute)
        assert "static:6" not in dict.fromkeys(select_outages(after.network, "static"))
        found = nominal(supplied_part(after.network).network).require_converged().voltage[0]
        expected = pandapower.networks.case30()
        pandapower.create_sgen(expected, 20, p_mw=2.0, q_mvar=0.5)
        if redistribute:
            expected.gen["p_mw"] *= 1 + 6.0 / expected.gen.p_mw.sum()
        pandapower.runpp(expected, numba=False, tolerance_mva=1e-9)
        np.testing.assert_allclose(np.abs(found), expected.res_bus.vm_pu, atol=1e-7)
