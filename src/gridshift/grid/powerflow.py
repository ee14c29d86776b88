"""Exact AC power flow for many scenarios of one topology."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from gridshift.arguments import how_many, number, some_of, whole_number
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.controlled_rows import positions_of_rest, solve_controlled
from gridshift.grid.distributed_slack import TIGHTER, solve_distributed
from gridshift.grid.engine import Device
from gridshift.grid.equations import branch_loading, branch_powers
from gridshift.grid.following import NEWTON_STEPS, Followed, Origin, follow
from gridshift.grid.generation import ShareBy
from gridshift.grid.limited_workspace import Kept
from gridshift.grid.network import Network
from gridshift.grid.pivoting import pivoting_newton
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.scenarios import LoadScenarios, demands, nominal_loads
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.solution import BatchSolution, RowStatus
from gridshift.grid.voltage_dependence import require_constant_power
from gridshift.memory import require_memory

Flows = Mapping[str, Callable[[Network, Complex], Real]]
"""What is computed of voltages (R, B) besides, by its name in `BatchSolution`."""
FLOWS: Flows = {"powers": branch_powers, "loading": branch_loading}


def solve(
    grid: Network | Prepared,
    loads: LoadScenarios,
    *,
    tol: float = 1e-8,
    max_iterations: int = 20,
    threads: int = 1,
    powers: bool = False,
    loading: bool = False,
    q_limits: bool = False,
    distributed_slack: ShareBy | SlackShares | None = None,
    controls: bool = False,
    device: Device = "cpu",
) -> BatchSolution:
    """Solve every row from the topology's nominal point; a row that fails never touches another.

    Solved means the operating root: the one that rising demand leads to (`following`). Chord steps
    first, then Newton's method, then following for the rows that need it (`engine`).

    Args:
        grid: the topology; a network is prepared the first time that rows of it are solved.
        tol: largest allowed mismatch as a multiple of `Network.tolerance_base`, so that it means
            the same on any `base_mva`; 1e-8 is 1 W at most, 1e-10 can be reached on well-scaled
            grids.
        max_iterations: Newton steps of one attempt before it is given up.
        threads: worker threads over blocks of rows; results don't depend on it.
        q_limits: keep the reactive limits of generators, row by row (`reactive`).
        distributed_slack: generators that share losses and changes of demand, by `generation`,
            `headroom` or as `given` in the source (`SlackShares.of`); None: the slack bus alone.
        controls: let tap changers, shunts and phase shifters move (`controlled_rows`); where an
            outage cuts buses off, `positions` are those of what is left.
        device: where the chord steps run, 'cpu' or 'gpu' (CUDA; not measured on a device yet).

    Raises:
        GridshiftError: a setting that means nothing, or a GPU that isn't there.
        NotConvergedError: a distributed slack on a grid without a solution at nominal demand.
        ScenarioError: arrays whose shape does not fit the network.
        MemoryNeededError: the results don't fit into memory.
    """
    network = grid.network if isinstance(grid, Prepared) else grid
    num_rows = len(demands(network, loads)[0])
    _check_settings(network, tol, max_iterations, threads, device)
    max_iterations, threads = int(max_iterations), int(threads)  # numpy's small ones overflow
    _require_room(network, num_rows, powers=powers, loading=loading)
    prepared = grid if isinstance(grid, Prepared) else prepare(grid)
    shares = distributed_slack
    if shares is not None and not isinstance(shares, SlackShares):
        whole = not len(prepared.cut_off)
        shares = SlackShares.of(network.outage_of or network, shares) if whole or controls else None
    rows_at = partial(
        solve, tol=tol, max_iterations=max_iterations, threads=threads, powers=powers,
        loading=loading, q_limits=q_limits, distributed_slack=shares, device=device,
    )  # fmt: skip
    if len(prepared.cut_off):
        cut = islanded(prepared, num_rows)
        nowhere = np.zeros(cut.voltage.shape, np.int8)
        rest = partial(rows_at, powers=False, loading=False, controls=True)
        return replace(
            cut, at_limit=nowhere if q_limits else None,
            positions=positions_of_rest(network, loads, rest) if controls else None,
        )  # fmt: skip
    if controls:
        return solve_controlled(network, loads, rows_at)
    if shares is not None:
        inside = partial(
            solve, tol=TIGHTER * tol, max_iterations=max_iterations, threads=threads,
            q_limits=q_limits, device=device,
        )  # fmt: skip
        return solve_distributed(
            prepared, loads, shares, inside, tol=tol, threads=threads, q_limits=q_limits,
            chords=device == "cpu", powers=powers, loading=loading,
        )  # fmt: skip
    plain = partial(
        _solved, prepared, tol=tol, max_iterations=max_iterations, threads=threads, powers=powers,
        loading=loading, device=device,
    )  # fmt: skip
    if not q_limits:
        return plain(loads)[0]
    kept = ReactiveLimits.of(network)
    if kept is None:
        found, _ = plain(loads)
        return replace(found, at_limit=np.zeros(found.voltage.shape, np.int8))
    wanted = {"powers": powers, "loading": loading}
    flows = {name: of for name, of in FLOWS.items() if wanted[name]}
    return _limited(kept, prepared, loads, plain, tol, threads, flows)


def _solved(
    prepared: Prepared, loads: LoadScenarios, *, tol: float, max_iterations: int, threads: int,
    powers: bool, loading: bool, device: Device, limits: Real | None = None,
) -> tuple[BatchSolution, Real]:  # fmt: skip
    """Rows that know of no limits, and by how much they exceed `limits` of reactive power."""
    network, num_rows = prepared.network, loads.num_rows
    load_p, load_q = demands(network, loads)
    rows = prepared.engine.solve(
        prepared.topology, load_p, load_q, tol=tol, max_steps=max_iterations, threads=threads,
        powers=powers, loading=loading, device=device, limits=limits,
    )  # fmt: skip
    solution = BatchSolution(
        network=network,
        voltage=rows.voltage.view(np.complex128),
        status=_statuses(rows.mismatch, rows.operating, rows.growth, tol * network.tolerance_base),
        iterations=rows.steps,
        mismatch=rows.mismatch,
        powers=rows.powers.reshape(num_rows, network.num_branches, 4) if powers else None,
        loading=rows.loading if loading else None,
    )
    without_flows = np.flatnonzero(rows.growth) if device == "cpu" else np.arange(num_rows)
    solution = _finish(solution, prepared, loads, without_flows, tol, max_iterations)
    return solution, rows.excess


def _limited(
    kept: ReactiveLimits, prepared: Prepared, loads: LoadScenarios,
    plain: Callable[..., tuple[BatchSolution, Real]], tol: float, threads: int, flows: Flows,
) -> BatchSolution:  # fmt: skip
    """Rows that keep reactive limits.

    From nominal demand with limits, if generators are at a limit there; otherwise first without
    limits, and those that exceed one again.
    """
    limit = tol * prepared.network.tolerance_base
    load_p, load_q = demands(prepared.network, loads)
    if kept.at_nominal(prepared):
        found = kept.keep(prepared, load_p, load_q, tol=tol, threads=threads)
        return _of_kept(prepared.network, loads, found, limit, flows)
    solution, excess = plain(loads, limits=kept.of_pv)
    over = np.flatnonzero(solution.solved & (excess > limit))
    solution = replace(solution, at_limit=np.zeros(solution.voltage.shape, np.int8))
    if len(over):
        start = solution.voltage.view(np.float64)[over]
        found = kept.keep(prepared, load_p[over], load_q[over], start, tol=tol, threads=threads)
        _take(solution, over, found, limit)
    return solution


def _of_kept(
    network: Network, loads: LoadScenarios, kept: Kept, limit: float, flows: Flows
) -> BatchSolution:
    """Rows whose reactive limits are kept, or can't be."""
    reason, status = "", _kept_statuses(kept, limit)
    failed = np.flatnonzero(status)
    finite = np.isfinite(loads.load_p[failed] + loads.load_q[failed]).all(1)
    if not finite.all():
        status[failed[~finite]] = RowStatus.NOT_RUN
        reason = _not_finite((~finite).sum())
    voltage = kept.voltage.view(np.complex128)
    voltage[failed], kept.side[failed] = np.nan, 0
    solution = BatchSolution(
        network=network, voltage=voltage, status=status, iterations=kept.steps,
        mismatch=kept.mismatch, reason=reason, at_limit=kept.side,
    )  # fmt: skip
    return replace(solution, **{name: of(network, voltage) for name, of in flows.items()})


def _take(solution: BatchSolution, rows: Int, kept: Kept, limit: float) -> None:
    """Put rows whose reactive limits are kept, or can't be, into their places."""
    assert solution.at_limit is not None
    status = _kept_statuses(kept, limit)
    failed = status != RowStatus.SOLVED
    solution.status[rows] = status
    solution.voltage[rows] = kept.voltage.view(np.complex128)
    solution.voltage[rows[failed]] = np.nan
    solution.mismatch[rows] = kept.mismatch
    solution.iterations[rows] += kept.steps
    solution.at_limit[rows[~failed]] = kept.side[~failed]
    for name, of in FLOWS.items():
        if getattr(solution, name) is not None:
            getattr(solution, name)[rows] = of(solution.network, solution.voltage[rows])


def _kept_statuses(kept: Kept, limit: float) -> Int:
    status = _statuses(kept.mismatch, kept.reached, kept.growth, limit)
    status[kept.unsettled & ~kept.reached] = RowStatus.UNSETTLED_LIMITS
    return status


def _not_finite(count: int) -> str:
    bad = how_many(int(count), "row has", "rows have")
    return f"{bad} a load that is not a finite number"


def _check_settings(
    network: Network, tol: float, max_iterations: int, threads: int, device: str
) -> None:
    if not number(tol, "the tolerance", example=1e-8) > 0:
        raise GridshiftError(f"tolerance {tol}; give a positive number, for instance 1e-8")
    whole_number(max_iterations, "max_iterations")
    whole_number(threads, "threads")
    if device not in get_args(Device):
        raise GridshiftError(f"no device {device!r}; choose one of {', '.join(get_args(Device))}")
    if device == "gpu":
        _require_gpu()
        require_constant_power(network, "kernels for a GPU take demands as they are given")


def _require_room(network: Network, num_rows: int, *, powers: bool, loading: bool) -> None:
    values = 2 * network.num_buses + 6 + network.num_branches * (4 * powers + loading)
    require_memory(
        8 * values * num_rows, f"results of {num_rows:,} rows of {network.name}", count=num_rows
    )


def _require_gpu() -> None:
    from gridshift.grid.kernels.gpu import available

    if not available():
        raise GridshiftError(
            "no CUDA device is at hand; leave out device='gpu' to use the processor"
        )


def nominal(grid: Network | Prepared, *, tol: float = 1e-8) -> BatchSolution:
    """The topology at nominal demand, one row; from the source's start for the grid as read."""
    prepared = grid if isinstance(grid, Prepared) else prepare(grid)
    solution = solve(prepared, nominal_loads(prepared.network), tol=tol)
    if len(prepared.cut_off):
        return solution
    return replace(solution, iterations=solution.iterations + prepared.topology.steps)


def islanded(prepared: Prepared, num_rows: int) -> BatchSolution:
    """Rows of a topology that cuts buses off: none is solved, and the reason names the buses."""
    network, gone = prepared.network, prepared.cut_off
    shown = some_of([network.bus_labels[bus] for bus in gone])
    return BatchSolution(
        network=network,
        voltage=np.full((num_rows, network.num_buses), np.nan, complex),
        status=np.full(num_rows, RowStatus.ISLANDED, np.int64),
        iterations=np.zeros(num_rows, np.int64),
        mismatch=np.full(num_rows, np.nan),
        reason=f"cut off from every slack bus: {shown}",
    )


def _statuses(mismatch: Real, operating: Bool, growth: Real, limit: float) -> Int:
    status = np.zeros(len(mismatch), np.int64)
    assert RowStatus.SOLVED == 0
    solved = mismatch <= limit
    if not (solved & operating).all():  # for most batches that is all; names of an enum cost µs
        status[~operating] = RowStatus.IMPLAUSIBLE
        status[~solved] = RowStatus.NO_CONVERGENCE
        status[~solved & ~np.isfinite(growth)] = RowStatus.SINGULAR
    return status


def _follow_with_pivoting(
    prepared: Prepared, loads: LoadScenarios, limit: float, max_steps: int
) -> Followed:
    """Rows of a topology for which elimination without row exchanges isn't safe."""
    network, engine = prepared.network, prepared.engine
    power = engine.injected(*demands(network, loads))
    most = min(max_steps, NEWTON_STEPS)
    correct = partial(pivoting_newton, network, tol=limit, max_steps=most)
    nominal_power, voltage = engine.nominal_power, prepared.topology.point.voltage
    known = correct(nominal_power[None], voltage[None])
    origin = Origin(nominal_power, voltage, float(known.orientation[0]))
    return follow(correct, origin, power, tol=limit)


def _finish(
    solution: BatchSolution, prepared: Prepared, loads: LoadScenarios, without_flows: Int,
    tol: float, max_iterations: int,
) -> BatchSolution:  # fmt: skip
    """Rows not run, rows for the pivoting factorisation, and NaN in every row that failed."""
    reason = ""
    status, voltage = solution.status, solution.voltage
    failed = np.flatnonzero(status)
    if not len(failed) and not len(without_flows):
        return solution
    finite = np.isfinite(loads.load_p[failed] + loads.load_q[failed]).all(1)
    if not finite.all():
        status[failed[~finite]] = RowStatus.NOT_RUN
        reason = _not_finite((~finite).sum())
    left = failed[finite]
    if len(left) and prepared.solved and not prepared.topology.trusted:
        limit = tol * solution.network.tolerance_base
        found = _follow_with_pivoting(prepared, loads.rows(left), limit, max_iterations)
        voltage[left[found.reached]] = found.voltage.view(np.complex128)[found.reached]
        solution.mismatch[left] = found.mismatch
        solution.iterations[left] += found.steps
        status[left] = _statuses(found.mismatch, found.reached, found.growth, limit)
    if solution.powers is not None:
        solution.powers[without_flows] = branch_powers(solution.network, voltage[without_flows])
    if solution.loading is not None:
        solution.loading[without_flows] = branch_loading(solution.network, voltage[without_flows])
    failed = np.flatnonzero(status)
    for values in (voltage, solution.powers, solution.loading):
        if values is not None:
            values[failed] = np.nan
    return replace(solution, reason=reason)
