"""The static proof of order: it never says more than the checker finds in a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ptokit.base.diagnostics import ProgramError
from ptokit.from_text import loads
from ptokit.ir.core import Block, Module, Op
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.parser import parse
from ptokit.isa.targets import target
from ptokit.passes.call_graph import working
from ptokit.passes.insert_sync import InsertSync
from ptokit.passes.pending import Proof
from ptokit.passes.place import Place
from ptokit.passes.touches import Touches
from tests.passes.programs import random_program
from tests.passes.test_auto_mode import run


def placed(seed: int, on: str, **options) -> Module | None:
    try:
        return Place().run(random_program(seed, on, **options), target(on))
    except ProgramError:
        return None  # it keeps a tile of a loop for ever


def is_proven(module: Module, on: str) -> bool:
    (function,) = module.functions
    proof = Proof.of(function, Touches(function, target(on)), working(module))
    proof.run()
    return not proof.found


def places(module: Module) -> list[tuple[Block, Op]]:
    body = module.functions[0].body
    assert body is not None
    blocks = [body, *(r for op in module.walk() for r in op.regions)]
    return [(block, op) for block in blocks for op in block.ops if orders_pipes(op)]


def is_balanced(op: Op) -> bool:
    """Whether it can go by itself: a flag without its other half only says that."""
    return op.name == "pto.barrier"


@pytest.mark.parametrize("seed", range(60))
def test_what_was_inserted_is_proven(seed: int) -> None:
    on = ("a2a3", "a5")[seed % 2]
    module = placed(seed, on)
    if module is not None:
        assert is_proven(InsertSync(is_reduced=False).run(module, target(on)), on)
        assert is_proven(InsertSync().run(module, target(on)), on)


@pytest.mark.parametrize("seed", range(40))
def test_where_the_checker_complains_there_is_no_proof(seed: int) -> None:
    on = ("a2a3", "a5")[seed % 2]
    module = placed(seed, on)
    if module is None:
        return
    ordered = InsertSync().run(module, target(on))
    for block, op in [each for each in places(ordered) if is_balanced(each[1])][:3]:
        index = block.ops.index(op)
        del block.ops[index]
        try:
            run(ordered, on, "manual")
        except ProgramError:
            assert not is_proven(ordered, on)
        block.ops.insert(index, op)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_more_is_waited_for_than_before(seed: int) -> None:
    on = ("a2a3", "a5")[seed % 2]
    module = placed(seed, on)
    if module is None:
        return
    every = places(InsertSync(is_reduced=False).run(module, target(on)))
    fewer = places(InsertSync().run(module, target(on)))
    assert len(fewer) <= len(every)
    sets, waits = (
        sum(op.name == f"pto.{what}_flag" for _, op in fewer) for what in ("set", "wait")
    )
    assert sets == waits


def test_functions_that_are_called_one_after_the_other_meet_once() -> None:
    """Each of them ends with a barrier: none is needed between the calls."""
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    made = loads(f"""module {{
      func.func private @g(%s: f32) {{
        %t = pto.alloc_tile : {tile}
        pto.texpands ins(%s : f32) outs(%t : {tile})
        return
      }}
      func.func @f(%s: f32) attributes {{pto.entry}} {{
        func.call @g(%s) : (f32) -> ()
        func.call @g(%s) : (f32) -> ()
        %t = pto.alloc_tile : {tile}
        pto.texpands ins(%s : f32) outs(%t : {tile})
        func.call @g(%s) : (f32) -> ()
        return
      }}
    }}""").convert("l3", sync="insert")
    function = made.module.function("f")
    assert function is not None
    names = [op.name for op in function.walk() if op.insn is not None or "call" in op.name]
    assert names == [
        *("func.call", "func.call", "pto.texpands", "pto.barrier", "func.call", "pto.barrier")
    ]
    made["f"][1](1.0)


FLAG = "[<PIPE_{}>, <PIPE_{}>, <EVENT_ID0>]"
THERE, BACK = FLAG.format("MTE2", "V"), FLAG.format("V", "MTE2")


@pytest.mark.parametrize(
    ("acts", "proven"),
    [
        (("set there", "wait there"), True),
        (("set there", "set there", "wait there"), False),  # nobody has taken the first
        (("set there", "wait there", "set there", "wait there"), False),  # it may not be over yet
        (("set there", "wait there", "set back", "wait back", "set there", "wait there"), True),
        (("set back", "set there", "wait there", "wait back", "set there", "wait there"), False),
        (("set there", "if", "wait there", "set back", "wait back", "}", "set there"), False),
        (("set there", "if", "}", "wait there", "set back", "wait back", "set there"), True),
    ],
)
def test_a_flag_is_set_again_when_its_last_wait_is_known_to_be_over(
    acts: tuple[str, ...], proven: bool
) -> None:
    ways = (("there", THERE), ("back", BACK))
    flags = {f"{a} {way}": f"pto.{a}_flag{flag}" for a in ("set", "wait") for way, flag in ways}
    lines = [(flags | {"if": "scf.if %c {"}).get(act, act) for act in acts]
    text = "\n".join(["module {", "func.func @f(%c: i1) {", *lines, "return", "}", "}"])
    assert is_proven(parse(text), "a2a3") is proven


class Forgetful(dict[Any, Any]):
    """Of no loop it is known that it was come to before."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def found(module: Module, on: str, remembers: bool) -> tuple[dict[Op, int], int]:
    (function,) = module.functions
    proof = Proof.of(function, Touches(function, target(on)), working(module))
    if not remembers:
        proof._entered = Forgetful()
    proof.run()
    return proof.found, proof.steps


def nest(depth: int, gone: int) -> Module:
    """Loops in each other with work at every level, ordered; every `gone`-th order is missing."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
    import growth_passes

    steps = (
        f"\n scf.for %i{n} = %c0 to %n step %c1 {{{''.join(growth_passes.steps(3 * n, 2, 7))}"
        for n in range(depth)
    )
    text = growth_passes.program("".join(steps) + "}" * depth, 7)
    module = Place().run(parse(text), target("a2a3"))
    ordered = InsertSync(is_reduced=False).run(module, target("a2a3"))
    for number, (block, op) in enumerate(places(ordered)):
        if gone and number % gone == 0:
            block.ops.remove(op)
    return ordered


@pytest.mark.parametrize("gone", [0, 2, 3, 7, 31])
def test_loops_that_are_come_to_again_are_remembered(gone: int) -> None:
    """What is found is the same, and twelve loops are not gone through two to the twelfth times."""
    module = nest(6, gone)
    same, quick = found(module, "a2a3", True)
    expected, slow = found(module, "a2a3", False)
    assert same == expected
    assert bool(expected) is bool(gone)
    assert quick < slow
    _, deep = found(nest(12, gone), "a2a3", True)
    assert deep < 20 * quick


@pytest.mark.parametrize("seed", range(60, 120))
def test_what_is_remembered_changes_nothing(seed: int) -> None:
    on = ("a2a3", "a5")[seed % 2]
    module = placed(seed, on)
    if module is not None:
        ordered = InsertSync(is_reduced=False).run(module, target(on))
        for number, (block, op) in enumerate(places(ordered)):
            if number % 3 == seed % 3:
                block.ops.remove(op)
        assert found(ordered, on, True)[0] == found(ordered, on, False)[0]
