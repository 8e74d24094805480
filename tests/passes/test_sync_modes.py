"""The ways to order pipes: each is right, says what it leaves alone, and refuses what it must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import ProgramError, UsageError
from ptokit.from_text import loads
from ptokit.frontend.launch import Schedule
from ptokit.ir.core import Block, Module
from ptokit.ir.ordering import effects_of
from ptokit.isa.effects import Pipe
from ptokit.isa.targets import target
from ptokit.passes.finish import Steps, finish
from ptokit.passes.place import Place
from ptokit.passes.sync_modes import MODES, Mode
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
