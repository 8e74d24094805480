"""FIFOs between the cube core and its vector cores: reserve, fill, hand over, take, give back.

A `TPipe` is a ring of slots of fixed size (two rings when it carries both directions). Where the
slots lie, which flag says what, and how a split divides an entry between the two vector cores is
the machine's business (`machine/fifo.py`); the order of the steps is what the instructions say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ptokit.base.enums import (
    Direction,
    TileSplitAxis,
    TileType,
)
from ptokit.isa.fifos import THROUGH_GM, FixpipeParams, allocates, frees, pops, pushes
from ptokit.isa.scalars import below
from ptokit.isa.spec import Asm, Attr, Cpp, Operand, Rule, View, insn, rule, scalar

_SAMPLE_PIPE = "new TPipe[0, Direction.DIR_C2V, 4096, 2](np.zeros(8192, np.uint8), 0, 0)"
_NO, _UP, _LEFT = (
    TileSplitAxis.TILE_NO_SPLIT,
    TileSplitAxis.TILE_UP_DOWN,
    TileSplitAxis.TILE_LEFT_RIGHT,
)
_PLAIN = (Direction.DIR_C2V, Direction.DIR_V2C, Direction.DIR_BOTH)


# ---- rules the four instructions share ---------------------------------------------------------


def _global_directions() -> list[Rule]:
    """Where the GlobalTensor flavour exists."""
    text = "the GlobalTensor flavour works on a pipe whose slots lie in global memory"
    return [
        rule(
            "global-direction",
            f"{text}: DIR_C2V, DIR_V2C or DIR_BOTH",
            lambda o: o.gmTensor is None or o.pipe.DirType in _PLAIN,
            "a2a3",
            "use a pipe of direction DIR_C2V, DIR_V2C or DIR_BOTH",
        ),
        rule(
            "global-direction",
            f"{text}: DIR_C2V_GM, DIR_V2C_GM or DIR_BOTH_GM",
            lambda o: o.gmTensor is None or o.pipe.DirType in THROUGH_GM,
            "a5",
            "use a *_GM direction, or push and pop tiles",
        ),
    ]


def _one_way() -> Rule:
    """Tiles go through global memory in one direction per pipe."""
    return rule(
        "tile-direction",
        "tiles do not go through a pipe of direction DIR_BOTH_GM",
        lambda o: o.tile is None or getattr(o.pipe, "DirType", None) != Direction.DIR_BOTH_GM,
        "a5",
        "use two pipes, DIR_C2V_GM and DIR_V2C_GM",
    )


def _splits(text: str, allowed: tuple[TileSplitAxis, ...], on: str | None = None) -> Rule:
    return rule("split", text, lambda o: o.attrs["Split"] in allowed, on)


def _odd_through_gm() -> Rule:
    """Where rings lie with the consumer, an entry is divided by the hardware: into halves."""
    return rule(
        "split",
        "an odd Split is of a pipe whose slots lie in global memory: DIR_C2V_GM",
        lambda o: (
            o.attrs["Split"] in (_NO, _UP, _LEFT)
            or getattr(o.pipe, "DirType", None) == Direction.DIR_C2V_GM
        ),
        "a5",
        "use TILE_UP_DOWN or TILE_LEFT_RIGHT",
    )


def _entry_fits(*, pushed: bool) -> Rule:
    """One logical entry - both halves of it - fits into a slot."""

    def needed(o: Any) -> int:
        tile = o.tile
        if tile is None or not hasattr(o.pipe, "SlotSize"):
            return 0
        config = o.attrs.get("Config")  # an entry is stored as it is converted
        size = tile.itemsize if config is None else config.result(tile.dtype).itemsize
        halves = 2 if o.attrs["Split"] != _NO and tile.loc == TileType.Vec else 1
        if o.pipe.spec.is_direct(o.target):
            # Direct rings: a slot holds what one consumer gets.
            if tile.loc == TileType.Acc and o.attrs["Split"] != _NO:
                return -(-tile.vr * tile.vc * size // 2)
            halves = 2 if halves == 2 and pushed and o.pipe.carries_v2c else 1
        elif o.attrs["Split"] > _LEFT:
            halves = 1  # an odd entry is smaller than twice the half in hand
        return halves * tile.vr * tile.vc * size

    return _slot_holds(needed)


def _slot_holds(needed: Callable[[Any], int]) -> Rule:
    """A slot has the bytes that an entry needs."""
    return rule(
        "slot-size",
        "SlotSize is large enough for one logical entry, both halves together",
        lambda o: not (need := needed(o)) or need <= o.pipe.SlotSize,
        fix=lambda o: f"make SlotSize the bytes of the whole entry, at least {needed(o)}",
    )


def _tile_is(where: str, names: tuple[TileType, ...], cpu: tuple[TileType, ...] = ()) -> Rule:
    return rule(
        "tile-location",
        f"tile is {where}",
        lambda o: (
            o.tile is None or o.tile.loc in names or (not o.target.is_device and o.tile.loc in cpu)
        ),
    )


def _pipe() -> Operand:
    return Operand("pipe", "inout", kinds=("fifo",), view=View.OBJECT, note="the TPipe")


def _entry_text(name: str, entry: str) -> Asm:
    """`pto.tpush(%tile, %pipe : T, !pto.pipe) {split = 0}`; the vector core may be named."""
    part = " [?aiv_subblockid(%subBlockId)?]" if "tile" in entry else ""
    syntax = f"(%{entry}, %pipe : T({entry}), T(pipe)) {{split}}{part} {{}}"
    return Asm(syntax={name: syntax}, types={"split": "i8"})


def _split_attr(note: str) -> Attr:
    return Attr("Split", TileSplitAxis, _NO, note)


# ---- the instructions --------------------------------------------------------------------------


@insn(
    _pipe(),
    Operand("gmTensor", "out", kinds=("global",), view=View.OBJECT, note="only its pointer is set"),
    attrs=[_split_attr("which half of the slot a vector producer gets")],
    pipe=None,
    targets="a2a3 a5",
    rules=[
        *_global_directions(),
        _splits(
            "Split of an allocation is TILE_NO_SPLIT, TILE_UP_DOWN or TILE_LEFT_RIGHT",
            (_NO, _UP, _LEFT),
        ),
        rule(
            "static-shape",
            "dimensions 3 and 4 of gmTensor are static when a split needs them",
            lambda o: o.attrs["Split"] == _NO or min(o.gmTensor.static_shape[3:]) >= 0,
        ),
        _slot_holds(
            lambda o: (
                o.gmTensor.static_shape[3]
                * o.gmTensor.static_shape[4]
                * o.gmTensor.itemsize
                * (2 if o.attrs["Split"] != _NO and not o.pipe.carries_c2v else 1)
            )
        ),
        rule(
            "row-pitch",
            "with TILE_LEFT_RIGHT a vector producer steps over whole rows: stride 3 of gmTensor "
            "is twice its columns",
            lambda o: (
                o.attrs["Split"] != _LEFT
                or o.pipe.carries_c2v
                or o.gmTensor.stride[3] >= 2 * o.gmTensor.shape[4]
            ),
            "a2a3 a5",
            "declare the GlobalTensor with the row stride of the whole entry",
        ),
    ],
    end="producer",
    effects=allocates,
    asm=replace(_entry_text("talloc", "gmTensor"), is_stable=False),
    cpp=Cpp(brackets=("pipe gmTensor @Split",)),
    example={
        "pipe": _SAMPLE_PIPE,
        "pipe@a5": _SAMPLE_PIPE.replace("C2V", "C2V_GM"),
        "gmTensor": "GM f32 16x64",
    },
)
def TALLOC(pipe: Any, gmTensor: Any, Split: TileSplitAxis) -> None:
    """Reserve the next slot of a FIFO for the producer and show it as a GlobalTensor.

    Three steps: wait for free space, when `pipe.prod.getAllocateStatus()` and
    `Pipe.shouldWaitFree(pipe.prod.tileIndex)` are both true; find the slot of
    `pipe.prod.tileIndex`; point gmTensor at it and advance the index. Nothing is written and nobody
    is told: fill the slot, with TSTORE say, and commit it with `TPUSH(pipe, gmTensor)`.

    A cube producer sees the whole slot. A vector producer sees the part that Split says:
    TILE_NO_SPLIT the slot from its start, TILE_UP_DOWN the upper or the lower half of the rows,
    TILE_LEFT_RIGHT the left or the right half of the columns.

    A pipe has SlotNum >= 1 slots of SlotSize bytes. Waits for free space are sparse: once in
    SyncPeriod entries, which is SlotNum where there are at most 2 slots, otherwise SlotNum / 2.
    """


@insn(
    _pipe(),
    Operand("tile", "in", view=View.OBJECT, optional=True, note="Acc or Vec: the entry"),
    Operand("gmTensor", "in", kinds=("global",), view=View.OBJECT, optional=True),
    scalar("subBlockId", below(2), view=View.OBJECT, optional=True),
    attrs=[
        _split_attr("how the entry is divided between the vector cores"),
        Attr("Config", FixpipeParams, None, "conversion of an accumulator on its way"),
    ],
    pipe=None,
    targets="a2a3 a5",
    forms=["pipe tile", "pipe tile subBlockId", "pipe gmTensor", "tile pipe"],
    rules=[
        *_global_directions(),
        _one_way(),
        _tile_is("Acc or Vec", (TileType.Acc, TileType.Vec, TileType.Ctrl), cpu=(TileType.Mat,)),
        _odd_through_gm(),
        rule(
            "split",
            "Split of a push by a vector core is TILE_NO_SPLIT, TILE_UP_DOWN or TILE_LEFT_RIGHT",
            lambda o: (
                o.tile is None
                or o.tile.loc != TileType.Vec
                or o.attrs["Split"] in (_NO, _UP, _LEFT)
            ),
            "a2a3",
        ),
        _entry_fits(pushed=True),
        rule(
            "config-source",
            "a push with a conversion takes an Acc tile",
            lambda o: (
                o.attrs["Config"] is None or (o.tile is not None and o.tile.loc == TileType.Acc)
            ),
        ),
        rule(
            "config-direction",
            "a push with a conversion goes from cube to vector",
            lambda o: o.attrs["Config"] is None or o.pipe.carries_c2v,
        ),
        rule(
            "config-gm",
            "a push with a conversion does not exist through global memory on this target",
            lambda o: o.attrs["Config"] is None or o.pipe.DirType not in THROUGH_GM,
            "a5",
        ),
        rule(
            "rows-split",
            "with TILE_UP_DOWN an accumulator has an even number of rows and 4-byte elements",
            lambda o: (
                not _direct_acc(o, _UP)
                or (o.tile.rows % 2 == 0 and o.tile.vr % 2 == 0 and o.tile.itemsize == 4)
            ),
            "a5",
            unknown="rows are split in half by the hardware: where an odd one goes is open",
        ),
        rule(
            "columns-split",
            "with TILE_LEFT_RIGHT an accumulator has a multiple of 32 columns and 4-byte elements",
            lambda o: (
                not _direct_acc(o, _LEFT)
                or (o.tile.cols % 32 == 0 and o.tile.vc % 32 == 0 and o.tile.itemsize == 4)
            ),
            "a5",
        ),
        rule(
            "whole-blocks",
            "a vector core pushes whole 32-byte groups of columns into L1",
            lambda o: (
                o.tile is None
                or o.tile.loc != TileType.Vec
                or o.attrs["Split"] == _NO
                or not hasattr(o.pipe, "DirType")
                or o.pipe.DirType in THROUGH_GM
                or o.tile.vc * o.tile.itemsize % 32 == 0
            ),
            "a5",
        ),
    ],
    end="producer",
    effects=pushes,
    uses="QUANT_PRE FPC",
    uses_when=lambda o: o.attrs["Config"] is not None and bool(o.attrs["Config"].register),
    asm=_entry_text("tpush", "tile|gmTensor"),
    cpp=Cpp(brackets=("pipe tile @Config", "pipe tile @Split", "pipe gmTensor @Split")),
    example={"pipe": _SAMPLE_PIPE, "tile": "Acc f32 16x64"},
    setup="tile.fill(1)",
)
def TPUSH(
    pipe: Any,
    tile: Any,
    gmTensor: Any,
    subBlockId: Any,
    Split: TileSplitAxis,
    Config: FixpipeParams | None,
) -> None:
    """Hand one entry to the consumer: write a tile into the ring, or commit an allocated slot.

    With a tile: wait for free space as TALLOC does, write exactly the valid region into the slot,
    advance the index, and raise the ready flag unless `setRecordStatus(False)`. With a
    GlobalTensor: only raise the ready flag. An accumulator goes as a whole; each vector core
    writes its own part. With a `FixpipeParams` in the brackets the accumulator is converted on
    its way, with the parameters of SET_QUANT_SCALAR or SET_QUANT_VECTOR. The tile may be reused
    when its pipe has finished, not when the call returns.
    """


def _direct_acc(o: Any, split: TileSplitAxis) -> bool:
    """Whether an accumulator goes straight into the memories of both vector cores."""
    return (
        o.tile is not None
        and o.tile.loc == TileType.Acc
        and o.attrs["Split"] == split
        and o.attrs["Config"] is None
        and getattr(o.pipe, "DirType", Direction.DIR_C2V_GM) not in THROUGH_GM
    )


@insn(
    _pipe(),
    Operand("tile", "out", view=View.OBJECT, optional=True, note="Vec or Mat; it is rebound"),
    Operand("gmTensor", "out", kinds=("global",), view=View.OBJECT, optional=True),
    scalar("subBlockId", below(2), view=View.OBJECT, optional=True),
    attrs=[_split_attr("which half of the entry a vector consumer gets")],
    pipe=None,
    targets="a2a3 a5",
    forms=["pipe tile", "pipe tile subBlockId", "pipe gmTensor", "tile pipe"],
    rules=[
        *_global_directions(),
        _one_way(),
        _tile_is("Vec or Mat", (TileType.Vec, TileType.Mat, TileType.Ctrl)),
        _odd_through_gm(),
        _entry_fits(pushed=False),
    ],
    end="consumer",
    effects=pops,
    asm=_entry_text("tpop", "tile|gmTensor"),
    cpp=Cpp(brackets=("pipe tile @Split", "pipe gmTensor @Split")),
    example={"pipe": _SAMPLE_PIPE, "tile": "Vec f32 16x64"},
    setup="acc = TileAcc[f32, 16, 64](); acc.fill(1); TPUSH(pipe, acc)",
)
def TPOP(pipe: Any, tile: Any, gmTensor: Any, subBlockId: Any, Split: TileSplitAxis) -> None:
    """Wait for the next entry and take it, as a tile or as a GlobalTensor view of its slot.

    Where the ring lies in global memory the entry is loaded into the consumer's local ring:
    the tile is bound to local slot `index % LocalSlotNum`, so it is overwritten LocalSlotNum pops
    later, and the slot is given back at once, every SyncPeriod entries. Where the ring lies in the
    consumer's own memory (A5) the tile becomes the slot itself, and TFREE must follow its last
    use. A GlobalTensor is only pointed at the slot, which TFREE gives back. A split pop reads the
    half of its vector core; with the odd splits vector core 0 has one row or column more.
    """


@insn(
    _pipe(),
    Operand("gmTensor", "in", kinds=("global",), view=View.OBJECT, optional=True),
    attrs=[_split_attr("the split of the TPOP")],
    pipe=None,
    targets="a2a3 a5",
    forms=["pipe", "pipe gmTensor"],
    rules=_global_directions(),
    end="consumer",
    effects=frees,
    asm=Asm(
        syntax={"tfree": "(%gmTensor|pipe... : T(gmTensor|pipe...)) {split} {}"},
        types={"split": "i8", "gmTensor": "data"},  # the tile of the pop may be named, too
    ),
    cpp=Cpp(brackets=("pipe gmTensor @Split", "pipe @Split")),
    example={"pipe": _SAMPLE_PIPE},
    setup="acc = TileAcc[f32, 16, 64](); tile = Tile[TileType.Vec, f32, 16, 64](); "
    "acc.fill(1); TPUSH(pipe, acc); TPOP(pipe, tile)",
)
def TFREE(pipe: Any, gmTensor: Any, Split: TileSplitAxis) -> None:
    """Give a consumed slot back to the producer, after the last read of the entry.

    Free space is announced only every SyncPeriod entries. On A2/A3 the pop of a tile has given
    the slot back already and nothing happens: call TFREE all the same in programs that are to run
    everywhere. Not so on the *_GM pipes of A5, where it would announce the same space twice.
    """
