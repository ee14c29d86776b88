"""What would not fit into memory is refused with a number that fits, and blocks change nothing."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import gridshift as gs
import gridshift.grid.scenarios
import gridshift.memory
from gridshift.adapt import datasets
from gridshift.errors import MemoryNeededError
from gridshift.grid.scenarios import Scenarios, nominal_loads, scenarios
from gridshift.learn.backbones.mlp import MlpConfig
from gridshift.memory import available_memory, require_memory
from gridshift.study import set_up, sweep

GB = 10**9


def write(folder, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def machine(tmp_path):
    """A machine with 8 GB free and no limits, as the kernel tells it."""
    write(tmp_path, {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n"})

    def free(**files: str) -> int | None:
        write(tmp_path, {name.replace("__", "/"): text for name, text in files.items()})
        return available_memory(tmp_path / "proc", tmp_path / "groups")

    free.folder = tmp_path
    return free


def test_without_limits_it_is_what_the_machine_has_available(machine):
    assert machine() == 8_000_000 * 1024


def test_a_group_of_version_2_limits_its_members_and_cached_files_count_as_free(machine):
    write(machine.folder, {
        "proc/self/cgroup": "0::/batch/job\n",
        "groups/batch/memory.max": "3000000000\n", "groups/batch/memory.current": "1000000000\n",
        "groups/batch/memory.stat": "anon 5\ninactive_file 200000000\n",
        "groups/batch/job/memory.max": "max\n", "groups/batch/job/memory.current": "9\n",
    })  # fmt: skip
    assert machine() == 2_200_000_000


def test_a_group_of_version_1_limits_too_also_where_its_path_is_not_mounted(machine):
    write(machine.folder, {
        "proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/abc\n0::/\n",
        "groups/memory/memory.limit_in_bytes": "2000000000\n",
        "groups/memory/memory.usage_in_bytes": "1999999999\n",
    })  # fmt: skip
    assert machine() == 1
    unlimited = "9223372036854771712\n"
    write(machine.folder, {"groups/memory/memory.limit_in_bytes": unlimited})
    assert machine() == 8_000_000 * 1024


def test_a_system_without_proc_gives_its_memory_or_nothing(tmp_path):
    found = available_memory(tmp_path, tmp_path)
    assert found is None or found > GB // 4


@pytest.fixture
def free(monkeypatch):
    """Sets what is free."""

    def set_free(num_bytes: int) -> None:
        monkeypatch.setattr(gridshift.memory, "available_memory", lambda: num_bytes)

    return set_free


def test_the_refusal_names_what_is_needed_what_is_free_and_what_fits(free):
    free(21 * GB)
    with pytest.raises(MemoryNeededError) as refusal:
        require_memory(47 * GB, "1,000,000 rows", count=1_000_000)
    assert str(refusal.value) == (
        "1,000,000 rows need about 47 GB of memory and 21 GB are free; ask for at most 440,000"
    )
    require_memory(47 * GB * 0.44, "440,000 rows", count=440_000)


@pytest.mark.parametrize("case", ["case14", "case118"])
def test_the_estimate_of_a_row_is_what_drawing_solving_and_packing_take(case, monkeypatch):
    network, num_rows, asked = gs.read_grid(case), 4000, []
    gs.generate(network, nominal_loads(network, 2))  # compiles
    monkeypatch.setattr(datasets, "require_memory", lambda needed, *a, **k: asked.append(needed))
    datasets.require_rows(network, num_rows)
    tracemalloc.start()
    gs.generate(network, gs.sample_loads(network, gs.named_rng(case, "memory"), num_rows))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # no less than the peak, and not much more: what fits must not be refused
    assert peak <= asked[0] < 1.25 * peak


@pytest.mark.parametrize(
    ("case", "num_scenarios", "workers", "method"),
    [
        ("case14", 40_000, 1, "newton"),
        ("case30", 2000, 2, "newton"),
        ("case14", 40_000, 1, "ridge"),
    ],
)
def test_a_study_stays_below_what_it_announces(
    case, num_scenarios, workers, method, monkeypatch, tmp_path
):
    network, asked = gs.read_grid(case), {}

    def note(needed, what, **_):
        asked[what] = needed

    def study(num, folder):
        config = gs.ScreenConfig(
            grid=case, method=method, num_scenarios=num, num_context=200, num_holdout=50,
            workers=workers,
        )  # fmt: skip
        return gs.screen(config, network=network, folder=tmp_path / folder)

    study(50, "compiles")
    for module in (datasets, set_up, sweep):
        monkeypatch.setattr(module, "require_memory", note)
    tracemalloc.start()
    study(num_scenarios, "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1e6 < peak <= sum(asked.values())


def test_python_refuses_as_the_command_does(free):
    network = gs.read_grid("case14")
    loads = gs.sample_loads(network, gs.named_rng("case14", "memory"), 1000)
    huge = gs.LoadScenarios(
        load_p=np.broadcast_to(loads.load_p[0], (10**9, 11)),
        load_q=np.broadcast_to(loads.load_q[0], (10**9, 11)),
    )
    free(GB)
    with pytest.raises(MemoryNeededError, match="1,000,000,000 scenarios of case14 need about"):
        gs.sample_loads(network, gs.named_rng("case14", "memory"), 10**9)
    with pytest.raises(MemoryNeededError, match="training scenarios"):
        gs.train(network, gs.SurrogateConfig(num_rows=10**9))
    with pytest.raises(MemoryNeededError, match="scenarios"):
        gs.generate(network, huge)
    config = gs.ScreenConfig(grid="case14", method="icw", num_context=10**9)
    with pytest.raises(MemoryNeededError, match="context"):
        gs.screen(config, network=network)
    with pytest.raises(MemoryNeededError, match="scenarios on"):
        gs.screen(
            gs.ScreenConfig(grid="case14", method="newton", num_scenarios=10**9), network=network
        )
    with pytest.raises(MemoryNeededError, match="100,000,000 units need about 200 PB"):
        MlpConfig(hidden=10**8).build(3, 3)


@pytest.mark.parametrize("regime", ["fixed", "drawn", "mixed"])
def test_blocks_hold_the_rows_that_drawing_all_at_once_gives(regime, monkeypatch):
    network = gs.read_grid("case30")
    whole = gs.sample_loads(
        network, gs.named_rng("case30", "blocks"), 997, spread=0.3, regime=regime
    )
    monkeypatch.setattr(gridshift.grid.scenarios, "KEPT_BYTES", 0)
    blocks = scenarios(network, gs.named_rng("case30", "blocks"), 997, spread=0.3, regime=regime)
    assert isinstance(blocks, Scenarios)
    for first, last in ((0, 100), (100, 997), (41, 42), (0, 997)):
        part = blocks.rows(slice(first, last))
        np.testing.assert_array_equal(part.load_p, whole.load_p[first:last])
        np.testing.assert_array_equal(part.load_q, whole.load_q[first:last])


def test_a_study_in_blocks_of_scenarios_is_the_study_of_all(monkeypatch):
    config = gs.ScreenConfig(
        grid="case14", method="newton", num_scenarios=5000, num_holdout=2, spread=1.5
    )
    whole = gs.screen(config)
    monkeypatch.setattr(gridshift.grid.scenarios, "KEPT_BYTES", 0)
    blocks = gs.screen(config)
    assert any(row.unsolved > 0 for row in whole.rows)
    for one, other in zip(whole.rows, blocks.rows, strict=True):
        assert (one.outage, one.unsolved, one.severity) == (
            other.outage, other.unsolved, other.severity,
        )  # fmt: skip


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (12 * 10**9, 12 * 10**9))
from gridshift.cli import main
main(["solve", "case14", "--scenarios", "2000000000"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space are Linux's")
def test_a_real_limit_is_seen():
    run = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert "need about 64 GB of memory and" in run.stderr.splitlines()[-1]
