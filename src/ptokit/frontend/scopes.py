"""Vector code in a kernel that runs: `with vecscope():` is recorded, and one instruction of PIPE_V.

The pipe comes to a scope when it has done what was issued before, so the body of the `with` only
notes its operations; registers, masks and numbers that it makes are names for what will be there.
Loops and branches over what the kernel knows are Python's own. A branch over what a scope loads
needs the kernel lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ptokit.base.convert import element, number
from ptokit.base.diagnostics import Diagnostic, ProgramError, PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.entry import public
from ptokit.base.location import Location, Site, user_site
from ptokit.frontend.drafts import Draft, OnChipPointer, Writer
from ptokit.frontend.session import current, running
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.memory import ADDPTR
from ptokit.ir.dialects.micro import SCOPE
from ptokit.ir.logical_rules import KnownNumber
from ptokit.ir.micro_calls import SPACES, arguments, typed
from ptokit.ir.micro_rules import broken_rules, lacks_registers
from ptokit.ir.types import INDEX, PtrType, RegisterType, ScalarType, Type
from ptokit.isa.effects import Pipe
from ptokit.isa.micro.samples import spelled
from ptokit.isa.micro.scopes import carrier
from ptokit.isa.spec import Insn
from ptokit.machine.micro_calls import call_of, perform
from ptokit.machine.objects import Pointer, TileObject, pointer
from ptokit.machine.registers import LocalPointer
from ptokit.machine.vector_unit import Code, VectorUnit, Work

if TYPE_CHECKING:
    from ptokit.frontend.lowering.statements import KernelLowering

Place = Site | Location
Frame = dict[Value, Any]


class Held:
    """A value of a scope: a register, a mask, the state of a stream, a pointer or a number."""

    __slots__ = ("scope", "value")

    def __init__(self, scope: Recording, value: Value) -> None:
        self.scope = scope
        self.value = value

    @property
    def dtype(self) -> DType | None:
        """The element type of a register or pointer."""
        type_ = self.value.type
        return type_.element.dtype if isinstance(type_, RegisterType | PtrType) else None

    @property
    def operand_kind(self) -> str:
        return "pointer" if isinstance(self.value.type, PtrType) else "scalar"

    def __add__(self, elements: Any) -> Any:
        if not isinstance(self.value.type, PtrType):
            raise self._unknown()
        return self.scope.moved(self, elements)

    __radd__ = __add__

    def _refused(self, *_: Any) -> NoReturn:
        raise self._unknown()

    __bool__ = __index__ = __int__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = _refused
    __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = __neg__ = _refused

    def _unknown(self) -> PtoError:
        return fail(
            "scope-value",
            "what a scope makes is not known while the scope is written",
            got=[("value", self.value.type)],
            fix='pass it to operations of the scope, or launch with path="lowered"',
        )

    def __repr__(self) -> str:
        return f"<{self.value.type}>"


def _checked(draft: Draft, machine: Any, site: Site, frame: Frame) -> Op:
    """The operation of a draft; raises what its record forbids."""

    def known(value: Value) -> int | None:
        given = frame.get(value)
        return given.offset if isinstance(given, LocalPointer) else _whole(given)

    results = [Value(label, type_) for label, type_ in draft.results]
    labels = tuple(label for label, _ in draft.results)
    name = f"pto.{draft.record.name}"
    op = Op(name, draft.operands, draft.labels, results, labels, draft.attrs)
    if any(_broken(op, draft, machine, known)):
        op.location = site.location  # which takes its time
        raise ProgramError([*_broken(op, draft, machine, known)])
    return op


def _broken(op: Op, draft: Draft, machine: Any, known: KnownNumber) -> Iterator[Diagnostic]:
    yield from lacks_registers(op, machine.target)
    yield from broken_rules(op, draft.record, known)


def _whole(given: Any) -> int | None:
    return given if isinstance(given, int) else None


def misplaced(name: str, is_inside: bool, site: Place) -> PtoError:
    """What belongs into a scope stands outside, or the other way round."""
    if is_inside:
        return fail(
            "scope-inside",
            f"{name} works on registers, which live in a scope",
            fix="write it in `with vecscope():`",
            site=site,
        )
    return fail(
        "scope-inside",
        f"{name}: a scope holds vector code, numbers, loops and branches, and nothing else",
        fix="put it before the scope or after it",
        site=site,
    )


def nested(site: Place) -> PtoError:
    """A scope stands in a scope."""
    return fail("scope-inside", "scopes do not nest", fix="end the outer one first", site=site)


class Beside:
    """Operations beside scopes: each is an instruction by itself."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.frame: Frame = {}

    def operand(self, given: Any, type_: Type) -> Value:
        if isinstance(given, Held):
            raise _escaped(given)
        value = Value("v", type_)
        self.frame[value] = _plain(given)
        return value

    def write(self, draft: Draft, site: Site) -> Any:
        if draft.record.is_inside:
            raise misplaced(draft.record.name, True, site)
        op = _checked(draft, self.machine, site, self.frame)
        given = typed(op)
        found = perform(self.machine, given, call_of(given), arguments(op)(self.frame), site)
        return found


def _escaped(given: Held) -> PtoError:
    return fail(
        "scope-border",
        "a value of a scope never leaves it",
        got=[("type", given.value.type)],
        fix="store it in the unified buffer and load it again",
    )


def _plain(given: Any) -> Any:
    if isinstance(given, np.ndarray):
        return pointer(given)
    return given.item() if isinstance(given, np.generic) else given


class Recording:
    """A scope that is being written. It stands where the machine stands."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.target, self.mode, self.core = machine.target, machine.mode, machine.core
        self._frame: Frame = {}
        self._steps: list[Callable[[VectorUnit, Frame], None]] = []
        self._written = Block()  # the same as operations, for whoever compiles or writes it
        self._sites: list[Place | None] = []

    @property
    def micro(self) -> Recording:
        """Who takes micro-operations."""
        return self

    @property
    def sync(self) -> NoReturn:
        raise misplaced("an event", False, user_site())

    def place(self, operand: Any) -> None:
        self.machine.place(operand)

    def operand(self, given: Any, type_: Type) -> Value:
        if isinstance(given, Held):
            if given.scope is not self:
                raise _escaped(given)
            return given.value
        value = Value("v", type_)
        self._frame[value] = _plain(given)
        return value

    def write(self, draft: Draft, site: Site) -> Any:
        """Note an operation; registers that it makes are there when the scope runs."""
        if not draft.record.is_inside:
            raise misplaced(draft.record.name, False, site)
        op = _checked(draft, self.machine, site, self._frame)
        call, fetch, results = call_of(typed(op)), arguments(op), tuple(op.results)

        def step(unit: VectorUnit, frame: Frame) -> None:
            unit.place = site
            found = call(unit, *fetch(frame))
            if len(results) == 1:
                frame[results[0]] = found
            elif results:
                frame.update(zip(results, found, strict=True))

        self._note(op, step, site)
        made = tuple(Held(self, value) for value in results)
        return made[0] if len(made) == 1 else made or None

    def _note(
        self, op: Op, step: Callable[[VectorUnit, Frame], None], site: Place | None = None
    ) -> None:
        self._written.ops.append(op)
        self._sites.append(site)
        self._steps.append(step)

    def moved(self, at: Held, elements: Any) -> Held:
        """A pointer of the scope, so many elements further."""
        source, offset = self.operand(at, at.value.type), self.operand(elements, INDEX)
        made = Value("v", at.value.type)

        def step(unit: VectorUnit, frame: Frame) -> None:
            frame[made] = frame[source] + frame[offset]

        self._note(Op(ADDPTR.name, [source, offset], results=[made]), step)
        return Held(self, made)

    def execute(self, insn: Insn, operands: Any, attrs: Any, site: Any) -> Any:
        """Accesses of the scalar unit to one element are part of a scope, and nothing else is."""
        if not insn.accesses_element:
            raise misplaced(insn.name, False, site)
        given = dict(zip(insn.names, operands, strict=True))
        at = given["ptr"]
        type_ = at.value.type if isinstance(at, Held) else getattr(at, "type", None)
        if not isinstance(type_, PtrType):
            raise misplaced(f"{insn.name} of global memory", False, site)
        where, offset = self.operand(at, type_), self.operand(given["offset"], INDEX)
        stored = given.get("value")
        what = None if stored is None else self.operand(stored, type_.element)
        made = Value("v", type_.element)

        def step(unit: VectorUnit, frame: Frame) -> None:
            unit.place = site
            to = frame[where]
            data = unit.element(to, frame[offset], writes=what is not None)
            if what is None:
                frame[made] = number(data.view(to.dtype.np)[0], to.dtype)
            else:
                data[:] = np.frombuffer(element(frame[what], to.dtype).tobytes(), np.uint8)

        self._note(Op(f"pto.{insn.name.lower()}", results=[made], insn=insn), step, site)
        return None if what is not None else Held(self, made)

    def finish(self, site: Site) -> None:
        """Hand the scope to its pipe."""
        steps, names = self._steps, tuple(self._frame)

        def work(unit: VectorUnit, *given: Any) -> None:
            frame = dict(zip(names, given, strict=True))
            for step in steps:
                step(unit, frame)

        instruction = carrier(SCOPE.name.removeprefix("pto."), Pipe.V)
        code = Code(self._written, names, None, self._sites)
        made = Work(work, [*self._frame.values()], source=code)
        self.machine.execute(instruction, [made], (), site)


def writer_in_force() -> Writer:
    """Who takes micro-operations now: a scope, a kernel that is lowered, or the machine."""
    machine: Any = current()
    return getattr(machine, "micro", None) or Beside(machine)


def opened() -> Recording:
    """A scope that begins here; raises where there can be none."""
    machine: Any = current()
    site = user_site()
    if isinstance(machine, Recording):
        raise nested(site)
    found = [*lacks_registers(Op(SCOPE.name, location=site.location), machine.target)]
    if found:
        raise ProgramError(found)
    if machine.core.kind == "cube":
        raise fail("micro-space", "a cube core has no vector registers", site=site)
    return Recording(machine)


@public
class VecScope:
    """`with vecscope():` - vector code, on a device whose registers programs name."""

    hides = "registers, masks and what is computed with them live in their scope"

    def __init__(self) -> None:
        self._open: list[tuple[Recording, Any, Site]] = []

    def __enter__(self) -> None:
        site, scope = user_site(), opened()
        inside = running(scope)
        inside.__enter__()
        self._open.append((scope, inside, site))

    def __exit__(self, kind: Any, *_: object) -> None:
        scope, inside, site = self._open.pop()
        inside.__exit__(None, None, None)
        if kind is None:
            scope.finish(site)

    def lower(self, interpreter: KernelLowering, body: Callable[[], None]) -> None:
        """Write the scope as an operation with a region."""
        block = Block()
        tracer: Any = current()
        with interpreter.emitter.region(block), tracer.micro.scope():
            body()
        interpreter.emitter.emit(SCOPE.name, [], [], {}, [block])


def vecscope() -> VecScope:
    """A scope of the vector unit: what is in it is one instruction of PIPE_V from outside."""
    return VecScope()


# ---- pointers ----------------------------------------------------------------------------------


@public
def castptr(source: Any, kind: DType, space: str = "") -> Any:
    """An address in a memory ("ub", "l1", "l0a" ...), or a pointer, as a pointer to this type."""
    machine: Any = current()
    if hasattr(machine, "emitter"):  # a kernel that is lowered
        return machine.micro.castptr(source, kind, space)
    if isinstance(source, Held):
        raise source._unknown()
    if isinstance(source, Pointer | np.ndarray):
        at = pointer(source)
        return Pointer(at.buffer, kind, at.offset)
    if isinstance(source, OnChipPointer):
        type_ = PtrType(ScalarType(spelled(kind)), source.type.space)
        return OnChipPointer(source.buffer, type_, source.offset)
    memory = machine.core.memory(SPACES[known_space(space)])
    return OnChipPointer(memory, PtrType(ScalarType(spelled(kind)), space), int(source))


def known_space(space: str) -> str:
    """The name of a memory; raises unless there is one."""
    if space not in SPACES:
        raise fail(
            "micro-space",
            "an address lies in a memory",
            got=[("memory", repr(space))],
            fix=f"name one of {', '.join(SPACES)}",
        )
    return space


def no_tile(given: Any, site: Place) -> PtoError:
    """The address of something else than a tile is asked for."""
    return fail(
        "micro-type",
        "tile_buf_addr takes a tile",
        got=[("given", type(given).__name__)],
        fix="castptr(address, dtype, memory) makes a pointer of an address",
        site=site,
    )


@public
def tile_buf_addr(tile: Any) -> Any:
    """A pointer to the first element of a tile, for vector code."""
    machine: Any = current()
    if hasattr(machine, "emitter"):
        return machine.micro.tile_address(tile)
    if not isinstance(tile, TileObject):
        raise no_tile(tile, user_site())
    machine.place(tile)
    if tile.storage is None:
        raise fail("unbound-tile", "this tile has no address yet", fix="TASSIGN(tile, address)")
    space = next(name for name, loc in SPACES.items() if loc is tile.spec.loc)
    type_ = PtrType(ScalarType(spelled(tile.spec.dtype)), space)
    return OnChipPointer(tile.storage, type_, tile.address)


__all__ = ["castptr", "tile_buf_addr", "vecscope"]
