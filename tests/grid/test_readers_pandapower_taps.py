"""Tap changers: positions, tables and curves mean what they say, or are refused, or warned of."""

import warnings

import numpy as np
import pytest

from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from tests.reference.small_nets import pandapowers_voltages, tapped, three_windings

TOLERANCE = 1e-8
"""Complex voltage, p.u.; both sides are solved to 1e-10."""


def solved(net):
    network = read_grid(net)
    voltage = nominal(network, tol=1e-10).require_converged().voltage[0]
    outer = [":trafo" not in label for label in network.bus_labels]
    return voltage[outer]


def problems_of(net):
    with pytest.raises(GridFileError) as caught:
        read_grid(net)
    assert "\n" not in str(caught.value)
    return caught.value.problems


def behind(ratio, kv_step=None):
    """Voltage behind the transformer of `tapped` at a tap ratio, from its quadratic equation."""
    z = (0.004 + 1j * np.sqrt(0.11**2 - 0.004**2)) / 25  # p.u. on 1 MVA
    sent, power = 1 / ratio, 10 + 3j
    # |V|^4 + (2 Re(z S*) - sent^2) |V|^2 + |z S|^2 = 0, the larger root.
    half = sent**2 / 2 - (z * power.conjugate()).real
    return np.sqrt(half + np.sqrt(half**2 - abs(z * power) ** 2))


def test_a_ratio_tap_is_the_quadratic_equations_answer():
    assert abs(solved(tapped())[1]) == pytest.approx(behind(1 - 5 * 0.015), abs=1e-9)
    assert abs(solved(tapped())[1]) == pytest.approx(1.066442, abs=1e-6)
    assert abs(solved(tapped(tap_pos=0))[1]) == pytest.approx(0.983991, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tap_changer_type": None}, "tap_changer_type is None, not Ratio or Symmetrical or Ideal"),
        ({"tap_changer_type": "ratio"}, "tap_changer_type is 'ratio'"),
        ({"tap_changer_type": "Tabular"}, "tap_changer_type is 'Tabular'"),
        ({"tap_side": "HV"}, "tap_side is 'HV', not hv or lv"),
        ({"tap_side": "mv"}, "tap_side is 'mv'"),
        ({"tap_side": None}, "tap_side is None"),
        ({"tap_step_percent": np.nan}, "tap_step_percent is 0 or missing"),
        ({"tap_neutral": np.nan}, "tap_neutral is missing"),
    ],
)
def test_a_tap_without_effect_has_none_and_is_named(changes, reason):
    net = tapped(**changes)
    with pytest.warns(GridshiftWarning, match=f"trafo:0: the tap is off neutral.*{reason}"):
        voltage = solved(net)
    assert np.abs(voltage - pandapowers_voltages(net)).max() < TOLERANCE
    assert abs(voltage[1]) == pytest.approx(behind(1), abs=1e-9)


@pytest.mark.parametrize(
    "changes", [{"tap_changer_type": None}, {"tap_changer_type": "RATIO"}, {"tap_side": "MV"}]
)
def test_a_tap_without_effect_of_a_three_winding_transformer_is_named(changes):
    net = three_windings(**changes)
    with pytest.warns(GridshiftWarning, match="trafo3w:0: the tap is off neutral"):
        voltage = solved(net)
    assert np.abs(voltage - pandapowers_voltages(net)).max() < TOLERANCE
    assert np.abs(voltage - pandapowers_voltages(three_windings(tap_pos=0))).max() < TOLERANCE


@pytest.mark.parametrize("changes", [{}, {"tap_pos": 0, "tap_changer_type": None},
                                     {"tap_pos": np.nan, "tap_side": None}])  # fmt: skip
def test_taps_with_effect_or_at_neutral_are_no_reason_to_warn(changes):
    for net in (tapped(**changes), three_windings(**changes)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", GridshiftWarning)
            assert np.abs(solved(net) - pandapowers_voltages(net)).max() < TOLERANCE


def tabulated(steps, *, position, number=0, winding=("",)):
    """`tapped` or, with three windings, its sibling, with a table of ratios, angles and vk."""
    import pandas as pd

    net = tapped() if winding == ("",) else three_windings()
    table = net.trafo if winding == ("",) else net.trafo3w
    rows = {"id_characteristic": number, "step": steps}
    rows["voltage_ratio"] = [1 + 0.015 * s for s in steps]
    rows["angle_deg"] = [0.1 * s for s in steps]
    for side in winding:
        rows[f"vk_{side}percent"] = [11.0 + 0.1 * s for s in steps]
        rows[f"vkr_{side}percent"] = [0.4 + 0.01 * s for s in steps]
    net["trafo_characteristic_table"] = pd.DataFrame(rows)
    table["tap_pos"] = position
    table["tap_dependency_table"] = True
    table["tap_changer_type"] = "Tabular"
    table["id_characteristic_table"] = pd.array([number] * len(table), dtype="Int64")
    return net


@pytest.mark.parametrize("position", [-5, 0, 2])
@pytest.mark.parametrize("winding", [("",), ("hv_", "mv_", "lv_")])
def test_a_step_of_a_table_is_pandapowers(position, winding):
    net = tabulated([-5, -2, 0, 2, 5], position=position, winding=winding)
    assert np.abs(solved(net) - pandapowers_voltages(net)).max() < TOLERANCE


@pytest.mark.parametrize(
    ("winding", "label"), [(("",), "trafo"), (("hv_", "mv_", "lv_"), "trafo3w")]
)
def test_a_step_that_a_table_lacks_is_refused(winding, label):
    net = tabulated([-5, -2, 0, 2, 5], position=1, winding=winding)
    assert problems_of(net) == [
        f"{label}:0: tap_pos is 1, but characteristic 0 has no step 1: -5, -2, 0, 2, 5"
    ]
    net[label]["tap_pos"] = np.nan
    assert "tap_pos is nan" in problems_of(net)[0]
    net[label]["tap_pos"] = 2
    net.trafo_characteristic_table.loc[3, "voltage_ratio"] = np.nan
    assert problems_of(net) == [f"{label}:0: step 2 of characteristic 0 lacks a number"]
    net.trafo_characteristic_table["step"] = 2
    assert "has 5 times step 2" in problems_of(net)[0]
    net[label]["id_characteristic_table"] = 7
    assert "characteristic 7 has no step 2: none" in problems_of(net)[0]
    net["trafo_characteristic_table"] = net.trafo_characteristic_table.drop(columns="angle_deg")
    assert problems_of(net) == [f"{label}:0: trafo_characteristic_table has no column angle_deg"]
    del net["trafo_characteristic_table"]
    assert "the network has no trafo_characteristic_table" in problems_of(net)[0]
    net[label].loc[0, "in_service"] = False  # its step does not matter then
    net.load["in_service"] = False
    read_grid(net)


def test_transformers_that_share_a_table_keep_their_own_steps():
    import pandapower as pp
    import pandas as pd

    net = tabulated([-5, 0, 5], position=-5)
    lone = [solved(tabulated([-5, 0, 5], position=position)) for position in (-5, 5)]
    pp.create_bus(net, 20.0)
    pp.create_load(net, 2, 10.0, 3.0)
    second = net.trafo.iloc[[0]].copy()
    second.index = [1]
    second["lv_bus"], second["tap_pos"] = 2, 5
    net["trafo"] = pd.concat([net.trafo, second])
    voltage = solved(net)
    # Each hangs on the external grid alone, so the other one does not matter.
    assert voltage[1] == pytest.approx(lone[0][1], abs=1e-9)
    assert voltage[2] == pytest.approx(lone[1][1], abs=1e-9)
    assert abs(lone[0][1] - lone[1][1]) > 0.1


def with_shunt(**changes):
    import pandapower as pp
    import pandas as pd

    net = tapped()
    pp.create_shunt(net, 1, q_mvar=-2.0, step=3, max_step=5)
    net["shunt_characteristic_table"] = pd.DataFrame(
        {"id_characteristic": 4, "step": [1, 2, 3], "q_mvar": [-1.0, -2.5, -4.5],
         "p_mw": [0.0, 0.1, 0.2]}
    )  # fmt: skip
    net.shunt["step_dependency_table"] = True
    net.shunt["id_characteristic_table"] = pd.array([4], dtype="Int64")
    for column, value in changes.items():
        net.shunt[column] = value
    return net


def test_a_step_of_a_shunt_table_is_pandapowers_and_one_that_it_lacks_is_refused():
    assert np.abs(solved(with_shunt()) - pandapowers_voltages(with_shunt())).max() < TOLERANCE
    assert problems_of(with_shunt(step=5)) == [
        "shunt:0: step is 5, but characteristic 4 has no step 5: 1, 2, 3"
    ]
    assert "no id_characteristic_table" in problems_of(with_shunt(id_characteristic_table=None))[0]


def with_curve(position):
    """The form before pandapower 3: the impedance as a curve of the position."""
    from pandapower.control import SplineCharacteristic

    net = tapped(tap_pos=position, tap_dependent_impedance=True, vkr_percent_characteristic=np.nan)
    net.trafo = net.trafo.drop(columns=["tap_dependency_table", "id_characteristic_table"])
    curve = SplineCharacteristic(net, [-5, 0, 5], [12.0, 11.0, 10.5])
    net.trafo["vk_percent_characteristic"] = curve.index
    return net


def test_a_position_beyond_an_impedance_curve_is_refused():
    net = with_curve(-3)
    assert np.abs(solved(net) - pandapowers_voltages(net)).max() < TOLERANCE
    assert problems_of(with_curve(6)) == [
        "trafo:0: tap_pos is 6, but characteristic 0 goes from -5 to 5"
    ]


def test_ideal_tap_changers_that_pandapower_cannot_compute_are_refused():
    ideal = {"tap_changer_type": "Ideal", "tap_step_degree": 2.0, "tap_step_percent": np.nan}
    assert np.abs(solved(tapped(**ideal)) - pandapowers_voltages(tapped(**ideal))).max() < TOLERANCE
    assert "not both" in problems_of(tapped(**{**ideal, "tap_step_percent": 1.5}))[0]
    at_star = three_windings(**ideal, tap_at_star_point=True)
    assert problems_of(at_star)[0].startswith("trafo3w:0: an ideal tap changer at the star point")
