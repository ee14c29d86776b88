"""Controls of PSS/E files, against the same equations solved by a general root finder."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

import gridshift as gs
from gridshift.errors import GridshiftWarning
from gridshift.grid.controls import Control
from gridshift.grid.network_file import network_content, network_of
from gridshift.grid.powerflow import solve
from gridshift.grid.readers.powerio_network import read_with_powerio
from gridshift.grid.readers.psse_controls import switched_shunts
from gridshift.grid.scenarios import LoadScenarios

LINE, TRAFO, SHIFTER = 1 / (0.01 + 0.1j), 1 / (0.005 + 0.1j), 1 / (0.002 + 0.08j)
SECTIONS = (
    "AREA", "TWO-TERMINAL DC", "VSC DC LINE", "IMPEDANCE CORRECTION", "MULTI-TERMINAL DC",
    "MULTI-SECTION LINE", "ZONE", "INTER-AREA TRANSFER", "OWNER",
)  # fmt: skip
RAW = """0, 100.00, 33, 0, 1, 50.00 / made by hand


1,'A',110.0,3,1,1,1,1.02,0.0
2,'B',20.0,1,1,1,1,1.0,0.0
3,'C',110.0,1,1,1,1,1.0,0.0
0 / END OF BUS DATA, BEGIN LOAD DATA
2,'1 ',1,1,1,40.0,12.0,0,0,0,0,1,1,0
3,'1 ',1,1,1,30.0,15.0,0,0,0,0,1,1,0
0 / END OF LOAD DATA, BEGIN FIXED SHUNT DATA
0 / END OF FIXED SHUNT DATA, BEGIN GENERATOR DATA
1,'1 ',10.0,0.0,100,-100,1.02,0,100,0,1,0,0,1,1,100,100,0,1,1
0 / END OF GENERATOR DATA, BEGIN BRANCH DATA
1,3,'1 ',0.01,0.1,0.0,100,100,100,0,0,0,0,1,1,1.0,1,1.0
0 / END OF BRANCH DATA, BEGIN TRANSFORMER DATA
1,2,0,'1 ',1,1,1,0.0,0.0,2,'T1',1,1,1.0
0.005,0.1,100.0
1.02,110.0,0.0,40.0,40.0,40.0,{cod},2,{taps},33,0,0.0,0.0
1.0,20.0
3,2,0,'1 ',1,1,1,0.0,0.0,2,'PS',1,1,1.0
0.002,0.08,100.0
1.0,110.0,5.0,40.0,40.0,40.0,3,0,30.0,-30.0,{flow},33,0,0.0,0.0
1.0,20.0
0 / END OF TRANSFORMER DATA, BEGIN AREA DATA
""" + "".join(f"0 / END OF {name} DATA\n" for name in SECTIONS) + (
    "0 / END OF FACTS DEVICE DATA, BEGIN SWITCHED SHUNT DATA\n{shunt}\n"
    "0 / END OF SWITCHED SHUNT DATA\nQ\n"
)  # fmt: skip
SHUNT = "3,1,0,1,1.01,0.99,0,100.0,' ',5.0,2,-4.0,3,5.0,1,8.0"


def read(tmp_path, **given):
    """The network, and what reading it says."""
    usual = {"cod": 1, "taps": "1.1,0.9,1.01,0.99", "flow": "-27.0,-28.0", "shunt": SHUNT}
    path = tmp_path / "three.raw"
    path.write_text(RAW.format(**usual | given))
    with pytest.warns(GridshiftWarning) as told:
        network = read_with_powerio(path, path.read_bytes())
    return network, " | ".join(str(one.message) for one in told)


def residual(x, ratio, mvar, power):
    """Mismatch of buses 2 and 3 and the flow into the shifter, at angles, sizes and its angle."""
    v = np.array([1.02, *(x[2:4] * np.exp(1j * x[:2]))])
    turns = np.exp(1j * x[4])
    at_2 = TRAFO * (v[1] - v[0] / ratio)
    into_shifter = SHIFTER * (v[2] - v[1] * turns)
    at_2 -= into_shifter * turns.conj()
    at_3 = LINE * (v[2] - v[0]) + into_shifter + 1j * mvar / 100 * v[2]
    s = np.array([v[1] * at_2.conj(), v[2] * at_3.conj()]) + power
    return np.array([*s.real, *s.imag, (v[2] * into_shifter.conj()).real])


def dense(ratio, mvar, power, *, angle=None, flow=None):
    """Angle of the shifter, voltages and flow, with either the angle or the flow given."""

    def equations(x):
        found = residual(x, ratio, mvar, power)
        found[4] = found[4] - flow if angle is None else x[4] - np.deg2rad(angle)
        return found

    x = scipy.optimize.fsolve(equations, [0, 0, 1, 1, 0.05], xtol=1e-13)
    assert np.abs(equations(x)).max() < 1e-11
    return np.rad2deg(x[4]), x[2:4] * np.exp(1j * x[:2]), residual(x, ratio, mvar, power)[4]


def test_taps_shunts_and_a_phase_shifter_hold_what_they_say(tmp_path):
    network, told = read(tmp_path)
    assert "trafo:1-2, trafo:3-2, shunt:3: moves where controls are asked for" in told
    assert "regulates" not in told
    assert "switched" not in told
    tap, _, shunt = network.controls
    assert tap.called(tap.start) == pytest.approx(1.02)
    assert shunt.called(np.arange(7)).tolist() == [-2, -1, 0, 1, 2, 3, 4]
    assert [b for _, b in shunt.admittance] == [-0.08, -0.04, 0, 0.05, 0.1, 0.15, 0.23]
    assert network_of(network_content(network, (), key="k"), key="k")[0].controls == (
        network.controls
    )
    factors = np.linspace(0.2, 1.6, 8)[:, None]
    power = factors * network.load_power
    loads = LoadScenarios(load_p=power.real, load_q=power.imag)
    found = solve(network, loads, tol=1e-11, controls=True)
    assert found.solved.all()
    sides = set()
    for row, at in enumerate(found.positions):
        v, mvar = found.voltage[row], 100 * shunt.admittance[int(at[2] + 2)][1]
        assert abs((at[0] - 1.02) / (0.2 / 32) - round((at[0] - 1.02) / (0.2 / 32))) < 1e-9
        assert 0.99 <= abs(v[1]) <= 1.01 or at[0] > 1.1 - 0.00625 or at[0] < 0.90625
        assert 0.99 <= abs(v[2]) <= 1.01 or at[2] in (-2, 4)
        as_it_is = dense(at[0], mvar, power[row], angle=at[1])
        assert np.abs(v[1:] - as_it_is[1]).max() < 1e-8
        # never outside its band, but for `FLOW_TOLERANCE` and the mismatch
        assert -0.28 - 1.1e-6 <= as_it_is[2] <= -0.27 + 1.1e-6
        if -0.28 + 1e-5 < as_it_is[2] < -0.27 - 1e-5:
            continue
        edge = min((-0.28, -0.27), key=lambda one: abs(one - as_it_is[2]))
        wanted = dense(at[0], mvar, power[row], flow=edge)
        assert abs(at[1] - wanted[0]) < 1e-4  # degrees; 1e-5 p.u. of flow are half of it
        sides.add(edge)
    assert sides == {-0.28, -0.27}
    assert np.ptp(found.positions, axis=0).min() > 0


def test_an_angle_in_steps_stops_inside_its_band(tmp_path):
    network, _ = read(tmp_path, shunt="")
    continuous = network.controls[1]
    angles = np.arange(-30.0, 31.0)
    parts = np.ascontiguousarray(continuous.two_ports(angles)[:, 0]).view(float)
    stepped = continuous._replace(
        continuous=None, start=35.0, first=-30.0, admittance=tuple(map(tuple, parts.tolist())),
        low=-0.22, high=-0.1,
    )  # fmt: skip
    assert isinstance(stepped, Control)
    network = replace(network, controls=(stepped,))
    found = solve(network, gs.nominal_loads(network), tol=1e-11, controls=True)
    at = found.positions[0, 0]
    power = network.load_power
    inside = dense(1.02, 0.0, power, angle=at)
    assert -0.22 < inside[2] < -0.1
    before = dense(1.02, 0.0, power, angle=at + np.sign(5.0 - at))
    assert not -0.22 < before[2] < -0.1  # it has moved no further than it must
    assert np.abs(found.voltage[0, 1:] - inside[1]).max() < 1e-8


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"taps": "0.9,1.1,1.01,0.99"}, "trafo:1-2: RMI is above RMA.*swap them"),
        ({"taps": "1.1,0.9,0.99,1.01"}, "trafo:1-2: VMI is above VMA.*swap them"),
        ({"taps": "1.01,0.9,1.01,0.99"}, "trafo:1-2: its ratio of 1.02 is not between"),
        ({"cod": 2}, "T1: the tap changer regulates in the file; it stays where it is"),
        ({"shunt": SHUNT.replace("' ',5.0", "' ',6.0")}, "bus 3: BINIT 6 is none of the steps"),
        ({"shunt": SHUNT.replace("3,1,0", "3,2,0")}, "bus 3: the shunt is switched to hold"),
        ({"shunt": SHUNT.replace("3,1,0", "3,1,1")}, "bus 3: a shunt with ADJM 1"),
        ({"shunt": SHUNT.replace("1.01,0.99", "0.99,1.01")}, "bus 3: VSWLO is above VSWHI"),
        ({"shunt": SHUNT.replace("0.99,0,", "0.99,1,")}, "bus 3: a generator holds"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_told_with_the_reason(given, words, tmp_path):
    network, told = read(tmp_path, **given)
    assert re.search(words, told), told
    assert len(network.controls) == 2


def test_switched_shunts_of_rawx_have_names():
    text = (
        '{"network": {"swshunt": {"fields": ["ibus", "modsw", "adjm", "stat", "vswhi", "vswlo", '
        '"swreg", "binit", "s1", "n1", "b1", "s2", "n2", "b2"], "data": '
        "[[3, 1, 0, 1, 1.01, 0.99, 0, 5.0, 1, 2, -4.0, 1, 3, 5.0]]}}}"
    )
    (one,) = switched_shunts(text, rawx=True)
    assert one.blocks == ((2, -4.0), (3, 5.0))
    assert (one.bus, one.mode, one.low, one.high, one.now) == (3, 1, 0.99, 1.01, 5.0)
