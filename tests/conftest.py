"""Options of the test suite, grids that many tests read, and what makes all tests quick."""

import copy
import importlib
import sys

import pytest

from gridshift.grid.readers import read_grid


def pytest_addoption(parser):
    parser.addoption(
        "--record", action="store_true", help="Write tests/prose.txt anew: read its difference."
    )


def pytest_collection_modifyitems(items):
    """Tests that need no kernels come first.

    Workers begin at different places, so that one compiles the kernels, which takes a minute, while
    another runs these and later finds them compiled.
    """
    items.sort(key=lambda item: "tests/learn/" not in item.nodeid)


@pytest.fixture(scope="session", autouse=True)
def _quick_pandapower():
    """pandapower parses the file of each of its grids once, and makes each empty table once.

    A file takes it half a second and an empty network 100 ms, of which tests have hundreds; copies
    take a tenth and less.
    """
    if "pandapower.networks" not in sys.modules:
        yield
        return
    parsed, tables = {}, {}

    def once(parse):
        def read(path, **options):
            key = (path, repr(options))
            if key not in parsed:
                parsed[key] = parse(path, **options)
            return copy.deepcopy(parsed[key])

        return read

    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            ("power_system_test_cases", "sorted_from_json"), ("mv_oberrhein", "from_json"),
        ):  # fmt: skip
            place = importlib.import_module(f"pandapower.networks.{module}")
            patch.setattr(place, name, once(getattr(place, name)))
        net = importlib.import_module("pandapower.auxiliary").pandapowerNet
        create = net.create_dataframes

        def create_dataframes(data):
            for kind, columns in data.items():
                if isinstance(columns, dict):
                    key = repr(columns)
                    if key not in tables:
                        tables[key] = create({kind: columns})[kind]
                    data[kind] = tables[key].copy()
            return data

        patch.setattr(net, "create_dataframes", create_dataframes)
        yield


def _grid(name):
    @pytest.fixture(scope="module", name=name)
    def grid():
        return read_grid(name)

    return grid


case9, case14, case30, case118, case300 = (_grid(f"case{n}") for n in (9, 14, 30, 118, 300))
