"""Scopes of the vector unit: one instruction from outside, an order of their own inside."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.engines.verdicts import reads_no_data
from ptokit.from_text import loads
from ptokit.machine.scheduler import Schedule
from tests.micro.programs import mask, numbers, register, run, scope

V, M = register("f32"), mask("f32")
LOAD = f"%x0 = pto.vlds %x[%c0] : !pto.ptr<f32, ub> -> {V}\n"
ALL = f'%m = pto.pset_b32 "PAT_ALL" : {M}\n'
STORE = f"pto.vsts %y, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}"


def test_a_register_is_loaded_computed_with_and_stored(engine: str) -> None:
    body = ALL + LOAD + f"%y = pto.vabs %x0, %m : {V}, {M} -> {V}\n" + STORE
    x, out = numbers("f32"), np.zeros(64, np.float32)
    run(scope(body, "x:f32", "f32"), x, out=out, engine=engine)
    assert (out == abs(x)).all()


def test_inactive_lanes_are_zero_and_are_not_stored() -> None:
    body = (
        f'%m = pto.pset_b32 "PAT_ALL" : {M}\n%h = pto.pset_b32 "PAT_H" : {M}\n'
        + f'%q = pto.pset_b32 "PAT_VL8" : {M}\n'
        + LOAD
        + f"%y = pto.vadd %x0, %x0, %q : {V}, {V}, {M} -> {V}\n"
        + f"pto.vsts %y, %out[%c0], %h : {V}, !pto.ptr<f32, ub>, {M}"
    )
    x, out = numbers("f32"), np.full(64, 7, np.float32)
    run(scope(body, "x:f32", "f32"), x, out=out)
    assert (out == np.where(np.arange(64) < 8, 2 * x, np.where(np.arange(64) < 32, 0, 7))).all()


def test_a_scope_runs_when_its_pipe_comes_to_it_with_the_values_of_then() -> None:
    """Outer values are those that the loop had when it handed the scope over."""
    body = (
        ALL
        + f"%s = pto.vlds %x[%i] : !pto.ptr<f32, ub> -> {V}\n"
        + f"pto.vsts %s, %out[%i], %m : {V}, !pto.ptr<f32, ub>, {M}"
    )
    text = str(scope(ALL, "x:f32", "f32"))
    loop = (
        "%c64 = arith.constant 64 : index\n%c256 = arith.constant 256 : index\n"
        f"scf.for %i = %c0 to %c256 step %c64 {{\npto.vecscope {{\n{body}\n}}\n}}"
    )
    start = text.index("pto.vecscope")
    program = loads(text[:start] + loop + text[text.index("}", start) + 1 :])
    x, out = numbers("f32", count=256), np.zeros(256, np.float32)
    run(program, x, out=out, schedule=Schedule(seed=3))
    assert (out == x).all()


def test_the_checker_sees_a_scope_as_one_instruction_of_its_pipe() -> None:
    text = str(
        scope(ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n" + STORE, "x:f32", "f32")
    )
    broken = text.replace("    pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]\n", "")
    assert broken != text
    with pytest.raises(PtoError) as told:
        run(loads(broken), numbers("f32"), out=np.zeros(64, np.float32))
    found = [d for d in told.value.diagnostics if d.code == "E6"]
    assert "vecscope" in str(found[0])
    assert "mte_ub_gm" in str(found[0])


@pytest.mark.parametrize(
    ("kind", "is_told"), [("", True), ("VST_VLD", False), ("VV_ALL", False), ("VLD_VST", True)]
)
def test_a_load_behind_a_store_needs_a_barrier(kind: str, is_told: bool) -> None:
    bar = f'pto.mem_bar "{kind}"\n' if kind else ""
    body = (
        ALL
        + LOAD
        + f"pto.vsts %x0, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}\n{bar}"
        + f"%y = pto.vlds %out[%c0] : !pto.ptr<f32, ub> -> {V}\n"
        + f"pto.vsts %y, %x[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}"
    )
    program = scope(body, "x:f32", "f32")
    if not is_told:
        run(program, numbers("f32"), out=np.zeros(64, np.float32))
        return
    with pytest.raises(PtoError) as told:
        run(program, numbers("f32"), out=np.zeros(64, np.float32))
    (found,) = (d for d in told.value.diagnostics if "load after the store" in d.message)
    assert found.code == "E17"
    assert 'pto.mem_bar "VST_VLD"' in found.fix
    assert found.notes[0].location is not None
    assert found.location is not None
    assert found.notes[0].location.line < found.location.line


def test_a_store_made_of_what_was_loaded_there_comes_behind_it_by_itself() -> None:
    body = ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n"
    in_place = f"pto.vsts %y, %x[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}\n"
    run(scope(body + in_place + STORE, "x:f32", "f32"), numbers("f32"), out=np.zeros(64, "f4"))
    other = (
        f"%z = pto.vbr %k : f32 -> {V}\npto.vsts %z, %x[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}\n"
    )
    program = scope(body + other + STORE, "x:f32", "f32", "%k = arith.constant 1.0 : f32")
    with pytest.raises(PtoError, match="store after the load"):
        run(program, numbers("f32"), out=np.zeros(64, "f4"))


def test_two_stores_to_the_same_bytes_are_a_warning() -> None:
    body = ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n"
    twice = f"pto.vsts %x0, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}\n"
    found = run(scope(body + twice + STORE, "x:f32", "f32"), numbers("f32"), out=np.zeros(64, "f4"))
    assert [(d.code, d.severity) for d in found.warnings] == [("E17", "warning")]


def test_undefined_bytes_are_told_where_they_are_stored_not_where_they_are_loaded() -> None:
    """A tail that nothing has written may be loaded, and left out with a mask."""
    tail = f'%h = pto.pset_b32 "PAT_H" : {M}\n'
    double = f"%y = pto.vadd %x0, %x0, %m : {V}, {V}, {M} -> {V}\n"
    kept = f"pto.vsts %y, %out[%c0], %h : {V}, !pto.ptr<f32, ub>, {M}"
    x, out = numbers("f32")[:32].copy(), np.zeros(64, np.float32)
    run(scope(ALL + tail + LOAD + double + kept, "x:f32", "f32"), x, out=out)
    assert (out[:32] == 2 * x).all()
    with pytest.raises(PtoError, match="the register that is stored is undefined"):
        run(scope(ALL + LOAD + double + STORE, "x:f32", "f32"), x, out=out)
    summed = f"%y = pto.vcadd %x0, %m : {V}, {M} -> {V}\n"
    with pytest.raises(PtoError, match="what vcadd goes over is undefined"):
        run(scope(ALL + LOAD + summed + STORE, "x:f32", "f32"), x, out=out)


def test_text_is_a_fixpoint() -> None:
    body = ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n" + STORE
    program = scope(body, "x:f32", "f32")
    again = loads(str(program))
    assert str(again) == str(program)


def test_a_strict_scope_is_handed_everything_by_name() -> None:
    text = str(scope(ALL, "x:f32", "f32"))
    start = text.index("pto.vecscope")
    inside = (
        f"^bb0(%p: !pto.ptr<f32, ub>, %q: !pto.ptr<f32, ub>, %k: index):\n{ALL}"
        f"%v = pto.vlds %p[%k] : !pto.ptr<f32, ub> -> {V}\n"
        f"pto.vsts %v, %q[%k], %m : {V}, !pto.ptr<f32, ub>, {M}\n"
    )
    types = "!pto.ptr<f32, ub>, !pto.ptr<f32, ub>, index"
    strict = f"pto.strict_vecscope(%x, %out, %c0) {{\n{inside}}} : ({types}) -> ()"
    program = loads(text[:start] + strict + text[text.index("}", start) + 1 :])
    assert str(loads(str(program))) == str(program)
    x, out = numbers("f32"), np.zeros(64, np.float32)
    run(program, x, out=out)
    assert (out == x).all()


def test_a_launch_that_comes_again_works_on_the_arrays_of_then() -> None:
    body = ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n" + STORE
    program = scope(body, "x:f32", "f32")
    for seed in range(4):
        x, out = numbers("f32", seed), np.zeros(64, np.float32)
        run(program, x, out=out)
        assert (out == -x).all()


def test_all_orders_of_the_pipes_come_to_the_same() -> None:
    body = ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n" + STORE
    x, out = numbers("f32"), np.zeros(64, np.float32)
    found = scope(body, "x:f32", "f32")["f"][1].explore(x, x.nbytes, out, out.nbytes, target="a5")
    assert not found.found, str(found)


@pytest.mark.parametrize("kind", ["", "VST_VLD"])
def test_exploring_lets_loads_pass_stores_that_nothing_orders_before_them(kind: str) -> None:
    bar = f'pto.mem_bar "{kind}"\n' if kind else ""
    body = (
        ALL
        + LOAD
        + f"pto.vsts %x0, %out[%c0], %m : {V}, !pto.ptr<f32, ub>, {M}\n{bar}"
        + f"%z = pto.vlds %out[%c0] : !pto.ptr<f32, ub> -> {V}\n"
        + f"%y = pto.vneg %z, %m : {V}, {M} -> {V}\n"
        + STORE
    )
    x, out = numbers("f32"), np.ones(64, np.float32)
    kernel = scope(body, "x:f32", "f32")["f"][1]
    found = kernel.explore(x, x.nbytes, out, out.nbytes, target="a5", allow=("E17",))
    assert bool(found.found) == (not kind), str(found)
    if not kind:
        assert "depends on the schedule" in str(found)


def test_a_launch_that_comes_again_is_not_checked_again() -> None:
    """Nothing that this scope does depends on what its arrays hold; counts of lanes do."""
    body = ALL + LOAD + f"%y = pto.vneg %x0, %m : {V}, {M} -> {V}\n" + STORE
    program = scope(body, "x:f32", "f32")
    assert reads_no_data(program.module)
    x, out = numbers("f32"), np.zeros(64, np.float32)
    first = run(program, x, out=out)
    assert first.machine.journal is not None
    assert run(program, x, out=out, engine="stepwise").machine.journal is None
    out[:] = 0
    assert run(program, x, out=out).machine is first.machine  # it is repeated
    assert (out == -x).all()
    squeezed = f"%y = pto.vsqz %x0, %m : {V}, {M} -> {V}\n"
    more = '%s = pto.init_align : !pto.align\n%t = pto.vstur %s, %y, %out, "NO_POST_UPDATE" : '
    more += f"!pto.align, {V}, !pto.ptr<f32, ub> -> !pto.align\n"
    assert not reads_no_data(scope(ALL + LOAD + squeezed + more, "x:f32", "f32").module)
