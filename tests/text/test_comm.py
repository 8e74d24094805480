"""Communication in texts: run in a world of ranks, and what the language refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.comm import World
from ptokit.from_text import Program, loads
from ptokit.ir.printer import print_module

ROWS, COLS, RANKS = 8, 16, 3
VIEW = "!pto.partition_tensor_view<8x16xf32>"
FLAT = "!pto.partition_tensor_view<1x128xf32>"
WORD = "!pto.partition_tensor_view<1xi32>"
TILE = "!pto.tile_buf<vec, 4x16xf32>"
WHOLE = "!pto.tile_buf<vec, 8x16xf32>"
BYTES = "!pto.tile_buf<vec, 1x256xi8>"


def view(name: str, rows: int = ROWS, cols: int = COLS) -> str:
    """Lines that make %NAMEp, a view of floats, of the pointer %NAME."""
    whole = f"!pto.tensor_view<{rows}x{cols}xf32>"
    part = f"!pto.partition_tensor_view<{rows}x{cols}xf32>"
    return f"""%{name}v = pto.make_tensor_view %{name}, shape = [%c{rows}, %c{cols}],
          strides = [%c{cols}, %c1] : {whole}
        %{name}p = pto.partition_view %{name}v, offsets = [%c0, %c0], sizes = [%c{rows}, %c{cols}]
          : {whole} -> {part}"""


def word(name: str) -> str:
    """Lines that make %NAMEp, a signal, of the pointer %NAME."""
    return f"""%{name}v = pto.make_tensor_view %{name}, shape = [%c1], strides = [%c1]
          : !pto.tensor_view<1xi32>
        %{name}p = pto.partition_view %{name}v, offsets = [%c0], sizes = [%c1]
          : !pto.tensor_view<1xi32> -> {WORD}"""


def program(params: str, lines: str) -> Program:
    constants = "\n".join(
        f"%c{n} = arith.constant {n} : index" for n in sorted({0, 1, 4, ROWS, COLS, 24, 128})
    )
    return loads(
        f"""func.func @f({params}) attributes {{pto.entry}} {{
        {constants}
        %one = arith.constant 1 : i32
        {lines}
        return
        }}""",
        "k.pto",
    )


def held(made: Program) -> Program:
    """The program, checked, and unchanged by printing it and reading it in both spellings."""
    assert [d.code for d in made.check("a2a3")] == []
    assert str(loads(str(made))) == str(made)
    generic = print_module(made.module, generic=True)
    assert print_module(loads(generic).module, generic=True) == generic
    return made


TOLD = f"""pto.fence.barrier_all #pto.fence_scope<gm>
        pto.comm.tnotify(%therep, %one : {WORD}, i32) {{notifyOp = #pto<notify_op atomic_add>}}
        pto.comm.twait(%herep, %one : {WORD}, i32) {{cmp = #pto<wait_cmp ge>}}"""
FLOATS = "%mine: !pto.ptr<f32>, %far: !pto.ptr<f32>"
WORDS = "%here: !pto.ptr<i32>, %there: !pto.ptr<i32>"
COPIES = {
    "one tile": f"pto.comm.tput(%farp, %minep, buf(%a) : {VIEW}, {VIEW}, {TILE})",
    "two tiles": f"pto.comm.tput(%farp, %minep, buf(%a, %b) : {VIEW}, {VIEW}, {TILE}, {TILE})",
    "sums": f"pto.comm.tput(%farp, %minep, buf(%a) : {VIEW}, {VIEW}, {TILE}) "
    "{atomicType = #pto<atomic_type atomic_add>}",
}


@pytest.mark.parametrize("copy", COPIES)
def test_each_rank_writes_to_the_next(copy: str, engine: str) -> None:
    made = held(
        program(
            f"{FLOATS}, {WORDS}",
            "\n".join(
                [
                    *map(view, ("mine", "far")),
                    *map(word, ("here", "there")),
                    f"%a = pto.alloc_tile : {TILE}",
                    f"%b = pto.alloc_tile : {TILE}",
                    COPIES[copy],
                    TOLD,
                ]
            ),
        )
    )
    world = World(RANKS)
    data, inbox, words = world.window((ROWS, COLS)), world.window((ROWS, COLS)), world.signals()
    for rank, (own, there) in enumerate(zip(data, inbox, strict=True)):
        own[...] = rank + 1
        there[...] = 100

    def turn(rank: int) -> None:
        right = (rank + 1) % RANKS
        made["f"][1](data.local, inbox[right], words[rank], words[right], engine=engine)

    world.run(turn)
    base = 100 if copy == "sums" else 0
    assert [int(array[ROWS - 1, 0]) for array in inbox] == [base + n for n in (3, 1, 2)]
    assert "comm::TPUT" in made.cpp()


def test_each_rank_reads_from_the_next() -> None:
    made = held(
        program(
            FLOATS,
            f"""{view("mine")}
            {view("far")}
            %a = pto.alloc_tile : {WHOLE}
            pto.comm.tget(%minep, %farp, buf(%a) : {VIEW}, {VIEW}, {WHOLE})""",
        )
    )
    world = World(2)
    data, inbox = world.window((ROWS, COLS)), world.window((ROWS, COLS))
    for rank, own in enumerate(data):
        own[...] = rank + 1
    world.run(lambda rank: made["f"][1](inbox.local, data[1 - rank]))
    assert [int(array[0, 0]) for array in inbox] == [2, 1]


MEMBERS = "%p0: !pto.ptr<f32>, %p1: !pto.ptr<f32>, %p2: !pto.ptr<f32>"
GROUP = "group(%p0p, %p1p, %p2p)"
LARGE = "!pto.partition_tensor_view<24x16xf32>"


def collective(line: str, rows: int) -> Program:
    return held(
        program(
            f"%own: !pto.ptr<f32>, {MEMBERS}",
            "\n".join(
                [
                    view("own", rows),
                    *(view(f"p{n}") for n in range(RANKS)),
                    *(f"%{n} = pto.alloc_tile : {TILE}" for n in ("a", "b", "c")),
                    line,
                ]
            ),
        )
    )


TYPES = f"{VIEW}, {VIEW}, {VIEW}"
COLLECTIVES = {
    "tbroadcast": (
        f"pto.comm.tbroadcast(%ownp, recv(%a), {GROUP} : {VIEW}, {TILE}, {TYPES}) {{root = 1}}",
        ROWS,
        lambda own, parts: (own, [own] * RANKS),
    ),
    "tgather": (
        f"pto.comm.tgather(%ownp, recv(%a, %b), {GROUP} : {LARGE}, {TILE}, {TILE}, {TYPES}) "
        "{root = 1 : i32}",
        RANKS * ROWS,
        lambda own, parts: (np.concatenate(parts), parts),
    ),
    "tscatter": (
        f"pto.comm.tscatter(%ownp, recv(%a), {GROUP} : {LARGE}, {TILE}, {TYPES}) {{root = 1}}",
        RANKS * ROWS,
        lambda own, parts: (own, np.split(own, RANKS)),
    ),
    "treduce": (
        f"pto.comm.treduce(%ownp, %a, recv(%b, %c), {GROUP} : {VIEW}, {TILE}, {TILE}, {TILE}, "
        f"{TYPES}) {{reduceOp = #pto<reduce_op max>, root = 1 : i32}}",
        ROWS,
        lambda own, parts: (np.maximum.reduce(parts), parts),
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_from_their_root(name: str) -> None:
    line, rows, expected = COLLECTIVES[name]
    made = collective(line, rows)
    world = World(RANKS)
    parts, own = world.window((ROWS, COLS)), np.random.default_rng(3).random((rows, COLS), "f4")
    for rank, array in enumerate(parts):
        array[...] = np.random.default_rng(rank).random((ROWS, COLS), "f4")
    wanted_own, wanted = expected(own.copy(), [a.copy() for a in parts])

    def turn(rank: int) -> None:
        if rank == 1:
            made["f"][1](own, *parts)

    world.run(turn)
    np.testing.assert_array_equal(own, wanted_own)
    np.testing.assert_array_equal(np.stack(list(parts)), np.stack(wanted))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_values_have_no_staging_tiles(name: str) -> None:
    """Data pass through a buffer, and Level 1 has none."""
    line, rows, _ = COLLECTIVES[name]
    with pytest.raises(PtoError, match=f"pto.comm.{name}: data pass through %"):
        collective(line, rows).convert("l1", "a2a3")


def test_a_signal_is_looked_at() -> None:
    made = held(
        program(
            "%here: !pto.ptr<i32>, %out: !pto.ptr<i32>",
            f"""{word("here")}
            %hit = pto.comm.ttest(%herep, %one : {WORD}, i32) {{cmp = #pto<wait_cmp eq>}} -> i1
            %n = arith.extui %hit : i1 to i32
            pto.store_scalar %n, %out[%c0] : !pto.ptr<i32>, i32""",
        )
    )
    for there, hit in ((1, 1), (2, 0)):
        out = np.full(1, 9, "i4")
        made["f"][1](np.full(1, there, "i4"), out)
        assert out[0] == hit


def test_transfers_that_an_engine_makes() -> None:
    event = "!pto.async_event"
    session = "!pto.async_session"
    made = held(
        program(
            f"{FLOATS}, %ws: !pto.ptr<i8>",
            f"""{view("mine", 1, 128)}
            {view("far", 1, 128)}
            %scratch = pto.alloc_tile : {BYTES}
            %s = pto.comm.build_async_session(%scratch, %ws : {BYTES}, !pto.ptr<i8>)
              {{sync_id = 0 : i32}} -> {session}
            %e = pto.comm.tget_async(%minep, %farp, %s : {FLAT}, {FLAT}, {session}) -> {event}
            %done = pto.comm.wait_async_event(%e, %s : {event}, {session}) -> i1
            %c = pto.make_prefetch_async_context(%ws : !pto.ptr<i8>) -> !pto.prefetch_async_context
            %q = pto.tprefetch_async(%farp, %c : {FLAT}, !pto.prefetch_async_context) -> {event}
            %t = pto.get_prefetch_async_session %c : !pto.prefetch_async_context -> {session}
            %too = pto.comm.test_async_event(%q, %t : {event}, {session}) -> i1""",
        )
    )
    world = World(2)
    data, inbox = world.window((1, 128)), world.window((1, 128))
    for rank, own in enumerate(data):
        own[...] = rank + 1
    world.run(lambda rank: made["f"][1](inbox.local, data[1 - rank], np.zeros(1 << 16, "i1")))
    assert [int(array[0, 127]) for array in inbox] == [2, 1]


def _copy(name: str, dst: str, src: str = "") -> str:
    src = src or dst
    return f"""func.func @f(%d: {dst}, %s: {src}) {{
      %t = pto.alloc_tile : {TILE}
      pto.comm.{name}(%d, %s, buf(%t) : {dst}, {src}, {TILE})
      return
    }}"""


def _posted(dst: str, src: str = "") -> str:
    src = src or dst
    return f"""func.func @f(%d: {dst}, %s: {src}, %q: !pto.async_session) {{
      %e = pto.comm.tput_async(%d, %s, %q : {dst}, {src}, !pto.async_session) -> !pto.async_event
      return
    }}"""


def _part(shape: str, kind: str = "partition_tensor_view") -> str:
    return f"!pto.{kind}<{shape}xf32>"


OPEN = _part("?x16")
REFUSED = {
    "open on a tensor_view": (_copy("tget", _part("?x16", "tensor_view")), "tget.*static shape"),
    "another signature": (_copy("tput", OPEN, _part("?x32")), "tput.*same static/dynamic shape"),
    "open on one side": (_copy("tput", OPEN, VIEW), "tput.*same static/dynamic shape"),
    "nothing to copy": (_copy("tput", _part("0x16")), "tput: every static dimension.*positive"),
    "open signal": (
        """func.func @f(%s: !pto.partition_tensor_view<?xi32>, %n: i32) {
          pto.comm.tnotify(%s, %n : !pto.partition_tensor_view<?xi32>, i32)
            {notifyOp = #pto<notify_op set>}
          return
        }""",
        "tnotify: dstSignalData has a static shape",
    ),
    "open collective": (
        f"""func.func @f(%s: {OPEN}, %p: {OPEN}, %t: {TILE}) {{
          pto.comm.tbroadcast(%s, recv(%t), group(%p) : {OPEN}, {TILE}, {OPEN}) {{root = 0 : i32}}
          return
        }}""",
        "tbroadcast: srcGlobalData has a static shape",
    ),
    "open range": (_posted(_part("?")), "tput_async: dstGlobalData has a static shape"),
    "two rows": (_posted(_part("2x32")), "tput_async.*flat contiguous logical 1D"),
    "other length": (_posted(_part("64"), _part("32")), "tput_async.*same static"),
    "prefetch of two rows": (
        """func.func @f(%v: !pto.partition_tensor_view<2x32xf32>, %c: !pto.prefetch_async_context) {
          %e = pto.tprefetch_async(%v, %c : !pto.partition_tensor_view<2x32xf32>,
            !pto.prefetch_async_context) -> !pto.async_event
          return
        }""",
        "tprefetch_async: src is a flat contiguous logical 1D",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_types_of_views_are_what_the_language_asks_for(case: str) -> None:
    text, message = REFUSED[case]
    with pytest.raises(PtoError) as error:
        loads(text)
    assert "view-extents" in error.value.codes
    assert re.search(message, str(error.value))


def test_open_sizes_of_parts_are_copied() -> None:
    """What both sides leave open is known when the program runs; of 0 rows nothing moves."""
    whole = "!pto.tensor_view<8x16xf32>"
    made = held(
        program(
            f"{FLOATS}, %n: index",
            "\n".join(
                f"""%{name}v = pto.make_tensor_view %{name}, shape = [%c8, %c16],
                  strides = [%c16, %c1] : {whole}
                %{name}p = pto.partition_view %{name}v, offsets = [%c0, %c0], sizes = [%n, %c16]
                  : {whole} -> {OPEN}"""
                for name in ("mine", "far")
            )
            + f"""
            %a = pto.alloc_tile : {TILE}
            pto.comm.tput(%farp, %minep, buf(%a) : {OPEN}, {OPEN}, {TILE})""",
        )
    )
    for rows in (8, 4, 0):
        mine, far = np.ones((ROWS, COLS), "f4"), np.zeros((ROWS, COLS), "f4")
        made["f"][1](mine, far, rows)
        assert far.sum() == rows * COLS


WRONG = {
    "PG-2": ("tbroadcast", "root = 1", "root = 3"),
    "TR-4": ("treduce", "reduceOp = #pto<reduce_op max>, ", ""),
}


@pytest.mark.parametrize("rule", WRONG)
def test_rules_of_the_table_hold_for_texts(rule: str) -> None:
    name, old, new = WRONG[rule]
    line, rows, _ = COLLECTIVES[name]
    with pytest.raises(AssertionError, match=rule):
        collective(line.replace(old, new), rows)
