"""Adam on the rows of an embedding (`learning.adam` has the formulas): group, catch up, step."""

import math

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.extending import intrinsic

from labelaudit.kernels import compiled

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
LOG_BETA1, LOG_BETA2 = math.log(BETA1), math.log(BETA2)
# Terms of the sum that count: 0.9^256 is 2e-12.
REACH = 256
# From this step on, two points of a quadrature give the sum to single precision.
EARLY = 400
# A moment this small moves no weight. It becomes 0 before it is a denormal, which is slow.
FORGOTTEN = 1e-20
LOG_FORGOTTEN = math.log(FORGOTTEN)
N_CHUNKS = 32
# Rows are requested from memory this many turns before their use, in pieces of a cache line; the
# steps at which they were last up to date, from which the work follows, twice as many.
AHEAD = 4
CACHE_LINE = 64


@compiled()
def group(indices, fields, slot, rows, starts, where, examples):
    """List each row in `indices` once with the examples that use it; returns how many rows.

    Row rows[u] is used by examples[starts[u] : starts[u + 1]], in order. `slot` has an entry for
    every row of the table, all -1 before and after.
    """
    n_rows = 0
    for i in range(indices.size):
        row = indices[i]
        u = slot[row]
        if u < 0:
            u = n_rows
            slot[row] = u
            rows[u] = row
            starts[u + 1] = 0
            n_rows += 1
        starts[u + 1] += 1
        where[i] = u
    starts[0] = 0
    for u in range(n_rows):
        starts[u + 1] += starts[u]
        slot[rows[u]] = starts[u]
    for i in range(indices.size):
        row = rows[where[i]]
        examples[slot[row]] = i // fields
        slot[row] += 1
    for u in range(n_rows):
        slot[rows[u]] = -1
    return n_rows


@intrinsic
def _prefetch(typing, address):
    def generate(context, builder, signature, arguments):
        number = ir.IntType(32)
        pointer = builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(function, [pointer, number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.uintp), generate


@compiled()
def _fetch(table, row):
    """Request a row of `table` ahead of its use: rows are scattered over the memory."""
    size = table.strides[0]
    start = table.ctypes.data + np.int64(row) * size
    for byte in range(0, size + CACHE_LINE - 1, CACHE_LINE):
        _prefetch(np.uintp(start + byte))


@compiled()
def _add_terms(motion, root, w, s, w2, s2):
    """Add w / (root s + epsilon) + w2 / (root s2 + epsilon), with one division for both."""
    epsilon = np.float32(EPSILON)
    for d in range(motion.size):
        a = root[d] * s + epsilon
        b = root[d] * s2 + epsilon
        motion[d] += (w * b + w2 * a) / (a * b)


@compiled()
def _catch_up_row(weight, moments, last, gap, rate, tables, motion, root):
    """Apply the `gap` steps without gradient after step `last`."""
    pairs, power, half, correction, scale = tables
    first, second = moments[0], moments[1]
    reach = min(gap, REACH)
    for d in range(weight.size):
        motion[d] = 0.0
        root[d] = math.sqrt(second[d])
    if last < EARLY:
        # From the last term, so that the small ones are added first.
        for j in range(reach, 0, -2):
            t = last + j
            w, s = np.float32(power[j] * correction[t]), np.float32(half[j] * scale[t])
            w2 = np.float32(power[j - 1] * correction[t - 1])
            s2 = np.float32(half[j - 1] * scale[t - 1])
            _add_terms(motion, root, w, s, w2 if j > 1 else np.float32(0.0), s2)
    else:
        w, square, w2, square2 = pairs[reach]
        rest = math.exp(last * LOG_BETA2)
        s = np.float32(math.sqrt(square / (1.0 - rest * square)))
        s2 = np.float32(math.sqrt(square2 / (1.0 - rest * square2)))
        _add_terms(motion, root, np.float32(w), s, np.float32(w2), s2)
    pace = np.float32(rate)
    fade = _fade(gap * LOG_BETA1)
    fade2 = _fade(gap * LOG_BETA2)
    for d in range(weight.size):
        weight[d] -= pace * first[d] * motion[d]
        first[d] *= fade
        second[d] *= fade2


@compiled()
def _fade(logarithm):
    return np.float32(math.exp(logarithm) if logarithm > LOG_FORGOTTEN else 0.0)


@compiled(parallel=True)
def catch_up(weight, moments, last, rows, step, rate, tables):
    """Bring `rows` to where dense Adam would have them after `step` steps."""
    for chunk in prange(N_CHUNKS):
        motion, root = np.empty((2, weight.shape[1]), np.float32)
        end = (chunk + 1) * rows.size // N_CHUNKS
        for u in range(chunk * rows.size // N_CHUNKS, end):
            if u + 2 * AHEAD < end:
                _fetch(last, rows[u + 2 * AHEAD])
            if u + AHEAD < end:
                _fetch(weight, rows[u + AHEAD])
                _fetch(moments, rows[u + AHEAD])
            row = rows[u]
            gap = step - last[row]
            # A row that never had a gradient does not move.
            if gap > 0 and last[row] > 0:
                state = (weight[row], moments[row], last[row])
                _catch_up_row(*state, gap, rate, tables, motion, root)
                last[row] = step


@compiled(parallel=True)
def update(weight, moments, last, rows, starts, examples, gradient, step, rate):
    """Adam's step number `step` on `rows`, whose gradients are sums over their examples."""
    scale = np.float32(1.0 / math.sqrt(1.0 - BETA2**step))
    pace = np.float32(rate / (1.0 - BETA1**step))
    epsilon = np.float32(EPSILON)
    keep, take = np.float32(BETA1), np.float32(1.0 - BETA1)
    keep2, take2 = np.float32(BETA2), np.float32(1.0 - BETA2)
    n_uses = starts[rows.size]
    for chunk in prange(N_CHUNKS):
        # Some rows have many more examples than others: chunks have equal numbers of uses.
        begin = np.searchsorted(starts[:-1], chunk * n_uses // N_CHUNKS)
        end = np.searchsorted(starts[:-1], (chunk + 1) * n_uses // N_CHUNKS)
        total = np.empty(weight.shape[1], np.float32)
        for u in range(begin, end):
            if u + AHEAD < end:
                _fetch(weight, rows[u + AHEAD])
                _fetch(moments, rows[u + AHEAD])
            row = rows[u]
            total[:] = 0.0
            for e in range(starts[u], starts[u + 1]):
                term = gradient[examples[e]]
                for d in range(total.size):
                    total[d] += term[d]
            p, m, v = weight[row], moments[row, 0], moments[row, 1]
            for d in range(total.size):
                g = total[d]
                m[d] = keep * m[d] + take * g
                v[d] = keep2 * v[d] + take2 * g * g
                p[d] -= pace * m[d] / (math.sqrt(v[d]) * scale + epsilon)
            last[row] = step
