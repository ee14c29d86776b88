"""Files that powerio reads: the same state as their own programs, nothing lost in silence."""

import io
import json
import sys

import numpy as np
import powerio
import pytest

import gridshift as gs
from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.readers import FORMATS
from gridshift.grid.readers.powerio_network import ENDINGS
from tests.reference.matpower_equations import case_file

AGREED = 1e-9
"""p.u. between programs that both solve to 1e-11."""


def solved(network: gs.Network) -> np.ndarray:
    """(B,) voltages at nominal demand."""
    solution = gs.solve(network, gs.nominal_loads(network), tol=1e-11)
    return solution.require_converged().voltage[0]


@pytest.mark.parametrize("ending", ["raw", "rawx", "aux", "epc"])
def test_a_case_written_in_another_format_has_the_same_state(ending, tmp_path):
    source = case_file("case57")
    text = powerio.emit(powerio.parse(str(source)), ENDINGS[f".{ending}"]).text
    path = tmp_path / f"case57.{ending}"
    path.write_text(text)
    expected, network = gs.read_grid(source), gs.read_grid(path)
    assert network.num_loads == expected.num_loads
    assert network.bus_labels == expected.bus_labels
    assert np.abs(solved(network) - solved(expected)).max() < AGREED


@pytest.mark.parametrize("case", ["ieee9", "ieee14", "ieee30", "ieee57", "ieee118", "ieee300"])
@pytest.mark.parametrize(("form", "ending"), [("XIIDM", "xiidm"), ("PSS/E", "raw")])
def test_pypowsybl_solves_the_file_to_the_same_state(case, form, ending, tmp_path):
    pytest.importorskip("pypowsybl", reason="pypowsybl is the program to compare with")
    import pypowsybl.loadflow as lf
    import pypowsybl.network as pn

    path = tmp_path / f"{case}.{ending}"
    getattr(pn, f"create_{case}")().save(str(path), form)
    network, other = gs.read_grid(path), pn.load(str(path))
    slack = network.bus_labels[network.slack[0]].removeprefix("bus:")
    nodes = other.get_bus_breaker_view_buses()
    nodes.index = [name if ending == "xiidm" else name.removeprefix("B") for name in nodes.index]
    exact = {
        "newtonRaphsonConvEpsPerEq": "1e-11", "slackBusSelectionMode": "NAME",
        "slackBusesIds": nodes.bus_id[slack],
    }  # fmt: skip
    parameters = lf.Parameters(
        distributed_slack=False, use_reactive_limits=False, read_slack_bus=False,
        transformer_voltage_control_on=False, shunt_compensator_voltage_control_on=False,
        phase_shifter_regulation_on=False, provider_parameters=exact,
    )  # fmt: skip
    (result,) = lf.run_ac(other, parameters)
    assert result.status == lf.ComponentStatus.CONVERGED
    nodes = other.get_bus_breaker_view_buses()
    base = other.get_voltage_levels().nominal_v[nodes.voltage_level_id].to_numpy()
    names = [name if ending == "xiidm" else name.removeprefix("B") for name in nodes.index]
    row = [network.bus_rows[f"bus:{name}"] for name in names]
    v = solved(network)[row]
    assert np.abs(np.abs(v) - nodes.v_mag.to_numpy() / base).max() < AGREED
    turned = np.rad2deg(np.angle(v)) - nodes.v_angle.to_numpy()
    assert np.abs(turned - turned[names.index(slack)]).max() < 1e-7  # degrees


RAW_33 = """0, 100.0, 33, 0, 1, 50.0 / made by hand
two buses

1,'NORTH       ', 110.0,3,1,1,1,1.02,0.0
2,'SOUTH       ', 110.0,1,1,1,1,1.0,0.0
0 / END OF BUS DATA, BEGIN LOAD DATA
2,'1 ',1,1,1,{load}
2,'2 ',0,1,1,1.0,1.0,5.0,5.0,5.0,5.0
0 / END OF LOAD DATA, BEGIN FIXED SHUNT DATA
0 / END OF FIXED SHUNT DATA, BEGIN GENERATOR DATA
1,'1 ',0.0,0.0,99.0,-99.0,1.02,0,100.0,0.0,1.0,0.0,0.0,1.0,1,100.0,999.0,-999.0
0 / END OF GENERATOR DATA, BEGIN BRANCH DATA
1,2,'1 ',0.01,0.1,0.02,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1,1,0.0
0 / END OF BRANCH DATA, BEGIN TRANSFORMER DATA
0 / END OF TRANSFORMER DATA
"""


def test_parts_of_a_load_draw_what_they_do_in_pss_e(tmp_path):
    path = tmp_path / "two.raw"
    path.write_text(RAW_33.format(load="20.0,10.0,7.0,4.0,30.0,-15.0"))
    network = gs.read_grid(path)
    v = solved(network)
    size = abs(v[1])
    assert size < 0.99  # else constant power would do
    # P = PL + IP |v| + YP |v|^2 and Q = QL + IQ |v| - YQ |v|^2: inductive where YQ is negative
    drawn = (20 + 7 * size + 30 * size**2 + 1j * (10 + 4 * size + 15 * size**2)) / 100
    y = 1 / (0.01 + 0.1j)
    arriving = v[1] * np.conj(y * (v[0] - v[1]) - 0.01j * v[1])
    assert abs(arriving - drawn) < 1e-9
    np.testing.assert_allclose(network.load_power, [0.57 + 0.29j], rtol=1e-14)
    # a scenario that doubles the demand doubles every part of it
    loads = gs.LoadScenarios(
        load_p=2 * network.load_power.real[None], load_q=2 * network.load_power.imag[None]
    )
    v = gs.solve(network, loads, tol=1e-10).voltage[0]
    size = abs(v[1])
    drawn = (20 + 7 * size + 30 * size**2 + 1j * (10 + 4 * size + 15 * size**2)) / 50
    assert abs(v[1] * np.conj(y * (v[0] - v[1]) - 0.01j * v[1]) - drawn) < 1e-9


def test_parts_belong_to_the_load_that_has_them(tmp_path):
    others = "2,'A ',1,1,1,6.0,2.0,4.0,0.0,0.0,0.0\n2,'B ',1,1,1,5.0,2.0,0.0,0.0,0.0,-3.0\n"
    text = RAW_33.format(load="20.0,10.0,0.0,0.0,0.0,0.0")
    path = tmp_path / "two.raw"
    path.write_text(text.replace("0 / END OF LOAD", others + "0 / END OF LOAD"))
    network = gs.read_grid(path)
    np.testing.assert_allclose(network.load_power, [0.2 + 0.1j, 0.1 + 0.02j, 0.05 + 0.05j])
    np.testing.assert_allclose(network.load_current, [0, 0.4, 0])
    np.testing.assert_allclose(network.load_impedance, [0, 0, 0.6j])


def test_it_does_so_in_every_version(tmp_path):
    source = case_file("case9")
    for ending in ("raw", "rawx"):
        text = powerio.emit(powerio.parse(str(source)), ENDINGS[f".{ending}"]).text
        if ending == "rawx":
            content = json.loads(text)
            table = content["network"]["load"]
            at = [table["fields"].index(name) for name in ("yp", "yq")]
            for place, value in zip(at, (10.0, -4.0), strict=True):
                table["data"][0][place] = value
            text = json.dumps(content)
        else:
            lines = text.splitlines()
            row = next(i for i, line in enumerate(lines) if "BEGIN LOAD" in line.upper()) + 1
            while lines[row].startswith("@"):
                row += 1
            cells = lines[row].split(",")
            cells[9:11] = ["10.0", "-4.0"]
            lines[row] = ",".join(cells)
            text = "\n".join(lines)
        path = tmp_path / f"case9.{ending}"
        path.write_text(text)
        network, plain = gs.read_grid(path), gs.read_grid(source)
        assert np.flatnonzero(network.load_impedance).tolist() == [0]
        part = network.load_impedance[0] * (power := network.load_power[0]).real
        assert abs(part.real - 0.1) < 1e-12
        assert abs(network.load_impedance[0].imag * power.imag - 0.04) < 1e-12
        assert abs(power - plain.load_power[0] - (0.1 + 0.04j)) < 1e-12
        np.testing.assert_allclose(network.load_power[1:], plain.load_power[1:], atol=1e-12)


def test_what_cannot_be_held_is_refused_by_name(tmp_path):
    path = tmp_path / "two.raw"
    path.write_text(RAW_33.format(load="20.0,10.0,30.0,0.0,-50.0,0.0"))
    with pytest.raises(GridFileError, match=r"two\.raw: load 2-1 has parts .* cancel each other"):
        gs.read_grid(path)
    path.write_text("nothing of the kind")
    with pytest.raises(GridFileError, match="powerio can't read it: "):
        gs.read_grid(path)
    path.write_text(
        RAW_33.format(load="20.0,10.0,0.0,0.0,0.0,0.0").replace(",3,1,1,1,", ",1,1,1,1,")
    )
    with pytest.raises(GridFileError, match="no bus is the reference"):
        gs.read_grid(path)


def test_what_powerio_leaves_out_is_a_warning(tmp_path):
    text = RAW_33.format(load="20.0,10.0,0.0,0.0,0.0,0.0").replace(
        "0 / END OF TRANSFORMER DATA\n",
        "0 / END OF TRANSFORMER DATA, BEGIN AREA DATA\n"
        "0 / END OF AREA DATA, BEGIN TWO-TERMINAL DC DATA\n"
        "0 / END OF TWO-TERMINAL DC DATA, BEGIN VSC DC LINE DATA\n'VDC',0,0.7,0,0.0\n"
        "0 / END OF VSC DC LINE DATA\n",
    )  # fmt: skip
    path = tmp_path / "two.raw"
    path.write_text(text)
    with pytest.warns(GridshiftWarning, match=r"powerio says: .*(VSC|VOLTAGE)"):
        gs.read_grid(path)


def test_without_powerio_the_way_to_get_it_is_told(tmp_path, monkeypatch):
    path = tmp_path / "unread.raw"
    path.write_text(RAW_33.format(load="21.0,10.0,0.0,0.0,0.0,0.0"))
    monkeypatch.setitem(sys.modules, "powerio", None)
    with pytest.raises(GridFileError, match=r"pip install 'gridshift\[formats\]'"):
        gs.read_grid(path)


def test_every_ending_is_known_to_powerio():
    assert set(ENDINGS) == set(FORMATS)
    for name in ENDINGS.values():
        with pytest.raises(ValueError, match=r"(?i)malformed|parse|empty|invalid|no "):
            powerio.parse(io.BytesIO(b"nothing"), format=name)
