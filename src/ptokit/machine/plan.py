"""A plan: a recipe over the memories of a machine, ready to run.

Making one costs tens of microseconds, running one a few. Operands whose layout is a plain matrix
are handed to the body as views of the memory itself; others are gathered before and scattered
after, unless their boxes can be handed over as they lie. Global memory is opened per run, since its
pointer moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.diagnostics import InternalError, NotSupported, PtoError, fail
from ptokit.base.layout import Array
from ptokit.base.location import Location, Site
from ptokit.isa.effects import InAuto
from ptokit.isa.services import CONSTANT, Refused
from ptokit.isa.spec import Operand, Pipe
from ptokit.machine.context import Context
from ptokit.machine.faults import OutOfBounds, PoisonRead, Unbound, read_by, refusal
from ptokit.machine.gm import GmWindow
from ptokit.machine.recipe import Part, Recipe
from ptokit.machine.records import GmWindows, Record
from ptokit.machine.window import Window

if TYPE_CHECKING:
    from ptokit.machine.machine import Machine

_NO_GM: GmWindows = ()


class Plan:
    """An instruction over the memories of a machine, ready to run."""

    def __init__(
        self, machine: Machine, recipe: Recipe, operands: Sequence[Any], site: Site | Location
    ) -> None:
        self.machine = machine
        self.insn = recipe.insn
        self.ops = recipe.ops
        self.pipe = recipe.pipe
        self.windows: list[tuple[str, bool, Window]] = []  # (operand, written, where)
        self.handed: dict[str, Window] = {}  # what the body is handed of each tile operand
        # What the body of this run declares undefined: a window, or some of its elements.
        self.undefined: list[tuple[Window, Array | None]] = []
        self._reads: list[tuple[Window, Operand]] = []
        self._writes: list[Window] = []
        self._scratch: list[Window] = []
        self._args: list[Any] = [None] * len(operands)
        # Arguments made for each run, and copies to be scattered afterwards.
        self._fetch: list[tuple[int, Callable[[Any], Any]]] = [(i, _same) for i in recipe.values]
        self._store: list[tuple[int, Window]] = []
        self._gm = [(index, access.afresh()) for index, access in recipe.gm]
        for part in recipe.parts:
            self._bind(part, operands[part.position], site)
        known = {"target": machine.target, "ops": self.ops, "pipe": self.pipe}
        services = recipe.insn.services
        self._attrs = recipe.attrs | {name: known[name] for name in services & CONSTANT}
        self._services = tuple(services - CONSTANT)
        self._body = recipe.body
        # What only orders is its effects; in auto mode the compiler orders, and they vanish.
        is_left = machine.mode == "manual" or recipe.insn.in_auto is InAuto.RUNS
        self._effects = recipe.effects if is_left or recipe.effects is None else []
        # Transfers move bits and have no flags to raise; one that adds on the way hides its own.
        self._quiet = self.pipe in (Pipe.MTE1, Pipe.MTE2, Pipe.MTE3)

    def rest(self) -> None:
        """Let go of the machine and of the user's arrays, until `begin_again`."""
        del self.machine
        for _, access in self._gm:
            access.forget()

    def begin_again(self, machine: Machine) -> None:
        """Serve another machine over the same memories."""
        self.machine = machine

    def _bind(self, part: Part, value: Any, site: Site | Location) -> None:
        """Find a region of an operand in its memory."""
        declared, index = part.declared, part.position
        window = self._window(part, value, site)
        if not part.is_handed:
            self.windows.append((declared.name, True, window))
            self._scratch.append(window)
            return
        self.handed[declared.name] = window
        if declared.reads:
            if not declared.carries:
                self._reads.append((window, declared))
            self.windows.append((declared.name, False, window))
        if part.lost or declared.role in ("out", "inout"):
            self.windows.append((declared.name, True, window))
            (self._scratch if part.lost else self._writes).append(window)
        shape = part.shape
        if part.strides is not None:
            self._args[index] = window.over(shape, part.strides)
        elif window.view is not None:
            view = window.view
            self._args[index] = view if shape == window.shape else view.reshape(shape)
        else:
            if declared.writes:
                self._store.append((index, window))
            if declared.reads:
                self._fetch.append((index, lambda _: window.read().reshape(shape)))
            else:
                kind = window.dtype.np
                self._fetch.append((index, lambda _: np.empty(shape, kind)))

    def _window(self, part: Part, value: Any, site: Site | Location) -> Window:
        name, kind = part.declared.name, value.spec.dtype
        if value.storage is None:
            raise fail(
                "unbound-tile",
                f"{self.insn.name}: {name} has no address",
                got=[(name, value)],
                fix="bind it first: TASSIGN(tile, address), or use mode='auto'",
                site=site,
                kind=Unbound,
            )
        bits = 4 if kind.is_packed else 8 * kind.itemsize
        stop = value.address + -(-part.axis_map.span * bits // 8)
        if value.address < 0 or stop > value.storage.nbytes:
            raise fail(
                "memory-bounds",
                f"{self.insn.name}: {name} lies inside {value.storage.name}",
                got=[
                    ("address", hex(value.address)),
                    ("end", hex(stop)),
                    ("capacity", hex(value.storage.nbytes)),
                ],
                fix="bind the tile to a lower address, or make it smaller",
                site=site,
                kind=OutOfBounds,
            )
        return Window(value.storage, value.address, part.axis_map, kind, part.rows, part.cols, name)

    # ---- execution ---------------------------------------------------------------------------

    def run(self, operands: Sequence[Any], site: Site | Location) -> Any:
        """Carry the instruction out on these operands."""
        if self._effects is not None:
            return self._order(operands, site)
        for window, declared in self._reads:
            if window.clean != window.storage.epoch and not window.is_defined():
                raise self.poisoned(window, declared, site)
        machine = self.machine
        args, gm, context = self._args, _NO_GM, None
        if self._fetch or self._gm:
            args, gm = self._arguments(operands, site)
        more = self._attrs
        if self._services:
            context = Context(machine, self, operands, site)
            more = {**more, **{name: context.service(name) for name in self._services}}
        try:
            if self._quiet or machine.is_quiet:
                result = self._body(*args, **more)
            else:
                with np.errstate(all="ignore"):
                    result = self._body(*args, **more)
        except PtoError:
            raise
        except Refused as error:
            raise refusal(self.insn, error, site, self.ops.target.name) from None
        except Exception as error:
            raise self._failed(error, site) from error
        for index, window in self._store:
            window.write(args[index])
        if gm:
            for (index, access), (_, _, opened) in zip(self._gm, gm, strict=True):
                if access.scatters:
                    opened.write_back(args[index])
        if context is not None and context.touched:
            gm = (*gm, *context.touched)
        for window in self._writes:
            if window.clean != window.storage.epoch:
                window.mark_defined()
        for window in self._scratch:
            window.poison()
        while self.undefined:
            window, where = self.undefined.pop()
            window.poison(where)
        record = Record(self, site, gm)
        machine.records.append(record)
        if machine.watch is not None:
            machine.watch(record)
        return result

    def _order(self, operands: Sequence[Any], site: Site | Location) -> Any:
        """Carry out what only orders the work of others."""
        context = Context(self.machine, self, operands, site)
        given = {o.name: v for o, v in zip(self.insn.operands, operands, strict=True)}
        value = self.machine.sync.execute(self._effects or (), given, site, context)
        if context.touched:
            self.machine.note(Record(self, site, tuple(context.touched)))
        return value

    def _arguments(
        self, operands: Sequence[Any], site: Site | Location
    ) -> tuple[list[Any], GmWindows]:
        """What the body is handed in this run, and the global memory it reaches."""
        args = self._args.copy()
        for index, fetch in self._fetch:
            args[index] = fetch(operands[index])
        gm: list[tuple[str, bool, GmWindow]] = []
        for index, access in self._gm:
            window = access.open(operands[index], site)
            gm.append((access.name, access.writes, window))
            args[index] = window.array()
        return args, tuple(gm)

    def _failed(self, error: Exception, site: Site | Location) -> PtoError:
        """What a body raised, as an error of ours."""
        if isinstance(error, NotImplementedError):
            return fail(
                f"{self.insn.name}.not-supported",
                f"{self.insn.name}: {error}",
                site=site,
                target=self.ops.target.name,
                kind=NotSupported,
            )
        return fail(
            "internal",
            f"{self.insn.name} failed inside ptokit: {type(error).__name__}: {error}",
            fix="this is a bug of ptokit; please report it with the kernel",
            site=site,
            kind=InternalError,
        )

    def poisoned(
        self,
        window: Window,
        declared: Operand,
        site: Site | Location,
        part: tuple[slice, slice] = (slice(None), slice(None)),
    ) -> PtoError:
        """Build the error for a read of undefined elements."""
        row, col = window.first_poison(part)
        error = fail(
            "poison-read",
            f"{self.insn.name} reads {declared.name}[{row}, {col}], which nothing has written",
            got=[(declared.name, self.ops[declared.name]), ("memory", window.storage.name)],
            fix="load or compute the whole valid region first, or shrink the valid region",
            site=site,
            target=self.ops.target.name,
            kind=PoisonRead,
        )
        return read_by(error, self, declared.name, window)


def _same(operand: Any) -> Any:
    return operand
