"""The ways to order pipes: each is right, says what it leaves alone, and refuses what it must."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError, PtoWarning, UsageError
from ptokit.from_text import loads
from ptokit.frontend.launch import Schedule
from ptokit.ir.core import Block, Module
from ptokit.ir.ordering import effects_of
from ptokit.isa.effects import Pipe
from ptokit.isa.targets import target
from ptokit.passes.finish import finish
from ptokit.passes.place import Place
from ptokit.passes.steps import MODES, Mode, Steps
from tests.passes.evaluate import Evaluator
from tests.passes.programs import random_program
from tests.passes.test_auto_mode import arguments, run
from tests.passes.test_finish import HEAD, PARTS, TILE, VIEW, flags, program, ran
from tests.passes.test_pending import is_proven

ORDERING = ("graph-solver", "graph-solver:1", "canonical", "bufid", "barrier-all")


def names(module: Module) -> list[str]:
    return [op.name for op in module.walk()]


def ordered(module: Module, on: str, mode: str) -> Module | None:
    try:
        return finish(Place().run(module, target(on)), target(on), Steps(sync=mode))
    except ProgramError as error:
        if {d.code for d in error.diagnostics} <= {"place.carried", "sync.canonical"}:
            return None  # it keeps a tile of a loop for ever, or needs too many ids
        raise


@pytest.mark.parametrize("mode", ORDERING)
@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_programs(mode: str, start: int) -> None:
    done = 0
    for seed in range(start, start + 20):
        on = "a5" if mode == "bufid" else ("a2a3", "a5")[seed % 2]
        module = random_program(seed, on, levels=1 if mode == "canonical" else 3)
        made = ordered(module, on, mode)
        if made is None:
            continue
        done += 1
        wanted = arguments()
        Evaluator().run(module, wanted)
        assert is_proven(made, on)
        for schedule in (None, Schedule(seed)):
            got = run(made, on, "manual", schedule)
            assert all(map(np.array_equal, got, wanted)), f"seed {seed} under {schedule}"
    assert done >= 10


# ---- buffer ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_buffers_are_taken_in_order_and_never_twice(seed: int) -> None:
    made = ordered(random_program(seed, "a5"), "a5", "bufid")
    if made is None:
        return
    blocks = [made.functions[0].body, *(r for op in made.walk() for r in op.regions)]
    for block in blocks:
        assert isinstance(block, Block)
        held: list[Any] = []
        for op in block.ops:
            if op.name == "pto.get_buf":
                (effect,) = effects_of(op)
                assert effect not in held
                held.append(effect)
                numbers = [each.token.id for each in held]
                assert numbers == sorted(numbers)
                assert numbers[-1] < 32
            elif op.name == "pto.rls_buf":
                (effect,) = effects_of(op)
                assert held.pop() == (effect.pipe, effect.token)
        assert not held


def test_buffer_ids_order_no_global_memory() -> None:
    """What is stored and loaded again has flags as well."""
    store = f"  pto.tstore ins(%a : {TILE}) outs(%px : {VIEW})\n"
    load = f"  pto.tload ins(%px : {VIEW}) outs(%b : {TILE})\n"
    lines = [
        "  %next = arith.constant 8192 : i64\n  %s = arith.constant 1.0 : f32\n",
        f"  %a = pto.alloc_tile addr = %at : {TILE}\n  %b = pto.alloc_tile addr = %next : {TILE}\n",
        f"  pto.texpands ins(%s : f32) outs(%a : {TILE})\n",
        store + load,
        f"  pto.tstore ins(%b : {TILE}) outs(%pz : {VIEW})\n  return\n}}\n",
    ]
    made = loads(HEAD + PARTS + "".join(lines)).convert("l3", "a5", sync="bufid")
    text = str(made)
    assert "pto.set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]" in text
    assert text.count("get_buf") == text.count("rls_buf") >= 4
    assert (ran(made["f"], target="a5", sync="keep") == 1).all()


def test_only_a5_has_buffer_ids() -> None:
    made = program(placed=True, ordered=False)
    with pytest.raises(UsageError, match="requires --pto-arch=a5"):
        made.convert("l3", "a2a3", sync="bufid")


# ---- what is left alone --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["insert", "graph-solver", "bufid"])
def test_a_function_with_flags_stays_as_it_is_and_says_so(mode: str) -> None:
    made = program(placed=True, ordered=True)
    with pytest.warns(UserWarning, match=r"sync\.kept"):
        kept = made.convert("l3", "a5", sync=mode)
    assert str(kept) == str(made.convert("l3", "a5", sync="keep"))


@pytest.mark.parametrize("mode", [None, "keep", "insert", "graph-solver"])
def test_tiles_of_a_function_with_flags_are_not_laid_over_each_other(mode: str | None) -> None:
    """Its flags do not order what came to share bytes: a load into them would race with a use."""
    tiles = "".join(f"  %{name} = pto.alloc_tile : {TILE}\n" for name in "tuo")
    body = f"""  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})
{flags("MTE2", "V")}  pto.tabs ins(%t : {TILE}) outs(%o : {TILE})
  pto.tload ins(%px : {VIEW}) outs(%u : {TILE})
{flags("MTE2", "V", 1)}  pto.barrier <PIPE_V>
  pto.tsub ins(%o, %u : {TILE}, {TILE}) outs(%o : {TILE})
{flags("V", "MTE3")}  pto.tstore ins(%o : {TILE}) outs(%pz : {VIEW})
  return
}}
"""
    made = loads(HEAD + PARTS + tiles + body, "k.pto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PtoWarning)  # sync.kept
        assert (ran(made["f"], sync=mode) == 2).all()


def test_barriers_alone_do_not_order_a_function() -> None:
    text = str(program(placed=True, ordered=False)).replace(
        "pto.tabs", "pto.barrier <PIPE_V>\n    pto.tabs"
    )
    made = loads(text).convert("l3", sync="insert")
    assert "pto.set_flag" in names(made.module)


@pytest.mark.parametrize("mode", sorted({*MODES} - {"keep"}))
def test_no_mode_goes_with_tiles_bound_while_it_runs(mode: str) -> None:
    lines = [
        f"  %d = pto.declare_tile -> {TILE}\n  %t = pto.tassign %d, %at : {TILE} -> {TILE}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})\n  return\n}}\n",
    ]
    with pytest.raises(ProgramError) as caught:
        loads(HEAD + PARTS + "".join(lines)).convert("l3", "a5", sync=mode)
    assert caught.value.codes == ("sync.bound",)


@pytest.mark.parametrize("word", ["", "inserted", "canonical:0", "canonical:9", "bufid:x"])
def test_ways_that_there_are_not(word: str) -> None:
    with pytest.raises(UsageError):
        Mode.of(word)


# ---- canonical -----------------------------------------------------------------------------------

REFUSED = {
    "manual": flags("MTE2", "V") + "  pto.barrier <PIPE_V>\n",
    "fence": "  pto.fence.barrier_all #pto.fence_scope<gm>\n",
    "call": "  func.call @g() : () -> ()\n",
    "region": "  scf.execute_region {\n    scf.yield\n  }\n",
}


@pytest.mark.parametrize("what", REFUSED)
def test_canonical_refuses_what_it_cannot_answer_for(what: str) -> None:
    lines = f"  %t = pto.alloc_tile addr = %at : {TILE}\n"
    lines += f"  pto.tload ins(%px : {VIEW}) outs(%t : {TILE})\n{REFUSED[what]}  return\n}}\n"
    other = "func.func private @g() {\n  return\n}\n"
    made = loads(HEAD.replace(") {", ") attributes {pto.entry} {", 1) + PARTS + lines + other)
    with pytest.raises(ProgramError) as caught:
        made.convert("l3", sync="canonical")
    assert set(caught.value.codes) == {"sync.canonical"}


def test_canonical_wants_ids_enough() -> None:
    """Two loads, each of which is waited for: one id of a pair is not enough, and no barrier."""
    tiles = "".join(
        f"  %at{n} = arith.constant {n * 4096} : i64\n"
        f"  %t{n} = pto.alloc_tile addr = %at{n} : {TILE}\n"
        f"  pto.tload ins(%px : {VIEW}) outs(%t{n} : {TILE})\n"
        for n in range(3)
    )
    uses = "".join(f"  pto.tabs ins(%t{n} : {TILE}) outs(%t{n} : {TILE})\n" for n in range(3))
    made = loads(HEAD + PARTS + tiles + uses + "  return\n}\n")
    assert "pto.set_flag" in names(made.convert("l3", sync="canonical:3").module)
    with pytest.raises(ProgramError, match="more event ids"):
        made.convert("l3", sync="canonical:1")
    text = str(made.convert("l3", sync="graph-solver:1"))
    assert text.count("PIPE_ALL") > 1  # where ids run out, and at the end


def apart(pairs: str) -> str:
    """A store to one array and a load from another, whose functions promise something."""
    lines = [
        "  %next = arith.constant 8192 : i64\n",
        f"  %a = pto.alloc_tile addr = %at : {TILE}\n  %b = pto.alloc_tile addr = %next : {TILE}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%a : {TILE})\n",
        f"  pto.tstore ins(%a : {TILE}) outs(%pz : {VIEW})\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%b : {TILE})\n",
        f"  pto.tstore ins(%b : {TILE}) outs(%pz : {VIEW})\n  return\n}}\n",
    ]
    attrs = f" attributes {{pto.noalias_pairs = {pairs}}}" if pairs else ""
    return HEAD.replace(") {", f"){attrs} {{", 1) + PARTS + "".join(lines)


@pytest.mark.parametrize(
    ("mode", "pairs", "waits"),
    [
        ("canonical", "", True),
        ("canonical", "array<i64: 1, 0>", False),
        ("insert", "", False),
        ("canonical", "array<i64: 0, 1>", False),
    ],
)
def test_arrays_may_overlap_unless_that_is_promised(mode: str, pairs: str, waits: bool) -> None:
    text = str(loads(apart(pairs)).convert("l3", sync=mode))
    assert ("wait_flag[<PIPE_MTE3>, <PIPE_MTE2>" in text) == waits


@pytest.mark.parametrize(
    ("pairs", "what"),
    [
        ('"no"', "array of i64"),
        ("array<i32: 0, 1>", "array of i64"),
        ("array<i64: 0>", "even number"),
        ("array<i64: 0, 2>", "outside 0..1"),
        ("array<i64: 1, 1>", "and itself"),
        ("array<i64: 0, 1, 1, 0>", "repeated"),
    ],
)
def test_promises_that_are_none(pairs: str, what: str) -> None:
    (found,) = loads(apart(pairs)).check()
    assert found.code == "function-attribute"
    assert what in found.message


def test_numbers_have_no_bytes_to_overlap() -> None:
    text = "func.func @f(%p: !pto.ptr<f32>, %n: i64) attributes {pto.noalias_pairs = "
    (found,) = loads(text + "array<i64: 0, 1>} {\n  return\n}\n").check()
    assert "global memory" in found.message


# ---- the end of a function -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "last"),
    [
        ("barrier-all", "PIPE_ALL"),
        ("default", "PIPE_ALL"),
        ("mte3-to-s-event0", "MTE3"),
        ("setwait-mte3-to-s-event0", "MTE3"),
        ("MTE3_TO_S_EVENT0", "MTE3"),
    ],
)
def test_a_function_ends_as_it_asks_to(word: str, last: str) -> None:
    attrs = f' attributes {{pto.auto_sync_tail_hint = "{word}"}}'
    text = str(program(placed=True, ordered=False)).replace(") {", f"){attrs} {{", 1)
    made = loads(text)
    assert (ran(made["f"], sync="insert") == 1).all()
    body = made.convert("l3", sync="insert").module.functions[0].body
    assert body is not None
    assert last in str(body.ops[-2].attrs)
    if last == "MTE3":
        ends = [str(v) for op in body.ops[-3:-1] for v in op.attrs.values()]
        assert sum("EVENT_ID0" in end for end in ends) == 2
        assert f"PIPE_{Pipe.S.name}>" in str(ends)


def test_ends_that_nobody_knows_are_refused() -> None:
    text = 'func.func @f() attributes {pto.auto_sync_tail_hint = "none"} {\n  return\n}\n'
    (found,) = loads(text).check()
    assert found.code == "function-attribute"


# ---- slots of several tiles ----------------------------------------------------------------------

SLOTS = "!pto.multi_tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64, count=3>"


def two_slots(first: str, second: str) -> str:
    """One slot is loaded and another one made, by two pipes; both are chosen while it runs."""
    lines = [
        f"  %m = pto.alloc_multi_tile addr = %at : {SLOTS}\n  %s = arith.constant 1.0 : f32\n",
        "  %c3 = arith.constant 3 : index\n  %c4 = arith.constant 4 : index\n",
        "  %i1 = arith.addi %n, %c1 : index\n  %i4 = arith.addi %n, %c4 : index\n",
        *(f"  %s{each} = arith.remui %{each}, %c3 : index\n" for each in ("n", "i1", "i4")),
        f"  %a = pto.multi_tile_get %m[%s{first}] : {SLOTS} -> {TILE}\n",
        f"  %b = pto.multi_tile_get %m[%s{second}] : {SLOTS} -> {TILE}\n",
        f"  pto.tload ins(%px : {VIEW}) outs(%a : {TILE})\n",
        f"  pto.texpands ins(%s : f32) outs(%b : {TILE})\n",
        "  return\n}\n",
    ]
    return (
        HEAD.replace("%z: !pto.ptr<f32>", "%z: !pto.ptr<f32>, %n: index") + PARTS + "".join(lines)
    )


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [("n", "n", True), ("n", "i1", False), ("i1", "i4", True), ("n", "i4", False)],
)
def test_slots_are_compared_modulo_their_number(first: str, second: str, meet: bool) -> None:
    made = loads(two_slots(first, second)).convert("l3", sync="insert")
    assert ("pto.wait_flag" in names(made.module)) == meet
    x = np.ones((16, 64), np.float32)
    for number in range(5):
        made["f"][1](x, x.copy(), number, sync="keep")


def test_slots_of_a_loop_meet_in_other_rounds() -> None:
    text = two_slots("n", "i1").replace(
        "  %i1 = ", "  scf.for %n2 = %c0 to %n step %c1 {\n  %i1 = "
    )
    text = text.replace("%n, %c1", "%n2, %c1").replace("%n, %c4", "%n2, %c4")
    text = text.replace("remui %n,", "remui %n2,").replace("  return", "  }\n  return")
    made = loads(text).convert("l3", sync="insert")
    assert "pto.wait_flag" in names(made.module)
    x = np.ones((16, 64), np.float32)
    for seed in (None, 1, 2):
        made["f"][1](x, x.copy(), 7, sync="keep", seed=seed)


# ---- what instructions do beside their results ---------------------------------------------------


@pytest.mark.parametrize(("on", "waits"), [("a2a3", True), ("a5", False)])
def test_a_source_that_is_destroyed_is_written(on: str, waits: bool) -> None:
    """On A2/A3 a remainder of i32 loses its sources: a store of one must be over before."""
    where = "".join(f"  %at{n} = arith.constant {n * 8192} : i64\n" for n in range(4))
    tiles = "".join(f"  %t{n} = pto.alloc_tile addr = %at{n} : {TILE}\n" for n in range(4))
    loaded = "".join(f"  pto.tload ins(%px : {VIEW}) outs(%t{n} : {TILE})\n" for n in range(2))
    lines = [
        where + tiles + loaded,
        f"  pto.tstore ins(%t0 : {TILE}) outs(%pz : {VIEW})\n",
        f"  pto.trem ins(%t0, %t1, %t3 : {TILE}, {TILE}, {TILE}) outs(%t2 : {TILE})\n",
        "  return\n}\n",
    ]
    made = loads((HEAD + PARTS + "".join(lines)).replace("f32", "i32"))
    text = str(made.convert("l3", on, sync="insert"))
    assert ("wait_flag[<PIPE_MTE3>, <PIPE_V>" in text) == waits


def test_ids_that_an_instruction_raises_inside_are_not_used_around_it() -> None:
    """TSHL with a count per element lets the scalar unit wait for the vector unit, by flag 0."""
    tile = "!pto.tile_buf<loc=vec, dtype=i16, rows=16, cols=64>"
    lines = [
        "".join(f"  %at{n} = arith.constant {n * 8192} : i64\n" for n in range(3)),
        "".join(f"  %t{n} = pto.alloc_tile addr = %at{n} : {tile}\n" for n in range(3)),
        "  %one = arith.constant 1 : i16\n",
        f"  pto.texpands ins(%one : i16) outs(%t0 : {tile})\n",
        f"  pto.texpands ins(%one : i16) outs(%t1 : {tile})\n",
        f"  pto.tshl ins(%t0, %t1 : {tile}, {tile}) outs(%t2 : {tile})\n",
        f"  %v = pto.tgetval ins(%t0, %c0 : {tile}, index) outs : i16\n  return\n}}\n",
    ]
    text = str(loads(HEAD + PARTS + "".join(lines)).convert("l3", "a2a3", sync="insert"))
    used = [line for line in text.splitlines() if "<PIPE_V>, <PIPE_S>" in line]
    assert not any("EVENT_ID0" in line for line in used)
