"""The advice of a broken rule names numbers and types.

That following it mends the rule is tested on every rule of the table, in tests/isa/test_table.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import samples
from ptokit.isa.spec import Rule
from ptokit.isa.targets import TARGETS
from ptokit.isa.verify import recipe, verify

V = TileType.Vec


def at(address: int, *arguments: Any) -> Any:
    tile = Tile[arguments]()
    TASSIGN(tile, address)
    return tile


def f32(address: int, rows: int, cols: int, *more: Any) -> Any:
    return at(address, V, float32, rows, cols, *more)


ADVICE: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "scratch bytes": (
        lambda: TTRANS(f32(0, 32, 16), f32(0x1000, 16, 32), f32(0x2000, 4, 16)),
        ["at least 2048 bytes", "tmp.Cols = 128", "tmp.Rows = 32"],
    ),
    "element type": (
        lambda: TADD(f32(0, 16, 16), f32(0x1000, 16, 16), at(0x2000, V, half, 16, 16)),
        ["here: src1.DType = f32"],
    ),
    "valid region": (
        lambda: TADD(f32(0, 16, 16), f32(0x1000, 16, 16), f32(0x2000, 8, 16)),
        ["here: src1.Rows = 16"],
    ),
    "memory space": (
        lambda: TADD(f32(0, 16, 16), f32(0x1000, 16, 16), at(0, TileType.Mat, float32, 16, 16)),
        ["here: src1.Loc = Vec"],
    ),
    "layout": (
        lambda: TADD(f32(0, 16, 16), f32(0, 16, 16), f32(0, 16, 16, BLayout.ColMajor)),
        ["here: src1.Layout = ND"],
    ),
    "overlap": (
        lambda: TADD(f32(0x20, 16, 16), f32(0x1000, 16, 16), f32(0, 16, 16)),
        ["dst at 0x400 or src1 at 0x20"],
    ),
    "the very next": (lambda: TASSIGN[0x1F](Tile[V, float32, 16, 16]()), ["here: Addr = 32"]),
    "address alignment": (lambda: TASSIGN[0x11](Tile[V, float32, 16, 16]()), ["here: Addr = 32"]),
    "end of memory": (
        lambda: TASSIGN[0x30000](Tile[V, float32, 16, 16]()),
        ["here: Addr = 0x2fc00"],
    ),
    "capacity": (lambda: TASSIGN[0](Tile[V, float32, 512, 512]()), ["here: obj.Rows = 96"]),
    "mask columns": (
        lambda: TCMP(at(0, V, uint8, 8, 32), f32(0x1000, 8, 512), f32(0x9000, 8, 512), CmpMode.GT),
        ["here: dst.Cols = 64"],
    ),
    "scratch as wide as half a source": (
        lambda: TROWSUM(
            f32(0, 16, 8, BLayout.RowMajor, 16, 1), f32(0x1000, 16, 512), f32(0xA000, 8, 8)
        ),
        ["here: tmp.Cols = 256"],
    ),
    "extent of a view": (
        lambda: TLOAD(f32(0, 16, 16), GlobalTensor(np.zeros((16, 8), np.float32))),
        ["dst.ValidCol = 8"],
    ),
    "template argument": (
        lambda: TASSIGN[0x400](at(0, V, float32, 16, 16), 0x400),
        ["TASSIGN(tile, address) or TASSIGN[address](tile)"],
    ),
    "tile type": (lambda: Tile[V, float32, 3, 3], ["here: Cols = 8"]),
    "boxed tile type": (lambda: TileLeft[half, 15, 20], ["here: Rows = 16", "here: Cols = 32"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ADVICE)
def test_advice_names_what_is_needed(name: str) -> None:
    call, expected = ADVICE[name]
    with device("a2a3", rules="strict"), pytest.raises(ProgramError) as caught:
        call()
    said = "\n".join(found.fix for found in caught.value.diagnostics)
    for words in expected:
        assert words in said


def test_a_slot_too_small_names_its_size() -> None:
    pipe = TPipe[0, Direction.DIR_V2C, 512, 2]
    with device("a2a3"), pytest.raises(ProgramError) as caught, subblock(0):
        TPUSH(pipe(np.zeros(4096, np.uint8)), f32(0, 16, 16))
    found = next(d for d in caught.value.diagnostics if d.code.endswith("slot-size"))
    assert "at least 1024" in found.fix


def test_a_fix_is_a_sentence_or_makes_one_of_the_operands() -> None:
    """A function gets what the predicate gets; what it cannot know yet leaves the recipe."""
    add, target = INSTRUCTIONS["TADD"], TARGETS["a2a3"]
    sample = next(iter(samples(add, target)))

    def broken_rule(fix: Any) -> str:
        rule = Rule("SA-0084", "never holds", lambda o: False, None, fix)
        (found,) = verify(replace(add, rules=(rule,)), sample.facts())
        return found.fix

    assert broken_rule("do this") == "do this"
    assert broken_rule(lambda o: f"give it {o.dst.rows} rows") == "give it 16 rows"
    dynamic = replace(
        sample, operands={k: replace(s, valid_row=-1) for k, s in sample.operands.items()}
    )  # type: ignore[type-var]
    rule = Rule("SA-0084", "never holds", lambda o: False, None, lambda o: str(o.dst.vr))
    (found,) = verify(replace(add, rules=(rule,)), dynamic.facts())
    assert found.fix == recipe("SA-0084")


# ---- advice for a whole kernel -------------------------------------------------------------------


def small(rows: int) -> Any:
    return Tile[V, float32, rows, 64]()


def fix_of(function: Any, path: str, **shapes: tuple[int, int]) -> str:
    arrays = [np.ones(shape, "f4") for shape in shapes.values()]
    with pytest.raises(ProgramError) as caught:
        function[1](*arrays, path=path)
    return caught.value.diagnostics[0].fix


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_a_value_that_breaks_another_instruction_is_not_offered(path: str) -> None:
    @kernel(mode="auto")
    def alone(x, y, z):  # type: ignore[no-untyped-def]
        a, b, c = small(16), small(8), small(16)
        TEXPANDS(b, 1.0)
        TLOAD(a, GlobalTensor(x))
        TADD(c, a, b)
        TSTORE(GlobalTensor(z), c)

    @kernel(mode="auto")
    def loaded(x, y, z):  # type: ignore[no-untyped-def]
        a, b, c = small(16), small(8), small(16)
        TLOAD(a, GlobalTensor(x))
        TLOAD(b, GlobalTensor(y))
        TADD(c, a, b)
        TSTORE(GlobalTensor(z), c)

    shapes = {"x": (16, 64), "y": (8, 64), "z": (16, 64)}
    # Only the tile that no load or store ties to an array can have another size.
    assert fix_of(alone, path, **shapes).endswith("here: src1.Rows = 16")
    assert "here:" not in fix_of(loaded, path, **shapes)


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(("beyond", "offered"), [(0x4000, "tmp.Rows = 32"), (0x2200, "")])
def test_a_tile_is_not_told_to_grow_over_its_neighbour(
    path: str, beyond: int, offered: str
) -> None:
    @kernel
    def transpose(x, y, *, neighbour):  # type: ignore[no-untyped-def]
        src, dst = Tile[V, float32, 16, 32](), Tile[V, float32, 32, 16]()
        tmp, other = Tile[V, float32, 4, 16](), Tile[V, float32, 16, 32]()
        TASSIGN(src, 0)
        TASSIGN(dst, 0x1000)
        TASSIGN(tmp, 0x2000)
        TASSIGN(other, neighbour)
        TTRANS(dst, src, tmp)
        TEXPANDS(other, 0.0)

    with pytest.raises(ProgramError) as caught:
        transpose[1](np.ones((16, 32), "f4"), np.ones((32, 16), "f4"), neighbour=beyond, path=path)
    fix = caught.value.diagnostics[0].fix
    assert offered in fix
    assert ("here:" in fix) == bool(offered)


def test_a_tile_that_is_given_twice_changes_in_both_places() -> None:
    with device("a2a3", rules="strict"):
        tile, other = f32(0x400, 8, 16), f32(0, 16, 16)
        with pytest.raises(ProgramError) as caught:
            TADD(tile, other, tile)
    assert "src0.ValidRow = 8" in caught.value.diagnostics[0].fix
    assert "dst.Rows = 16" in caught.value.diagnostics[0].fix
