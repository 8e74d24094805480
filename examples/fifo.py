"""Tiles between the cube core and its two vector cores, through every kind of TPipe.

A TPipe is a ring of slots. The producer pushes; when the ring is full it waits. The consumer pops,
uses the entry, and gives the slot back. `Split` says how the two vector cores share an entry: each
has all of it, or they have the upper and the lower rows, or the left and the right columns; in the
odd splits vector core 0 has one row or column more. On A2/A3 the slots lie in global memory; on A5
in the memory of the consumer, unless the direction ends in _GM.

A pipe orders the cores, and nothing inside them. A push reads its tile on PIPE_FIX or PIPE_MTE3. A
pop through global memory is a load on PIPE_MTE2; without it the entry is there for PIPE_V (or
PIPE_MTE1) at once. `PtoSetWaitFlag` orders these pipes among the others: forward, "the data is
there", and backward, "the buffer is free again".

Teaches: all directions, splits, depths and both flavours of TPUSH and TPOP, on both targets.
"""

import numpy as np
from harness import Case, main

from ptokit import *

R, C = 32, 64  # one entry; the odd splits use a row or a column less
BYTES = R * C * 4
C2V, V2C, BOTH = Direction.DIR_C2V, Direction.DIR_V2C, Direction.DIR_BOTH
C2V_GM, V2C_GM = Direction.DIR_C2V_GM, Direction.DIR_V2C_GM
NO, UP, LEFT, UP_ODD, LEFT_ODD = TileSplitAxis
RING, TILES = 0x0, 0x18000  # where popped tiles and all others lie, in UB and in L1


def at(tile, address):
    """A tile bound to an address."""
    TASSIGN(tile, address)
    return tile


def boxed(rows, cols, valid_rows, valid_cols):
    """A matrix in L1."""
    kind = Tile[TileType.Mat, half, rows, cols, BLayout.ColMajor, valid_rows, valid_cols,
                SLayout.RowMajor]  # fmt: skip
    return kind()


def share(split, rows, cols):
    """What of an entry belongs to this vector core: first row, first column, rows, columns."""
    sub = get_subblockid()
    if split in (UP, UP_ODD):
        return sub * ((rows + 1) // 2), 0, (rows + 1) // 2 - sub * (rows % 2), cols
    if split in (LEFT, LEFT_ODD):
        return 0, sub * ((cols + 1) // 2), rows, (cols + 1) // 2 - sub * (cols % 2)
    return 0, 0, rows, cols


def part(kind, split, rows, cols, address):
    """A tile for the share of this vector core."""
    _, _, mine, wide = share(split, rows, cols)
    high = R // 2 if split in (UP, UP_ODD) else R
    width = C // 2 if split in (LEFT, LEFT_ODD) else C
    PartT = Tile[TileType.Vec, kind, high, width, BLayout.RowMajor, DYNAMIC, DYNAMIC]
    return at(PartT(mine, wide), address)


def owns(split):
    """Without a split both vector cores of A2/A3 hold the same entry, and one of them answers."""
    return split != NO or get_subblockid() == 0


def load_factor(b):
    """The right factor, kept in L0B for the whole kernel."""
    b_l1 = at(boxed(C, C, C, b.shape[1]), TILES + 0x4000)
    right = at(TileRight[half, C, C, C, b.shape[1]](), 0)
    TLOAD(b_l1, GlobalTensor(b))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
    TMOV(right, b_l1)
    return right


def multiply(acc, left, right, a_l1):
    """acc = a right, from L1 to the accumulator, which is complete for PIPE_FIX in the end."""
    TMOV(left, a_l1)
    PtoSetWaitFlag[PIPE_MTE1, PIPE_M]()
    TMATMUL(acc, left, right)
    PtoSetWaitFlag[PIPE_M, PIPE_MTE1]()  # L0A is free again
    PtoSetWaitFlag[PIPE_M, PIPE_FIX]()


@kernel(core="mix")
def cube_to_vector(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    """y = x b + 1, entry by entry: the cube multiplies, the vector cores add."""
    rows, cols = y.shape[0] // entries, y.shape[1]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    pipe = TPipe[0, way, BYTES, slots](ring, RING, RING)
    with cube_section():
        x_l1, left = at(boxed(R, C, rows, C), TILES), at(TileLeft[half, R, C, rows, C](), 0)
        acc, right = at(TileAcc[float32, R, C, rows, cols](), 0), load_factor(b)
        for i in range(entries):
            TLOAD(x_l1, gx[i * rows : i * rows + rows, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            multiply(acc, left, right, x_l1)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            TPUSH[split](pipe, acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
    with vector_section():
        row, col, mine, wide = share(split, rows, cols)
        entry = part(float32, split, rows, cols, RING)  # TPOP binds it to a slot
        out = part(float32, split, rows, cols, TILES)
        if get_subblockid() < lanes:  # on A5 vector core 1 has no part in an undivided entry
            for i in range(entries):
                TPOP[split](pipe, entry)
                PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
                TADDS(out, entry, 1.0)
                if way == C2V:  # through *_GM the pop itself gives the slot back
                    TFREE[split](pipe)
                PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
                PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
                if owns(split):
                    first = i * rows + row
                    TSTORE(gy[first : first + mine, col : col + wide], out)
                PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()


@kernel(core="mix")
def vector_to_cube(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    """y = half(x + 1) b: the vector cores add and round, the cube multiplies."""
    rows, cols = y.shape[0] // entries, y.shape[1]
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    pipe = TPipe[0, way, BYTES, slots](ring, RING, RING)
    with vector_section():
        row, col, mine, wide = share(split, rows, cols)
        source = part(float32, split, rows, cols, TILES)
        entry = part(half, split, rows, cols, TILES + 0x4000)
        if get_subblockid() < lanes:
            for i in range(entries):
                first = i * rows + row
                TLOAD(source, gx[first : first + mine, col : col + wide])
                PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
                TADDS(source, source, 1.0)
                pipe_barrier(PIPE_V)
                TCVT(entry, source, RoundMode.CAST_RINT)
                PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
                PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
                TPUSH[split](pipe, entry)
                PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()
    with cube_section():
        entry, left = boxed(R, C, rows, C), at(TileLeft[half, R, C, rows, C](), 0)
        acc, right = at(TileAcc[float32, R, C, rows, cols](), 0), load_factor(b)
        for i in range(entries):
            TPOP[split](pipe, entry)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            multiply(acc, left, right, entry)
            if way == V2C:
                TFREE[split](pipe)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            TSTORE(gy[i * rows : i * rows + rows, :], acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()


@kernel(core="mix")
def there_and_back(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    """y = half(relu(x b)) b: one pipe with two rings, the cube multiplies twice."""
    rows, cols = R, C
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    pipe = TPipe[0, way, BYTES, slots](ring, RING, RING)
    with cube_section():
        x_l1, back = at(boxed(R, C, R, C), TILES), boxed(R, C, R, C)
        left, acc = at(TileLeft[half, R, C](), 0), at(TileAcc[float32, R, C](), 0)
        right = load_factor(b)
        for i in range(entries):
            TLOAD(x_l1, gx[i * rows : i * rows + rows, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            multiply(acc, left, right, x_l1)
            TPUSH[split](pipe, acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
            TPOP[split](pipe, back)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1](1, 1)
            multiply(acc, left, right, back)
            TFREE[split](pipe)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            TSTORE(gy[i * rows : i * rows + rows, :], acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
    with vector_section():
        entry = part(float32, split, rows, cols, RING)
        answer = part(half, split, rows, cols, TILES)
        if get_subblockid() < lanes:
            for _ in range(entries):
                TPOP[split](pipe, entry)
                PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
                TRELU(entry, entry)
                pipe_barrier(PIPE_V)
                TCVT(answer, entry, RoundMode.CAST_RINT)
                TFREE[split](pipe)
                PtoSetWaitFlag[PIPE_V, PIPE_MTE2]()
                PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
                TPUSH[split](pipe, answer)
                PtoSetWaitFlag[PIPE_MTE3, PIPE_V]()


def slot_of(kind, split, rows, cols):
    """A view of this vector core's share of a slot; TALLOC or TPOP points it there."""
    high = rows // 2 if split == UP else rows
    wide = cols // 2 if split == LEFT else cols
    return GlobalTensor[kind, Shape[1, 1, 1, high, wide], Stride[1, 1, 1, cols, 1]]()


@kernel(core="mix")
def slots_to_vector(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    """cube_to_vector with the slots in hand: TALLOC, TSTORE, TPUSH; TPOP, TLOAD, TFREE."""
    rows, cols = R, C
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    pipe = TPipe[0, way, BYTES, slots](ring, RING, RING)
    with cube_section():
        x_l1, left = at(boxed(R, C, R, C), TILES), at(TileLeft[half, R, C](), 0)
        acc, right = at(TileAcc[float32, R, C](), 0), load_factor(b)
        slot = slot_of(float32, NO, rows, cols)
        for i in range(entries):
            TLOAD(x_l1, gx[i * rows : i * rows + rows, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            multiply(acc, left, right, x_l1)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            TALLOC[split](pipe, slot)
            TSTORE(slot, acc)
            TPUSH[split](pipe, slot)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()
    with vector_section():
        row, col, mine, wide = share(split, rows, cols)
        tile = part(float32, split, rows, cols, TILES)
        slot = slot_of(float32, split, rows, cols)
        if get_subblockid() < lanes:
            for i in range(entries):
                TPOP[split](pipe, slot)
                TLOAD(tile, slot)
                TFREE[split](pipe, slot)
                PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
                TADDS(tile, tile, 1.0)
                PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
                if owns(split):
                    first = i * rows + row
                    TSTORE(gy[first : first + mine, col : col + wide], tile)
                PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()


@kernel(core="mix")
def slots_to_cube(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    """vector_to_cube with the slots in hand; x is half already."""
    rows, cols = R, C
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    pipe = TPipe[0, way, BYTES, slots](ring, RING, RING)
    with vector_section():
        row, col, mine, wide = share(split, rows, cols)
        tile = part(half, split, rows, cols, TILES)
        slot = slot_of(half, split, rows, cols)
        if get_subblockid() < lanes:
            for i in range(entries):
                first = i * rows + row
                TLOAD(tile, gx[first : first + mine, col : col + wide])
                PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
                TALLOC[split](pipe, slot)
                if owns(split):
                    TSTORE(slot, tile)
                TPUSH[split](pipe, slot)
                PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
    with cube_section():
        entry, left = at(boxed(R, C, R, C), TILES), at(TileLeft[half, R, C](), 0)
        acc, right = at(TileAcc[float32, R, C](), 0), load_factor(b)
        slot = slot_of(half, NO, rows, cols)
        for i in range(entries):
            TPOP[split](pipe, slot)
            TLOAD(entry, slot)
            TFREE[split](pipe, slot)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE1]()
            multiply(acc, left, right, entry)
            PtoSetWaitFlag[PIPE_MTE1, PIPE_MTE2]()
            TSTORE(gy[i * rows : i * rows + rows, :], acc)
            PtoSetWaitFlag[PIPE_FIX, PIPE_M]()


# ---- cases ---------------------------------------------------------------------------------------


def wide(a):
    return a.astype(np.float64)


MEANING = {  # what NumPy says of one entry
    cube_to_vector: lambda x, b: wide(x) @ wide(b) + 1,
    vector_to_cube: lambda x, b: wide((x + 1).astype(np.float16)) @ wide(b),
    there_and_back: lambda x, b: np.maximum(wide(x) @ wide(b), 0) @ wide(b),
    slots_to_vector: lambda x, b: wide(x) @ wide(b) + 1,
    slots_to_cube: lambda x, b: wide(x) @ wide(b),
}


def case(kernel, target, way, split, slots):
    """One way of using a pipe, with enough entries to go round the ring twice."""
    rows, cols = R - (split == UP_ODD), C - (split == LEFT_ODD)
    entries = 2 * slots + 1

    def inputs(rng):
        kind = np.float32 if kernel is vector_to_cube else np.float16
        x = rng.integers(-2, 3, (entries * rows, C)).astype(kind)
        b = rng.integers(-1, 2, (C, cols)).astype(np.float16)
        ring = np.zeros((2, slots, BYTES), np.uint8)
        return x, b, ring, np.zeros((entries * rows, cols), np.float32)

    return Case(
        f"{kernel.name} {way.name[4:]} {split.name[5:]} x{slots}",
        kernel,
        inputs,
        lambda x, b, *rest: (MEANING[kernel](x, b),),
        targets=(target,),
        consts={
            "way": way,
            "split": split,
            "slots": slots,
            "entries": entries,
            "lanes": 1 if target == "a5" and split == NO else 2,
        },
    )


WAYS = {  # kernel: target, direction
    cube_to_vector: [("a2a3", C2V), ("a5", C2V), ("a5", C2V_GM)],
    vector_to_cube: [("a2a3", V2C), ("a5", V2C), ("a5", V2C_GM)],
    there_and_back: [("a2a3", BOTH), ("a5", BOTH)],  # no tiles through BOTH_GM
    slots_to_vector: [("a2a3", C2V), ("a5", C2V_GM)],
    slots_to_cube: [("a2a3", V2C), ("a5", V2C_GM)],
}
CASES = [
    case(kernel, target, way, split, slots)
    for kernel, ways in WAYS.items()
    for target, way in ways
    for split in TileSplitAxis
    if split <= LEFT or (kernel is cube_to_vector and target == "a2a3")  # others have no odd splits
    for slots in (1, 2, 3, 8)
]
# Every split and every depth once, for those who take the examples apart.
MUTATED = [c for c in CASES if c.consts["slots"] == 2 or c.consts["split"] == UP]

if __name__ == "__main__":
    main(CASES)
