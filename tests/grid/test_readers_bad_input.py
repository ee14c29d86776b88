"""Sources that cannot be read: one line that names every problem, never a wrong grid."""

import copy
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from tests.reference.matpower_equations import case_file
from tests.reference.pandapower_equations import built


def problems_of(source):
    with pytest.raises(GridFileError) as caught:
        read_grid(source)
    assert "\n" not in str(caught.value)
    assert str(source) in str(caught.value)
    return caught.value.problems


def test_unknown_name_suggests_the_nearest():
    assert "did you mean case118" in problems_of("case181")[0]
    assert problems_of("zzz") == [
        "no built-in grid and no file of this name; 'gridshift cases' lists the names"
    ]


def test_missing_file_folder_and_other_formats(tmp_path):
    assert problems_of(tmp_path / "no.m") == ["no such file"]
    assert problems_of(tmp_path / "no.json") == ["no such file"]
    (tmp_path / "dir.m").mkdir()
    assert problems_of(tmp_path / "dir.m") == ["is a folder"]
    (tmp_path / "grid.xls").write_text("0, 100.0")
    assert "of none of the formats that are read" in problems_of(tmp_path / "grid.xls")[0]


def test_a_name_that_is_too_long_for_a_file_is_no_grid():
    assert "no built-in grid and no file" in problems_of("x" * 300)[0]
    assert problems_of("x" * 300 + ".m") == ["no such file"]


@pytest.mark.parametrize("source", [None, 3, b"case9", ["case9"]])
def test_what_is_no_name_and_no_path_is_no_grid(source):
    with pytest.raises(GridFileError, match="no grid; a grid is a built-in name"):
        read_grid(source)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no valid JSON"),
        ('{"a": [1, 2', "no valid JSON, line 1"),
        ("[1, 2]", "no network written by pandapower.to_json"),
        ('{"bus": []}', "no network written by pandapower.to_json"),
        ('{"_module": "pandapower.auxiliary", "_class": "pandapowerNet", "_object": {}}', ""),
        ('{"_module": "pandapower.auxiliary", "_class": "pandapowerNet", "_object": 3}', ""),
    ],
)
def test_json_that_is_no_pandapower_net(tmp_path, text, expected):
    path = tmp_path / "net.json"
    path.write_text(text)
    assert expected in problems_of(path)[0]


def test_binary_files(tmp_path):
    for name in ("net.json", "net.m"):
        path = tmp_path / name
        path.write_bytes(bytes(range(256)))
        problems_of(path)


@pytest.fixture(scope="module")
def case9():
    return case_file("case9").read_text(encoding="utf-8")


def matpower_problems(tmp_path, text):
    path = tmp_path / "case.m"
    path.write_text(text)
    return problems_of(path)


BUS2 = "\t2\t2\t0\t0\t0\t0\t1\t1\t0\t345\t1\t1.1\t0.9;"
GEN2 = "\t2\t163\t6.54\t300\t-300\t1.025\t100\t1\t300\t10"
BRANCH1 = "\t1\t4\t0\t0.0576\t0\t250"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("\t1\t3\t0\t0", "\t1\t2\t0\t0", ["has no slack: no bus of mpc.bus is of type 3"]),
        (GEN2, GEN2.replace("\t2", "\t77", 1), ["gen:2 (bus 77): bus is not in mpc.bus"]),
        (BRANCH1, "\t77\t78\t0\t0.0576\t0\t250",
         ["branch:1 (bus 77 to 78): from bus is not in mpc.bus",
          "branch:1 (bus 77 to 78): to bus is not in mpc.bus"]),
        (BUS2, BUS2.replace("\t2", "\t3", 1),
         ["bus:3 (row 2), bus:3 (row 3): number used more than once",
          "gen:2 (bus 2): bus is not in mpc.bus",
          "branch:7 (bus 8 to 2): to bus is not in mpc.bus"]),
        (BUS2, BUS2.replace("\t2\t2", "\t2\t7"), ["bus:2 (row 2): type must be 1, 2, 3 or 4"]),
        (BUS2, BUS2.replace("\t0\t0\t0\t0", "\tNaN\t0\t0\tInf"),
         ["bus:2 (row 2): PD is not a finite number", "bus:2 (row 2): BS is not a finite number"]),
        (GEN2, GEN2.replace("1.025", "-1"), ["gen:2 (bus 2): VG must be a positive number"]),
        (BRANCH1, "\t1\t4\t0\t0\t0\t250",
         ["branch:1 (bus 1 to 4): no impedance (BR_R = BR_X = 0); merge its two buses"]),
        (BRANCH1, "\t1\t4\tNaN\t0.0576\t0\t-250",
         ["branch:1 (bus 1 to 4): BR_R is not a finite number",
          "branch:1 (bus 1 to 4): RATE_A must not be negative; 0 says that there is no limit"]),
        (BUS2, BUS2.replace("1.1\t0.9", "0.9\t1.1"),
         ["bus:2 (row 2): VMIN to VMAX is no range of voltages; "
          "-Inf and Inf say that there is no limit"]),
        (BUS2, BUS2.replace("1.1\t0.9", "NaN\t0.9"),
         ["bus:2 (row 2): VMIN to VMAX is no range of voltages; "
          "-Inf and Inf say that there is no limit"]),
        (BUS2, BUS2.replace("\t1\t1\t0\t345", "\t1\t0\tInf\t345"),
         ["bus:2 (row 2): VA is not a finite number",
          "bus:2 (row 2): VM must be a positive number"]),
        (BUS2, BUS2.replace("\t2", "\t1e20", 1),
         ["bus:1e+20 (row 2): bus numbers are whole, from 1 to 9007199254740992",
          "gen:2 (bus 2): bus is not in mpc.bus",
          "branch:7 (bus 8 to 2): to bus is not in mpc.bus"]),
        (GEN2, GEN2.replace("\t2", "\t1e20", 1),
         ["gen:2 (bus 1e+20): bus is no bus number; those are whole, from 1 to 9007199254740992"]),
        (GEN2, GEN2.replace("\t100\t1\t", "\t100\tNaN\t"),
         ["gen:2 (bus 2): the status is not a number"]),
        (GEN2, GEN2.replace("\t163\t", "\tInf\t"), ["gen:2 (bus 2): PG is not a finite number"]),
        (BRANCH1, "\t4\t4\t0\t0.0576\t0\t250",
         ["branch:1 (bus 4 to 4): from and to bus are the same; "
          "write a shunt as GS and BS of the bus"]),
        (BRANCH1, "\t1\tNaN\t0\t0.0576\t0\tNaN",
         ["branch:1 (bus 1 to nan): to bus is no bus number; those are whole, "
          "from 1 to 9007199254740992", "branch:1 (bus 1 to nan): RATE_A is not a number"]),
        (BRANCH1, "\t1\t4\t0\t1e-320\t0\t250", ["branch:1: admittance is beyond 1e308 p.u."]),
        ("mpc.baseMVA = 100", "mpc.baseMVA = -1", ["baseMVA must be one positive number"]),
        ("mpc.baseMVA = 100", "mpc.baseMVA = Inf", ["baseMVA must be one positive number"]),
        ("mpc.baseMVA = 100", "mpc.baseMVA = [100 100]", ["baseMVA must be one positive number"]),
        ("mpc.version = '2'", "mpc.version = [1; 2]",
         ["case format version missing or no text: '2' is read; is the file cut off?"]),
        ("mpc.baseMVA = 100",
         "mpc.baseMVA = 100; mpc.dcline = [5 7 1 NaN 0 3 -2 0 1 0 50 -9 9 -9 9 0 Inf]",
         ["dcline:1 (bus 5 to 7): PF is not a finite number",
          "dcline:1 (bus 5 to 7): LOSS1 is not a finite number",
          "dcline:1.from (bus 5): the set-point of the voltage must be a positive number"]),
        ("mpc.baseMVA = 100", "mpc.baseMVA = 0", ["baseMVA must be one positive number"]),
        ("mpc.version = '2'", "mpc.version = '1'",
         ["case format version '1': '2' is read; is the file cut off?"]),
        ("mpc.baseMVA = 100", "mpc.userfcn = 1; mpc.baseMVA = 100",
         ["mpc.userfcn changes the power flow and is not supported"]),
        (BUS2, BUS2 + "\n\t90\t1\t5\t0\t0\t0\t1\t1\t0\t345\t1\t1.1\t0.9;",
         ["bus:90: no path to a reference bus; give the island one, or make it type 4"]),
    ],
)  # fmt: skip
def test_problems_of_a_matpower_file_are_named(tmp_path, case9, old, new, expected):
    assert old in case9
    assert matpower_problems(tmp_path, case9.replace(old, new, 1)) == expected


def test_all_problems_of_a_matpower_file_come_together(tmp_path, case9):
    text = case9.replace(BUS2, BUS2.replace("\t0\t0\t0\t0", "\tNaN\t0\t0\t0"))
    text = text.replace(BRANCH1, "\t77\t4\t0\t0\t0\t250").replace("\t1\t3\t0\t0", "\t1\t2\t0\t0")
    assert len(matpower_problems(tmp_path, text)) == 4


PIECES = st.sampled_from(
    ["(", ")", "[", "]", "'", ";", ",", "\n", ":", "-", "=", "%", "%{\n", "...", "if 1\n", "end\n",
     "1:NaN", "1:1e9", "NaN", "Inf", "-Inf", "1e308", "-1", "0", "2", "4", "1e20", "1e-320",
     "mpc.bus", "mpc.gen(:, 2)", "mpc.bus = [mpc.bus mpc.bus];\n", "define_constants\n", "find(",
     "(" * 300, "-" * 300, "\0", "\x1b[31m", "\u0663", "mpc.version = [1; 2];\n",
     "mpc.dcline = [1 2 1 20 0 3 -2 1 1 0 50 -9 9 -9 9 0 0];\n"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(data=st.data(), name=st.sampled_from(["case4_dist", "case9", "case33bw", "rules"]))
def test_a_damaged_matpower_file_is_read_or_refused_in_one_line(tmp_path_factory, data, name):
    path = tmp_path_factory.getbasetemp() / "damaged.m"
    source = Path("tests/cases/rules.m") if name == "rules" else case_file(name)
    text = source.read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        number = re.compile(r"(?<![\w.])[\d.]+").search(text, start)
        if number and data.draw(st.booleans()):
            start, stop = number.span()
        else:
            stop = start + data.draw(st.sampled_from([0, 0, 1, 9, 99]))
        text = text[:start] + data.draw(PIECES) + text[stop:]
    path.write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GridshiftWarning)
        warnings.simplefilter("error", RuntimeWarning)
        said = what_is_said_of(path)
    assert said.isprintable()
    assert len(said) < 5000


def what_is_said_of(path):
    """Why it can't be read, or nothing; any other exception than GridFileError is a defect."""
    try:
        read_grid(path)
    except GridFileError as error:
        return str(error)
    return ""


def test_a_matpower_file_cut_anywhere_inside_a_line_or_table_is_refused(tmp_path, case9):
    end = case9.index("];", case9.index("mpc.branch = ["))
    for cut in range(0, end, 97):
        matpower_problems(tmp_path, case9[:cut])


def test_case33bw_cut_anywhere_inside_its_unit_conversion_is_refused(tmp_path):
    text = case_file("case33bw").read_text(encoding="utf-8").rstrip()
    path = tmp_path / "case.m"
    for cut in range(text.index("[PQ, PV, REF, NONE") + 1, len(text) - 1):
        path.write_text(text[:cut])
        # A cut at the end of a statement or in a comment leaves a file that says something else.
        last = text[:cut].splitlines()[-1]
        if "%" not in last and last.strip() and not last.rstrip().endswith(";"):
            problems_of(path)


@pytest.mark.parametrize(
    "statement",
    [
        "mpc = scale_load(2, mpc);",
        "mpc.bus(:, 3) = max(mpc.bus(:, 3), 50);",
        "for i = 1:9\n mpc.branch(i, 4) = 2;\nend",
        "mpc.branch = [mpc.branch; other];",
        "mpc.bus(3, :) = [];",
        "mpc.gen(:, 2) *= 2;",
        "mpc = ext2int(mpc);",
        "run('other.m')",
    ],
)
def test_a_trailing_statement_that_is_not_understood_refuses_the_file(tmp_path, case9, statement):
    (problem,) = matpower_problems(tmp_path, f"{case9}\n{statement}\n")
    assert problem.startswith("line ")


def change(net, table, index, column, value):
    net[table].loc[index, column] = value


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("load", 2, "p_mw", float("nan"))], ["load:2: p_mw is not a finite number"]),
        ([("ext_grid", 0, "in_service", False)],
         ["has no slack: no ext_grid and no gen with slack=True is in service"]),
        ([("load", [1, 3], "const_z_p_percent", 60.0), ("load", [3], "const_i_p_percent", 60.0),
          ("load", [2], "const_i_q_percent", -1.0)],
         ["load:3: const_z_p_percent and const_i_p_percent must be 0 to 100 and 100 at most in all",
          "load:2: const_z_q_percent and const_i_q_percent must be 0 to 100 and 100 at most in "
          "all"]),
        ([("line", 4, "from_bus", 99)], ["line:4: from_bus is not in the bus table"]),
        ([("line", 4, "length_km", 0.0)],
         ["line:4 has no impedance; join its buses with a bus-bus switch"]),
        ([("line", 4, "parallel", 0)], ["line:4: parallel must be positive"]),
        ([("gen", 0, "vm_pu", -1.0), ("bus", 3, "vn_kv", 0.0), ("load", 0, "q_mvar", float("inf"))],
         ["bus:3: vn_kv must be positive", "gen:0: vm_pu must be positive",
          "load:0: q_mvar is not a finite number"]),
    ],
)  # fmt: skip
def test_problems_of_a_pandapower_net_are_named(changes, expected):
    net = copy.deepcopy(built("case14"))
    for table, index, column, value in changes:
        change(net, table, index, column, value)
    with pytest.raises(GridFileError) as caught:
        network_from_pandapower(net, name="case14", origin="test")
    assert caught.value.problems == expected


@pytest.mark.parametrize("number", [10**12, 2**63 - 1, -1])
def test_a_bus_number_that_pandapower_has_no_room_for_is_named(number):
    net = copy.deepcopy(built("case14"))
    net.bus = net.bus.rename(index={13: number})
    for table, column in (("load", "bus"), ("line", "to_bus")):
        net[table][column] = net[table][column].replace(13, number)
    with pytest.raises(GridFileError) as caught:
        network_from_pandapower(net, name="case14", origin="test")
    assert str(number) in caught.value.problems[0]


def test_what_a_network_cannot_hold_is_refused_by_name():
    import pandapower as pp

    net = copy.deepcopy(built("case14"))
    pp.create_svc(net, 3, 1.0, -10.0, 1.0, 144.0)
    pp.create_tcsc(net, 3, 4, 1.0, -10.0, -20.0, 144.0)
    net.user_pf_options = {"distributed_slack": True}
    with pytest.raises(GridFileError) as caught:
        network_from_pandapower(net, name="case14", origin="test")
    assert caught.value.problems == [
        "svc:0: svc elements are not supported",
        "tcsc:0: tcsc elements are not supported",
        "user_pf_options asks for distributed_slack, which is not supported in a file; take it out "
        "and ask for it where you solve, --distributed-slack or distributed_slack=",
    ]


def test_what_pandapower_itself_refuses_is_passed_on():
    net = copy.deepcopy(built("case14"))
    net.bus.loc[int(net.ext_grid.bus[0]), "in_service"] = False
    with pytest.raises(GridFileError, match="pandapower refuses it: No reference bus is available"):
        network_from_pandapower(net, name="case14", origin="test")
