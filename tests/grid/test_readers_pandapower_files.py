"""JSON files: older formats mean what pandapower makes of them; hostile ones are never obeyed."""

import copy
import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from tests.reference.pandapower_equations import built
from tests.reference.small_nets import iron_losses, pandapowers_voltages, ring, tapped

TOLERANCE = 1e-8
"""Complex voltage, p.u.; both sides are solved to 1e-10."""


def content_of(net):
    import pandapower

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(pandapower.to_json(net))


def written(tmp_path, content):
    path = tmp_path / "net.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def problems_of(path):
    with pytest.raises(GridFileError) as caught:
        read_grid(path)
    assert "\n" not in str(caught.value)
    return caught.value.problems


def agrees_with_pandapower(path):
    import pandapower

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = pandapowers_voltages(pandapower.from_json(str(path)))
    voltage = nominal(read_grid(path), tol=1e-10).require_converged().voltage[0]
    assert np.abs(voltage - expected).max() < TOLERANCE
    return voltage


def without(content, table, *columns):
    """The content of a network file with columns of a table left out."""
    part = content["_object"][table]
    data = json.loads(part["_object"])
    keep = [i for i, name in enumerate(data["columns"]) if name not in columns]
    data["columns"] = [data["columns"][i] for i in keep]
    data["data"] = [[row[i] for i in keep] for row in data["data"]]
    part["_object"] = json.dumps(data)
    for name in columns:
        part.get("dtype", {}).pop(name, None)


def of_format(content, version):
    content["_object"] |= {"version": version, "format_version": version}
    return content


def test_taps_of_a_file_before_pandapower_3_are_converted(tmp_path):
    content = of_format(content_of(tapped()), "2.14.1")
    without(content, "trafo", "tap_changer_type", "tap_phase_shifter")
    voltage = agrees_with_pandapower(written(tmp_path, content))
    assert abs(voltage[1]) == pytest.approx(1.066442, abs=1e-6)


def test_a_file_that_lacks_all_that_later_versions_added_is_converted(tmp_path):
    content = of_format(content_of(ring()), "2.4.0")
    without(content, "load", "const_z_p_percent", "const_i_p_percent", "const_z_q_percent",
            "const_i_q_percent")  # fmt: skip
    without(content, "gen", "slack_weight", "slack")
    without(content, "ext_grid", "slack_weight")
    without(content, "line", "g_us_per_km", "df")
    for table in ("svc", "ssc", "tcsc", "vsc", "vsc_stacked", "vsc_bipolar", "bus_dc", "line_dc"):
        content["_object"].pop(table)
    agrees_with_pandapower(written(tmp_path, content))


def test_a_file_before_pandapower_2_is_in_kilowatts_and_without_signatures(tmp_path):
    def table(**columns):
        return {name: dict(enumerate(values)) for name, values in columns.items()}

    content = {
        "version": 1.2, "f_hz": 50.0, "sn_kva": 1000.0, "name": None,
        "bus": table(name=["a", "b", "c"], vn_kv=[20.0, 20.0, 20.0], in_service=[True] * 3,
                     type=["b"] * 3, zone=[None] * 3),
        "ext_grid": table(bus=[0], vm_pu=[1.02], va_degree=[0.0], in_service=[True], name=["e"]),
        "load": table(bus=[1, 2], p_kw=[900.0, 400.0], q_kvar=[200.0, 50.0], scaling=[1.0, 0.5],
                      const_z_percent=[0.0, 0.0], const_i_percent=[0.0, 0.0],
                      in_service=[True, True], name=[None] * 2, sn_kva=[None] * 2,
                      type=[None] * 2),
        "sgen": table(bus=[2], p_kw=[-300.0], q_kvar=[20.0], scaling=[1.0], in_service=[True],
                      name=[None], sn_kva=[None], type=[None]),
        "gen": table(bus=[], p_kw=[], vm_pu=[], scaling=[], in_service=[], sn_kva=[]),
        "line": table(from_bus=[0, 1], to_bus=[1, 2], length_km=[2.0, 3.0], r_ohm_per_km=[0.2] * 2,
                      x_ohm_per_km=[0.12] * 2, c_nf_per_km=[250.0] * 2, imax_ka=[0.3] * 2,
                      df=[1.0] * 2, parallel=[1, 1], in_service=[True] * 2, name=[None] * 2,
                      std_type=[None] * 2, type=["cs"] * 2),
    }  # fmt: skip
    path = written(tmp_path, content)
    agrees_with_pandapower(path)
    network = read_grid(path)
    assert network.load_power.sum() * network.base_mva == pytest.approx(0.9 + 0.2 + 0.225j)
    assert network.bus_fixed.real.sum() * network.base_mva == pytest.approx(0.3)
    assert network.branch_rated.all()


def test_a_file_of_a_newer_format_is_refused(tmp_path):
    path = written(tmp_path, of_format(content_of(ring()), "99.0.0"))
    assert "format version 99.0.0 is newer" in problems_of(path)[0]


def test_a_stored_option_is_followed(tmp_path):
    net = iron_losses()
    net.user_pf_options = {"trafo_model": "pi"}
    voltage = agrees_with_pandapower(written(tmp_path, content_of(net)))
    assert abs(voltage[1]) == pytest.approx(1.02073508, abs=1e-8)


def test_ordinary_files_with_more_than_a_power_flow_needs_are_read(tmp_path):
    import networkx
    import pandapower.control as control
    import pandas as pd

    net = ring()
    net.bus["note"] = "mine"
    net.load["detail"] = [{"a": [1, 2]}] * 4
    net["more"], net["graph"] = net.bus.copy(), networkx.MultiGraph([(0, 1)])
    net["array"], net["pair"], net["series"] = np.arange(3.0), (1, 2), pd.Series([1.0])
    control.ConstControl(net, "load", "p_mw", 0)
    control.SplineCharacteristic(net, [0, 1, 2], [1.0, 2.0, 3.0])
    net.bus["geo"] = '{"coordinates": [1.0, 2.0], "type": "Point"}'
    path = written(tmp_path, content_of(net))
    assert read_grid(path).digest == read_grid(ring()).digest
    assert read_grid(written(tmp_path, "\ufeff" + path.read_text())).num_buses == 4


EVIL = {"_module": "evilmod", "_class": "Evil", "_object": "{}"}


def table(data, **entries):
    return {"_module": "pandas.core.frame", "_class": "DataFrame", "_object": data,
            "orient": "split", **entries}  # fmt: skip


def cell(item):
    return table(json.dumps({"columns": ["p_mw"], "index": [0], "data": [[item]]}))


def signed(module, name, held="{}"):
    return {"_module": module, "_class": name, "_object": held}


def inside(levels):
    return json.loads("[" * levels + "]" * levels)


NOT_NEEDED = "is not one that a network needs"
HOSTILE = {
    "in a part of its own": ("x", EVIL, NOT_NEEDED),
    "in the options": ("user_pf_options", {"a": EVIL}, NOT_NEEDED),
    "in a cell": ("load", cell(EVIL), NOT_NEEDED),
    "with escaped letters": ("load", table(json.dumps(
        {"columns": ["p_mw"], "index": [0], "data": [[EVIL]]}).replace("_module", "\\u005fmodule")),
        NOT_NEEDED),
    "in a controller": ("controller", cell(signed(
        "pandapower.control.basic_controller", "Controller", json.dumps({"a": EVIL}))), NOT_NEEDED),
    "as a function": ("x", signed("evilmod", "function", "run"), NOT_NEEDED),
    "os.system": ("x", signed("os", "system", "echo"), NOT_NEEDED),
    "subprocess": ("x", signed("subprocess", "Popen", ["echo"]), NOT_NEEDED),
    "eval": ("x", signed("builtins", "eval", "1"), NOT_NEEDED),
    "exec": ("x", signed("builtins", "exec", "1"), NOT_NEEDED),
    "read_pickle": ("x", signed("pandas", "read_pickle", "a.pkl"), NOT_NEEDED),
    "numpy.load": ("x", signed("numpy", "load", "a.npy"), NOT_NEEDED),
    "numpy.void": ("x", signed("numpy", "void", 10**12), NOT_NEEDED),
    "a list as module": ("x", signed(["os"], "system"), NOT_NEEDED),
    "no module": ("x", signed(None, None), NOT_NEEDED),
    "a function of pandapower in a table": (
        "load", cell(signed("pandapower.run", "function", "runpp")), NOT_NEEDED),
    "an absolute path": ("load", table("/etc/net.json"), "a table without data"),
    "a relative path": ("load", table("net.json"), "a table without data"),
    "a file address": ("load", table("file:///etc/net.json"), "a table without data"),
    "a web address": ("load", table("http://127.0.0.1:1/net.json"), "a table without data"),
    "a series of a path": ("x", signed("pandas.core.series", "Series", "/etc/net.json"),
                           "a table without data"),
    "a list as table": ("load", table([1]), "a table without data"),
    "an option of the reader": ("load", table('{"columns": []}', compression="zip"),
                                "DataFrame with an entry compression, which is not known"),
    "levels": ("x", inside(150), "nested more than 100 levels"),
    "levels in a table": ("load", cell(inside(150)), "nested more than 100 levels"),
    "a number as table": ("load", 5, "load is no table"),
    "text as base": ("sn_mva", "ten", "sn_mva is 'ten'; it must be a positive number"),
    "a version": ("version", "x.y", "Invalid version"),
    "a list of options": ("user_pf_options", [1], "user_pf_options is no dictionary"),
}  # fmt: skip


@pytest.fixture(scope="module")
def ordinary():
    return content_of(ring())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_line(tmp_path, ordinary, name):
    part, item, expected = HOSTILE[name]
    content = copy.deepcopy(ordinary)
    content["_object"][part] = item
    assert expected in problems_of(written(tmp_path, content))[0]
    assert "evilmod" not in sys.modules


@pytest.mark.parametrize("levels", [900, 100_000])
def test_a_file_of_nested_lists_is_one_line(tmp_path, ordinary, levels):
    nested = json.dumps(ordinary).replace(
        '"sn_mva"', f'"x": {"[" * levels}{"]" * levels}, "sn_mva"', 1
    )
    assert "nested more than 100 levels" in problems_of(written(tmp_path, nested))[0]
    problems_of(written(tmp_path, "[" * levels + "]" * levels))


@pytest.mark.parametrize(
    "whole",
    [
        signed("evilmod", "pandapowerNet", {}),
        signed("evilmod", "Evil"),
        signed("pandapower.auxiliary", "pandapowerNet", json.dumps({"_object": {"x": EVIL}})),
        {"bus": {"vn_kv": {"0": EVIL}}},
        {"bus": signed("numpy", "array", [[1, 2]])},
        {"bus": "/etc/net.json"},
    ],
)
def test_a_file_that_is_hostile_as_a_whole_is_one_line(tmp_path, whole):
    problems_of(written(tmp_path, whole))
    assert "evilmod" not in sys.modules


def test_no_module_beside_the_user_is_imported(tmp_path, ordinary):
    (tmp_path / "evilmod.py").write_text("open('ran', 'w').write('x')\nclass Evil: pass\n")
    content = copy.deepcopy(ordinary)
    content["_object"]["x"] = EVIL
    written(tmp_path, content)
    code = "import sys; sys.path.insert(0, '.'); from gridshift.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code, "solve", "net.json"], cwd=tmp_path,
                            capture_output=True, text=True, check=False)  # fmt: skip
    assert result.returncode == 1
    assert "class evilmod.Evil is not one that a network needs" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "ran").exists()


def test_what_a_hostile_file_names_would_run_if_pandapower_read_it(tmp_path, ordinary):
    """The control of the tests above: pandapower does import what such a file names."""
    (tmp_path / "evilmod.py").write_text("open('ran', 'w').write('x')\nclass Evil: pass\n")
    content = copy.deepcopy(ordinary)
    content["_object"]["x"] = EVIL
    written(tmp_path, content)
    code = (
        "import sys; sys.path.insert(0, '.'); import pandapower; pandapower.from_json('net.json')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "ran").exists()


def test_invalid_geographic_data_are_no_obstacle(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GridshiftWarning)
        content = of_format(content_of(built("case9")), "2.9.0")
        content["_object"]["bus_geodata"] = table(
            json.dumps({"columns": ["x", "y", "coords"], "index": [0], "data": [[None, "a", None]]})
        )
        assert read_grid(written(tmp_path, content)).num_buses == 9
