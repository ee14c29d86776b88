"""Rows of arrays in memory to lanes and back, in tiles of 8 by 8 that stay in registers."""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.lanes import transpose_tile, width


@compiled
def columns_to_lanes(w, rows, start, last, tile):
    """tile (columns, W) := W rows from `start` on; the last row again where there are fewer."""
    columns = rows.shape[1]
    whole = columns // 8 * 8 if start + w <= last + 1 else 0
    for k in range(0, w, 8):
        for j in range(0, whole, 8):
            transpose_tile(rows, (start + k) * columns + j, columns, tile, j * w + k, w)
    for k in range(w):
        row = min(start + k, last)
        for j in range(whole, columns):
            tile[j * w + k] = rows[row, j]


@compiled
def scatter(lanes, columnwise, out, start, count):
    """Write the first `count` lanes of an array (columns, W) as rows of `out`."""
    w = width(lanes)
    columns = out.shape[1]
    whole = columns // 8 * 8
    for k in range(0, count // 8 * 8, 8):
        for q in range(0, whole, 8):
            transpose_tile(columnwise, q * w + k, w, out, (start + k) * columns + q, columns)
        for q in range(whole, columns):
            for j in range(8):
                out[start + k + j, q] = columnwise[q * w + k + j]
    for k in range(count // 8 * 8, count):
        for q in range(columns):
            out[start + k, q] = columnwise[q * w + k]
