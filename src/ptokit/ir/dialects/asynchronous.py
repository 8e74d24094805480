"""Handles of asynchronous transfers: sessions, contexts of prefetches, and waiting for an event."""

from __future__ import annotations

from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op
from ptokit.ir.dialects.definition import Definition, define, definitions_in
from ptokit.isa.sessions import OWN_GROUP, TEXT_CONFIG, SdmaBaseConfig

_SIZES = ("block_bytes", "comm_block_offset", "queue_num")


def _asks(name: str) -> Definition:
    return define(
        f"pto.comm.{name}",
        "event:async_event session:async_session -> completed:i1",
        "(%event, %session : T(event), T(session)) {} -> T(completed)",
        aliases=f"pto.{name}",
    )


WAIT = _asks("wait_async_event")
TEST = _asks("test_async_event")
BUILD = define(
    "pto.comm.build_async_session",
    "scratch:tile workspace:gm -> session:async_session",
    "(%scratch, %workspace : T(scratch), T(workspace)) {} -> T(session)",
    "sync_id:i32 block_bytes:i64 comm_block_offset:i64 queue_num:i32 channel_group_idx:i64",
    aliases="pto.build_async_session",
    renames="scratch",  # whoever uses the session uses the tile
)
MAKE_CONTEXT = define(
    "pto.make_prefetch_async_context",
    "workspace:gm -> context:prefetch_async_context",
    "(%workspace : T(workspace)) {} -> T(context)",
)
GET_SESSION = define(
    "pto.get_prefetch_async_session",
    "context:prefetch_async_context -> session:async_session",
    "%context {} : T(context) -> T(session)",
)


DEFINITIONS = definitions_in(globals())


def sync_id(op: Op) -> int:
    """The event id that a session is built with."""
    return _number(op, "sync_id", 0)


def config_of(op: Op) -> SdmaBaseConfig:
    """The configuration that a session is built with."""
    return SdmaBaseConfig(*(_number(op, key, getattr(TEXT_CONFIG, key)) for key in _SIZES))


def group_of(op: Op) -> int:
    """The channel group that a session is built with."""
    return _number(op, "channel_group_idx", OWN_GROUP)


def _number(op: Op, key: str, default: int) -> int:
    given = op.attrs.get(key)
    return given.value if isinstance(given, IntAttr) else default
