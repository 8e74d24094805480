"""Staging: how data crosses from one device to another, through a tile of the vector core.

A chunk is loaded on MTE2 and stored on MTE3, by TLOAD and TSTORE themselves, with the flags that
order the two pipes in between. Two tiles take turns, so that a load overlaps the store before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from ptokit.base.enums import AtomicType
from ptokit.base.tensors import ROW_AND_COLUMN_AXES, GlobalSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.costs import NO_WORK
from ptokit.isa.effects import Flag, Signal, Wait
from ptokit.isa.regions import View
from ptokit.isa.services import Poison, Refused
from ptokit.isa.spec import Insn, Operand, Pipe, thing
from ptokit.machine.calls import bind_global, global_pattern, part_of
from ptokit.machine.faults import unbound_tile
from ptokit.machine.objects import GlobalObject, Pointer, TileObject
from ptokit.machine.regions import Ranges, Region, Rows

if TYPE_CHECKING:
    from ptokit.machine.providers import Services


class Staging:
    """The staging tiles of one instruction. Leaving the `with` block gives them back as garbage."""

    def __init__(self, run: Services, names: Sequence[str]) -> None:
        self._run = run
        self.tiles: list[TileObject] = []
        for name in names:
            tile = run.operand(name)
            if tile is None:
                continue
            if tile.storage is None:
                raise unbound_tile(tile, run.call.insn, name, run.site)
            self.tiles.append(tile)
        self._next = 0
        self._pending: set[tuple[Pipe, Pipe, int]] = set()  # flags that are raised
        self._last: dict[int, tuple[int, int]] = {}  # sizes of the last chunk of a tile

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            return
        raised = sorted(self._pending)
        for src, dst, id in raised:
            self.take(src, dst, id)
        for which in self._last:
            self._run.machine.perform(_FORGET, (self.tiles[which],), (), self._run.site)
        # Whoever waited for the last stores also finds the tiles given back.
        for src, dst, id in raised:
            if src == _FORGET.pipe:
                self.order(src, dst, id)

    # ---- whole chunks ----------------------------------------------------------------------------

    def move(
        self,
        source: GlobalObject,
        targets: Sequence[GlobalObject],
        atomic: AtomicType = AtomicType.AtomicNone,
    ) -> None:
        """Load a chunk into the next tile and store it to each of the targets."""
        which = self._next
        self._next = (which + 1) % len(self.tiles)
        self.take(Pipe.MTE3, Pipe.MTE2, which)
        self.load(which, source)
        self.order(Pipe.MTE2, Pipe.MTE3, which)
        for target in targets:
            self.store(which, target, atomic)
        self.give(Pipe.MTE3, Pipe.MTE2, which)

    # ---- steps -----------------------------------------------------------------------------------

    def load(self, which: int, source: GlobalObject) -> None:
        """TLOAD a chunk into a tile."""
        self._execute("TLOAD", self._tile(which, source), source)

    def store(
        self, which: int, target: GlobalObject, atomic: AtomicType = AtomicType.AtomicNone
    ) -> None:
        """TSTORE a tile to a chunk."""
        insn = INSTRUCTIONS["TSTORE"]
        attrs = tuple(atomic if a.type is AtomicType else a.default for a in insn.attrs)
        self._execute("TSTORE", target, self._tile(which, target), None, attrs=attrs)

    def combine(self, name: str, into: int, other: int, chunk: GlobalObject) -> None:
        """Combine two tiles with TADD, TMAX or TMIN, in place; each step behind the last."""
        acc, received = self._tile(into, chunk), self._tile(other, chunk)
        machine = self._run.machine
        if machine.mode == "manual" and Pipe.V in machine.target.unordered:
            machine.sync.barrier(Pipe.V, self._run.site)
        self._execute(name, acc, acc, received)

    def _execute(self, name: str, *operands: Any, attrs: tuple[Any, ...] | None = None) -> None:
        insn: Insn = INSTRUCTIONS[name]
        chosen = tuple(a.default for a in insn.attrs) if attrs is None else attrs
        self._run.machine.execute(insn, operands, chosen, self._run.site)

    # ---- flags -----------------------------------------------------------------------------------

    def _order(self, name: str, effect: Signal | Wait) -> None:
        self._run.machine.sync.execute(INSTRUCTIONS[name], (effect,), self._run.site)

    def give(self, src: Pipe, dst: Pipe, id: int) -> None:
        """Raise a flag behind the work of `src`; it stays raised until it is taken."""
        if self._run.machine.mode == "manual":
            self.take(src, dst, id)
            self._order("set_flag", Signal(src, Flag(src, dst, id)))
            self._pending.add((src, dst, id))

    def take(self, src: Pipe, dst: Pipe, id: int) -> None:
        """Hold `dst` until the flag, if it is on its way."""
        if (src, dst, id) in self._pending:
            self._order("wait_flag", Wait(dst, Flag(src, dst, id)))
            self._pending.remove((src, dst, id))

    def order(self, src: Pipe, dst: Pipe, id: int) -> None:
        """Let later work of `dst` follow earlier work of `src`."""
        self.give(src, dst, id)
        self.take(src, dst, id)

    # ---- tiles and views -------------------------------------------------------------------------

    def part(self, tensor: GlobalObject, chunk: Any) -> GlobalObject:
        """The view of a chunk: strides and layout of the tensor, extents of the chunk."""
        spec = tensor.spec
        at = tensor.data()
        offset = sum(i * s for i, s in zip(chunk.at, tensor.stride, strict=True))
        bits = spec.dtype.bits if spec.dtype.is_packed else 8 * spec.itemsize
        moved = Pointer(at.buffer, spec.dtype, at.offset + offset * bits // 8)
        static = GlobalSpec.of(spec.dtype, chunk.shape, tensor.stride, spec.layout)
        return GlobalObject(static, moved, chunk.shape, tensor.stride)

    def _tile(self, which: int, chunk: GlobalObject) -> TileObject:
        """The tile with a valid region of the size of a chunk."""
        tile = self.tiles[which]
        rows, cols = (
            prod(chunk.shape[a] for a in axes) for axes in ROW_AND_COLUMN_AXES[chunk.spec.layout]
        )
        s = tile.spec
        if rows > s.rows or cols > s.cols:
            raise Refused(
                "CH-7",
                "a chunk fits the staging tile",
                got=[("chunk", f"{rows}x{cols}"), ("tile", s)],
                fix="use a larger staging tile, or a smaller valid region",
            )
        loose = TileSpec.of(
            s.loc, s.dtype, s.rows, s.cols, s.blayout, DYNAMIC, DYNAMIC, s.slayout, s.fractal,
            s.pad, s.compact,
        )  # fmt: skip
        view = TileObject(loose, rows, cols)
        view.share(tile)
        self._last[which] = chunk.shape[3], chunk.shape[4]
        return view

    def slid(self) -> None:
        """Note that a window slid over the tensor: DYNAMIC valid sizes keep those of the last."""
        if not self._run.machine.target.is_device:
            return
        for which, (rows, cols) in self._last.items():
            tile = self.tiles[which]
            dynamic = tile.spec.valid_row == DYNAMIC, tile.spec.valid_col == DYNAMIC
            tile.SetValidShape(rows if dynamic[0] else tile.vr, cols if dynamic[1] else tile.vc)

    # ---- aliasing --------------------------------------------------------------------------------

    def apart(self, name: str, tensor: GlobalObject, other: str, others: GlobalObject) -> None:
        """Refuse views that share memory."""
        regions = [self._region(name, tensor), self._region(other, others)]
        if all(regions) and Region("GM", regions[0]).overlaps(Region("GM", regions[1])):
            raise Refused(
                "overlap",
                f"{name} and {other} share no memory",
                got=[(name, tensor), (other, others)],
                fix="copy to a buffer of its own",
            )

    def _region(self, name: str, tensor: GlobalObject) -> Rows | Ranges:
        """The bytes of a view, all of which lie in its array."""
        pattern = global_pattern(tensor, View.WHOLE, Operand(name, "in"))
        return bind_global(pattern, tensor, self._run.call.insn, self._run.site).place


def _forget(tile: TileObject, poison: Poison) -> None:
    """The end of a staging tile: its contents are undefined."""
    axis_map = tile.spec.axis_map(tile.vr, tile.vc)
    poison.poison("tile", slice(0, axis_map.rows), slice(0, axis_map.cols))


# Behind the last store, which is why it is called after it.
_FORGET = replace(
    part_of(INSTRUCTIONS["TSTORE"], Pipe.MTE3, (thing("tile", kind="tile"),), _forget),
    cost=NO_WORK,
)


def same_place(a: GlobalObject, b: GlobalObject) -> bool:
    """Whether two views are one: equal addresses, extents and strides."""
    return _address(a) == _address(b) and (a.shape, a.stride) == (b.shape, b.stride)


def _address(view: GlobalObject) -> int:
    at = view.data()
    return at.buffer.base + at.offset
