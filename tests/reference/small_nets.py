"""Invented pandapower networks of two buses, and pandapower's own answer for any network."""

import copy
import warnings

import numpy as np


def tapped(**changes):
    """110/20 kV, 25 MVA, load 10 + j3 MVA, tap on the high side, 1.5 % a step, position -5."""
    import pandapower as pp

    net = pp.create_empty_network()
    pp.create_buses(net, 2, 110.0)
    net.bus.loc[1, "vn_kv"] = 20.0
    pp.create_ext_grid(net, 0)
    pp.create_load(net, 1, 10.0, 3.0)
    pp.create_transformer_from_parameters(
        net, 0, 1, 25.0, 110.0, 20.0, 0.4, 11.0, 0.0, 0.0, tap_side="hv", tap_neutral=0, tap_min=-9,
        tap_max=9, tap_step_percent=1.5, tap_step_degree=0.0, tap_pos=-5, tap_changer_type="Ratio",
    )  # fmt: skip
    for column, value in changes.items():
        net.trafo[column] = value
    return net


def three_windings(**changes):
    """110/20/10 kV with loads at both lower sides and a tap at the middle one, position -3."""
    import pandapower as pp

    net = pp.create_empty_network()
    for kv in (110.0, 20.0, 10.0):
        pp.create_bus(net, kv)
    pp.create_ext_grid(net, 0, 1.01)
    pp.create_load(net, 1, 12.0, 3.0)
    pp.create_load(net, 2, 6.0, 2.0)
    pp.create_transformer3w_from_parameters(
        net, 0, 1, 2, 110.0, 20.0, 10.0, 40.0, 25.0, 15.0, 10.0, 11.0, 12.0, 0.3, 0.31, 0.32, 30.0,
        0.1, tap_side="mv", tap_neutral=0, tap_min=-9, tap_max=9, tap_step_percent=1.2,
        tap_step_degree=0.0, tap_pos=-3, tap_changer_type="Ratio", tap_at_star_point=False,
    )  # fmt: skip
    for column, value in changes.items():
        net.trafo3w[column] = value
    return net


def feeder():
    """110/20/0.4 kV with tap changers in a row, two transformers side by side, and a capacitor."""
    import pandapower as pp
    from pandapower.control import DiscreteTapControl
    from pandapower.control.controller.shunt_control import DiscreteShuntController

    net = tapped()
    pp.create_load(net, pp.create_bus(net, 20.0), 4.0, 3.0)
    pp.create_load(net, pp.create_bus(net, 0.4), 0.2, 0.1)
    pp.create_line_from_parameters(net, 1, 2, 12.0, 0.3, 0.35, 10.0, 0.4)
    for _ in range(2):
        pp.create_transformer_from_parameters(
            net, 2, 3, 0.4, 20.0, 0.4, 1.0, 5.0, 1.0, 0.3, tap_side="hv", tap_neutral=0, tap_min=-5,
            tap_max=5, tap_step_percent=2.0, tap_pos=0, tap_changer_type="Ratio",
        )  # fmt: skip
    pp.create_shunt(net, 2, -0.5, step=0, max_step=6)
    DiscreteTapControl.from_tap_step_percent(net, 0, 1.02, level=0)
    for trafo in (1, 2):
        DiscreteTapControl(net, trafo, 0.985, 1.015, level=2)
    DiscreteShuntController(net, 0, 1.0, tol=0.006, level=1)
    return net


def iron_losses():
    """0.63 MVA, 20/0.4 kV, with much magnetising current."""
    import pandapower as pp

    net = pp.create_empty_network()
    pp.create_bus(net, 20.0)
    pp.create_bus(net, 0.4)
    pp.create_ext_grid(net, 0, 1.05)
    pp.create_load(net, 1, 0.5, 0.2)
    pp.create_transformer_from_parameters(net, 0, 1, 0.63, 20.0, 0.4, 1.1, 6.0, 1.65, 5.0)
    return net


def ring(num_buses=4):
    """20 kV ring of cables with a load at each bus."""
    import pandapower as pp

    net = pp.create_empty_network()
    pp.create_buses(net, num_buses, 20.0)
    pp.create_ext_grid(net, 0, 1.02)
    for bus in range(num_buses):
        pp.create_load(net, bus, 0.5 + bus, 0.2)
        pp.create_line_from_parameters(
            net, bus, (bus + 1) % num_buses, 3.0, 0.2, 0.12, 250.0, 0.3
        )  # fmt: skip
    return net


def pandapowers_voltages(net):
    """Complex voltages at the buses that `runpp(net)` solves, with the options stored in it."""
    import pandapower as pp

    net = copy.deepcopy(net)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pp.runpp(net, tolerance_mva=1e-10, numba=False, max_iteration=30)
    live = net.res_bus[net.res_bus.vm_pu.notna()]
    return (live.vm_pu * np.exp(1j * np.deg2rad(live.va_degree))).to_numpy()
