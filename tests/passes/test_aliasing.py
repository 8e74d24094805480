"""Operands that share bytes where they must not: the same verdict wherever the kernel comes in."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import ProgramError
from ptokit.from_text import loads
from ptokit.kernels import Kernel

F = Tile[TileType.Vec, float32, 16, 64]
H = Tile[TileType.Vec, half, 16, 64]
Int = Tile[TileType.Vec, int32, 16, 64]
Row = Tile[TileType.Vec, float32, 1, 64]
Square = Tile[TileType.Vec, float32, 16, 16]
Column = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]


def auto(body) -> Kernel:
    return kernel(mode="auto")(body)


@auto
def transposed_in_place(x, z):
    t, tmp = Square(), Square()
    TLOAD(t, GlobalTensor(x)[0:16, 0:16])
    TTRANS(t, t, tmp)
    TSTORE(GlobalTensor(z)[0:16, 0:16], t)


@auto
def scratch_is_the_source(x, z):
    t, u = F(), Column()
    TLOAD(t, GlobalTensor(x))
    TROWARGMAX(Tile[TileType.Vec, int32, 16, 1, BLayout.ColMajor](), t, t)
    TROWSUM(u, t, t)


@auto
def scratch_is_the_result(x, z):
    t, u = Int(), Int()
    TEXPANDS(t, 3)
    TXOR(u, t, t, u)


@auto
def scratch_reshaped_from_the_result(x, z):
    t, u = F(), F()
    row = Row()
    TLOAD(t, GlobalTensor(x))
    TRESHAPE(row, u)
    TREMS(u, t, 3.0, row)
    TSTORE(GlobalTensor(z), u)


@auto
def shifted_window(x, z):
    t, w = F(), Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 8, 64]()
    TLOAD(t, GlobalTensor(x))
    TSUBVIEW(w, t, 4, 0)
    v = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 8, 64]()
    TSUBVIEW(v, t, 0, 0)
    TABS(w, v)
    TSTORE(GlobalTensor(z), t)


@auto
def widened_in_place(x, z):
    t, h = F(), H()
    TLOAD(t, GlobalTensor(x))
    TCVT(h, t)
    g = H()
    TRESHAPE(g, t)
    TMOV(g, h)
    TCVT(t, g)
    TSTORE(GlobalTensor(z), t)


@auto
def gathered_in_place(x, z):
    t, index, tmp = F(), Int(), Int()
    TLOAD(t, GlobalTensor(x))
    TEXPANDS(index, 0)
    TGATHER(t, t, index, tmp)
    TSTORE(GlobalTensor(z), t)


@auto
def divisor_is_the_result(x, z):
    t = F()
    TLOAD(t, GlobalTensor(x))
    TDIVS(t, 7.0, t)
    TSTORE(GlobalTensor(z), t)


@auto
def spread_over_its_column(x, z):
    t = Tile[TileType.Vec, float32, 16, 8]()
    c = Column()
    TLOAD(t, GlobalTensor(x)[0:16, 0:8])
    TRESHAPE(c, t)
    TROWEXPAND(t, c)
    TSTORE(GlobalTensor(z)[0:16, 0:8], t)


@auto
def padded_into_another_tile(x, z):
    t = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 16, 64, SLayout.NoneBox, 512,
             PadValue.Zero]()  # fmt: skip
    s = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 10, 60]()
    TLOAD(s, GlobalTensor(x)[0:10, 0:60])
    TFILLPAD_INPLACE(t, s)
    TSTORE(GlobalTensor(z), t)


@auto
def smaller_source_is_the_result(x, z):
    a, b = F(), Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 8, 64]()
    c = F()
    TLOAD(a, GlobalTensor(x))
    TLOAD(b, GlobalTensor(x)[0:8, :])
    TRESHAPE(c, b)
    TPARTADD(c, a, b)
    TSTORE(GlobalTensor(z), c)


@auto
def too_large(x, z):
    t = Tile[TileType.Vec, float32, 256, 256]()
    TEXPANDS(t, 1.0)
    TSTORE(GlobalTensor(z), t)


@auto
def more_than_the_view(x, z):
    t = F()
    TEXPANDS(t, 1.0)
    TSTORE(GlobalTensor(z)[0:8, :], t)


@auto
def too_many(x, z):
    tiles = [Tile[TileType.Vec, float32, 64, 256]() for _ in range(4)]
    for tile in tiles:
        TEXPANDS(tile, 1.0)
    for tile in tiles:
        TSTORE(GlobalTensor(z)[:, :], tile)


MISUSES = {k.name: k for k in list(globals().values()) if isinstance(k, Kernel)}
WANTED = {"too_large": "place.overflow", "too_many": "place.overflow"}
SHAPES = {"too_large": (256, 256), "too_many": (64, 256)}
# What texts refuse of an instruction and devices do not: a rule of the language alone.
OF_TEXTS = {"more_than_the_view": "TSTORE.static-count"}


Verdict = tuple[tuple[str, str, int], ...]


def verdict(run) -> Verdict:
    """Errors, or the warnings of a run that went well: how much each matters, its id and line."""
    try:
        done = run()
    except ProgramError as error:
        found = [d for d in error.diagnostics if d.severity == "error"]
    else:
        found = getattr(done, "warnings", ())
    return tuple(sorted({(d.severity, d.code, d.location.line) for d in found}))


@pytest.mark.filterwarnings("ignore::ptokit.base.diagnostics.PtoWarning")
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", MISUSES)
def test_every_door_gives_the_same_verdict(name: str, target: str) -> None:
    k = MISUSES[name]
    shape = SHAPES.get(name, (16, 64))
    x, z = np.ones(shape, "f4"), np.zeros(shape, "f4")
    eager = verdict(lambda: k[1](x, z, target=target))
    assert eager == verdict(lambda: k[1](x, z, target=target, path="lowered"))
    level2 = loads(k.text(x, z, target=target, form="l2"))
    by_text = verdict(lambda: level2.entry()[1](x, z, target=target))
    if name in OF_TEXTS:
        assert [found[:2] for found in by_text] == [("error", OF_TEXTS[name])]
    else:
        assert [found[:2] for found in by_text] == [found[:2] for found in eager]
    written = verdict(lambda: k.text(x, z, target=target))
    assert written == verdict(lambda: k.cpp(x, z, target=target))
    (checked,) = k.check(target, x, z).found.values()
    errors = {("error", d.code, d.location.line) for d in checked if d.severity == "error"}
    assert tuple(sorted(errors)) == written
    if any(how == "error" and code != "poison-read" for how, code, _ in eager):
        assert written == eager  # before it runs
    if target == "a2a3":
        assert eager, "not a misuse"
        assert WANTED.get(name, "") in eager[0][1]


def test_a_tile_of_its_own_is_no_misuse() -> None:
    with device("a2a3", mode="auto"):
        t, u, tmp = Square(), Square(), Square()
        t.fill(1)
        TTRANS(u, t, tmp)
        with pytest.raises(ProgramError) as caught:
            TTRANS(t, t, tmp)
    assert caught.value.codes == ("TTRANS.apart",)


def test_outside_a_kernel_a_tile_fits_into_its_memory_too() -> None:
    with device("a2a3", mode="auto"):
        large = Tile[TileType.Vec, float32, 256, 256]()
        with pytest.raises(ProgramError) as caught:
            TEXPANDS(large, 1.0)
    assert caught.value.codes == ("place.overflow",)


@auto
def all_blocks_write_the_same(x, z):
    t = F()
    TLOAD(t, GlobalTensor(x))
    TSTORE(GlobalTensor(z), t)


@kernel(mode="auto", core="mix")
def both_vector_cores_write_the_same(x, z):
    with vector_section():
        t = F()
        TLOAD(t, GlobalTensor(x))
        TSTORE(GlobalTensor(z), t)


@kernel(mode="auto")
def every_block_has_its_own(x, z):
    t = F()
    first = get_block_idx() * 16
    TLOAD(t, GlobalTensor(x)[first : first + 16, :])
    TSTORE(GlobalTensor(z)[first : first + 16, :], t)


@pytest.mark.filterwarnings("ignore::ptokit.base.diagnostics.PtoWarning")
def test_cores_that_race_do_so_at_every_door() -> None:
    x, z = np.ones((48, 64), "f4"), np.zeros((48, 64), "f4")
    for k, blocks, arrays, races in (
        (all_blocks_write_the_same, 3, (x[:16], z[:16]), True),
        (both_vector_cores_write_the_same, 1, (x[:16], z[:16]), True),
        (every_block_has_its_own, 3, (x, z), False),
    ):
        eager, lowered = (
            verdict(lambda path=path, k=k, n=blocks, given=arrays: k[n](*given, path=path))
            for path in ("eager", "lowered")
        )
        assert eager == lowered
        assert {code for _, code, _ in eager} == ({"E7"} if races else set())
