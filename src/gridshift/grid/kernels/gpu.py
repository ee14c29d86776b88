"""Chord iteration on a CUDA device: one thread per scenario over the same static program.

All state is (variable, rows): neighbouring threads touch neighbouring numbers, and an index of the
program is read once for a whole warp, as one index serves all lanes on the processor. The
arithmetic is that of `steps` and `chord`, scalar by scalar: state and mismatch in double, the
correction in single precision.

Where there is no device, numba's simulator runs this source (NUMBA_ENABLE_CUDASIM=1); tests do.
"""

# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportAttributeAccessIssue=false

import numpy as np
from numba import cuda

from gridshift.grid.kernels.chord import HOPELESS

THREADS = 128
"""Threads of a block: enough to hide memory latency, few enough for small batches to spread."""
BYTES_PER_LAUNCH = 2 << 30


def available() -> bool:
    """Whether a CUDA device (or numba's simulator) is at hand."""
    return bool(cuda.is_available())


def chord_on_gpu(
    p, num_pv, num_unknowns, point, load_bus, scheduled, set_point, load_p, load_q, tol,
    max_steps, accelerate_from, out,
):  # fmt: skip
    """Solve all rows from the topology's nominal point; writes `out` voltage, worst and steps.

    Raises:
        numba.cuda.CudaAPIError: the device refuses memory or work.
    """
    p = type(p)(*(cuda.to_device(a) for a in p))
    nominal, point = point.voltage, type(point)(*(cuda.to_device(np.array(a)) for a in point))
    load_bus, set_point = cuda.to_device(load_bus), cuda.to_device(set_point)
    per_row = 2 * len(scheduled) * 8 + 3 * num_unknowns * 4
    batch = max(THREADS, BYTES_PER_LAUNCH // per_row)
    for first in range(0, len(load_p), batch):
        rows = slice(first, min(first + batch, len(load_p)))
        count = rows.stop - first
        voltage = cuda.to_device(np.repeat(nominal[:, None], count, 1))
        power = cuda.to_device(np.repeat(scheduled[:, None], count, 1))
        demand_p, demand_q = (
            cuda.to_device(np.ascontiguousarray(d[rows].T)) for d in (load_p, load_q)
        )
        work = [cuda.to_device(np.zeros((num_unknowns, count), np.float32)) for _ in range(3)]
        worst, steps = cuda.to_device(np.zeros(count)), cuda.to_device(np.zeros(count, np.int64))
        _chord[-(-count // THREADS), THREADS](
            p, num_pv, point, load_bus, set_point, demand_p, demand_q, tol, max_steps,
            accelerate_from, voltage, power, *work, worst, steps,
        )  # fmt: skip
        out.voltage[rows] = voltage.copy_to_host().T
        out.worst[rows] = worst.copy_to_host()
        out.steps[rows] = steps.copy_to_host()


@cuda.jit
def _chord(
    p, num_pv, point, load_bus, set_point, load_p, load_q, tol, max_steps, accelerate_from,
    voltage, power, residual, plain, taken, worst, steps,
):  # fmt: skip
    row = cuda.grid(1)
    if row >= worst.size:
        return
    for j in range(load_bus.size):
        power[2 * load_bus[j], row] -= load_p[j, row]
        power[2 * load_bus[j] + 1, row] -= load_q[j, row]
    off = _mismatch(row, p, num_pv, point.admittance, voltage, power, residual)
    step = 0
    while off > tol and off < HOPELESS * tol and step < max_steps:
        _substitute(row, p, point.lower, point.diagonal, point.upper, residual)
        if step >= accelerate_from:
            _accelerate(row, step == accelerate_from, residual, plain, taken)
        _turn(row, p, residual, set_point, voltage)
        off = _mismatch(row, p, num_pv, point.admittance, voltage, power, residual)
        step += 1
    worst[row] = off
    steps[row] = step


@cuda.jit(device=True)
def _mismatch(row, p, num_pv, admittance, voltage, power, residual):
    """Fill `residual`, return its largest absolute entry, NaN if there is one."""
    largest = 0.0
    for r in range(p.row_node.size):
        re, im = 0.0, 0.0
        for e in range(p.row_ptr[r], p.row_ptr[r + 1]):
            g, b = admittance[2 * e], admittance[2 * e + 1]
            at = 2 * p.entry_bus[e]
            re += g * voltage[at, row] - b * voltage[at + 1, row]
            im += g * voltage[at + 1, row] + b * voltage[at, row]
        node = p.row_node[r]
        at, to = 2 * p.node_bus[node], p.node_first[node]
        v_re, v_im = voltage[at, row], voltage[at + 1, row]
        off = power[at, row] - (v_re * re + v_im * im)
        residual[to, row] = off
        if not abs(off) <= largest:
            largest = abs(off)
        if r >= num_pv:
            off = power[at + 1, row] - (v_im * re - v_re * im)
            residual[to + 1, row] = off
            if not abs(off) <= largest:
                largest = abs(off)
    return largest


@cuda.jit(device=True)
def _substitute(row, p, lower, diagonal, upper, x):
    q, d = 0, 0
    for i in range(p.node_bus.size):
        at = p.node_first[i]
        a = x[at, row]
        if p.node_size[i] == 1:
            for c in range(p.lower_ptr[i], p.lower_ptr[i + 1]):
                a -= lower[q] * x[p.lower_unknown[c], row]
                q += 1
            x[at, row] = a * diagonal[d]
            d += 1
        else:
            b = x[at + 1, row]
            for c in range(p.lower_ptr[i], p.lower_ptr[i + 1]):
                known = x[p.lower_unknown[c], row]
                a -= lower[q] * known
                b -= lower[q + 1] * known
                q += 2
            x[at, row] = diagonal[d] * a + diagonal[d + 2] * b
            x[at + 1, row] = diagonal[d + 1] * a + diagonal[d + 3] * b
            d += 4
    q = 0
    for r in range(p.node_bus.size):
        i = p.node_bus.size - 1 - r
        at = p.node_first[i]
        a = x[at, row]
        if p.node_size[i] == 1:
            for c in range(p.upper_ptr[r], p.upper_ptr[r + 1]):
                a -= upper[q] * x[p.upper_unknown[c], row]
                q += 1
            x[at, row] = a
        else:
            b = x[at + 1, row]
            for c in range(p.upper_ptr[r], p.upper_ptr[r + 1]):
                known = x[p.upper_unknown[c], row]
                a -= upper[q] * known
                b -= upper[q + 1] * known
                q += 2
            x[at, row] = a
            x[at + 1, row] = b


@cuda.jit(device=True)
def _accelerate(row, first, residual, plain, taken):
    """Anderson's step with a memory of one, as in `chord.remember`."""
    along, length = np.float32(0.0), np.float32(1e-30)
    if not first:
        for q in range(residual.shape[0]):
            change = residual[q, row] - plain[q, row]
            along += change * residual[q, row]
            length += change * change
    share = along / length
    for q in range(residual.shape[0]):
        d = residual[q, row]
        if first:
            taken[q, row] = d
        else:
            taken[q, row] = d - share * (taken[q, row] + (d - plain[q, row]))
        plain[q, row] = d
        residual[q, row] = taken[q, row]


@cuda.jit(device=True)
def _turn(row, p, step, set_point, voltage):
    for i in range(p.node_bus.size):
        at, bus = p.node_first[i], p.node_bus[i]
        angle = float(step[at, row])
        square = angle * angle
        cosine = 1.0 + square * (square / 24.0 - 0.5)
        sine = angle * (1.0 + square * (square / 120.0 - 1.0 / 6.0))
        v_re, v_im = voltage[2 * bus, row], voltage[2 * bus + 1, row]
        re, im = v_re * cosine - v_im * sine, v_im * cosine + v_re * sine
        if p.node_size[i] == 1:
            target = set_point[bus] * set_point[bus]
            stretch = 1.5 - 0.5 * (re * re + im * im) / target
        else:
            stretch = 1.0 + float(step[at + 1, row])
        voltage[2 * bus, row] = re * stretch
        voltage[2 * bus + 1, row] = im * stretch
