"""Cube and vector cores work together, and hand tiles to each other through FIFOs.

A TPipe is a ring of slots. TPUSH waits for a free slot, moves the tile into it and tells the other
side; TPOP waits for an entry and takes it; TFREE gives the slot back. Between the two kinds of
core nothing else is needed. Inside each core the pipes still need their flags: the push of an
accumulator runs on FIX, that of a vector tile on MTE3, a pop through global memory on MTE2.

The same kernels run on A2/A3, where the ring lies in global memory, and on A5, where it lies in the
memory of the consumer: flags and TFREE that only one of them needs do no harm on the other.

Teaches: TPipe, TPUSH, TPOP, TFREE, splits, sections of a mixed kernel, the GlobalTensor flavour.
"""

from harness import Case, main

import numpy as np

from ptokit import *
from ptokit.kernel import kernel

R, C, K = 32, 64, 32  # an entry is R x C
BYTES = R * C * 4
UP, LEFT = TileSplitAxis.TILE_UP_DOWN, TileSplitAxis.TILE_LEFT_RIGHT
ND = Layout.ND

LeftL1 = Tile[TileType.Mat, half, R, K, BLayout.ColMajor, R, K, SLayout.RowMajor]
RightL1 = Tile[TileType.Mat, half, K, C, BLayout.ColMajor, K, C, SLayout.RowMajor]


def at(tile, address):
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


def share(split):
    """Rows and columns of an entry that belong to this vector core."""
    sub = get_subblockid()
    if split == UP:
        return slice(sub * R // 2, (sub + 1) * R // 2), slice(0, C)
    return slice(0, R), slice(sub * C // 2, (sub + 1) * C // 2)


def part_tile(split):
    """The tile of one vector core."""
    rows, cols = (R // 2, C) if split == UP else (R, C // 2)
    return Tile[TileType.Vec, float32, rows, cols]()


@kernel(mode="manual", core="mix")
def cube_to_vector(fifo, a, b, y, *, slots, split):
    """y = a @ b + 1, entry by entry: the product on the cube core, the sum on the vector cores."""
    pipe = TPipe[0, Direction.DIR_C2V, BYTES, slots](fifo, 0x0, 0x0)
    entries = a.shape[0]
    with cube_section():
        a_l1, b_l1 = at(LeftL1(), 0x0), at(RightL1(), 0x4000)
        left, right = at(TileLeft[half, R, K](), 0), at(TileRight[half, K, C](), 0)
        acc = at(TileAcc[float32, R, C](), 0)
        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)  # L1 is free
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)  # L0 is free
        set_flag(PIPE_FIX, PIPE_M, EVENT_ID0)  # the accumulator is free
        for i in range(entries):
            wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
            TLOAD(a_l1, GlobalTensor(a[i]))
            TLOAD(b_l1, GlobalTensor(b[i]))
            set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
            wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
            TMOV(left, a_l1)
            TMOV(right, b_l1)
            set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
            set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
            wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
            wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
            TMATMUL(acc, left, right)
            set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
            set_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
            wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
            TPUSH[split](pipe, acc)
            set_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
        wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
    with vector_section():
        rows, cols = share(split)
        entry, result = part_tile(split), at(part_tile(split), 0x20000)
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)  # result is free
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)  # the local copies of entries are free
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1)
        for i in range(entries):
            wait_flag(PIPE_V, PIPE_MTE2, i % 2)
            TPOP[split](pipe, entry)
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
            TADDS(result, entry, 1.0)
            set_flag(PIPE_V, PIPE_MTE2, i % 2)
            TFREE[split](pipe)
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
            TSTORE(GlobalTensor(y[i])[rows, cols], result)
            set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1)


@kernel(mode="manual", core="mix")
def vector_to_cube(fifo, x, b, y, *, slots, split):
    """y = (2 x) @ b, entry by entry: the vector cores double x, the cube core multiplies."""
    pipe = TPipe[0, Direction.DIR_V2C, BYTES, slots](fifo, 0x0, 0x0)
    entries = x.shape[0]
    with vector_section():
        rows, cols = share(split)
        source, doubled = at(part_tile(split), 0x0), at(part_tile(split), 0x8000)
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
        for i in range(entries):
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
            TLOAD(source, GlobalTensor(x[i])[rows, cols])
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
            TADD(doubled, source, source)
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
            TPUSH[split](pipe, doubled)
            set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    with cube_section():
        Entry = Tile[TileType.Mat, float32, R, C, BLayout.ColMajor, R, C, SLayout.RowMajor]
        Factor = Tile[TileType.Mat, float32, C, K, BLayout.ColMajor, C, K, SLayout.RowMajor]
        entry, factor = Entry(), at(Factor(), 0x20000)
        left, right = at(TileLeft[float32, R, C](), 0), at(TileRight[float32, C, K](), 0)
        acc = at(TileAcc[float32, R, K](), 0)
        TLOAD(factor, GlobalTensor(b))
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1)
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID1)
        TMOV(right, factor)
        set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)  # left is free
        set_flag(PIPE_FIX, PIPE_M, EVENT_ID0)  # acc is free
        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)  # the local copies of entries are free
        set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1)
        for i in range(entries):
            wait_flag(PIPE_MTE1, PIPE_MTE2, i % 2)
            TPOP[split](pipe, entry)
            set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0)
            wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
            TMOV(left, entry)
            set_flag(PIPE_MTE1, PIPE_MTE2, i % 2)
            TFREE[split](pipe)
            set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
            wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0)
            wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
            TMATMUL(acc, left, right)
            set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
            set_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
            wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0)
            TSTORE(GlobalTensor(y[i]), acc)
            set_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
        wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0)
        wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0)
        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1)


@kernel(mode="manual", core="mix")
def slots_in_place(fifo, x, y, *, slots, way):
    """y = x + 1 through slots that both sides see as GlobalTensors; the vector cores store into
    them and the cube core passes them on."""
    pipe = TPipe[2, way, BYTES, slots](fifo, 0x0, 0x0)
    entries = x.shape[0]
    Half = GlobalTensor[float32, Shape[1, 1, 1, R // 2, C], Stride[1, 1, 1, C, 1]]
    Whole = GlobalTensor[float32, Shape[1, 1, 1, R, C], Stride[1, 1, 1, C, 1]]
    with vector_section():
        rows, cols = share(UP)
        tile = at(part_tile(UP), 0x0)
        for i in range(entries):
            TLOAD(tile, GlobalTensor(x[i])[rows, cols])
            set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
            TADDS(tile, tile, 1.0)
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
            slot = Half()
            TALLOC[UP](pipe, slot)
            TSTORE(slot, tile)
            TPUSH[UP](pipe, slot)
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
            wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
    with cube_section():
        Entry = Tile[TileType.Mat, float32, R, C]
        entry = at(Entry(), 0x0)
        for i in range(entries):
            slot = Whole()
            TPOP[UP](pipe, slot)
            TLOAD(entry, slot)
            TFREE[UP](pipe, slot)
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
            TSTORE(GlobalTensor(y[i]), entry)
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)
            wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0)


def ring(slots):
    return np.zeros(slots * R * C, np.float32)


def products(slots, entries):
    def inputs(rng):
        a = rng.integers(-4, 5, (entries, R, K)).astype(np.float16)
        b = rng.integers(-4, 5, (entries, K, C)).astype(np.float16)
        return ring(slots), a, b, np.zeros((entries, R, C), np.float32)

    return inputs


def doubles(slots, entries):
    def inputs(rng):
        x = rng.integers(-4, 5, (entries, R, C)).astype(np.float32)
        b = rng.integers(-4, 5, (C, K)).astype(np.float32)
        return ring(slots), x, b, np.zeros((entries, R, K), np.float32)

    return inputs


def plain(slots, entries):
    def inputs(rng):
        x = rng.standard_normal((entries, R, C)).astype(np.float32)
        return ring(slots), x, np.zeros_like(x)

    return inputs


def case(name, kernel, inputs, expected, **more):
    more.setdefault("targets", ("a2a3", "a5"))
    return Case(name, kernel, inputs, expected, paths=("eager",), **more)


CASES = [
    case(
        f"cube to vector, {slots} slots, {split.name}",
        cube_to_vector,
        products(slots, 2 * slots + 1),
        lambda fifo, a, b, y: (a.astype(np.float64) @ b.astype(np.float64) + 1,),
        consts={"slots": slots, "split": split},
    )
    for slots, split in ((1, UP), (2, LEFT), (3, UP), (8, LEFT))
]
CASES += [
    case(
        f"vector to cube, {slots} slots, {split.name}",
        vector_to_cube,
        doubles(slots, 2 * slots + 1),
        lambda fifo, x, b, y: (2 * x.astype(np.float64) @ b.astype(np.float64),),
        consts={"slots": slots, "split": split},
    )
    for slots, split in ((1, LEFT), (2, UP), (8, UP))
]
CASES += [
    case(
        f"slots in place, {slots} slots",
        slots_in_place,
        plain(slots, 2 * slots + 1),
        lambda fifo, x, y: (x + 1,),
        consts={"slots": slots, "way": way},
        targets=(target,),
    )
    for slots in (1, 4)
    for target, way in (("a2a3", Direction.DIR_V2C),)
]

if __name__ == "__main__":
    main(CASES)
