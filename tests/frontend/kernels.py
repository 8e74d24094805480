"""Small kernels that show one thing each; tests lower and run them."""

from ptokit import *

Block = Tile[TileType.Vec, float32, 16, 64]
Column = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]


@kernel(mode="auto")
def carried_number(x, y, n):
    """A number is carried through a loop and out of a branch."""
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    t = Block()
    total = 0
    for i in range(n):
        if i % 2 == 0:
            total = total + i
        else:
            total = total + 0.5
    TLOAD(t, gx)
    TADDS(t, t, total)
    TSTORE(gy, t)


@kernel(mode="auto")
def swapped_tiles(x, y, n):
    """Tile handles change places in every round."""
    a, b = Block(), Block()
    TLOAD(a, GlobalTensor(x))
    TEXPANDS(b, 1.0)
    for _i in range(n):
        TADD(b, a, b)
        a, b = b, a
    TSTORE(GlobalTensor(y), a)


@kernel(mode="auto")
def while_loop(x, y, limit):
    """Double until a limit is reached."""
    t = Block()
    TLOAD(t, GlobalTensor(x))
    factor = 1
    while factor < limit:
        TADD(t, t, t)
        factor = factor * 2
    TSTORE(GlobalTensor(y), t)


@kernel(mode="auto")
def early_return(x, y, n):
    """The rest of the body is the other branch."""
    t = Block()
    TLOAD(t, GlobalTensor(x))
    if n > 3:
        TSTORE(GlobalTensor(y), t)
        return
    TMULS(t, t, 2.0)
    TSTORE(GlobalTensor(y), t)


@kernel(mode="auto")
def scalar_arithmetic(x, y, n, f):
    """Python's arithmetic, with Python's rounding of // and %."""
    t = Block()
    TLOAD(t, GlobalTensor(x))
    a = (n - 7) // 3 + (n - 7) % 3 * 10
    b = min(n, 4) + max(f, 2.0) - abs(n - 9)
    c = 100.0 if n > 2 and not f > 9.0 else 200.0
    d = (n << 2) + (n & 1) + int(f)
    TADDS(t, t, a + b + c + d + n / 4)
    TSTORE(GlobalTensor(y), t)


@kernel(mode="auto")
def dynamic_valid(x, y, rows):
    """The valid region is decided at run time."""
    Part = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, 64]
    t = Part(rows)
    TLOAD(t, GlobalTensor(x)[0:rows, :])
    TMULS(t, t, 3.0)
    TSTORE(GlobalTensor(y)[0:rows, :], t)


@kernel(mode="auto")
def tiles_from_a_list(x, y):
    """A loop over known bounds that picks tiles from a list is unrolled."""
    tiles = [Block(), Block(), Block()]
    for i in range(3):
        TLOAD(tiles[i], GlobalTensor(x))
        TMULS(tiles[i], tiles[i], i + 1.0)
    TADD(tiles[0], tiles[0], tiles[1])
    TADD(tiles[0], tiles[0], tiles[2])
    TSTORE(GlobalTensor(y), tiles[0])


@kernel(mode="manual")
def with_events(x, y):
    """Events of manual mode become flags."""
    a, b = Block(), Block()
    TASSIGN[0x0000](a)
    TASSIGN(b, 0x1000)
    loaded = Event[Op.TLOAD, Op.TADDS](TLOAD(a, GlobalTensor(x)))
    added = Event[Op.TADDS, Op.TSTORE_VEC](TADDS(b, a, 1.0, loaded))
    TSTORE(GlobalTensor(y), b, added)


@kernel(mode="auto")
def hidden_scratch(x, y):
    """A temporary that the pages leave out of the text goes along all the same."""
    block, scratch, codes = Block(), Block(), Tile[TileType.Vec, int8, 16, 64]()
    scale, zero = Column(), Column()
    flat = Tile[TileType.Vec, float32, 1, 16]()
    TRESHAPE(flat, scale)
    TEXPANDS(flat, 4.0)
    TLOAD(block, GlobalTensor(x))
    TQUANT[QuantType.INT8_SYM](codes, block, scale, scratch)
    TRESHAPE(flat, zero)
    TEXPANDS(flat, 0.0)
    TDEQUANT(block, codes, scale, zero)
    TSTORE(GlobalTensor(y), block)


# ---- kernels that cannot be lowered ------------------------------------------------------------


@kernel
def uses_else(x, n):
    for i in range(n):
        if i > 3:
            break
    else:
        pass


@kernel
def uses_try(x, n):
    try:
        pass
    finally:
        pass


@kernel
def used_after_loop(x, n):
    for i in range(n):
        last = i
    print("last", last)


@kernel
def run_time_index(x, n):
    scales = [1.0, 2.0]
    TADDS(Block(), Block(), scales[n])


@kernel
def unknown_name(x, n):
    TLOAD(nowhere, GlobalTensor(x))


@kernel
def false_at_compile_time(x, n):
    assert x.shape[0] == 17, "sixteen rows"


CANNOT = {
    uses_else: ("lower.for-else", "a loop in a kernel has no else"),
    uses_try: ("lower.unsupported", "a kernel cannot contain try"),
    used_after_loop: ("lower.gone", "last is assigned only inside the loop"),
    run_time_index: ("lower.needs-constant", "needs a value known at compile time"),
    unknown_name: ("unknown-name", "name 'nowhere' is not defined"),
    false_at_compile_time: ("lower.assert", "sixteen rows"),
}


# ---- kernels for the checks ----------------------------------------------------------------------


@kernel(mode="auto")
def straight(x, y):
    t = Block()
    TLOAD(t, GlobalTensor(x))
    TADDS(t, t, 1.0)
    TSTORE(GlobalTensor(y), t)


@kernel(mode="manual")
def overlapping(x, y):
    a, b, c = Block(), Block(), Block()
    TASSIGN[0x0000](a)
    TASSIGN[0x0800](b)
    TASSIGN[0x2000](c)
    TLOAD(a, GlobalTensor(x))
    TEXPANDS(b, 1.0)
    TADD(c, a, a)


@kernel(mode="manual")
def beyond_the_end(x):
    a = Block()
    TASSIGN[0x2F800](a)
    TLOAD(a, GlobalTensor(x))


@kernel(mode="manual")
def misaligned(x):
    a = Block()
    TASSIGN[0x10](a)
    TLOAD(a, GlobalTensor(x))


@kernel(mode="manual")
def one_tile_unbound(x, z, n):
    """The second tile is moved to an address only after it is used; the third never."""
    first, second, third = Block(), Block(), Block()
    TASSIGN(first, 0)
    TLOAD(first, GlobalTensor(x))
    pipe_barrier(PIPE_ALL)
    if n > 0:
        TADDS(third, first, 1.0)
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(z), third)
    TRESHAPE(second, first)
    TSTORE(GlobalTensor(z), second)


@kernel(mode="auto")
def smaller_name(x, z, *, kind):
    """A tile seen through a name that covers less of it, or splits it otherwise."""
    block, name = Block(), kind()
    TLOAD(block, GlobalTensor(x))
    TRESHAPE(name, block)
    TMULS(name, name, 2.0)
    TSTORE(GlobalTensor(z), block)


@kernel(mode="auto")
def load_if(x, z, n):
    """z = x, unless nothing is loaded."""
    block = Block()
    if n > 0:
        TLOAD(block, GlobalTensor(x))
    TSTORE(GlobalTensor(z), block)
