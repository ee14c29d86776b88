"""Why pandapower's built-in grids are not MATPOWER's: what docs/matpower-cases.md says of them."""

from pathlib import Path

import numpy as np
import pandapower
import pandapower.networks
import pytest

from tests.reference.matpower_equations import case_file, equations_of, parsed
from tests.reference.same_names import difference

PAGE = Path(__file__).parents[2] / "docs" / "matpower-cases.md"


@pytest.mark.parametrize("name", ["case9", "case24_ieee_rts", "case57", "case118", "case145"])
def test_the_page_says_what_is_measured_and_nothing_else_differs(name):
    found = difference(name)
    measured = str(found).rpartition(f"| {found.left:.0e} |")[0]  # rounding is another every time
    assert measured in PAGE.read_text(encoding="utf-8")
    assert found.left < 1e-8 < found.voltage


def residual_of_pandapowers_solution(net, name):
    """In the equations that MATPOWER's file states; nothing of gridshift is in it."""
    pandapower.runpp(net, numba=False, tolerance_mva=1e-9, calculate_voltage_angles=True)
    table = net.res_bus
    voltage = table.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(table.va_degree.to_numpy()))
    equations = equations_of(case_file(name))
    return equations.residual(dict(zip(equations.numbers, voltage, strict=True)))


@pytest.mark.parametrize(("name", "num_moved"), [("case57", 15), ("case24_ieee_rts", 5)])
def test_pandapowers_grid_is_matpowers_once_its_taps_stand_at_matpowers_end(name, num_moved):
    net = getattr(pandapower.networks, name)()
    assert residual_of_pandapowers_solution(net, name) > 1e-2
    starts = {(b["from_id"], b["to_id"]) for b in parsed(case_file(name)).branches}
    tapped = net.trafo.tap_pos.fillna(0) != 0
    moved = [
        tapped[i] and (net.trafo.lv_bus[i] + 1, net.trafo.hv_bus[i] + 1) in starts
        for i in net.trafo.index
    ]
    assert sum(moved) == num_moved
    net.trafo.loc[moved, "tap_side"] = "lv"
    assert residual_of_pandapowers_solution(net, name) < 1e-8


def test_pandapowers_case9_is_matpowers_once_it_has_its_set_points():
    net = pandapower.networks.case9()
    assert residual_of_pandapowers_solution(net, "case9") > 1e-2
    net.ext_grid["vm_pu"], net.gen["vm_pu"] = 1.04, 1.025
    assert residual_of_pandapowers_solution(net, "case9") < 1e-8


def test_pandapower_loses_the_sign_of_a_no_load_current():
    """The charging of case118's row 104, 0.638 p.u., is stored as -0.644 % of 9900 MVA."""
    states = []
    for sign in (1, -1):
        net = pandapower.networks.case118()
        assert net.trafo.i0_percent.min() < -0.6
        net.trafo["i0_percent"] *= sign
        pandapower.runpp(net, numba=False)
        states.append(net.res_bus.vm_pu.to_numpy())
    assert np.array_equal(*states)
