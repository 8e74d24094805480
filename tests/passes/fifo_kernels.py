"""Kernels on a cluster that leave placement and synchronisation to auto mode."""

from __future__ import annotations

from typing import Any

from ptokit import *

UP = TileSplitAxis.TILE_UP_DOWN
Half, HalfWeights = Tile[TileType.Vec, float32, 16, 64], Tile[TileType.Vec, half, 16, 64]


def boxed(rows: int, cols: int) -> Any:
    return Tile[TileType.Mat, half, rows, cols, BLayout.ColMajor, rows, cols, SLayout.RowMajor]


def pipes(ring: Any, back_ring: Any, flavour: str, at: int) -> tuple[Any, Any]:
    """A FIFO each way, or one for both; local slots at `at` in UB and in L1."""
    if flavour == "both":
        pipe = TPipe[0, Direction.DIR_BOTH, 8192, 2](ring, at, at)
        return pipe, pipe
    there = Direction.DIR_C2V_GM if flavour == "gm" else Direction.DIR_C2V
    back = Direction.DIR_V2C_GM if flavour == "gm" else Direction.DIR_V2C
    return TPipe[0, there, 8192, 2](ring, at, 0), TPipe[2, back, 4096, 2](back_ring, 0, at)


@kernel(mode="auto", core="mix")
def one_way(a: Any, b: Any, ring: Any, back_ring: Any, y: Any, *, flavour: str, at: int) -> None:
    """y = a b + 1, three times over; every core has its own loop."""
    there, _ = pipes(ring, back_ring, flavour, at)
    with cube_section():
        a_l1, b_l1 = boxed(32, 64)(), boxed(64, 64)()
        left, right = TileLeft[half, 32, 64](), TileRight[half, 64, 64]()
        acc = TileAcc[float32, 32, 64]()
        for _step in range(3):
            TLOAD(a_l1, GlobalTensor(a))
            TLOAD(b_l1, GlobalTensor(b))
            TMOV(left, a_l1)
            TMOV(right, b_l1)
            TMATMUL(acc, left, right)
            TPUSH[UP](there, acc)
    with vector_section():
        popped, more = Half(), Half()
        first = get_subblockid() * 16
        for _step in range(3):
            TPOP[UP](there, popped)
            TADDS(more, popped, 1.0)
            if flavour != "gm":
                TFREE[UP](there)
            TSTORE(GlobalTensor(y)[first : first + 16, :], more)


@kernel(mode="auto", core="mix")
def as_popped(a: Any, b: Any, ring: Any, back_ring: Any, y: Any, *, flavour: str, at: int) -> None:
    """y = a b, five times through two slots: one is given back when its store is over."""
    there, _ = pipes(ring, back_ring, flavour, at)
    with cube_section():
        a_l1, b_l1 = boxed(32, 64)(), boxed(64, 64)()
        left, right = TileLeft[half, 32, 64](), TileRight[half, 64, 64]()
        acc = TileAcc[float32, 32, 64]()
        TLOAD(a_l1, GlobalTensor(a))
        TLOAD(b_l1, GlobalTensor(b))
        TMOV(left, a_l1)
        TMOV(right, b_l1)
        TMATMUL(acc, left, right)
        for _step in range(5):
            TPUSH[UP](there, acc)
    with vector_section():
        popped = Half()
        first = get_subblockid() * 16
        for _step in range(5):
            TPOP[UP](there, popped)
            TSTORE(GlobalTensor(y)[first : first + 16, :], popped)
            if flavour != "gm":
                TFREE[UP](there)


@kernel(mode="auto", core="mix")
def there_and_back(
    a: Any, b: Any, ring: Any, back_ring: Any, y: Any, *, flavour: str, at: int
) -> None:
    """y = (a b + 1) b; sections in one loop, and an entry that is stored as it is popped."""
    there, back = pipes(ring, back_ring, flavour, at)
    a_l1, b_l1, p_l1 = boxed(32, 64)(), boxed(64, 64)(), boxed(32, 64)()
    left, right = TileLeft[half, 32, 64](), TileRight[half, 64, 64]()
    acc = TileAcc[float32, 32, 64]()
    popped, more, weights = Half(), Half(), HalfWeights()
    for _step in range(3):
        with cube_section():
            TLOAD(a_l1, GlobalTensor(a))
            TLOAD(b_l1, GlobalTensor(b))
            TMOV(left, a_l1)
            TMOV(right, b_l1)
            TMATMUL(acc, left, right)
            TPUSH[UP](there, acc)
        with vector_section():
            TPOP[UP](there, popped)
            TADDS(more, popped, 1.0)
            if flavour != "gm":
                TFREE[UP](there)
            TCVT(weights, more, RoundMode.CAST_RINT)
            TPUSH[UP](back, weights)
        with cube_section():
            TPOP[UP](back, p_l1)
            TMOV(left, p_l1)
            if flavour != "gm":
                TFREE[UP](back)
            TMATMUL(acc, left, right)
            TPUSH[UP](there, acc)
        with vector_section():
            first = get_subblockid() * 16
            TPOP[UP](there, popped)
            TSTORE(GlobalTensor(y)[first : first + 16, :], popped)
            if flavour != "gm":
                TFREE[UP](there)


@kernel(mode="auto")
def both_parts(a: Any, b: Any, work: Any, y: Any) -> None:
    """y = a b + 1 on one core that plays both parts, through global memory."""
    a_l1, b_l1 = boxed(32, 64)(), boxed(64, 64)()
    left, right = TileLeft[half, 32, 64](), TileRight[half, 64, 64]()
    acc, whole = TileAcc[float32, 32, 64](), Tile[TileType.Vec, float32, 32, 64]()
    for _step in range(2):
        with cube_section():
            TLOAD(a_l1, GlobalTensor(a))
            TLOAD(b_l1, GlobalTensor(b))
            TMOV(left, a_l1)
            TMOV(right, b_l1)
            TMATMUL(acc, left, right)
            TSTORE(GlobalTensor(work), acc)
        with vector_section():
            TLOAD(whole, GlobalTensor(work))
            TADDS(whole, whole, 1.0)
            TSTORE(GlobalTensor(y), whole)
