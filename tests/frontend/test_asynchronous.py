"""Asynchronous transfers through every door: sessions, contexts and events are values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import PtoError
from ptokit.comm import *
from ptokit.kernels import Kernel

SOURCE = np.arange(512, dtype=np.float32).reshape(8, 64)
WORKSPACE = np.zeros(40960, np.uint8)
Scratch = Tile[TileType.Vec, u8, 1, 256]
Row = GlobalTensor[f32, Shape[1, 1, 1, 1, 64], Stride[64, 64, 64, 64, 1]]


@kernel
def carries(dst, src, ws):
    scratch = Scratch()
    TASSIGN[0](scratch)
    session = AsyncSession()
    if not BuildAsyncSession(scratch, ws, session, 3, SdmaBaseConfig(64, 0, 2)):
        assert get_block_idx() < 0
    event = TPUT_ASYNC(Row(dst), Row(src), session)
    for i in range(1, get_block_num() + 4):
        event = TPUT_ASYNC(Row(ptr(dst, i * 64)), Row(ptr(src, i * 64)), session)
    if event.Wait(session):
        event = TGET_ASYNC(Row(ptr(dst, 320)), Row(ptr(src, 320)), session)
    if event.Test(session):
        TGET_ASYNC(Row(ptr(dst, 384)), Row(ptr(src, 384)), session)


@kernel(mode="auto")
def auto(dst, src, ws):
    """The scratch stays where it is for as long as the session is used."""
    scratch, tile = Scratch(), Tile[TileType.Vec, f32, 8, 64]()
    session = AsyncSession()
    BuildAsyncSession(scratch, ws, session)
    a, b = GlobalTensor(dst), GlobalTensor(src)
    TLOAD(tile, b)
    TADDS(tile, tile, 1.0)
    event = TPUT_ASYNC(Row(dst), Row(src), session)
    event.Wait(session)
    TSTORE(a, tile)


@kernel
def prefetches(dst, src, ws):
    tile = Tile[TileType.Vec, f32, 8, 64]()
    TASSIGN[256](tile)
    context = PrefetchAsyncContext(ws)
    event = TPREFETCH_ASYNC(Row(src), context)
    TLOAD(tile, GlobalTensor(src))
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(dst), tile)
    event.Wait(context.GetSession())


@kernel
def rows(dst, src, ws):
    """Half a row of a matrix is flat, whatever it is cut out of."""
    scratch, session = Scratch(), AsyncSession()
    TASSIGN[0](scratch)
    BuildAsyncSession(scratch, ws, session)
    for i in range(8):
        a, b = GlobalTensor(dst)[i : i + 1, 16:48], GlobalTensor(src)[i : i + 1, 16:48]
        TGET_ASYNC(a, b, session).Wait(session)


def run(made: Kernel, **options: Any) -> np.ndarray:
    dst = np.zeros_like(SOURCE)
    made[1](dst, SOURCE, WORKSPACE, **options)
    return dst


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("made", [carries, auto, prefetches, rows], ids=lambda k: k.name)
def test_every_door_gives_the_same_bytes(made: Kernel, target: str) -> None:
    expected = run(made, target=target, path="eager", rules="strict")
    assert expected.any()
    for engine in ("fast", "reference"):
        options = {"target": target, "path": "lowered", "engine": engine, "rules": "strict"}
        assert np.array_equal(run(made, **options), expected)
    for form in ("l2", "l3"):
        text = made.text(SOURCE, SOURCE, WORKSPACE, target=target, form=form)
        again = loads(text).entry()
        assert np.array_equal(run(again, target=target), expected), text
    assert "comm::AsyncSession session;" in made.cpp(SOURCE, SOURCE, WORKSPACE, target=target) or (
        made is prefetches
    )


def test_cpp_names_what_the_headers_name() -> None:
    text = carries.cpp(SOURCE, SOURCE, WORKSPACE, target="a2a3")
    for line in (
        "comm::BuildAsyncSession(scratch, (__gm__ uint8_t *)ws, session, 3, "
        "comm::sdma::SdmaBaseConfig{64, 0, 2}, comm::sdma::kAutoChannelGroupIdx);",
        "comm::AsyncEvent event_1 = event;",
        "event_1.Wait(session);",
    ):
        assert line in text, text
    text = prefetches.cpp(SOURCE, SOURCE, WORKSPACE, target="a2a3")
    assert "PrefetchAsyncContext context((__gm__ uint8_t *)ws);" in text
    assert "event.Wait(context.GetSession());" in text


def test_auto_mode_leaves_prefetches_out() -> None:
    def body(dst, src, ws):
        context = PrefetchAsyncContext(ws)
        event = TPREFETCH_ASYNC(GlobalTensor(src), context)
        if event.Wait(context.GetSession()):
            tile = Tile[TileType.Vec, f32, 8, 64]()
            TLOAD(tile, GlobalTensor(src))
            TSTORE(GlobalTensor(dst), tile)

    made = kernel(mode="auto")(body)
    assert "tprefetch_async" not in made.text(SOURCE, SOURCE, WORKSPACE)
    assert np.array_equal(run(made, path="lowered"), run(made, path="eager"))


GM = "memref<64xf32, #pto.address_space<gm>>"
HANDLES = "!pto.async_event, !pto.async_session"
OLD = f"""
func.func @f(%d: {GM}, %s: {GM}, %w: !pto.ptr<i8>) {{{{
  %t = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>
  %session = pto.{{p}}build_async_session(%t, %w : !pto.tile_buf<vec, 1x256xi8>, !pto.ptr<i8>)
             {{a}} -> !pto.async_session
  %e = pto.{{p}}tput_async(%d, %s, %session : {GM}, {GM}, !pto.async_session) -> !pto.async_event
  %ok = pto.{{p}}wait_async_event(%e, %session : {HANDLES}) -> i1
  return
}}}}
"""


@pytest.mark.parametrize("prefix", ["", "comm."])
def test_earlier_names_are_read_and_never_printed(prefix: str) -> None:
    made = loads(OLD.format(p=prefix, a="{sync_id = 1 : i32}")).entry()
    text = made.text(form="l2")
    assert text.count("pto.comm.") == 3
    dst = np.zeros(64, np.float32)
    made[1](dst, SOURCE[0], WORKSPACE.view(np.int8), target="a2a3")
    assert np.array_equal(dst, SOURCE[0])


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ("sync_id = 8 : i32", "BS-3"),
        ("queue_num = 49 : i32", "BS-4"),
        ("queue_num = 2 : i32, channel_group_idx = 24 : i64", "BS-5"),
        ("block_bytes = 0 : i64", "sizes"),
    ],
)
def test_text_says_why_a_session_cannot_be_used(attributes: str, code: str) -> None:
    made = loads(OLD.format(p="comm.", a=f"{{{attributes}}}")).entry()
    with pytest.raises(PtoError) as error:
        made[1](np.zeros(64, np.float32), SOURCE[0], WORKSPACE.view(np.int8), target="a2a3")
    assert code in error.value.codes


def _in_branch(dst, src, ws, n):
    scratch, session = Scratch(), AsyncSession()
    if n > 1:
        BuildAsyncSession(scratch, ws, session)


def _unbuilt(dst, src, ws, n):
    TPUT_ASYNC(Row(dst), Row(src), AsyncSession())


def _ready(dst, src, ws, n):
    async_session()


def _urma(dst, src, ws, n):
    BuildAsyncSession[DmaEngine.URMA](ws, AsyncSession())


def _shared(dst, src, ws, n):
    PrefetchAsyncContext(ws, AsyncSession())


def _floats(dst, src, ws, n):
    PrefetchAsyncContext(src)


@pytest.mark.parametrize("body", [_in_branch, _unbuilt, _ready, _urma, _shared, _floats])
def test_what_the_text_cannot_say_is_refused_at_its_line(body: Any) -> None:
    with pytest.raises(PtoError) as error:
        kernel(body)[1](SOURCE, SOURCE, WORKSPACE, 2, path="lowered", target="a5")
    assert error.value.codes == ("lower.session",)
    location = error.value.diagnostics[0].location
    first = body.__code__.co_firstlineno
    assert location is not None
    assert first < location.line <= first + 3


def test_a_block_without_channels_is_told_so() -> None:
    """With 24 queues there are two groups: the third block has none."""

    def body(found, ws):
        scratch, session = Scratch(), AsyncSession()
        TASSIGN[0](scratch)
        block = get_block_idx()
        word = GlobalTensor[i32, Shape[1, 1, 1, 1, 1], Stride[1, 1, 1, 1, 1]]
        if BuildAsyncSession(scratch, ws, session, 0, SdmaBaseConfig(64, 0, 24)):
            TNOTIFY(word(ptr(found, block)), 1, NotifyOp.Set)

    made = kernel(body)
    for path in ("eager", "lowered"):
        found = np.zeros(3, np.int32)
        made[3](found, WORKSPACE, path=path, target="a2a3")
        assert found.tolist() == [1, 1, 0]


@pytest.mark.parametrize(("columns", "is_dense"), [(64, True), (32, False)])
def test_a_prefetch_in_python_may_have_rows_that_follow_each_other(
    columns: int, is_dense: bool
) -> None:
    """Texts want one row; C++ wants one range, however it is divided."""

    @kernel
    def made(src, ws):
        context = PrefetchAsyncContext(ws)
        event = TPREFETCH_ASYNC(GlobalTensor(src)[0:8, 0:columns], context)
        event.Wait(context.GetSession())

    try:
        made[1](SOURCE, WORKSPACE, target="a2a3", rules="strict")
        codes: tuple[str, ...] = ()
    except PtoError as error:
        codes = error.codes
    assert codes == (() if is_dense else ("TPREFETCH_ASYNC.contiguous",))
