"""Which openings of a program are the ends of one FIFO, and the flags that each takes.

The two ends lie in different functions and share the buffer of the consumer, which one of them
reserves and the other imports; ends of a FIFO through global memory alone have the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptokit.base.dataclass import dataclass
from ptokit.ir.attributes import BoolAttr, StringAttr, SymbolAttr
from ptokit.ir.core import Function, Module, Op, Value
from ptokit.ir.dialects.fifo import IMPORT, RESERVE
from ptokit.ir.fifos import (
    fifo_of,
    flags_of,
    front_insn,
    is_transfer,
    number_of,
    opens_pipe,
    split_of,
)
from ptokit.isa.fifos import FLAG_IDS

Key = tuple[str, str, int]  # the function and name of a buffer, and the direction it serves
CONSUMERS = ((1, "c2v_consumer_buf"), (2, "v2c_consumer_buf"))  # by the bit of their direction


@dataclass(frozen=True, eq=False)
class End:
    """An opening, and the function it stands in."""

    op: Op
    function: Function

    @property
    def is_front(self) -> bool:
        """Whether a front end wrote it: its users name it by an id."""
        return not self.op.results

    @property
    def users(self) -> list[Op]:
        """The transfers through it."""
        if not self.is_front:
            return [o for o in self.function.walk() if is_transfer(o) and fifo_of(o) is self.handle]
        mine = number_of(self.op, "id")
        found = (o for o in self.function.walk() if front_insn(o) is not None)
        return [o for o in found if number_of(o, "id") == mine]

    @property
    def handle(self) -> Value:
        return self.op.result

    @property
    def buffers(self) -> list[tuple[int, Value]]:
        """The buffers of consumers that it names, by the bit of their direction."""
        op, mask = self.op, number_of(self.op, "dir_mask")
        if self.is_front:
            named = [(bit, op.operand(label)) for bit, label in CONSUMERS if mask & bit]
        elif mask == 3:
            named = [(1, op.operand("local_addr")), (2, op.operand("peer_local_addr"))]
        else:
            named = [(mask, op.operand("local_addr"))]
        return [(bit, value) for bit, value in named if value is not None]

    @property
    def keys(self) -> list[Key]:
        """What it shares with its other end."""
        found = [
            (*owner, bit)
            for bit, value in self.buffers
            if (owner := buffer_of(value, self.function)) is not None
        ]
        if self.is_front and not self.buffers:
            found.append(("", f"id {number_of(self.op, 'id')}", number_of(self.op, "dir_mask")))
        return found


def buffer_of(value: Value, function: Function) -> tuple[str, str] | None:
    """The function that reserves a buffer, and its name; None: the address comes from elsewhere."""
    owner = value.owner
    if not isinstance(owner, Op) or not (RESERVE.matches(owner) or IMPORT.matches(owner)):
        return None
    name, peer = owner.attrs.get("name"), owner.attrs.get("peer_func")
    where = peer.name if isinstance(peer, SymbolAttr) else function.name
    return where, name.value if isinstance(name, StringAttr) else ""


def ends_of(module: Module) -> Iterator[End]:
    """Every opening of a program."""
    for function in module.functions:
        yield from (End(op, function) for op in function.walk() if opens_pipe(op))


@dataclass(eq=False)
class Group:
    """The ends of one FIFO, in program order."""

    ends: list[End]

    @property
    def functions(self) -> set[str]:
        return {end.function.name for end in self.ends}

    @property
    def order(self) -> tuple[int, int, int]:
        """Flags are given out by the ids of front ends; others follow as they are written."""
        front = [number_of(end.op, "id") for end in self.ends if end.is_front]
        return (0, min(front), number_of(self.ends[0].op, "dir_mask")) if front else (1, 0, 0)

    @property
    def is_whole(self) -> bool | None:
        """Whether entries are not divided, as it says or as its users show; None: nothing tells."""
        given = [end.op.attrs.get("nosplit") for end in self.ends]
        said = [attr.value for attr in given if isinstance(attr, BoolAttr)]
        shown = [split_of(user) == 0 for end in self.ends for user in end.users]
        return next(iter(said + shown), None)


def groups_of(module: Module) -> list[Group]:
    """The FIFOs of a program."""
    groups: list[Group] = []
    by_key: dict[Key, Group] = {}
    for end in ends_of(module):
        met = list(dict.fromkeys(by_key[key] for key in end.keys if key in by_key))
        group = met[0] if met else Group([])
        if not met:
            groups.append(group)
        for other in met[1:]:  # an opening of both directions joins what were two
            group.ends += other.ends
            groups.remove(other)
            by_key.update({key: group for key, found in by_key.items() if found is other})
        group.ends.append(end)
        by_key.update(dict.fromkeys(end.keys, group))
    return sorted(groups, key=lambda group: group.order)


def flag_bases(groups: Iterable[Group]) -> dict[Group, int | None]:
    """The first flag of each FIFO, apart from those that its functions use; None: there is none."""
    taken: dict[str, set[int]] = {}
    found: dict[Group, int | None] = {}
    for group in groups:
        op = group.ends[0].op
        width = flags_of(op)
        used = {flag for name in group.functions for flag in taken.get(name, ())}
        free = (
            b for b in range(0, FLAG_IDS - width + 1, 2) if used.isdisjoint(range(b, b + width))
        )
        said = [number_of(e.op, "flag_base") for e in group.ends if "flag_base" in e.op.attrs]
        base = found[group] = said[0] if said else next(free, None)
        for name in group.functions if base is not None else ():
            taken.setdefault(name, set()).update(range(base or 0, (base or 0) + width))
    return found
