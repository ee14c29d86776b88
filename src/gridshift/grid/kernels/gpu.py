"""Chord iteration on a CUDA device: one thread per scenario over the same sparsity pattern.

All state is (variable, rows): neighbouring threads touch neighbouring numbers, and an index is
read once for a whole warp, as one index serves all lanes on the processor. The
arithmetic is that of `steps` and `chord`, scalar by scalar: state and mismatch in double, the
correction in single precision.

It has not been measured on a device. Where there is none, numba's simulator runs this source
(NUMBA_ENABLE_CUDASIM=1); tests do.
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


def chord_on_gpu(batch, stopping, out):
    """Solve all rows from the topology's nominal point; writes `out` voltage, mismatch and steps.

    Raises:
        numba.cuda.CudaAPIError: the device refuses memory or work.
    """
    symbolic, point = on_device(batch.symbolic), on_device(batch.point)
    scheduled, load_p, load_q = batch.scheduled, batch.load_p, batch.load_q
    num_unknowns, nominal = symbolic.num_unknowns, batch.point.voltage
    load_bus, set_point = cuda.to_device(batch.load_bus), cuda.to_device(batch.set_point)
    per_row = 2 * len(scheduled) * 8 + 3 * num_unknowns * 4
    at_once = max(THREADS, BYTES_PER_LAUNCH // per_row)
    for first in range(0, len(load_p), at_once):
        rows = slice(first, min(first + at_once, len(load_p)))
        count = rows.stop - first
        voltage = cuda.to_device(np.repeat(nominal[:, None], count, 1))
        power = cuda.to_device(np.repeat(scheduled[:, None], count, 1))
        demand_p, demand_q = (
            cuda.to_device(np.ascontiguousarray(d[rows].T)) for d in (load_p, load_q)
        )
        work = [cuda.to_device(np.zeros((num_unknowns, count), np.float32)) for _ in range(3)]
        mismatch = cuda.to_device(np.zeros(count))
        steps = cuda.to_device(np.zeros(count, np.int64))
        _chord[-(-count // THREADS), THREADS](
            symbolic, point, load_bus, set_point, demand_p, demand_q, stopping, voltage, power,
            *work, mismatch, steps,
        )  # fmt: skip
        out.voltage[rows] = voltage.copy_to_host().T
        out.mismatch[rows] = mismatch.copy_to_host()
        out.steps[rows] = steps.copy_to_host()


def on_device(arrays):
    """A named tuple with its arrays on the device; numbers stay numbers."""
    copies = (cuda.to_device(np.array(a)) if isinstance(a, np.ndarray) else a for a in arrays)
    return type(arrays)(*copies)


@cuda.jit
def _chord(
    symbolic, point, load_bus, set_point, load_p, load_q, stopping, voltage, power, residual,
    chord_step, taken_step, mismatch, steps,
):  # fmt: skip
    """One row's chord steps, as `chord.chord_steps` for a lane."""
    row = cuda.grid(1)
    if row >= mismatch.size:
        return
    for j in range(load_bus.size):
        power[2 * load_bus[j], row] -= load_p[j, row]
        power[2 * load_bus[j] + 1, row] -= load_q[j, row]
    off = _power_balance(row, symbolic, point.admittance, voltage, power, residual)
    step, tolerance = 0, stopping.tolerance
    while off > tolerance and off < HOPELESS * tolerance and step < stopping.max_steps:
        _substitute(row, symbolic, point.lower, point.diagonal, point.upper, residual)
        if step >= stopping.accelerate_from:
            _accelerate(row, step == stopping.accelerate_from, residual, chord_step, taken_step)
        _apply_step(row, symbolic, residual, set_point, voltage)
        off = _power_balance(row, symbolic, point.admittance, voltage, power, residual)
        step += 1
    mismatch[row] = off
    steps[row] = step


@cuda.jit(device=True)
def _power_balance(row, symbolic, admittance, voltage, power, residual):
    """Fill `residual`, return its largest absolute entry, NaN if there is one."""
    largest = 0.0
    for r in range(symbolic.row_node.size):
        re, im = 0.0, 0.0
        for e in range(symbolic.row_ptr[r], symbolic.row_ptr[r + 1]):
            g, b = admittance[2 * e], admittance[2 * e + 1]
            at = 2 * symbolic.entry_bus[e]
            re += g * voltage[at, row] - b * voltage[at + 1, row]
            im += g * voltage[at + 1, row] + b * voltage[at, row]
        node = symbolic.row_node[r]
        at, to = 2 * symbolic.node_bus[node], symbolic.node_first[node]
        v_re, v_im = voltage[at, row], voltage[at + 1, row]
        off = power[at, row] - (v_re * re + v_im * im)
        residual[to, row] = off
        if not abs(off) <= largest:
            largest = abs(off)
        if r >= symbolic.num_pv:
            off = power[at + 1, row] - (v_im * re - v_re * im)
            residual[to + 1, row] = off
            if not abs(off) <= largest:
                largest = abs(off)
    return largest


@cuda.jit(device=True)
def _substitute(row, symbolic, lower, diagonal, upper, x):
    q, d = 0, 0
    for i in range(symbolic.node_bus.size):
        at = symbolic.node_first[i]
        a = x[at, row]
        if symbolic.node_size[i] == 1:
            for c in range(symbolic.lower_ptr[i], symbolic.lower_ptr[i + 1]):
                a -= lower[q] * x[symbolic.lower_unknown[c], row]
                q += 1
            x[at, row] = a * diagonal[d]
            d += 1
        else:
            b = x[at + 1, row]
            for c in range(symbolic.lower_ptr[i], symbolic.lower_ptr[i + 1]):
                known = x[symbolic.lower_unknown[c], row]
                a -= lower[q] * known
                b -= lower[q + 1] * known
                q += 2
            x[at, row] = diagonal[d] * a + diagonal[d + 2] * b
            x[at + 1, row] = diagonal[d + 1] * a + diagonal[d + 3] * b
            d += 4
    q = 0
    for r in range(symbolic.node_bus.size):
        i = symbolic.node_bus.size - 1 - r
        at = symbolic.node_first[i]
        a = x[at, row]
        if symbolic.node_size[i] == 1:
            for c in range(symbolic.upper_ptr[r], symbolic.upper_ptr[r + 1]):
                a -= upper[q] * x[symbolic.upper_unknown[c], row]
                q += 1
            x[at, row] = a
        else:
            b = x[at + 1, row]
            for c in range(symbolic.upper_ptr[r], symbolic.upper_ptr[r + 1]):
                known = x[symbolic.upper_unknown[c], row]
                a -= upper[q] * known
                b -= upper[q + 1] * known
                q += 2
            x[at, row] = a
            x[at + 1, row] = b


@cuda.jit(device=True)
def _accelerate(row, first, residual, chord_step, taken_step):
    """Anderson's step with a memory of one, as in `chord.accelerate`."""
    along, length = np.float32(0.0), np.float32(1e-30)
    if not first:
        for q in range(residual.shape[0]):
            change = residual[q, row] - chord_step[q, row]
            along += change * residual[q, row]
            length += change * change
    c = along / length
    for q in range(residual.shape[0]):
        d = residual[q, row]
        if first:
            taken_step[q, row] = d
        else:
            taken_step[q, row] = d - c * (taken_step[q, row] + (d - chord_step[q, row]))
        chord_step[q, row] = d
        residual[q, row] = taken_step[q, row]


@cuda.jit(device=True)
def _apply_step(row, symbolic, step, set_point, voltage):
    for i in range(symbolic.node_bus.size):
        at, bus = symbolic.node_first[i], symbolic.node_bus[i]
        angle = float(step[at, row])
        square = angle * angle
        cosine = 1.0 + square * (square / 24.0 - 0.5)
        sine = angle * (1.0 + square * (square / 120.0 - 1.0 / 6.0))
        v_re, v_im = voltage[2 * bus, row], voltage[2 * bus + 1, row]
        re, im = v_re * cosine - v_im * sine, v_im * cosine + v_re * sine
        if symbolic.node_size[i] == 1:
            target = set_point[bus] * set_point[bus]
            stretch = 1.5 - 0.5 * (re * re + im * im) / target
        else:
            stretch = 1.0 + float(step[at + 1, row])
        voltage[2 * bus, row] = re * stretch
        voltage[2 * bus + 1, row] = im * stretch
