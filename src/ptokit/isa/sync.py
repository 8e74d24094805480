"""Ordering: flags between the pipes of a core, barriers, and signals between cores.

These records move no data; each says which pipe signals or waits and leaves the rest to the
machine. In auto mode the compiler orders everything itself and they do nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.enums import SyncAllMode, SyncCoreType
from ptokit.isa.opcodes import OpCode
from ptokit.isa.spec import Attr, Operand, Pipe, Rule, View, insn, rule, scalar

EVENT_IDS = 8
_BARRIERS = {  # the pipes TSYNC<Op> may drain
    "a5": (Pipe.MTE2, Pipe.MTE3, Pipe.ALL),
    "kirin9030": (Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX, Pipe.ALL),
    "kirinx90": (Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX, Pipe.ALL),
}
_PAIR = {"src_pipe": "3", "dst_pipe": "1", "event_id": "0"}


def _number(name: str, note: str = "", **more: Any) -> Operand:
    return scalar(name, view=View.OBJECT, note=note, **more)


def _is_pipe(name: str) -> Rule:
    return rule(
        f"{name.replace('_', '-')}",
        f"{name} is a pipe (PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX)",
        lambda o: o[name].value in (*range(6), 7),
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
        _between("event_id", EVENT_IDS - 1, "the event id"),
    ]


# ---- inside a core -------------------------------------------------------------------------------


@insn(
    _number("src_pipe"),
    _number("dst_pipe"),
    _number("event_id"),
    pipe=None,
    rules=_flag_rules(),
    asm=None,
    example=_PAIR,
)
def set_flag(src_pipe: int, dst_pipe: int, event_id: int, ctx: Any) -> None:
    """Raise a flag from one pipe for another, behind all earlier work of the first.

    Per (source, destination, id) sets and waits alternate, starting with a set; a second set
    before the wait, or a set that nobody waits for, is an error of the program.
    """
    if ctx.mode == "manual":
        ctx.machine.sync.set_flag(Pipe(src_pipe), Pipe(dst_pipe), event_id, ctx.site)


@insn(
    _number("src_pipe"),
    _number("dst_pipe"),
    _number("event_id"),
    pipe=None,
    rules=_flag_rules(),
    asm=None,
    example=_PAIR,
)
def wait_flag(src_pipe: int, dst_pipe: int, event_id: int, ctx: Any) -> None:
    """Hold later work of the destination pipe until the flag is raised, and lower it.

    Other pipes go on; a wait of PIPE_S stops the issue of everything.
    """
    if ctx.mode == "manual":
        ctx.machine.sync.wait_flag(Pipe(src_pipe), Pipe(dst_pipe), event_id, ctx.site)


@insn(
    _number("pipe"),
    pipe=None,
    rules=[
        rule("pipe", "pipe is one of the pipes, or PIPE_ALL", lambda o: o.pipe.value in range(8)),
    ],
    asm=None,
)
def pipe_barrier(pipe: int, ctx: Any) -> None:
    """Start later work of a pipe only when all its earlier work is complete.

    PIPE_ALL does so for all pipes of the core together. One core only; other pipes are not
    ordered by the barrier of one.
    """
    if ctx.mode == "manual":
        ctx.machine.sync.barrier(Pipe(pipe), ctx.site)


@insn(
    attrs=[Attr("OpCode", OpCode, None, "the operation class whose pipe is drained")],
    pipe=None,
    rules=[
        rule(
            "SA-0096",
            "TSYNC drains a pipe that this target can drain by itself",
            lambda o: (
                o.attrs["OpCode"] is None or o.attrs["OpCode"].pipe in _BARRIERS[o.target.name]
            ),
            " ".join(_BARRIERS),
            fix="order the pipes with an Event or flags instead",
        ),
    ],
    asm=None,
)
def TSYNC(OpCode: Any, ctx: Any) -> None:
    """Wait for events, `TSYNC(e0, e1)`, or drain the pipe of an operation, `TSYNC[Op.TADD]()`.

    With events, each is waited for from left to right; without any nothing happens.
    """
    if OpCode is not None and ctx.mode == "manual":
        ctx.machine.sync.barrier(OpCode.pipe, ctx.site)


@insn(
    _number("pipe"),
    _number("buf_id"),
    _number("mode", optional=True),
    pipe=None,
    targets="a2a3 a5",
    rules=[_is_pipe("pipe"), _between("buf_id", 31, "the buffer id")],
    asm=None,
)
def get_buf(pipe: int, buf_id: int, mode: int, ctx: Any) -> None:
    """Acquire a numbered buffer for a pipe: its later work waits for whoever holds it.

    The pipes that acquired the same buffer earlier in program order must have released it. No
    priming before a loop and no draining behind it; a pipe holds a buffer at most once.
    """
    if ctx.mode == "manual":
        ctx.machine.sync.get_buffer(Pipe(pipe), buf_id, ctx.site)


@insn(
    _number("pipe"),
    _number("buf_id"),
    _number("mode", optional=True),
    pipe=None,
    targets="a2a3 a5",
    rules=[_is_pipe("pipe"), _between("buf_id", 31, "the buffer id")],
    asm=None,
)
def rls_buf(pipe: int, buf_id: int, mode: int, ctx: Any) -> None:
    """Release a numbered buffer, behind the work of the pipe so far; once per get_buf."""
    if ctx.mode == "manual":
        ctx.machine.sync.release_buffer(Pipe(pipe), buf_id, ctx.site)


# ---- between cores -------------------------------------------------------------------------------


@insn(_number("addr"), pipe=None, targets="a2a3", asm=None)
def set_ffts_base_addr(addr: int, ctx: Any) -> None:
    """Tell the core where its cross-core signals go; once, before the first of them."""
    ctx.registers["FFTS_BASE"] = addr


def cross_core_message(mode: int, id: int, base: int = 1) -> int:
    """The message of a cross-core signal: mode in bits 5..4, flag id in bits 11..8."""
    return base + ((mode & 3) << 4) + ((id & 15) << 8)


@insn(
    _number("pipe"),
    _number("msg", "getFFTSMsg(mode, id)"),
    pipe=None,
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
    asm=None,
    example={"msg": "0x0121"},
    helpers={"message": cross_core_message},
)
def ffts_cross_core_sync(pipe: int, msg: int, ctx: Any) -> None:
    """Signal other cores, behind the earlier work of a pipe.

    Mode 2 reaches the cluster: both vector cores when the cube core signals; the cube core, once
    both vector cores have signalled. Modes 0 and 1 are meetings: of all cores of the kind, of the
    two vector cores of the cluster; each gets its signal when all have given theirs.
    """
    mode, flag = msg >> 4 & 3, msg >> 8 & 15
    if ctx.mode == "manual":
        ctx.machine.sync.cross_core(Pipe(pipe), mode, flag, ctx.site)


@insn(
    _number("pipe", optional=True),
    _number("id"),
    pipe=None,
    targets="a2a3 a5",
    forms=["id", "pipe id"],
    rules=[_between("id", 15, "the cross-core flag")],
    asm=None,
)
def wait_flag_dev(pipe: int | None, id: int, ctx: Any) -> None:
    """Stop the scalar unit until a cross-core signal has come, and take it.

    Nothing later is issued on any pipe; queued work goes on. The cube core needs the signal of
    both vector cores.
    """
    if ctx.mode == "manual":
        ctx.machine.sync.wait_device(id, ctx.site, checked=True)


@insn(
    _number("pipe"),
    _number("id", "0..15; seen from the cube core 16..31 is vector core 1"),
    pipe=None,
    targets="a5",
    rules=[_is_pipe("pipe"), _between("id", 31, "the flag")],
    asm=None,
)
def set_intra_block(pipe: int, id: int, ctx: Any) -> None:
    """Signal one core of the cluster, behind the earlier work of a pipe.

    The cube core reaches vector core 0 with id and vector core 1 with id + 16; a vector core
    always reaches the cube core with the plain id.
    """
    if ctx.mode == "manual":
        ctx.machine.sync.to_core(Pipe(pipe), id, ctx.site)


@insn(
    _number("pipe"),
    _number("id", "0..15; seen from the cube core 16..31 is vector core 1"),
    pipe=None,
    targets="a5",
    rules=[_is_pipe("pipe"), _between("id", 31, "the flag")],
    asm=None,
)
def wait_intra_block(pipe: int, id: int, ctx: Any) -> None:
    """Hold one pipe until a core of the cluster has signalled, and take the signal."""
    if ctx.mode == "manual":
        ctx.machine.sync.wait_core(Pipe(pipe), id, ctx.site)


@insn(
    Operand("gmWorkspace", "inout", kinds=("global",), view=View.OBJECT, optional=True),
    _number("usedCores", "how many cores take part; 0: all of the launch", optional=True),
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
    ],
    asm=None,
)
def SYNCALL(
    gmWorkspace: Any, usedCores: int | None, Mode: SyncAllMode, CoreType: SyncCoreType, ctx: Any
) -> None:
    """Meet all cores of a launch: the vector cores, the cube cores, or all of them.

    The pipes of the core are drained first. Every participant enters it equally often. The soft
    form counts arrivals in global memory. Only arrival is guaranteed: scalar data written before
    still needs dcci and dsb. Cross-core flags 11 to 14 belong to it.
    """
    if ctx.mode != "manual":
        return
    kinds = {
        SyncCoreType.AIVOnly: ("vector",),
        SyncCoreType.AICOnly: ("cube",),
        SyncCoreType.Mix: ("cube", "vector"),
    }[CoreType]
    if Mode == SyncAllMode.Soft:
        ctx.machine.sync.meet_at_counter(gmWorkspace, usedCores or 0, kinds, ctx.site)
    else:
        ctx.machine.sync.meet(kinds, ctx.site)


# ---- scalar accesses to global memory ------------------------------------------------------------


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT),
    _number("scope", "SINGLE_CACHE_LINE or ENTIRE_DATA_CACHE"),
    _number("out", "CACHELINE_OUT", optional=True),
    pipe=None,
    asm=None,
    example={"ptr": "GM i32 1x16", "scope": "0"},
)
def dcci(ptr: Any, scope: int, out: int | None, ctx: Any) -> None:
    """Write a line of the scalar data cache back and forget it, or all lines.

    The cache holds 64-byte lines of global memory and is coherent with nobody: clean a line before
    others may read what was written, and before reading what others wrote. Transfers of the
    MTE and FIX pipes pass it by.
    """
    at = ptr.data() if hasattr(ptr, "point_to") else ptr
    ctx.machine.sync.clean_cache(None if scope else at, ctx.site)


@insn(_number("kind", "DSB_DDR, DSB_UB or DSB_ALL"), pipe=None, asm=None)
def dsb(kind: int, ctx: Any) -> None:
    """Wait until earlier scalar stores and cache write-backs have reached memory."""
    ctx.machine.sync.fence(ctx.site)


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT),
    _number("offset", "in elements"),
    pipe=Pipe.S,
    asm=None,
    ops={"SCALAR": Pipe.S},
    returns="ptr",
    example={"ptr": "GM i32 1x16", "offset": "0"},
)
def load_scalar(ptr: Any, offset: int, ctx: Any) -> Any:
    """Read one element of global memory through the scalar data cache and return it."""
    return ctx.machine.sync.scalar_access(ptr, offset, None, ctx)


@insn(
    Operand("ptr", "in", kinds=("pointer", "global"), view=View.OBJECT),
    _number("offset", "in elements"),
    _number("value"),
    pipe=Pipe.S,
    asm=None,
    ops={"SCALAR": Pipe.S},
    example={"ptr": "GM i32 1x16", "offset": "0"},
)
def store_scalar(ptr: Any, offset: int, value: Any, ctx: Any) -> None:
    """Write one element of global memory through the scalar data cache.

    Others see it after dcci of its line and dsb(DSB_DDR).
    """
    ctx.machine.sync.scalar_access(ptr, offset, np.asarray(value), ctx)
