"""Faults: the ways in which a legal instruction can still go wrong when it runs, and their words.

Every engine raises these, so that all of them say the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import (
    Diagnostic,
    InternalError,
    Note,
    NotSupported,
    ProgramError,
    PtoError,
    fail,
    where,
)
from ptokit.base.location import Location, Site
from ptokit.isa.services import Refused
from ptokit.isa.spec import Insn
from ptokit.isa.targets import Space
from ptokit.isa.verify import verify

Place = Site | Location | None


class PoisonRead(ProgramError):  # noqa: N818 - named after what happened
    """A byte was read that nothing wrote."""

    call: Any = None  # what read it
    access: Any = None
    late: Any = None  # the core that issued it, and where, if it has waited


class OutOfBounds(ProgramError):  # noqa: N818
    """An access left its memory or its array."""


class Unbound(ProgramError):  # noqa: N818
    """A tile without an address, or a tensor without memory, was used."""


class WouldBlock(ProgramError):  # noqa: N818
    """The only thread of execution would wait for something that nobody can provide."""


def hopeless(what: str, does: str, fix: str, site: Place) -> PtoError:
    """The error of a loop that looks for what cannot come."""
    said = f"{what} would go on forever: nothing else runs that could {does}"
    return fail("would-block", said, fix=fix, site=site, kind=WouldBlock)


def poison_read(call: Any, access: Any, row: int, col: int, site: Place) -> PtoError:
    """An element is read that nothing has written; `access` is one of the call's."""
    name, facts = access.operand, dict(call.ops)
    error = fail(
        "poison-read",
        f"{call.insn.name} reads {name}[{row}, {col}], which nothing has written",
        got=[(name, facts[name])] * (name in facts) + [("memory", access.memory.name)],
        fix="load or compute the whole valid region first, or shrink the valid region",
        site=site,
        target=call.ops.target.name,
        kind=PoisonRead,
    )
    assert isinstance(error, PoisonRead)
    error.call, error.access = call, access
    return error


def never_written(tile: Any, what: str, fix: str) -> PtoError:
    """A tile is looked at from outside before it is written."""
    return fail("poison-read", what, got=[("tile", tile)], fix=fix, kind=PoisonRead)


@dataclass(frozen=True)
class Spill:
    """Scratch that ends behind the tile whose address it is given."""

    operand: str
    memory: Any
    address: int
    size: int  # of the tile, in bytes
    used: int

    def harms(self) -> bool:
        """Whether anything lives behind the tile."""
        return bool(self.memory.shadow[self.address + self.size : self.address + self.used].any())


def overwritten(call: Any, spill: Spill, site: Place) -> Diagnostic:
    """Data that lies past a scratch tile is overwritten with it: a warning."""
    name, insn = spill.operand, call.insn
    start, stop = spill.address + spill.size, spill.address + spill.used
    return Diagnostic(
        f"{insn.name}.tmp-size",
        f"{insn.name}: nothing lives in the bytes past {name} that serve as scratch as well",
        None if site is None else where(site),
        (
            (f"bytes of {name}", str(spill.size)),
            ("bytes in use", str(spill.used)),
            ("overwritten", f"{spill.memory.name} {start:#x} to {stop:#x}"),
        ),
        f"declare {name} with {spill.used} bytes, or bind it where nothing lies past it",
        call.ops.target.name,
    )


def unwanted(insn: Insn, site: Place) -> Diagnostic:
    """An instruction that has nothing to do where a compiler orders the pipes."""
    return Diagnostic(
        "E15",
        f"{insn.name} does nothing in auto mode: the compiler orders the pipes",
        None if site is None else where(site),
        fix="leave it out, or run the kernel in manual mode",
        severity="warning",
    )


def unbound_tile(
    tile: Any, insn: Insn | None = None, name: str = "tile", site: Place = None
) -> PtoError:
    """A tile is used before it has an address."""
    return fail(
        "unbound-tile",
        "this tile has no address" if insn is None else f"{insn.name}: {name} has no address",
        got=[(name, tile)],
        fix="bind it first: TASSIGN(tile, address), or use mode='auto'",
        site=site,
        kind=Unbound,
    )


def too_large(tile: Any, nbytes: int, space: Space, target: str) -> PtoError:
    """A tile is to be placed automatically, and is larger than its memory."""
    return fail(
        "place.overflow",
        f"the tiles do not fit into {space.memory}: this one alone takes up {nbytes} bytes",
        got=[("tile", tile), ("capacity", f"{space.capacity} bytes")],
        fix="use smaller tiles",
        target=target,
    )


def misaligned(tile: Any, alignment: int, insn: Insn, name: str, site: Place) -> PtoError:
    """A tile is touched at an address that only the running program has given it."""
    down = tile.assigned // alignment * alignment
    return fail(
        "SA-0354",
        f"{insn.name}: the address of {name} has the alignment of its memory space",
        got=[("address", hex(tile.assigned)), ("alignment", alignment), (name, tile.spec)],
        fix=f"bind {name} to {down:#x} or {down + alignment:#x}",
        site=site,
    )


def outside_memory(
    pattern: Any, memory: Any, offset: int, insn: Insn | None = None, site: Place = None
) -> PtoError:
    """A tile leaves its memory."""
    name, last = pattern.operand, memory.nbytes - pattern.high
    return fail(
        "memory-bounds",
        f"{'the' if insn is None else insn.name + ':'} {name} lies inside {memory.name}",
        got=[
            ("address", hex(offset)),
            ("end", hex(offset + pattern.high)),
            ("capacity", hex(memory.nbytes)),
        ],
        fix="make the tile smaller" if last < 0 else f"bind it to an address up to {last:#x}",
        site=site,
        kind=OutOfBounds,
    )


def outside_array(
    pattern: Any, memory: Any, offset: int, insn: Insn, spec: Any, site: Place
) -> PtoError:
    """A view of global memory leaves the array of the user."""
    size, array = pattern.dtype.itemsize, memory.owner
    fix = "check shape, stride and pointer of the GlobalTensor against the array"
    if not memory.is_dense:
        steps = tuple(step // array.itemsize for step in array.strides)
        fix += f": its elements lie {steps} apart, and what is between them is not its own"
    return fail(
        "gm-bounds",
        f"{insn.name}: the view {pattern.operand} lies inside its array",
        got=[
            ("first element", (offset + pattern.low) // size),
            ("last element", (offset + pattern.high) // size - 1),
            ("array elements", array.nbytes // size),
            (pattern.operand, spec),
        ],
        fix=fix,
        site=site,
        kind=OutOfBounds,
    )


def read_only(pattern: Any, insn: Insn, site: Place) -> PtoError:
    """An array is written that its owner has locked."""
    return fail(
        "gm-readonly",
        f"{insn.name}: {pattern.operand} is a read-only array",
        fix="pass a writeable array",
        site=site,
    )


def refusal(insn: Insn, error: Refused, site: Place, target: str) -> PtoError:
    """What a body refused, as an error at the instruction's line."""
    known = error.code[:3] in ("SA-", "PA-", "CA-")
    return fail(
        error.code if known else f"{insn.name}.{error.code}",
        f"{insn.name}: {error.message}",
        got=error.got,
        fix=error.fix,
        site=site,
        target=target,
    )


def failure(call: Any, error: Exception, site: Place) -> PtoError:
    """What a body raised and did not mean to: an error of ours, unless rules are broken."""
    insn, target = call.insn, call.ops.target.name
    if found := verify(insn, call.ops, where(site)):
        note = Note(f"it was let through, but cannot be computed: {type(error).__name__}: {error}")
        return ProgramError(replace(d, severity="error", notes=(*d.notes, note)) for d in found)
    if isinstance(error, NotImplementedError):
        return fail(
            f"{insn.name}.not-supported",
            f"{insn.name}: {error}",
            site=site,
            target=target,
            kind=NotSupported,
        )
    return fail(
        "internal",
        f"{insn.name} failed inside ptokit: {type(error).__name__}: {error}",
        fix="this is a bug of ptokit; please report it with the kernel",
        site=site,
        kind=InternalError,
    )
