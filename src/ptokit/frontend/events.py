"""Events: the typed dependency between two operation classes, and what belongs to it.

`e = Event[Op.TLOAD, Op.TADD](TLOAD(a, g))` records the event after the load, on the load's pipe;
`TADD(c, a, b, e)` waits for it on the adder's pipe before it issues the addition. In auto mode
the compiler orders everything and events do nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.entry import public
from ptokit.base.location import Site, user_site
from ptokit.base.spelling import nearest
from ptokit.frontend.arguments import arguments, choice, class_name, completed, index, template
from ptokit.frontend.session import current
from ptokit.isa.effects import SIGNAL_BASE, Reach
from ptokit.isa.opcodes import OpCode, op_code, op_codes
from ptokit.isa.spec import INSTRUCTIONS, Insn, Pipe
from ptokit.isa.sync import cross_core_message
from ptokit.isa.targets import TARGETS

PIPE_S, PIPE_V, PIPE_M = Pipe.S, Pipe.V, Pipe.M
PIPE_MTE1, PIPE_MTE2, PIPE_MTE3 = Pipe.MTE1, Pipe.MTE2, Pipe.MTE3
PIPE_FIX, PIPE_ALL = Pipe.FIX, Pipe.ALL
EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3 = 0, 1, 2, 3
EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 = 4, 5, 6, 7
SINGLE_CACHE_LINE, ENTIRE_DATA_CACHE, CACHELINE_OUT = 0, 1, 2
DSB_ALL, DSB_DDR, DSB_UB, DSB_SEQ = 0, 1, 2, 3

__all__ = [
    "Event", "Op", "RecordEvent", "Waitable", "PtoSetWaitFlag", "getFFTSMsg",
    "PIPE_S", "PIPE_V", "PIPE_M", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX", "PIPE_ALL",
    "EVENT_ID0", "EVENT_ID1", "EVENT_ID2", "EVENT_ID3",
    "EVENT_ID4", "EVENT_ID5", "EVENT_ID6", "EVENT_ID7",
    "SINGLE_CACHE_LINE", "ENTIRE_DATA_CACHE", "CACHELINE_OUT",
    "DSB_ALL", "DSB_DDR", "DSB_SEQ", "DSB_UB",
    "get_block_idx", "get_block_num", "get_coreid", "get_subblockdim", "get_subblockid",
]  # fmt: skip

_NO_ID = 0xFF  # no cross-core flag was named
_SECOND = 16
_IDS = max(target.event_ids for target in TARGETS.values())
# Accumulator to vector core, vector core to cube core: the event leaves the core.
_TO_VECTOR, _TO_CUBE = ("TMOV_A2V",), ("TMOV_V2M", "TEXTRACT_V2M")


@dataclass(slots=True, eq=False, repr=False)
class RecordEvent:
    """What an instruction returns: the right to record an Event behind it."""

    insn: Insn
    pipe: Any
    site: Site

    def __repr__(self) -> str:
        return f"<event of {self.insn.name}>"


def _no_type() -> PtoError:
    return fail(
        "event-type",
        "an event says which operations it is between",
        fix="form its type first: Event[Op.TLOAD, Op.TADD]()",
    )


@public
class Waitable:
    """Base of everything that may be passed as a trailing wait event."""

    __slots__ = ()

    def wait(self) -> None:
        """Wait until the event has happened."""
        raise _no_type()

    def precede(self, insn: Insn) -> None:
        """Wait before an instruction."""
        self.wait()


def classes_of(name: str) -> list[str]:
    """The operation classes of an instruction: its own, or one per place its tile may lie in."""
    if op_code(name) is not None:
        return [name]
    known = op_codes()
    parts = [each for each in known if each.startswith(f"{name}_")]
    wholes = [each for each in known if name.startswith(f"{each}_")]
    return parts or sorted(wholes, key=len)[-1:]


def not_an_event(name: str, given: RecordEvent) -> PtoError:
    """The error of waiting for what an instruction returned, without an Event around it."""
    source = given.insn.name
    classes = [classes_of(each) or ["SrcOp"] for each in (source, name)]
    src, dst = (f"Op.{each[0]}" for each in classes)
    others = [f"Op.{each}" for listed in classes for each in listed[1:]]
    more = f" (or {', '.join(others)}, by where the tile lies)" if others else ""
    return fail(
        "wait-record-event",
        f"{name} cannot wait for the bare result of {source}: it says which instruction "
        "is the source, not which pipe waits",
        fix=f"wrap it: e = Event[{src}, {dst}]({source}(...)){more}, then {name}(..., e)",
    )


@public
class _OpNames:
    """`Op.TADD`: the operation classes, as the instruction table defines them."""

    def __getattr__(self, name: str) -> OpCode:
        found = op_code(name)
        if found is None:
            near = classes_of(name) or nearest(name, op_codes())
            meant = f"; did you mean {' or '.join(f'Op.{each}' for each in near)}?" if near else ""
            raise AttributeError(f"there is no operation class Op.{name}{meant}")
        return found

    def __dir__(self) -> list[str]:
        return list(op_codes())

    def __iter__(self) -> Any:
        return iter(op_codes().values())

    def __repr__(self) -> str:
        return "Op"


Op = _OpNames()


@public
class _EventMeta(type):
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> type[Event]:
        src, dst, automatic, number = completed(
            "Event",
            given,
            2,
            (True, 0),
            "Event takes two operation classes, then AutoToken and EventID",
            "Event[Op.TLOAD, Op.TADD], or Event[Op.TLOAD, Op.TADD, False, EVENT_ID3]",
        )
        with template("Event", "Event[SrcOp, DstOp, AutoToken, EventID]", given):
            number, automatic = index(number), bool(automatic)
        for code, one, which in (("SA-0116", src, "SrcOp"), ("SA-0037", dst, "DstOp")):
            if not isinstance(one, OpCode) or one.pipe is Pipe.ALL:
                raise fail(
                    code,
                    f"{which} of an Event is an operation class with a pipe of its own",
                    got=[(which, one)],
                    fix="name the operations by their class: Event[Op.TLOAD, Op.TADD]",
                )
        if not 0 <= number < _IDS:
            raise fail("E4", f"the event id lies in 0..{_IDS - 1}", got=[("EventID", number)])
        return event_class(src, dst, automatic, number)


@public
class Event(Waitable, metaclass=_EventMeta):
    """One dependency between two operation classes; write `Event[SrcOp, DstOp]` for its type.

    Made from what an instruction returned, it is recorded at once; an Event made without one is
    recorded with `e.Record()` or `e.Record(TLOAD(...))`. Passing it to an instruction, to TSYNC, or
    calling `e.Wait()` waits for it. Record and wait alternate.
    """

    SRC: ClassVar[OpCode]
    DST: ClassVar[OpCode]
    AUTO: ClassVar[bool]
    ID: ClassVar[int]
    __slots__ = ("_machine", "token")

    def __init__(self, source: RecordEvent | None = None) -> None:
        if not hasattr(self, "ID"):
            raise _no_type()
        self._machine = current()
        self.token = self.ID
        if self.crosses:
            if self.AUTO:
                raise fail(
                    "Event.token",
                    "an event that leaves the core names its flag: AutoToken is false",
                    got=[("SrcOp", self.SRC), ("DstOp", self.DST)],
                    fix=f"Event[{self.SRC}, {self.DST}, False], then e.Record[flag]()",
                )
        elif self.AUTO and self._machine.mode == "manual":
            # The id is taken when the object is made, whether or not it is ever recorded.
            pair, taken = (self.SRC.pipe, self.DST.pipe), self._machine.core.events
            self.token = taken.get(pair, 0)
            taken[pair] = (self.token + 1) % self._machine.target.event_ids
        if source is not None:
            self.record(source)

    # ---- recording and waiting ------------------------------------------------------------------

    @property
    def crosses(self) -> bool:
        """Whether the event goes from one core of the cluster to another."""
        name, signals = self.SRC.name, self._machine.target.core_signals
        if signals is not Reach.CLUSTER:
            return signals is Reach.CORE and name in _TO_VECTOR + _TO_CUBE
        return (name in _TO_VECTOR and self.DST.pipe is Pipe.V) or (
            name in _TO_CUBE and self.DST.pipe is Pipe.MTE1
        )

    def record(self, source: RecordEvent | None = None, flag: int = _NO_ID) -> Event:
        """Record the event behind the earlier work of the source pipe."""
        if source is not None and not isinstance(source, RecordEvent):
            raise fail(
                "Event.record",
                "an Event is recorded from what an instruction returned",
                got=[("given", type(source).__name__)],
            )
        if self._machine.mode == "auto":
            return self
        if source is not None:
            self._check_pipe(source.insn, self.SRC, "records")
        src, dst = self.SRC.pipe, self.DST.pipe
        if self.crosses:
            self._named(flag)
            if self._machine.target.core_signals is Reach.CORE:
                self._call("set_intra_block", src, flag)
                if self._machine.core.role == "cube":
                    self._call("set_intra_block", src, flag + _SECOND)
            else:
                message = cross_core_message(Reach.CLUSTER.value, flag)
                self._call("ffts_cross_core_sync", src, message)
        elif src is not dst:
            self._call("set_flag", src, dst, self.token)
        return self

    def precede(self, insn: Insn) -> None:
        self._check_pipe(insn, self.DST, "waits for")
        self.wait()

    def _check_pipe(self, insn: Insn, named: OpCode, does: str) -> None:
        """An event acts on the pipes of its classes, whatever instruction it is used with."""
        pipes = set(insn.ops.values()) or {insn.pipe}
        if self._machine.mode == "auto" or self.crosses or named.pipe in pipes:
            return
        own = next(iter(pipes))
        if not isinstance(own, Pipe) or own is Pipe.ALL:
            return  # it depends on the operands
        (meant, *_) = classes_of(insn.name) or [insn.name]
        self._machine.remark(
            "Event.pipe",
            f"{insn.name} works on PIPE_{own.name}, the event it {does} belongs to "
            f"PIPE_{named.pipe.name}: nothing is ordered by it here",
            fix=f"put Op.{meant} in the place of {named}",
        )

    def wait(self, flag: int = _NO_ID) -> None:
        """Hold later work of the destination pipe until the event is recorded; consume it."""
        if self._machine.mode == "auto":
            return
        src, dst = self.SRC.pipe, self.DST.pipe
        if self.crosses:
            self._named(flag)
            if self._machine.target.core_signals is Reach.CORE:
                self._call("wait_intra_block", dst, flag)
            else:
                self._call("wait_flag_dev", None, flag)
        elif src is not dst:
            self._call("wait_flag", src, dst, self.token)
        elif src in self._machine.target.barriers:
            self._call("pipe_barrier", src)

    def _call(self, name: str, *operands: Any) -> None:
        """An event is flags and barriers under a name of its own."""
        self._machine.execute(INSTRUCTIONS[name], operands, (), user_site())

    def InitAddr(self, addr: int) -> None:
        """Set the base address of the cross-core signals (A2/A3)."""
        if not self.crosses:
            raise fail("Event.init-addr", "only an event that leaves the core has an address")
        self._machine.core.registers[SIGNAL_BASE] = addr

    @property
    def Record(self) -> _Method:
        """`e.Record()`, `e.Record(TLOAD(...))`, `e.Record[flag]()`."""
        return _Method(self.record, 1, "e.Record(), e.Record(TLOAD(...)), e.Record[flag]()")

    Init = Record

    @property
    def Wait(self) -> _Method:
        """`e.Wait()`, `e.Wait[flag]()`."""
        return _Method(self.wait, 0, "e.Wait(), e.Wait[flag]()")

    def _named(self, flag: int) -> None:
        if flag == _NO_ID:
            raise fail(
                "Event.flag",
                "an event that leaves the core names its flag at record and wait",
                got=[("SrcOp", self.SRC), ("DstOp", self.DST)],
                fix="e.Record[flag]() on the one core, e.Wait[flag]() on the other",
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} id {self.token}>"


@public
@dataclass(slots=True, eq=False)
class _Method:
    """A method that takes a cross-core flag in brackets."""

    _run: Any
    _most: int  # arguments
    _fix: str
    _flag: int = _NO_ID

    def __getitem__(self, flag: int) -> _Method:
        with template("Event", self._fix, flag):
            return _Method(self._run, self._most, self._fix, index(flag))

    def __call__(self, *args: Any) -> Any:
        if len(args) > self._most:
            got = [("arguments", args)]
            raise fail("Event.arguments", "too many arguments", got=got, fix=self._fix)
        return self._run(*args, flag=self._flag)


@cache
def event_class(src: OpCode, dst: OpCode, automatic: bool, number: int) -> type[Event]:
    """The one class with these template arguments."""
    more = "" if automatic else f", False, {number}"
    members = {"SRC": src, "DST": dst, "AUTO": automatic, "ID": number, "__slots__": ()}
    return _EventMeta(f"Event[{src}, {dst}{more}]", (Event,), members)  # type: ignore[return-value]


# ---- beside events -------------------------------------------------------------------------------


@public
class _SetWait:
    """`PtoSetWaitFlag[PIPE_V, PIPE_S]()`: set a flag and wait for it at once."""

    def __getitem__(self, pipes: tuple[Pipe, Pipe]) -> Any:
        with template("PtoSetWaitFlag", "PtoSetWaitFlag[PIPE_V, PIPE_S]", pipes):
            src, dst = (choice(Pipe, pipe) for pipe in arguments(pipes))

        @public
        def set_wait(set_id: int = 0, wait_id: int = 0) -> None:
            machine, site = current(), user_site()
            if machine.mode == "manual":
                machine.execute(INSTRUCTIONS["set_flag"], (src, dst, set_id), (), site)
                machine.execute(INSTRUCTIONS["wait_flag"], (src, dst, wait_id), (), site)

        return set_wait


PtoSetWaitFlag = _SetWait()


@public
def getFFTSMsg(mode: int, id: int, base: int = 1) -> int:
    """The message of ffts_cross_core_sync: bits 5..4 mode, bits 11..8 flag id."""
    return cross_core_message(mode, id, base)


def get_block_idx() -> int:
    """The number of this block in its launch; both vector cores of a cluster see the same."""
    return current().core.block


def get_block_num() -> int:
    """How many blocks were launched."""
    return current().blocks


def get_subblockid() -> int:
    """The number of the vector core inside its cluster."""
    return current().core.subblock


def get_subblockdim() -> int:
    """How many vector cores a cluster has, as a vector core sees it."""
    return current().subblocks


def get_coreid() -> int:
    """The physical number of the core; here the number of its block."""
    return current().core.block
