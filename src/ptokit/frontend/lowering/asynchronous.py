"""Asynchronous transfers in a kernel being lowered: sessions, contexts and events are handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import i8, u8
from ptokit.frontend.asynchronous import check_scratch
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.heap import Symbol
from ptokit.frontend.lowering.numbers import Number, compare
from ptokit.frontend.lowering.symbols import BufferSymbol, PointerSymbol
from ptokit.ir.attributes import Attribute, IntAttr
from ptokit.ir.core import Block, Value
from ptokit.ir.dialects.asynchronous import BUILD, GET_SESSION, MAKE_CONTEXT, TEST, WAIT
from ptokit.ir.dialects.definition import Definition
from ptokit.ir.types import I1, I64, OpaqueType, ScalarType
from ptokit.isa.sessions import OWN_GROUP, TEXT_CONFIG, SdmaBaseConfig, groups, session_faults

if TYPE_CHECKING:
    from ptokit.frontend.lowering.statements import KernelLowering


class Handle(Symbol):
    """A handle of the kernel; `value` stands for it in the IR."""

    operand_kind = ""

    def __init__(self, emitter: Emitter, value: Value) -> None:
        self.emitter = emitter
        self.value = value

    def renamed(self, value: Value) -> Any:
        """The handle under another name."""
        return type(self)(self.emitter, value)

    def __repr__(self) -> str:
        return f"<run-time {self.operand_kind}>"


class SessionSymbol(Handle):
    """An AsyncSession. It has a value once it is built."""

    operand_kind = "async_session"

    def __init__(self, emitter: Emitter, value: Value | None = None) -> None:
        self.emitter = emitter
        self.block: Block = emitter.block
        self._value = value

    @property
    def value(self) -> Value:  # type: ignore[override]
        if self._value is None:
            raise self.emitter.fail(
                "session",
                "this session is not built yet",
                "BuildAsyncSession(scratch, workspace, session) comes first",
            )
        return self._value

    @value.setter
    def value(self, made: Value) -> None:
        self._value = made


class EventSymbol(Handle):
    """An AsyncEvent."""

    operand_kind = "async_event"

    def Wait(self, session: SessionSymbol) -> Number:
        """Wait for the transfer; whether it went well."""
        return self._ask(WAIT, session)

    def Test(self, session: SessionSymbol) -> Number:
        """Whether the transfer is complete."""
        return self._ask(TEST, session)

    def _ask(self, question: Definition, session: SessionSymbol) -> Number:
        pairs = [("event", self.value), ("session", session.value)]
        results = [("completed", I1)]
        return Number(self.emitter, self.emitter.emit(question.name, pairs, results).result)


class ContextSymbol(Handle):
    """A PrefetchAsyncContext."""

    operand_kind = "prefetch_async_context"

    def GetSession(self) -> SessionSymbol:
        """The session to wait on."""
        results = [("session", OpaqueType("async_session"))]
        op = self.emitter.emit(GET_SESSION.name, [("context", self.value)], results, hint="session")
        return SessionSymbol(self.emitter, op.result)


def make_session(interpreter: KernelLowering) -> SessionSymbol:
    """`AsyncSession()`."""
    return SessionSymbol(interpreter.emitter)


def make_context(
    interpreter: KernelLowering, workspace: Any = None, session: Any = None
) -> ContextSymbol:
    """`PrefetchAsyncContext(workspace)`."""
    emitter = interpreter.emitter
    if session is not None:
        raise emitter.fail(
            "session",
            "the text has no form for a prefetch through the session of other transfers",
            "PrefetchAsyncContext(workspace) has a session of its own",
        )
    pairs = [("workspace", _workspace(emitter, workspace))]
    results = [("context", OpaqueType(ContextSymbol.operand_kind))]
    return ContextSymbol(
        emitter, emitter.emit(MAKE_CONTEXT.name, pairs, results, hint="context").result
    )


def build_session(
    interpreter: KernelLowering,
    scratch: Any,
    workspace: Any,
    session: Any,
    syncId: int = 0,
    baseConfig: SdmaBaseConfig | None = None,
    channelGroupIdx: int = OWN_GROUP,
) -> Any:
    """`BuildAsyncSession(scratch, workspace, session, ...)`; whether the session is usable."""
    emitter, config = interpreter.emitter, baseConfig or SdmaBaseConfig()
    check_scratch(scratch, isinstance(scratch, BufferSymbol))
    if not isinstance(session, SessionSymbol) or session.block is not emitter.block:
        raise emitter.fail(
            "session",
            "a session is built in the loop or branch that makes it",
            "session = AsyncSession(), then BuildAsyncSession(scratch, workspace, session)",
        )
    group = None if channelGroupIdx == OWN_GROUP else channelGroupIdx
    for broken in session_faults(scratch.spec, syncId, config, group):
        raise fail(
            f"BuildAsyncSession.{broken.code}",
            broken.rule,
            got=broken.got,
            site=emitter.location,
        )
    attrs: dict[str, Attribute] = {}
    given = {"sync_id": (syncId, 0), "channel_group_idx": (channelGroupIdx, OWN_GROUP)}
    given |= {key: (getattr(config, key), default) for key, default in vars(TEXT_CONFIG).items()}
    for key, kind in BUILD.attr_types.items():
        number, default = given[key]
        if number != default:
            attrs[key] = IntAttr(number, ScalarType(kind))
    pairs = [("scratch", scratch.value), ("workspace", _workspace(emitter, workspace))]
    results = [("session", OpaqueType(SessionSymbol.operand_kind))]
    session.value = emitter.emit(BUILD.name, pairs, results, attrs, hint="session").result
    return _Usable(emitter, groups(config)) if group is None else True


class _Usable(Number):
    """Whether a session is usable that takes the channels of its block: there may be too few.

    Written only where the kernel looks at it.
    """

    def __init__(self, emitter: Emitter, most: int) -> None:
        self.emitter, self.nonnegative, self.delta = emitter, False, 0
        self._most = most
        self._written: tuple[Block, Value] | None = None

    @property
    def value(self) -> Value:  # type: ignore[override]
        emitter = self.emitter
        if self._written is None or self._written[0] is not emitter.block:
            block = emitter.emit("pto.get_block_idx", [], [("result", I64)], hint="block").result
            is_less = compare(emitter, "<", Number(emitter, block), self._most)
            self._written = emitter.block, is_less.value
        return self._written[1]

    base = value  # type: ignore[assignment]


def _workspace(emitter: Emitter, given: Any) -> Value:
    if not isinstance(given, PointerSymbol) or given.dtype not in (i8, u8):
        raise emitter.fail(
            "session",
            "the workspace of a session is an array of bytes that the kernel takes",
            "pass np.zeros(40960, np.uint8) as a parameter",
        )
    return given.value


def no_session(interpreter: KernelLowering, *args: Any, **named: Any) -> Any:
    """What the text has no form for."""
    raise interpreter.emitter.fail(
        "session",
        "the text has only sessions of the SDMA engine, with a workspace that the kernel takes",
        "session = AsyncSession(), then BuildAsyncSession(scratch, workspace, session)",
    )
