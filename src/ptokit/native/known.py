"""Records that were carried out before: what they come to, found without reading them again.

Rounds of a loop ask for the same, word by word, or with views that begin elsewhere. Flags are most
of a program: who handles one is found once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from struct import Struct
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.namedtuple import NamedTuple
from ptokit.machine.gm import GmBuffer
from ptokit.machine.objects import GlobalObject, Pointer
from ptokit.native.records import Call

WORD = Struct("q")
HEAD = 4 * WORD.size  # bytes of a record before its own: the code, and three return addresses
_MOST = 4096  # records of a core: one that needs more never repeats itself


class Known:
    """A record of a kind that was carried out: its call, verified."""

    __slots__ = ("call", "is_done", "operands", "row", "site", "verified")

    def __init__(self, call: Call, site: Any, machine: Any) -> None:
        self.call = call
        self.site = site
        self.operands = call.operands
        self.is_done = bool(call.insn.binds)  # a name was given; C++ remembers it
        self.verified: Any = None
        self.row: Sequence[Any] = ()  # what orders only: who handles it
        if not self.is_done:
            self.verified = machine.executor.call(call.insn, call.operands, call.attrs, site)
            if call.insn.orders and self.verified.effects and not call.events:
                self.row = machine.sync.handlers([(call.insn, self.verified.effects, site)])


class _Start(NamedTuple):
    """A view of a record, and the memory that it begins in."""

    operand: int
    view: GlobalObject
    buffer: GmBuffer
    low: int
    high: int


class Moving:
    """Records of one line with views, which begin elsewhere each time."""

    __slots__ = ("_known", "_places")

    def __init__(self, views: Sequence[tuple[int, GlobalObject]]) -> None:
        self._places = [HEAD + WORD.size * word for word, _ in views]  # bytes that say where
        self._known: dict[bytes, tuple[Known, list[_Start]]] = {}  # by all other bytes

    def keep(self, record: bytes, known: Known) -> None:
        """Remember a record that was carried out."""
        starts: list[_Start] = []
        for _, view in known.call.views:
            operand = next(n for n, each in enumerate(known.operands) if each is view)
            assert view.pointer is not None
            buffer = view.pointer.buffer
            starts.append(_Start(operand, view, buffer, buffer.base, buffer.base + buffer.nbytes))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[self._others(record)] = known, starts

    def _others(self, record: bytes) -> bytes:
        found, at = b"", 0
        for place in self._places:
            found, at = found + record[at:place], place + WORD.size
        return found + record[at:]

    def find(self, record: bytes) -> tuple[Known | None, Sequence[Any]]:
        """What a record asks for, and its operands."""
        known, starts = self._known.get(self._others(record), _NONE)
        if known is None:
            return _NONE
        operands = list(known.operands)
        for place, (operand, view, buffer, low, high) in zip(self._places, starts, strict=True):
            (address,) = WORD.unpack_from(record, place)
            if not low <= address <= high:  # another array
                return _NONE
            operands[operand] = view.over(Pointer(buffer, view.spec.dtype, address - low))
        return known, operands


_NONE: tuple[None, Any] = (None, ())


@dataclass
class KnownRecords:
    """What one core has asked for."""

    exact: dict[bytes, Known] = field(default_factory=dict[bytes, Known])
    moving: dict[bytes, Moving] = field(default_factory=dict[bytes, Moving])  # by their first words

    def keep(self, record: bytes, known: Known) -> None:
        """Remember a record that was carried out."""
        views = known.call.views
        if not views or known.is_done:
            if len(self.exact) >= _MOST:
                self.exact.clear()
            self.exact[record] = known
        elif all(view.pointer is not None for _, view in views):
            self.moving.setdefault(record[:HEAD], Moving(views)).keep(record, known)
