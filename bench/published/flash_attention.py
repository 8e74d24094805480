"""Flash attention on clusters: the cube multiplies, two vector cores do the softmax in between.

    cube: S = Q K^T  -- scores -->   vector: P = exp(S - max), maximum and sum per row
    cube: O = P V    <-- weights --
                     -- values -->   vector: total = total * drop + O

A cluster takes 128 queries and goes through the keys 256 at a time, in two halves; each vector core
has 64 rows, in two slices of 32. The three FIFOs lie in global memory, eight entries deep, and the
scores run four steps ahead of the values. Accumulators pass to the fix pipe by unit flags.
"""

from __future__ import annotations

import numpy as np

from ptokit import *
from published.gemm import L0_HALF, at
from published.grid import Case, up

Q, KEYS, HALF, DEPTH, AHEAD = 128, 256, 128, 8, 4  # queries; keys of a step, and of a half of it
MINE, SLICE = Q // 2, Q // 4  # rows of a vector core, and of one of its slices
C2V, V2C, UP = Direction.DIR_C2V, Direction.DIR_V2C, TileSplitAxis.TILE_UP_DOWN
FIRST, FINAL = AccPhase.Partial, AccPhase.Final
UB = 0x10000  # bytes of the larger of scores and values

Rows = Tile[TileType.Vec, float32, SLICE, KEYS]
Weights = Tile[TileType.Vec, half, SLICE, KEYS]
RowsHalf = Tile[TileType.Vec, float32, SLICE, KEYS, BLayout.RowMajor, SLICE, HALF]
WeightsHalf = Tile[TileType.Vec, half, SLICE, KEYS, BLayout.RowMajor, SLICE, HALF]
FlatRows = Tile[TileType.Vec, float32, 1, SLICE * KEYS]
FlatWeights = Tile[TileType.Vec, half, 1, SLICE * KEYS]
Column = Tile[TileType.Vec, float32, SLICE, 1, BLayout.ColMajor]
Line = Tile[TileType.Vec, float32, 1, SLICE]  # the same bytes, for arithmetic along a row
AllColumn = Tile[TileType.Vec, float32, MINE, 1, BLayout.ColMajor]

# Working memory of a vector core.
TOTAL, SCORES, WEIGHTS = 0x0, 0x8000, 0x18000  # 64 x head; two of 32 x 256 or 64 x head; two halves
SCRATCH, TOPS, SUMS, NEW, PART, DROPS = 0x20000, 0x28000, 0x28100, 0x28200, 0x28300, 0x28400


def product(acc, a_l1, b_l1, left, right, depth, is_first, is_last, turns):
    """acc (+)= a b, in pieces of K that fit half of L0; `turns` are the buffers they take."""
    for piece in static_range(len(turns)):
        turn, k = turns[piece], piece * depth
        wait_flag(PIPE_M, PIPE_MTE1, turn)
        TEXTRACT(left[turn], a_l1, 0, k)
        TEXTRACT(right[turn], b_l1, k, 0)
        set_flag(PIPE_MTE1, PIPE_M, turn)
        wait_flag(PIPE_MTE1, PIPE_M, turn)
        phase = FINAL if is_last and piece == len(turns) - 1 else FIRST
        if is_first and piece == 0:
            TMATMUL[phase](acc, left[turn], right[turn])
        else:
            TMATMUL_ACC[phase](acc, left[turn], right[turn])
        set_flag(PIPE_M, PIPE_MTE1, turn)


def scores(c, step, part):
    """One half of the scores of a step, into the ring."""
    if part == 0:
        TALLOC[UP](c.score_pipe, c.score_slot)
    wait_flag(PIPE_MTE1, PIPE_MTE2, part)
    TLOAD(c.k_l1[part], c.k_view(ptr(c.k, (step * KEYS + part * HALF) * c.head)))
    set_flag(PIPE_MTE2, PIPE_MTE1, 0)
    wait_flag(PIPE_MTE2, PIPE_MTE1, 0)
    turn = part  # L0 alternates between products
    product(c.s_acc[part], c.q_l1, c.k_l1[part], c.left, c.right, c.head, True, True, [turn])
    set_flag(PIPE_MTE1, PIPE_MTE2, part)
    at_ = (step % DEPTH * 2 + part) * Q * HALF + get_block_idx() * DEPTH * Q * KEYS
    TSTORE[STPhase.Final](c.s_view(ptr(c.ring_s, at_)), c.s_acc[part])
    if part == 1:
        TPUSH[UP](c.score_pipe, c.score_slot)


def values(c, step, part):
    """One half of the values of a step; the second half completes them."""
    if part == 0:
        TPOP[UP](c.weight_pipe, c.weight_slot)
    wait_flag(PIPE_MTE1, PIPE_MTE2, 2 + part)
    TLOAD(c.v_l1[part], c.v_view(ptr(c.v, (step * KEYS + part * HALF) * c.head)))
    at_ = (step % DEPTH * 2 + part) * Q * HALF + get_block_idx() * DEPTH * Q * KEYS
    TLOAD(c.p_l1[part], c.p_view(ptr(c.ring_p, at_)))
    if part == 1:
        TFREE[UP](c.weight_pipe, c.weight_slot)
    set_flag(PIPE_MTE2, PIPE_MTE1, 0)
    wait_flag(PIPE_MTE2, PIPE_MTE1, 0)
    is_last = part == 1
    product(c.o_acc, c.p_l1[part], c.v_l1[part], c.left_p, c.right_v, HALF, part == 0, is_last,
            [part])  # fmt: skip
    set_flag(PIPE_MTE1, PIPE_MTE2, 2 + part)
    if is_last:
        TALLOC[UP](c.value_pipe, c.value_slot)
        TSTORE[STPhase.Final](c.value_slot, c.o_acc)
        TPUSH[UP](c.value_pipe, c.value_slot)


class CubeSide:
    """The tiles and views of the cube core."""

    def __init__(self, arrays, pipes, head):
        self.q, self.k, self.v, self.ring_s, self.ring_p = arrays
        self.score_pipe, self.weight_pipe, self.value_pipe = pipes
        self.head = head
        matrix = [TileType.Mat, half]
        nz, zn = (BLayout.ColMajor, SLayout.RowMajor), (BLayout.RowMajor, SLayout.ColMajor)
        q_tile = Tile[(*matrix, Q, head, nz[0], Q, head, nz[1])]
        k_tile = Tile[(*matrix, head, HALF, zn[0], head, HALF, zn[1])]
        p_tile = Tile[(*matrix, Q, HALF, nz[0], Q, HALF, nz[1])]
        v_tile = Tile[(*matrix, HALF, head, nz[0], HALF, head, nz[1])]
        size = Q * max(head, HALF) * 2
        self.q_l1 = at(q_tile(), 0)
        self.k_l1 = [at(k_tile(), (1 + i) * size) for i in range(2)]
        self.p_l1 = [at(p_tile(), (3 + i) * size) for i in range(2)]
        self.v_l1 = [at(v_tile(), (5 + i) * size) for i in range(2)]
        self.left = [at(TileLeft[half, Q, head](), i * L0_HALF) for i in range(2)]
        self.right = [at(TileRight[half, head, HALF](), i * L0_HALF) for i in range(2)]
        self.left_p = [at(TileLeft[half, Q, HALF](), i * L0_HALF) for i in range(2)]
        self.right_v = [at(TileRight[half, HALF, head](), i * L0_HALF) for i in range(2)]
        # One accumulator for scores, one for values.
        one = at(TileAcc[float32, Q, HALF](), 0)
        self.s_acc = [one, one]
        self.o_acc = at(TileAcc[float32, Q, head](), 0x10000)
        plain, flat = Shape[1, 1, 1, Q, HALF], Stride[1, 1, 1, HALF, 1]
        self.s_view, self.p_view = (
            GlobalTensor[float32, plain, flat],
            GlobalTensor[half, plain, flat],
        )
        self.k_view = GlobalTensor[
            half, Shape[1, 1, 1, head, HALF], Stride[1, 1, 1, 1, head], Layout.DN
        ]
        self.v_view = GlobalTensor[half, Shape[1, 1, 1, HALF, head], Stride[1, 1, 1, head, 1]]
        self.score_slot = slot(float32, Q, KEYS)
        self.weight_slot, self.value_slot = slot(half, Q, KEYS), slot(float32, Q, head)


def slot(kind, rows, cols):
    """A view that TALLOC or TPOP points at an entry."""
    return GlobalTensor[kind, Shape[1, 1, 1, rows, cols], Stride[1, 1, 1, cols, 1]]()


def softmax(v, b, part, drop, is_first):
    """Weights of one slice, in the buffers `b`; the maximum and the sum of its rows so far."""
    rows, flat = v.rows[b], v.flat_rows[b]
    top, new, total, sums = v.tops[part], v.news[part], v.sums[part], v.parts[part]
    if is_first:
        TROWMAX(top, rows, v.scratch)
        pipe_barrier(PIPE_V)
        TROWEXPANDSUB(rows, rows, top)
        TMULS(flat, flat, v.scale)
        TEXP(flat, flat)
        pipe_barrier(PIPE_V)
        TROWSUM(total, rows, v.scratch)
        TCVT(v.flat_weights[b], flat, RoundMode.CAST_ROUND)
        return
    top_, new_, total_, sums_, drop_ = [line[part] for line in [*v.lines, drop]]
    TROWMAX(new, rows, v.scratch)
    pipe_barrier(PIPE_V)
    TMAX(new_, new_, top_)
    pipe_barrier(PIPE_V)
    TSUB(drop_, top_, new_)
    pipe_barrier(PIPE_V)
    TMULS(top_, new_, 1.0)
    pipe_barrier(PIPE_V)
    TROWEXPANDSUB(rows, rows, new)
    TMULS(drop_, drop_, v.scale)
    TMULS(flat, flat, v.scale)
    TEXP(drop_, drop_)
    TEXP(flat, flat)
    TCVT(v.flat_weights[b], flat, RoundMode.CAST_ROUND)
    pipe_barrier(PIPE_V)
    TMUL(total_, drop_, total_)
    TROWSUM(sums, rows, v.scratch)
    pipe_barrier(PIPE_V)
    TADD(total_, total_, sums_)


def weights(v, step, part, b, drop, is_first):
    """One slice of a step: scores in, weights out."""
    wait_flag(PIPE_V, PIPE_MTE2, b)
    if part == 0:
        TPOP[UP](v.score_pipe, v.score_slot)
    row = (get_subblockid() * 2 + part) * SLICE * HALF
    base = (get_block_idx() * DEPTH + step % DEPTH) * Q * KEYS + row
    for half_ in static_range(2):
        TLOAD(v.row_halves[b][half_], v.s_view(ptr(v.ring_s, base + half_ * Q * HALF)))
    if part == 1:
        TFREE[UP](v.score_pipe, v.score_slot)
    set_flag(PIPE_MTE2, PIPE_V, 0)
    wait_flag(PIPE_MTE2, PIPE_V, 0)
    wait_flag(PIPE_MTE3, PIPE_V, b)
    softmax(v, b, part, drop, is_first)
    set_flag(PIPE_V, PIPE_MTE2, b)
    set_flag(PIPE_V, PIPE_MTE3, 0)
    wait_flag(PIPE_V, PIPE_MTE3, 0)
    if part == 0:
        TALLOC[UP](v.weight_pipe, v.weight_slot)
    for half_ in static_range(2):
        TSTORE(v.p_view(ptr(v.ring_p, base + half_ * Q * HALF)), v.weight_halves[b][half_])
    if part == 1:
        TPUSH[UP](v.weight_pipe, v.weight_slot)
    set_flag(PIPE_MTE3, PIPE_V, b)


def update(v, b, drop, is_first, is_last):
    """Take the values of a step into the total."""
    wait_flag(PIPE_V, PIPE_MTE2, b)
    TPOP[UP](v.value_pipe, v.value_slot)
    if is_first:
        TLOAD(v.total, v.value_slot)
    else:
        TLOAD(v.values[b], v.value_slot)
    set_flag(PIPE_MTE2, PIPE_V, 0)
    wait_flag(PIPE_MTE2, PIPE_V, 0)
    if not is_first:
        TROWEXPANDMUL(v.total, v.total, drop)
        pipe_barrier(PIPE_V)
        TADD(v.total, v.total, v.values[b])
    if is_last:
        pipe_barrier(PIPE_V)
        TROWEXPANDDIV(v.total, v.total, v.all_sums)
    TFREE[UP](v.value_pipe, v.value_slot)
    set_flag(PIPE_V, PIPE_MTE2, b)


class VectorSide:
    """The tiles and views of a vector core."""

    def __init__(self, arrays, pipes, head):
        self.ring_s, self.ring_p = arrays
        self.score_pipe, self.weight_pipe, self.value_pipe = pipes
        self.scale = 1.0 / head**0.5
        values = Tile[TileType.Vec, float32, MINE, head]
        buffers = range(2)
        self.rows = [at(Rows(), SCORES + b * 0x8000) for b in buffers]
        self.flat_rows = [at(FlatRows(), SCORES + b * 0x8000) for b in buffers]
        self.values = [at(values(), SCORES + b * 0x8000) for b in buffers]
        self.row_halves = [
            [at(RowsHalf(), SCORES + b * 0x8000 + h * HALF * 4) for h in range(2)] for b in buffers
        ]
        self.flat_weights = [at(FlatWeights(), WEIGHTS + b * 0x4000) for b in buffers]
        self.weight_halves = [
            [at(WeightsHalf(), WEIGHTS + b * 0x4000 + h * HALF * 2) for h in range(2)]
            for b in buffers
        ]
        self.total, self.scratch = at(values(), TOTAL), at(Rows(), SCRATCH)
        columns = [
            [at(Column(), a + p * SLICE * 4) for p in range(2)] for a in (TOPS, NEW, SUMS, PART)
        ]
        self.lines = [
            [at(Line(), a + p * SLICE * 4) for p in range(2)] for a in (TOPS, NEW, SUMS, PART)
        ]
        self.tops, self.news, self.sums, self.parts = columns
        self.all_sums = at(AllColumn(), SUMS)
        plain, flat = Shape[1, 1, 1, SLICE, HALF], Stride[1, 1, 1, HALF, 1]
        self.s_view, self.p_view = (
            GlobalTensor[float32, plain, flat],
            GlobalTensor[half, plain, flat],
        )
        self.score_slot = slot(float32, MINE, KEYS)
        self.weight_slot, self.value_slot = slot(half, MINE, KEYS), slot(float32, MINE, head)


def drops_of(step):
    """By how much the total of a step shrinks: as one column, and as lines of the slices."""
    place = DROPS + step % DEPTH * MINE * 4
    return at(AllColumn(), place), [at(Line(), place + p * SLICE * 4) for p in range(2)]


@kernel(mode="manual", core="mix")
def flash_attention(q, k, v, ring_s, ring_p, ring_o, out):
    (length, head), block = k.shape, get_block_idx()
    steps = length // KEYS
    score_pipe = TPipe[0, C2V, Q * KEYS * 4, DEPTH](ptr(ring_s, block * DEPTH * Q * KEYS), 0, 0)
    weight_pipe = TPipe[2, V2C, Q * KEYS * 2, DEPTH](ptr(ring_p, block * DEPTH * Q * KEYS), 0, 0)
    value_pipe = TPipe[4, C2V, Q * head * 4, DEPTH](ptr(ring_o, block * DEPTH * Q * head), 0, 0)
    pipes = (score_pipe, weight_pipe, value_pipe)
    with cube_section():
        c = CubeSide((q, k, v, ring_s, ring_p), pipes, head)
        for flag in static_range(4):
            set_flag(PIPE_MTE1, PIPE_MTE2, flag)
        for flag in static_range(2):
            set_flag(PIPE_M, PIPE_MTE1, flag)
        TLOAD(c.q_l1, GlobalTensor(q)[block * Q : block * Q + Q, :])
        for step in static_range(min(AHEAD, steps)):
            for part in static_range(2):
                scores(c, step, part)
        for step in static_range(steps):
            for part in static_range(2):
                if step + AHEAD < steps:
                    scores(c, step + AHEAD, part)
                values(c, step, part)
        for flag in static_range(2):
            wait_flag(PIPE_M, PIPE_MTE1, flag)
        for flag in static_range(4):
            wait_flag(PIPE_MTE1, PIPE_MTE2, flag)
    with vector_section():
        w = VectorSide((ring_s, ring_p), pipes, head)
        for flag in static_range(2):
            set_flag(PIPE_V, PIPE_MTE2, flag)
            set_flag(PIPE_MTE3, PIPE_V, flag)
        turn, drops = 0, [drops_of(step) for step in range(DEPTH)]
        for step in static_range(min(AHEAD, steps)):
            for part in static_range(2):
                weights(w, step, part, turn % 2, drops[step % DEPTH][1], step == 0)
                turn += 1
        for step in static_range(steps):
            for part in static_range(2):
                if step + AHEAD < steps:
                    ahead = step + AHEAD
                    weights(w, ahead, part, turn % 2, drops[ahead % DEPTH][1], False)
                    turn += 1
            update(w, turn % 2, drops[step % DEPTH][0], step == 0, step == steps - 1)
            turn += 1
        set_flag(PIPE_V, PIPE_MTE3, 0)
        wait_flag(PIPE_V, PIPE_MTE3, 0)
        mine = block * Q + get_subblockid() * MINE
        TSTORE(GlobalTensor(out)[mine : mine + MINE, :], w.total)
        for flag in static_range(2):
            wait_flag(PIPE_V, PIPE_MTE2, flag)
            wait_flag(PIPE_MTE3, PIPE_V, flag)


def arrays(s0: int, s1: int, head: int) -> tuple[np.ndarray, ...]:
    blocks = up(s0, Q)
    shapes = [(blocks * Q, head), (s1, head), (s1, head)]
    rings = [(blocks, DEPTH, Q, KEYS), (blocks, DEPTH, Q, KEYS), (blocks, DEPTH, Q, head)]
    kinds = ["f2", "f2", "f2", "f4", "f2", "f4", "f4"]
    return tuple(
        np.zeros(shape, kind)
        for shape, kind in zip([*shapes, *rings, (blocks * Q, head)], kinds, strict=True)
    )


def case(cores: int, *, s0: int, s1: int, head: int = 128) -> Case:
    """Queries in tiles of 128, one cluster each; keys rounded up to whole steps."""
    args = arrays(s0, up(s1, KEYS) * KEYS, head)
    return Case(flash_attention, up(s0, Q), args, {})
