"""Scopes of launches that are repeated: compiled code leaves the bytes that the records say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import DType
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.works import Again
from ptokit.from_text import Program
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.micro.samples import kinds
from ptokit.kernels import execution
from tests.micro.formulas import FORMULAS
from tests.micro.programs import mask, numbers, register, run, scope
from tests.micro.test_every_operation import bits_of, program_of, sources
from tools.compiled import AS_BODIES_OF_SCOPES, covered_in_scopes

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

V, M = register("f32"), mask("f32")
ODD = np.array([0.0, -0.0, 1e-45, -1e-40, 3e38, np.inf, -np.inf, np.nan, 65520, 0.5], np.float32)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat launches that go by data too: the data of both differ in nothing that decides."""
    monkeypatch.setattr(execution, "reads_no_data", lambda module: True)


def works(program: Program) -> dict[str, str]:
    """What was repeated, each with the reason why it ran as its body does."""
    found: list[Again] = []
    for replay in program["f"].programs.memory.replays:
        found += getattr(replay, "works", ())
    assert found, "nothing was repeated"
    return {work.name: work.why for work in found}


def odd(values: Any, seed: int) -> Any:
    """Some elements that are zeros, subnormal, infinite or no numbers."""
    if values.dtype.kind in "iub" or values.dtype.itemsize == 1:
        return values
    where = np.random.default_rng(seed).random(values.shape) < 0.3
    with np.errstate(all="ignore"):
        return np.where(where, np.resize(ODD, values.shape).astype(values.dtype), values)


def alike(found: Any, wanted: Any, kind: DType) -> bool:
    """Whether bytes are equal, with one NaN for all: nobody says which of two a sum keeps."""
    if not kind.is_float or kind.itemsize == 1:
        return bool((found == wanted).all())
    pair = [each.view(kind.np).astype(np.float32) for each in (found, wanted)]
    same = found.reshape(-1, kind.itemsize) == wanted.reshape(-1, kind.itemsize)
    return bool((same.all(axis=1) | (np.isnan(pair[0]) & np.isnan(pair[1]))).all())


# What values decide, and what counts of lanes are left in: no launch with them is repeated anyway.
AS_BODIES = {"vselr", "vsqz", "vusqz", "vsunpack"}
NO_FORMULA = ("f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1x2", "f4e1m2x2")


def cases() -> Iterator[Any]:
    for record in MICRO.values():
        if record.name in FORMULAS:
            known = [pair for pair in kinds(record) if pair[0].name not in NO_FORMULA]
            for T, U in dict.fromkeys((known[0], known[len(known) // 2], known[-1])):
                yield pytest.param(record, T, U, id=f"{record.name}-{T.name}-{U.name}")


@pytest.mark.parametrize(("record", "T", "U"), list(cases()))
def test_an_operation_leaves_the_same_bytes(
    record: Micro, T: DType, U: DType, everything: None
) -> None:
    words = {w.name: w.choices[0] for w in record.words if w.default is None}
    program = program_of(record, T, U, sources(record, T, 1), words)
    out, wanted = (np.zeros(256 * len(record.results), np.uint8) for _ in range(2))
    for seed in (1, 2, 3):
        given = sources(record, T, seed)
        arrays = [
            bits_of(value, T.itemsize) if value.dtype == np.bool_ else odd(value, seed)
            for value in given.values()
            if isinstance(value, np.ndarray)
        ]
        run(program, *arrays, out=out)
    run(program, *arrays, out=wanted, engine="reference")
    for place, slot in enumerate(record.results):
        part = slice(place * 256, place * 256 + 256)
        kind = U if slot.kind == "W" else T
        assert alike(out[part], wanted[part], kind)
    assert bool(works(program)["vecscope"]) == (record.name in AS_BODIES), works(program)


def twice(program: Program, *arrays: Any, out: Any) -> Any:
    """What a repetition leaves of other contents than those of the run that was noted."""
    run(program, *(np.zeros_like(each) for each in arrays), out=np.zeros_like(out))
    run(program, *arrays, out=out)
    assert not any(works(program).values()), works(program)
    return out


P = "!pto.ptr<f32, ub>"
ALL = f'%all = pto.pset_b32 "PAT_ALL" : {M}\n'


def test_loops_stay_loops_with_a_tail_and_pointers_that_move() -> None:
    """Rounds of 64 lanes over 200; what is behind them keeps its bytes."""
    body = f"""
    %n = arith.constant 200 : i32
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %rest, %at = scf.for %i = %c0 to %c4 step %c1 iter_args(%left = %n, %from = %x) -> (i32, {P}) {{
      %m, %less = pto.plt_b32 %left : i32 -> {M}, i32
      %v = pto.vlds %from[%c0] : {P} -> {V}
      %w = pto.vadd %v, %v, %m : {V}, {V}, {M} -> {V}
      %o = arith.muli %i, %c64 : index
      pto.vsts %w, %out[%o], %m : {V}, {P}, {M}
      %next = pto.addptr %from, %c64 : {P} -> {P}
      scf.yield %less, %next : i32, {P}
    }}"""
    x, out = numbers("f32", count=256), np.full(256, 7, np.float32)
    found = twice(scope(body, "x:f32", "f32"), x, out=out)
    assert (found == np.where(np.arange(256) < 200, 2 * x, 7)).all()


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_registers_that_change_places_from_round_to_round(rounds: int) -> None:
    body = f"""{ALL}
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %r = arith.constant {rounds} : index
    %a = pto.vlds %x[%c0] : {P} -> {V}
    %b = pto.vneg %a, %all : {V}, {M} -> {V}
    %s:2 = scf.for %i = %c0 to %r step %c1 iter_args(%p = %a, %q = %b) -> ({V}, {V}) {{
      %t = pto.vadd %p, %p, %all : {V}, {V}, {M} -> {V}
      scf.yield %q, %t : {V}, {V}
    }}
    pto.vsts %s#0, %out[%c0], %all : {V}, {P}, {M}
    pto.vsts %s#1, %out[%c64], %all : {V}, {P}, {M}"""
    x, out = numbers("f32"), np.zeros(128, np.float32)
    found = twice(scope(body, "x:f32", "f32"), x, out=out)
    p, q = x, -x
    for _ in range(rounds):
        p, q = q, 2 * p
    assert (found == np.concatenate([p, q])).all()


def test_a_branch_over_the_number_of_a_round() -> None:
    body = f"""{ALL}
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c4 step %c1 {{
      %o = arith.muli %i, %c64 : index
      %v = pto.vlds %x[%o] : {P} -> {V}
      %odd = arith.remui %i, %c2 : index
      %is = arith.cmpi eq, %odd, %c1 : index
      %w = scf.if %is -> ({V}) {{
        %n = pto.vneg %v, %all : {V}, {M} -> {V}
        scf.yield %n : {V}
      }} else {{
        scf.yield %v : {V}
      }}
      pto.vsts %w, %out[%o], %all : {V}, {P}, {M}
    }}"""
    x, out = numbers("f32", count=256), np.zeros(256, np.float32)
    found = twice(scope(body, "x:f32", "f32"), x, out=out)
    assert (found == x * np.repeat([1, -1, 1, -1], 64)).all()


CONVERSIONS = [
    pytest.param(T, U, sat, id=f"{T.name}-{U.name}-{sat or 'open'}")
    for T, U in kinds(MICRO["vcvt"])
    for sat in ("", "SAT", "NOSAT")
    if not {T.name, U.name} & {*NO_FORMULA}
]
NOT_COMPILED = {("f32", "i64", "NOSAT")}


@pytest.mark.parametrize(("T", "U", "sat"), CONVERSIONS)
def test_a_conversion_leaves_the_same_bytes(T: DType, U: DType, sat: str, everything: None) -> None:
    """Every pair, its parts in turn, values beyond the range and those that are no numbers."""
    record, ratio = MICRO["vcvt"], max(T.itemsize, U.itemsize) // min(T.itemsize, U.itemsize)
    words = {"sat": sat} if sat else {}
    words |= {1: {}, 2: {"part": "ODD"}, 4: {"part": "P2"}}.get(ratio, {})
    words |= {"rnd": "Z"} if T.is_float and U.is_integer else {}
    program = program_of(record, T, U, sources(record, T, 1), words)
    out, wanted = (np.zeros(256, np.uint8) for _ in range(2))
    for seed in (1, 2):
        given = sources(record, T, seed)
        arrays = [odd(given["a"], seed), bits_of(given["mask"], T.itemsize)]
        run(program, *arrays, out=out)
    run(program, *arrays, out=wanted, engine="reference")
    assert alike(out, wanted, U)
    assert bool(works(program)["vecscope"]) == ((T.name, U.name, sat) in NOT_COMPILED), works(
        program
    )


def test_room_behind_an_array_is_not_that_of_the_next_launch() -> None:
    """What was noted with slack would leave arrays that have none."""
    body = f"""%v = pto.vlds %x[%c0] : {P} -> {V}
    {ALL}pto.vsts %v, %out[%c0], %all : {V}, {P}, {M}"""
    program, x = scope(body, "x:f32", "f32"), numbers("f32")
    given = [x, 2 * x.nbytes, np.zeros(64, np.float32), 256]
    launch = program["f"][1]
    for _ in range(2):
        launch(*given, target="a5", slack=256)
    with pytest.raises(PtoError, match="inside"):
        launch(*given, target="a5")


def test_most_operations_of_scopes_are_compiled() -> None:
    """Those that are not are listed; others lack narrow floats and some conversions."""
    found = {r.name: covered_in_scopes(r) for r in MICRO.values() if r.is_inside}
    assert {n for n, each in found.items() if not each.compiled} == {*AS_BODIES_OF_SCOPES}
    partly = {n: each.lacks for n, each in found.items() if 0 < each.compiled < each.calls}
    lacking = {why for lacks in partly.values() for why in lacks}
    assert [why for why in lacking if "elements" not in why and " to " not in why] == []
