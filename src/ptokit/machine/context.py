"""What an instruction's body may ask of the machine, when arrays alone do not tell its story."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import u8
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.base.tensors import GlobalSpec
from ptokit.isa.facts import Ops
from ptokit.isa.spec import Pipe, View
from ptokit.isa.targets import Target
from ptokit.machine.core import Core
from ptokit.machine.faults import Unbound, WouldBlock
from ptokit.machine.gm import GmAccess, GmWindow
from ptokit.machine.memory import Storage
from ptokit.machine.objects import GlobalObject, Pointer
from ptokit.machine.ranks import here, pause, poll
from ptokit.machine.staging import Staging, same_place
from ptokit.machine.window import Window

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine, Plan


class Context:
    """Passed to bodies that take `ctx`: the operands' facts, the target, registers and poison."""

    __slots__ = ("_operands", "machine", "plan", "site", "touched")

    def __init__(
        self, machine: Machine, plan: Plan, operands: Sequence[Any], site: Site | Location
    ) -> None:
        self.machine = machine
        self.plan = plan
        self.site = site
        # Accesses the body makes beside its operands' windows: (name, written, where).
        self.touched: list[tuple[str, bool, GmWindow]] = []
        self._operands = operands

    def service(self, name: str) -> Any:
        """What a body asks for under this name."""
        return self.registers if name == "registers" else self

    @property
    def ops(self) -> Ops:
        """The facts of the operands: `ctx.ops.dst.dtype`, `ctx.ops.src.vr` ..."""
        return self.plan.ops

    @property
    def target(self) -> Target:
        return self.machine.target

    @property
    def pipe(self) -> Pipe:
        """The pipe the instruction runs on."""
        return self.plan.pipe

    @property
    def mode(self) -> str:
        return self.machine.mode

    @property
    def core(self) -> Core:
        return self.machine.core

    @property
    def subblock(self) -> int:
        """The number of a vector core in its cluster."""
        return self.machine.core.subblock

    def memory(self, loc: TileType) -> Storage:
        """The memory of the core in which tiles of this space lie."""
        return self.machine.core.memory(loc)

    @property
    def registers(self) -> dict[str, Any]:
        """The core's configuration registers."""
        return self.machine.core.registers

    def operand(self, name: str) -> Any:
        """The run-time object behind an operand."""
        names = [o.name for o in self.plan.insn.operands]
        return self._operands[names.index(name)]

    def same_storage(self, a: str, b: str) -> bool:
        """Whether two tiles lie in one memory; in auto mode each has one of its own."""
        return self.operand(a).storage is self.operand(b).storage

    def described(self, name: str) -> str:
        """An operand with its place, for a message."""
        return str(self.operand(name))

    def poison(self, name: str, rows: slice, cols: slice) -> None:
        """Declare a logical region of a tile operand undefined: the hardware leaves it open."""
        if rows.start < rows.stop and cols.start < cols.stop:
            # Once the instruction is over: what it wrote itself counts as defined until then.
            self.plan.undefined.append((self._window(name, rows, cols), None))

    def undefined(self, name: str) -> Array | None:
        """Which elements of the region the body was handed are undefined; None: not one."""
        window = self._handed(name)
        return None if window.is_defined() else ~window.defined()

    def poison_where(self, name: str, where: Array) -> None:
        """Declare single elements of the region the body was handed undefined."""
        self.plan.undefined.append((self._handed(name), where))

    def demand(self, name: str, part: tuple[slice, slice]) -> None:
        """Refuse to read a part of the region the body was handed unless all of it is defined."""
        window = self._handed(name)
        if not window.is_defined() and not window.defined()[part].all():
            declared = self.plan.insn.operand(name)
            raise self.plan.poisoned(window, declared, self.site, part)

    def demand_where(self, name: str, where: Array) -> None:
        """Refuse to read these elements of the region the body was handed unless all are defined.

        `where` is a boolean array of the shape the body was handed, or the matrix of it.
        """
        window = self._handed(name)
        if window.is_defined():
            return
        missing = np.argwhere(where.reshape(window.shape) & ~window.defined())
        if len(missing):
            row, col = missing[0].tolist()
            declared = self.plan.insn.operand(name)
            part = (slice(row, row + 1), slice(col, col + 1))
            raise self.plan.poisoned(window, declared, self.site, part)

    def _handed(self, name: str) -> Window:
        return self.plan.handed[name]

    def on_vector_core(self, name: str, subblock: int) -> Window | None:
        """The region of a Vec operand in the memory of a vector core; None: it lies there already.

        Tiles that were placed automatically, and those of a core on its own, have no other side.
        """
        tile, cluster = self.operand(name), self.core.cluster
        if cluster is None or tile.storage is not self.core.memory(tile.spec.loc):
            return None
        storage = cluster.vector_memory(subblock)
        return None if storage is tile.storage else self._handed(name).moved_to(storage)

    def leave(self, name: str, array: Array) -> None:
        """Put back what the region the body was handed held: this run does not write it."""
        window = self._handed(name)
        array[...] = window.read()
        if not window.is_defined():
            self.poison_where(name, ~window.defined())

    def clobber(self, loc: TileType, start: int, stop: int) -> None:
        """Make bytes of a memory of the core undefined: the hardware uses them as scratch."""
        memory = self.core.memory(loc)
        if memory.shadow[start:stop].any():
            memory.shadow[start:stop] = 0
            memory.epoch += 1

    def fill(self, name: str, rows: slice, cols: slice, value: Any) -> None:
        """Write a logical region of a tile operand beside the one the body was handed."""
        if rows.start < rows.stop and cols.start < cols.stop:
            window = self._window(name, rows, cols)
            window.write(np.full(window.shape, value, window.dtype.np))
            window.mark_defined()

    def peek(self, name: str) -> tuple[Array, Array]:
        """The whole of a tile operand as it is, and which elements hold a defined value."""
        tile = self.operand(name)
        if tile.storage is None:
            raise fail("unbound-tile", f"{name} has no address", site=self.site, kind=Unbound)
        axis_map = tile.spec.axis_map(tile.vr, tile.vc)
        window = self._window(name, slice(0, axis_map.rows), slice(0, axis_map.cols))
        return window.read(), window.defined()

    def _window(self, name: str, rows: slice, cols: slice) -> Window:
        tile = self.operand(name)
        axis_map = tile.spec.axis_map(tile.vr, tile.vc)
        return Window(tile.storage, tile.address, axis_map, tile.spec.dtype, rows, cols, name)

    # ---- global memory, for bodies that are handed the views themselves -----------------------

    def view(self, name: str) -> Array:
        """The five-dimensional array of a GlobalTensor operand, inside the bounds of its array."""
        return self._open(name, self.operand(name))

    def raw(self, name: str, nbytes: int, skip: int = 0) -> Array:
        """So many bytes of a GlobalTensor operand, `skip` bytes behind its pointer."""
        at = self.operand(name).data()
        spec = GlobalSpec.of(u8, (1, 1, 1, 1, nbytes), (nbytes,) * 4 + (1,))
        moved = Pointer(at.buffer, u8, at.offset + skip)
        return self._open(name, GlobalObject(spec, moved, spec.shape, spec.stride)).reshape(-1)

    def _open(self, name: str, tensor: Any) -> Array:
        insn = self.plan.insn
        access = GmAccess(tensor, View.WHOLE, insn.operand(name), insn)
        return access.open(tensor, self.site).array()

    def staging(self, *names: str) -> Staging:
        """The tiles through which data goes from one device to another."""
        return Staging(self, names)

    def same_view(self, a: Any, b: Any) -> bool:
        """Whether two views of global memory are one and the same."""
        return same_place(a, b)

    @property
    def gates(self) -> dict[Any, Any]:
        """The gates of the collective unit: of all devices, or of a core that plays them all."""
        rank = here()
        return self.registers.setdefault("CCU", {}) if rank is None else rank.ranks.gates

    @property
    def rank(self) -> int | None:
        """The device the program runs on, among others; None when it is alone."""
        rank = here()
        return None if rank is None else rank.number

    @property
    def rank_count(self) -> int | None:
        """How many devices there are; None when the program knows of no others."""
        rank = here()
        return None if rank is None else rank.ranks.size

    def pause(self) -> None:
        """Let a random schedule turn to another device."""
        pause()

    def poll(self, what: str) -> None:
        """Let other devices go on after a test that failed, unless it can never succeed."""
        if not poll():
            raise fail(
                "would-block",
                f"{what} would go on forever: nothing else runs that could signal it",
                fix="notify the signal, or end the loop",
                site=self.site,
                kind=WouldBlock,
            )

    def rank_of(self, tensor: Any) -> int | None:
        """The device in whose window a view lies; None when it lies in no window."""
        rank = here()
        found = None if rank is None else rank.ranks.locate(tensor)
        return None if found is None else found[1]

    def fail(self, code: str, message: str, **more: Any) -> PtoError:
        """Build an error at the instruction's line."""
        name = self.plan.insn.name
        code = code if code[:3] in ("SA-", "PA-", "CA-") else f"{name}.{code}"
        return fail(code, f"{name}: {message}", site=self.site, target=self.target.name, **more)
