"""Ordering: flags between the pipes of a core, barriers, and signals between cores.

These records move no data: what each does is its list of effects. In auto mode the compiler orders
everything itself and they do nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from ptokit.base.enums import FenceScope, SyncAllMode, SyncCoreType
from ptokit.isa.effects import (
    SIGNAL_BASE,
    Barrier,
    Buffer,
    Cached,
    Clean,
    CoreFlag,
    Effect,
    Fence,
    Flag,
    InAuto,
    Load,
    Meeting,
    Pipe,
    Reach,
    Signal,
    Wait,
)
from ptokit.isa.opcodes import OpCode
from ptokit.isa.scalars import element_of, signed, unsigned, word
from ptokit.isa.spec import Asm, Attr, Cpp, Operand, Rule, View, insn, number, rule, scalar

_intrinsic = partial(insn, pipe=None, in_auto=InAuto.UNWANTED)
_PAIR = {"src_pipe": "3", "dst_pipe": "1", "event_id": "0"}
_FLAG = (number("src_pipe", "pipe"), number("dst_pipe", "pipe"), number("event_id", "event"))
_CORE = number("id", "event", note="0..15; seen from the cube core 16..31 is vector core 1")
_KINDS = {
    SyncCoreType.AIVOnly: ("vector",),
    SyncCoreType.AICOnly: ("cube",),
    SyncCoreType.Mix: ("cube", "vector"),
}


def _pipe(name: str = "pipe") -> Operand:
    return number(name, "pipe")


def _flag_text(name: str, by_class: str) -> Asm:
    """A flag by its pipes, with a number known or not, or by the classes of two operations."""
    return Asm(
        syntax={
            name: "[@src_pipe, @dst_pipe, @event_id] {}",
            f"{name}_dyn": "[@src_pipe, @dst_pipe, %event_id] {}",
            by_class: "[@src_op, @dst_op, @event_id] {}",
        },
        literals={"src_pipe": "src_pipe src_op", "dst_pipe": "dst_pipe dst_op"},
        types=dict.fromkeys(("src_op", "dst_op"), "pipe_event_type") | {"event_id": "event"},
    )


def _buffer_text(name: str) -> Asm:
    """In brackets, which are what we print, or without."""

    def syntax(id: str) -> str:
        given = f"@op_type, {id}[?, @mode?]"
        return f"[?[{given}]?|{given}?] {{}}"

    return Asm(
        syntax={name: syntax("@buf_id"), f"{name}_dyn": syntax("%buf_id")},
        literals={"pipe": "op_type"},
        types={"op_type": "pipe_event_type"},
    )


def _signal_text(name: str, number: str, key: str = "") -> Asm:
    """A number that is known is an attribute, by default of its own name."""
    syntax = f"@pipe, [?@{key or number}?] [?%{number}?] {{}}"
    return Asm(syntax={name: syntax}, literals={number: key} if key else {})


def _is_pipe(name: str) -> Rule:
    return rule(
        f"{name.replace('_', '-')}",
        f"{name} is a pipe (PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX)",
        lambda o: o[name].value in (*range(6), 7),
        fix="name one of these pipes",
    )


def _between(name: str, high: int, what: str) -> Rule:
    return rule("E4", f"{what} lies in 0..{high}", lambda o: 0 <= o[name].value <= high)


def _flag_rules() -> list[Rule]:
    return [
        _is_pipe("src_pipe"),
        _is_pipe("dst_pipe"),
        rule(
            "same-pipe",
            "a flag goes from one pipe to another",
            lambda o: o.src_pipe.value != o.dst_pipe.value,
            fix="inside one pipe use pipe_barrier(pipe)",
        ),
        rule(
            "E4",
            "the event id lies in 0..7",
            lambda o: 0 <= o.event_id.value < o.target.event_ids,
        ),
    ]


def _flag(o: Any) -> Flag:
    return Flag(Pipe(o.src_pipe.value), Pipe(o.dst_pipe.value), o.event_id.value)


def _at(o: Any) -> Pipe:
    return Pipe(o.pipe.value)


# ---- inside a core -------------------------------------------------------------------------------


@_intrinsic(
    *_FLAG,
    rules=_flag_rules(),
    effects=lambda o: [Signal(_flag(o).src, _flag(o))],
    example=_PAIR,
    asm=_flag_text("set_flag", "record_event"),
)
def set_flag(src_pipe: int, dst_pipe: int, event_id: int) -> None:
    """Raise a flag from one pipe for another, after all earlier work of the first.

    Per (source, destination, id) sets and waits alternate, starting with a set; a second set
    before the wait, or a set that nobody waits for, is an error of the program.
    """


@_intrinsic(
    *_FLAG,
    rules=_flag_rules(),
    effects=lambda o: [Wait(_flag(o).dst, _flag(o))],
    example=_PAIR,
    asm=_flag_text("wait_flag", "wait_event"),
    setup="set_flag(3, 1, 0)",
)
def wait_flag(src_pipe: int, dst_pipe: int, event_id: int) -> None:
    """Hold later work of the destination pipe until the flag is raised, and lower it.

    Other pipes go on; a wait of PIPE_S stops the issue of everything.
    """


@_intrinsic(
    _pipe(),
    effects=lambda o: [Barrier(_at(o))],
    rules=[
        rule(
            "pipe",
            "pipe is one of the pipes, or PIPE_ALL",
            lambda o: o.pipe.value in range(8),
            fix="name a pipe: PIPE_V, PIPE_MTE2 ...",
        ),
    ],
    asm=Asm(syntax={"barrier": "@pipe {}"}),
)
def pipe_barrier(pipe: int) -> None:
    """Start later work of a pipe only when all its earlier work is complete.

    PIPE_ALL does so for all pipes of the core together. One core only; other pipes are not
    ordered by the barrier of one.
    """


@insn(
    attrs=[Attr("OpCode", OpCode, None, "the operation class whose pipe is drained")],
    pipe=None,
    effects=lambda o: [Barrier(op.pipe)] if (op := o.attrs["OpCode"]) is not None else [],
    in_auto=InAuto.VANISHES,
    rules=[
        rule(
            "SA-0096",
            "TSYNC drains a pipe that this target can drain by itself",
            lambda o: (
                o.attrs["OpCode"] is None
                or o.attrs["OpCode"].pipe in {*o.target.barriers, Pipe.ALL}
            ),
            "a5 kirin9030 kirinx90",
            fix="order the pipes with an Event or flags instead",
        ),
    ],
    asm=Asm(
        syntax={
            "barrier_sync": "[@op_type] {}",
            "tsync": "[?ins(%events... : T(events...))?] {}",
        },
        attrs={"OpCode": "op_type"},
        types={"op_type": "sync_op_type"},
    ),
)
def TSYNC(OpCode: Any) -> None:
    """Wait for events, `TSYNC(e0, e1)`, or drain the pipe of an operation, `TSYNC[Op.TADD]()`.

    With events, each is waited for from left to right; without any nothing happens.
    """


@_intrinsic(
    _pipe(),
    number("buf_id", unsigned(8)),
    number("mode", unsigned(8), optional=True),
    targets="a2a3 a5",
    rules=[_is_pipe("pipe"), _between("buf_id", 31, "the buffer id")],
    effects=lambda o: [Wait(_at(o), Buffer(o.buf_id.value))],
    asm=_buffer_text("get_buf"),
)
def get_buf(pipe: int, buf_id: int, mode: int) -> None:
    """Acquire a numbered buffer for a pipe: its later work waits for whoever holds it.

    The pipes that acquired the same buffer earlier in program order must have released it. No
    priming before a loop and no draining after it; a pipe holds a buffer at most once.
    """


@_intrinsic(
    _pipe(),
    number("buf_id", unsigned(8)),
    number("mode", unsigned(8), optional=True),
    targets="a2a3 a5",
    rules=[_is_pipe("pipe"), _between("buf_id", 31, "the buffer id")],
    effects=lambda o: [Signal(_at(o), Buffer(o.buf_id.value))],
    asm=_buffer_text("rls_buf"),
    setup="get_buf(1, 1)",
)
def rls_buf(pipe: int, buf_id: int, mode: int) -> None:
    """Release a numbered buffer, after the work of the pipe so far; once per get_buf."""


# ---- between cores -------------------------------------------------------------------------------


@insn(
    Operand("addr", "in", kinds=("number", "pointer", "global"), view=View.OBJECT, takes=word(64)),
    pipe=None,
    targets="a2a3 a5",
    effects=lambda o: [Load(SIGNAL_BASE, "addr")],
    asm=Asm(syntax={"set_ffts": "%addr {} : T(addr)"}, types={"addr": "i64"}),
    cpp=Cpp(casts={"addr": "uint64_t"}),
)
def set_ffts_base_addr(addr: int) -> None:
    """Tell the core where its cross-core signals go; once, before the first of them.

    A5 accepts it and needs it for nothing: kernels for both targets call it unconditionally.
    """


def cross_core_message(mode: int, id: int, base: int = 1) -> int:
    """The message of a cross-core signal: mode in bits 5..4, flag id in bits 11..8."""
    return base + ((mode & 3) << 4) + ((id & 15) << 8)


def _message(msg: int) -> CoreFlag:
    return CoreFlag(msg >> 8 & 15, Reach(msg >> 4 & 3))


@_intrinsic(
    _pipe(),
    number("msg", word(64), note="getFFTSMsg(mode, id)"),
    targets="a2a3 a5",
    rules=[
        _is_pipe("pipe"),
        rule(
            "message",
            "msg is a message of getFFTSMsg: base 1, mode 0, 1 or 2, flag id 0..15",
            lambda o: (
                o.msg.value & 0xF == 1 and o.msg.value >> 4 & 3 < 3 and 0 < o.msg.value < 0x1000
            ),
            fix="build it with getFFTSMsg(mode, id)",
        ),
    ],
    effects=lambda o: [Signal(_at(o), _message(o.msg.value))],
    example={"msg": "0x0121"},
    helpers={"message": cross_core_message},
    asm=replace(_signal_text("ffts_cross_core_sync", "msg"), is_stable=False),
    setup="set_ffts_base_addr(1)",
)
def ffts_cross_core_sync(pipe: int, msg: int) -> None:
    """Signal other cores, after the earlier work of a pipe.

    Mode 2 reaches the cluster: both vector cores when the cube core signals; the cube core, once
    both vector cores have signalled. Modes 0 and 1 are meetings: of all cores of the kind, of the
    two vector cores of the cluster; each gets its signal when all have given theirs.
    """


@_intrinsic(
    number("pipe", "pipe", optional=True),
    number("id", "event"),
    targets="a2a3 a5",
    forms=["id", "pipe id"],
    rules=[_between("id", 15, "the cross-core flag")],
    effects=lambda o: [Wait(Pipe.S, CoreFlag(o.id.value, Reach.CLUSTER))],
    asm=Asm(syntax={"wait_flag_dev": "[?@id?][?%id?][?, @pipe?] {}"}),
    setup="set_ffts_base_addr(1)",
)
def wait_flag_dev(pipe: int | None, id: int) -> None:
    """Stop the scalar unit until a cross-core signal has come, and take it.

    Nothing later is issued on any pipe; queued work goes on. The cube core needs the signal of
    both vector cores.
    """


@_intrinsic(
    _pipe(),
    _CORE,
    targets="a5",
    rules=[_is_pipe("pipe"), _between("id", 31, "the flag")],
    effects=lambda o: [Signal(_at(o), CoreFlag(o.id.value, Reach.CORE))],
    asm=_signal_text("set_intra_block", "id", "event_id"),
)
def set_intra_block(pipe: int, id: int) -> None:
    """Signal one core of the cluster, after the earlier work of a pipe.

    The cube core reaches vector core 0 with id and vector core 1 with id + 16; a vector core
    always reaches the cube core with the plain id. It has 16 flags: id + 16 is the same as id.
    """


@_intrinsic(
    _pipe(),
    _CORE,
    targets="a5",
    rules=[_is_pipe("pipe"), _between("id", 31, "the flag")],
    effects=lambda o: [Wait(_at(o), CoreFlag(o.id.value, Reach.CORE))],
    asm=_signal_text("wait_intra_block", "id", "event_id"),
)
def wait_intra_block(pipe: int, id: int) -> None:
    """Hold one pipe until a core of the cluster has signalled, and take the signal."""


# ---- signals as texts write them: whoever launches them has set the base ------------------------

SIGNAL_PIPES = (Pipe.FIX, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.V)
_BASED = Load(SIGNAL_BASE, "")


def _signal_rules(on: str) -> list[Rule]:
    names = ", ".join(f"PIPE_{pipe.name}" for pipe in SIGNAL_PIPES)
    return [
        rule(
            "pipe",
            f"cores signal each other from {names}",
            lambda o: o.pipe.value in SIGNAL_PIPES,
            on,
            fix="name one of these pipes",
        ),
        _between("event_id", 15, "the cross-core flag"),
    ]


def _text_signal(name: str, on: str, *attrs: Attr, **more: Any) -> Any:
    """An operation of texts with a pipe and a flag."""
    return _intrinsic(
        _pipe(),
        number("event_id", signed(32), note="0..15"),  # of another kind than those with names
        attrs=list(attrs),
        targets="a2a3 a5",
        asm=_signal_text(name, "event_id"),
        rules=[*_signal_rules(on), *more.pop("rules", ())],
        **more,
    )


_MODE = Attr("ffts_mode", int, 2, "0: all cores of the kind, 1: the vector cores of a pair, 2: all")
_MODE_RULE = rule("mode", "ffts_mode is 0, 1 or 2", lambda o: o.attrs["ffts_mode"] in (0, 1, 2))
_WAITS: dict[str, Any] = {
    "effects": lambda o: [_BASED, Wait(Pipe.S, CoreFlag(o.event_id.value, Reach.CLUSTER))],
    "cpp": Cpp(calls={"pipe event_id": ("wait_flag_dev({event_id})",)}),
    "example": {"pipe": "1"},
}


@_text_signal(
    "sync.set",
    "a5",
    _MODE,
    rules=[_MODE_RULE],
    effects=lambda o: [
        _BASED,
        Signal(_at(o), CoreFlag(o.event_id.value, Reach(o.attrs["ffts_mode"]))),
    ],
    cpp=Cpp(
        calls={
            "pipe event_id": ("ffts_cross_core_sync({pipe}, getFFTSMsg({ffts_mode}, {event_id}))",)
        }
    ),
    example={"pipe": "1"},
)
def sync_set(pipe: int, event_id: int, ffts_mode: int) -> None:
    """Signal other cores, after the earlier work of a pipe: ffts_cross_core_sync of texts."""


@_text_signal("sync.wait", "a5", _MODE, rules=[_MODE_RULE], **_WAITS)
def sync_wait(pipe: int, event_id: int, ffts_mode: int) -> None:
    """Stop the scalar unit until other cores have signalled: wait_flag_dev of texts.

    The mode is that of the signal; a wait is the same for all of them.
    """


@_text_signal(
    "set_cross_block",
    "a2a3 a5",
    effects=lambda o: [_BASED, Signal(_at(o), CoreFlag(o.event_id.value, Reach.KIND))],
    cpp=Cpp(calls={"pipe event_id": ("ffts_cross_core_sync({pipe}, getFFTSMsg(0, {event_id}))",)}),
    example={"pipe": "1"},
)
def set_cross_block(pipe: int, event_id: int) -> None:
    """Signal all cores of the kind, after the earlier work of a pipe."""


@_text_signal("wait_cross_block", "a2a3 a5", **_WAITS)
def wait_cross_block(pipe: int, event_id: int) -> None:
    """Stop the scalar unit until all cores of the kind have signalled."""


# ---- cores that meet -----------------------------------------------------------------------------


WORKSPACE_WORDS = 16  # a line of the cache, which the counter shares with nothing


def _meeting(o: Any) -> list[Effect]:
    place = Meeting(_KINDS[o.attrs["CoreType"]])
    if o.attrs["Mode"] == SyncAllMode.Soft:
        used = 0 if o.usedCores is None else o.usedCores.value
        place = Meeting(place.kinds, "gmWorkspace", used)
    return [Barrier(Pipe.ALL), Signal(Pipe.S, place), Wait(Pipe.S, place)]


@insn(
    Operand("gmWorkspace", "inout", kinds=("global",), view=View.OBJECT, optional=True),
    number(
        "usedCores",
        signed(32),
        note="how many cores take part; 0: all of the launch",
        optional=True,
    ),
    attrs=[
        Attr("Mode", SyncAllMode, SyncAllMode.Hard),
        Attr("CoreType", SyncCoreType, SyncCoreType.AIVOnly),
    ],
    pipe=None,
    targets="a2a3 a5",
    forms=["", "gmWorkspace", "gmWorkspace usedCores"],
    rules=[
        rule(
            "workspace",
            "a soft barrier counts in an int32 GlobalTensor",
            lambda o: (
                o.attrs["Mode"] == SyncAllMode.Hard
                or (o.gmWorkspace is not None and o.gmWorkspace.dtype.name == "i32")
            ),
            fix="pass a workspace of 16 int32, zero before its first use",
        ),
        rule(
            "workspace-size",
            f"the workspace of a soft barrier has at least {WORKSPACE_WORDS} int32: a line",
            lambda o: o.gmWorkspace is None or prod(o.gmWorkspace.shape) >= WORKSPACE_WORDS,
            fix=f"make it {WORKSPACE_WORDS} elements long",
            otherwise="the counter is the first word, and shares its line with what follows",
        ),
        rule(
            "hard",
            "a hard barrier counts nowhere: it takes no workspace",
            lambda o: o.attrs["Mode"] == SyncAllMode.Soft or o.gmWorkspace is None,
            fix="leave the operands out, or ask for the soft one",
        ),
    ],
    effects=_meeting,
    in_auto=InAuto.VANISHES,
    cpp=Cpp(brackets=("", "@CoreType", "@Mode @CoreType")),  # a hard one has no mode
    asm=Asm(
        syntax={
            "syncall": "([?%gmWorkspace[?, %usedCores?] : T(gmWorkspace)[?, T(usedCores)?]?]) "
            "mode = @mode, core_type = @core_type {}"
        },
        attrs={"Mode": "mode", "CoreType": "core_type"},
        types={"mode": "", "core_type": "", "usedCores": "i32", "gmWorkspace": "memory"},
    ),
)
def SYNCALL(
    gmWorkspace: Any, usedCores: int | None, Mode: SyncAllMode, CoreType: SyncCoreType
) -> None:
    """Meet all cores of a launch: the vector cores, the cube cores, or all of them.

    The pipes of the core are drained first. Every participant enters it equally often. The soft
    form counts arrivals in global memory. Only arrival is guaranteed: scalar data written before
    still needs dcci and dsb. Cross-core flags 11 to 14 belong to it.
    """


# ---- scalar accesses to global memory ------------------------------------------------------------


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT),
    number("scope", signed(32), note="SINGLE_CACHE_LINE or ENTIRE_DATA_CACHE"),
    number("out", signed(32), note="CACHELINE_OUT", optional=True),
    pipe=None,
    effects=lambda o: [Clean("" if o.scope.value else "ptr")],
    asm=Asm(
        syntax={"dcci": "%ptr @scope[?, @out?] {} : T(ptr)"},
        types={"ptr": "element", "scope": "dcci_cache_line", "out": "dcci_dst"},
    ),
    cpp=Cpp(casts={"scope": "cache_line_t", "out": "dcci_dst_t"}),
    example={"ptr": "GM i32 1x16", "scope": "0"},
)
def dcci(ptr: Any, scope: int, out: int | None) -> None:
    """Write a line of the scalar data cache back and forget it, or all lines.

    The cache holds 64-byte lines of global memory and is coherent with nobody: clean a line before
    others may read what was written, and before reading what others wrote. Transfers of the
    MTE and FIX pipes pass it by. On-chip memory is reached without a cache here: of a pointer into
    it there is nothing to write back.
    """


@insn(
    number("kind", signed(32), note="DSB_ALL, DSB_DDR, DSB_UB or DSB_SEQ"),
    pipe=None,
    effects=lambda o: [Fence()],
    asm=Asm(syntax={"dsb": "@kind {}"}, types={"kind": "dsb_mem"}),
    cpp=Cpp(casts={"kind": "mem_dsb_t"}),
)
def dsb(kind: int) -> None:
    """Wait until earlier scalar stores and cache write-backs have reached memory."""


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT, optional=True),
    pipe=None,
    effects=lambda o: [Clean("" if o.ptr is None else "ptr")],
    asm=Asm(
        syntax={
            "cmo.cacheinvalid": "[?%ptr single_cache_line : T(ptr)"
            "?|all '#pto.address_space<gm>'?] {}"
        },
        constants={"space": ("address_space", "gm")},
    ),
    cpp=Cpp(
        calls={
            "ptr": ("dcci({ptr}, SINGLE_CACHE_LINE, CACHELINE_OUT)",),
            "": ("dcci((__gm__ void *)0, ENTIRE_DATA_CACHE, CACHELINE_OUT)",),
        }
    ),
    forms=["", "ptr"],
)
def cacheinvalid(ptr: Any) -> None:
    """Write a line of the scalar data cache back and forget it; without an address all lines."""


@insn(
    attrs=[Attr("scope", FenceScope, FenceScope.GM)],
    pipe=None,
    rules=[
        rule(
            "scope",
            "there is a fence of global memory, and none of local memory alone",
            lambda o: o.attrs["scope"] != FenceScope.LocalMemory,
            fix="FenceScope.GM",
        )
    ],
    effects=lambda o: [Barrier(Pipe.ALL), Fence()],
    asm=Asm(syntax={"fence.barrier_all": "@scope {}"}, types={"scope": ""}),
    cpp=Cpp(calls={"": ("pipe_barrier(PIPE_ALL)", "dsb(DSB_DDR)")}),
)
def barrier_all(scope: FenceScope) -> None:
    """Complete the earlier work of every pipe, and what it stored in global memory.

    What others are told of after it, they will find there.
    """


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT),
    number("offset", signed(64), note="in elements"),
    pipe=Pipe.S,
    effects=lambda o: [Cached("ptr", writes=False)],
    asm=Asm(syntax={"load_scalar": "%ptr[%offset] {} : T(ptr) -> T(result)"}),
    cpp=Cpp(calls={"ptr offset": ("{ptr}[{offset}]",)}),
    ops={"SCALAR": Pipe.S},
    returns="ptr",
    example={"ptr": "GM i32 1x16", "offset": "0"},
)
def load_scalar(ptr: Any, offset: int) -> Any:
    """Read one element of global memory through the scalar data cache and return it."""


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT),
    number("offset", signed(64), note="in elements"),
    scalar("value", element_of("ptr"), view=View.OBJECT),
    pipe=Pipe.S,
    effects=lambda o: [Cached("ptr", writes=True)],
    asm=Asm(
        syntax={"store_scalar": "%value, %ptr[%offset] {} : T(ptr), T(value)"},
        order=("ptr", "offset", "value"),
    ),
    cpp=Cpp(calls={"ptr offset value": ("{ptr}[{offset}] = {value}",)}),
    ops={"SCALAR": Pipe.S},
    example={"ptr": "GM i32 1x16", "offset": "0"},
)
def store_scalar(ptr: Any, offset: int, value: Any) -> None:
    """Write one element of global memory through the scalar data cache.

    Others see it after dcci of its line and dsb(DSB_DDR).
    """
