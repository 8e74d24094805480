"""What people write first: each mistake is named at its line, with what to write instead.

Both paths say the same, and no frame of ptokit is in the traceback.
"""

# ruff: noqa: B018, B015
from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.frontend.advice import FUNCTIONS, OPERATORS, NotANumber
from ptokit.isa import INSTRUCTIONS

TileT = Tile[TileType.Vec, float32, 16, 64]
MISTAKES: list[tuple[Callable[..., Any], str, str]] = []


def mistake(code: str, fix: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        MISTAKES.append((function, code, fix))
        return function

    return note


@mistake("tile-operator", "write TADD(dst, src0, src1)")
def tile_plus_tile(x: Any) -> None:
    a, b = TileT(), TileT()
    a + b  # here


@mistake("tile-operator", "write TMULS(dst, src, scalar)")
def number_times_tile(x: Any) -> None:
    2 * TileT()  # here


@mistake("tile-operator", "write TADDS(dst, src, scalar)")
def tile_plus_equals_number(x: Any) -> None:
    a = TileT()
    a += 1  # here


@mistake("tile-operator", "write TNEG(dst, src)")
def minus_tile(x: Any) -> None:
    -TileT()  # here


@mistake("tile-operator", "write TCMP(dst, src0, src1)")
def tile_less_than_tile(x: Any) -> None:
    TileT() < TileT()  # here


@mistake("tile-operator", "load it into a tile, TLOAD(tile, view), then write TADDS(")
def view_plus_number(x: Any) -> None:
    GlobalTensor(x) + 1.0  # here


@mistake("tile-operator", "write TEXP(dst, src)")
def exp_of_tile(x: Any) -> None:
    np.exp(TileT())  # here


@mistake("tile-operator", "write TMAX(dst, src0, src1)")
def maximum_of_tiles(x: Any) -> None:
    np.maximum(TileT(), TileT())  # here


@mistake("tile-operator", "write TROWSUM(dst, src, tmp)")
def sum_of_tile(x: Any) -> None:
    np.sum(TileT())  # here


@mistake("tile-operator", "GetValue(offset) reads one element")
def element_of_tile(x: Any) -> None:
    TileT()[0]  # here


@mistake("tile-operator", "tile.GetValue(offset)")
def tile_as_number(x: Any) -> None:
    int(TileT())  # here


@mistake("tile-operator", "after the launch arrays hold what TSTORE wrote")
def tile_as_array(x: Any) -> None:
    np.asarray(TileT())  # here


@mistake("tile-operator", "after the launch arrays hold what TSTORE wrote")
def view_as_array(x: Any) -> None:
    np.array(GlobalTensor(x))  # here


@mistake("tile-operator", "tile.GetValidRow() and tile.GetValidCol()")
def length_of_tile(x: Any) -> None:
    len(TileT())  # here


@mistake("tile-operator", "view.GetShape(dim)")
def length_of_view(x: Any) -> None:
    len(GlobalTensor(x))  # here


@mistake("gm-array", "np.ascontiguousarray(x) is a copy in its order")
def view_of_an_array_backwards(x: Any) -> None:
    GlobalTensor(x[::-1])  # here


@mistake("slice-step", "move the whole range")
def view_backwards(x: Any) -> None:
    GlobalTensor(x)[::-1, :]  # here


@mistake("tile-operator", "ptr(array, offset) is a place inside it")
def array_plus_number(x: Any) -> None:
    GlobalTensor[float32, Shape[1, 1, 1, 8, 64], Stride[1, 1, 1, 64, 1]](x + 64)  # here


@mistake(
    "tile-operator", "load it into a tile, TLOAD(tile, GlobalTensor(array)), then write TROWSUM"
)
def sum_of_array(x: Any) -> None:
    np.sum(x)  # here


@mistake("unknown-attribute", "it has T, dtype, ndim, shape, size")
def mean_of_an_array(x: Any) -> None:
    x.nope  # here


@mistake("unknown-name", "did you mean TADD(dst, src0, src1)?")
def misspelt(x: Any) -> None:
    a = TileT()
    TAD(a, a, a)  # here


@mistake("unknown-name", "write x.GetValue(...): it is a member")
def member_as_a_function(x: Any) -> None:
    GetValue(TileT(), 0)  # here


@mistake("unknown-attribute", "did you mean TADD(dst, src0, src1)?")
def misspelt_in_the_module(x: Any) -> None:
    a = TileT()
    ptokit.TAD(a, a, a)  # here


@mistake("unknown-attribute", "did you mean TileType.Vec?")
def misspelt_member(x: Any) -> None:
    TileType.Vector  # here


@mistake("unknown-attribute", "did you mean Op.TLOAD?")
def misspelt_operation_class(x: Any) -> None:
    Event[Op.TLAOD, Op.TADD]()  # here


@mistake("unknown-attribute", "it has GetValidCol, GetValidRow")
def shape_of_tile(x: Any) -> None:
    TileT().shape  # here


@mistake("wait-record-event", "wrap it: e = Event[Op.TLOAD, Op.TADD](TLOAD(...))")
def bare_result_as_event(x: Any) -> None:
    a = TileT()
    e = TLOAD(a, GlobalTensor(x))
    TADD(a, a, a, e)  # here


@mistake("wait-record-event", "e = Event[Op.TLOAD, Op.TSTORE_VEC](TLOAD(...)) (or Op.TSTORE_MAT")
def bare_result_for_a_store(x: Any) -> None:
    a = TileT()
    e = TLOAD(a, GlobalTensor(x))
    TSTORE(GlobalTensor(x), a, e)  # here


@mistake("unknown-attribute", "did you mean Op.TSTORE_VEC or Op.TSTORE_MAT")
def class_of_a_store(x: Any) -> None:
    Event[Op.TLOAD, Op.TSTORE]()  # here


@mistake("TLOAD.operands", "a number is no wait event")
def id_as_event(x: Any) -> None:
    TLOAD(TileT(), GlobalTensor(x), EVENT_ID0)  # here


@mistake("TADD.operands", "an event is made by calling its type")
def type_as_event(x: Any) -> None:
    a = TileT()
    TADD(a, a, a, Event[Op.TLOAD, Op.TADD])  # here


@mistake("SA-0116", "Event[Op.TLOAD, Op.TADD]")
def event_of_instructions(x: Any) -> None:
    Event[TLOAD, TADD]()  # here


@mistake("TADD.operands", "with a number it is TADDS(dst, src, scalar)")
def number_for_tile(x: Any) -> None:
    a = TileT()
    TADD(a, a, 3.0)  # here


@mistake("TADD.operands", "TADD(dst, src0, src1), then wait events")
def operand_missing(x: Any) -> None:
    a = TileT()
    TADD(a, a)  # here


@mistake("TADD.operands", "TADD(dst, src0, src1), then wait events")
def nothing_for_tile(x: Any) -> None:
    a = TileT()
    TADD(a, a, None)  # here


@mistake("TLOAD.operands", "wrapped: GlobalTensor(array)")
def array_for_view(x: Any) -> None:
    TLOAD(TileT(), x)  # here


@mistake("TLOAD.operands", "tile = TileT()")
def type_for_tile(x: Any) -> None:
    TLOAD(TileT, GlobalTensor(x))  # here


def lines(function: Callable[..., Any]) -> list[int]:
    source, first = inspect.getsourcelines(function)
    return [first + n for n, line in enumerate(source) if line.endswith("# here\n")]


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    ("function", "code", "fix"), MISTAKES, ids=[f.__name__ for f, *_ in MISTAKES]
)
def test_the_mistake_is_named_at_its_line(function: Any, code: str, fix: str, path: str) -> None:
    with pytest.raises(ProgramError) as caught:
        kernel(mode="auto")(function)[1](np.ones((16, 64), "f4"), path=path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.location.file) == (code, __file__)
    assert [found.location.line] == lines(function)
    assert fix in found.fix
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert set(files) == {__file__}


def placed() -> tuple[Any, Any]:
    a, b = TileT(), TileT()
    TASSIGN(a, 0)
    TASSIGN(b, 4096)
    return a, b


def wrong_waiter(x: Any) -> None:
    a, b = placed()
    e = Event[Op.TLOAD, Op.TSTORE_VEC](TLOAD(a, GlobalTensor(x)))
    TADD(b, a, a, e)  # here


def wrong_source(x: Any) -> None:
    a, b = placed()
    e = Event[Op.TSTORE_VEC, Op.TADD](TLOAD(a, GlobalTensor(x)))  # here
    TADD(b, a, a, e)


def wrong_but_ordered(x: Any) -> None:
    a, b = placed()
    e = Event[Op.TLOAD, Op.TSTORE_VEC](TLOAD(a, GlobalTensor(x)))
    pipe_barrier(PIPE_ALL)
    TADD(b, a, a, e)  # here


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    ("function", "says"),
    [
        (wrong_waiter, "TADD works on PIPE_V, the event it waits for belongs to PIPE_MTE3"),
        (wrong_source, "TLOAD works on PIPE_MTE2, the event it records belongs to PIPE_MTE3"),
        (wrong_but_ordered, "put Op.TADD in the place of Op.TSTORE_VEC"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_an_event_of_other_pipes_is_named(function: Any, says: str, path: str) -> None:
    made = kernel(function)
    if function is wrong_but_ordered:
        found = made[1](np.ones((16, 64), "f4"), path=path).warnings
        (remark,) = [f"{d.message} {d.fix}" for d in found]
        assert [d.code for d in found] == ["Event.pipe"]
        (line,) = [d.location.line for d in found if d.location]
    else:  # it comes with the race that it leads to
        with pytest.raises(ProgramError) as caught:
            made[1](np.ones((16, 64), "f4"), path=path)
        (found,) = caught.value.diagnostics
        assert found.code == "E6"
        remark, line = found.notes[-1].text, found.notes[-1].location.line
    assert says in remark
    assert [line] == lines(function)


@kernel
def takes_anything(x: Any) -> None:
    GlobalTensor(x)


STEP_BACK = np.ones((16, 64), "f4")[::-1]


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(
    ("given", "code", "fix"),
    [
        ([1.0, 2.0], "argument-type", "np.array(x, np.float32)"),
        ({"a": 1}, "argument-type", "tuple(x) for constants"),
        (([1.0],), "argument-type", "np.array(x[0], np.float32)"),
        (STEP_BACK, "gm-array", "np.ascontiguousarray(x)"),
        (np.ones(4), "SA-0054", "x.astype(np.float32)"),
        (np.ones((1,) * 6, "f4"), "tensor-rank", "merge dimensions"),
    ],
    ids=["list", "dict", "list in a tuple", "backwards", "float64", "6-d"],
)
def test_an_argument_of_the_wrong_kind(given: Any, code: str, fix: str, path: str) -> None:
    with pytest.raises(ProgramError) as caught:
        takes_anything[1](given, path=path)
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert fix in found.fix
    assert found.location.file == __file__


def test_a_view_of_an_array_that_steps_back() -> None:
    with pytest.raises(ProgramError) as caught:
        GlobalTensor(STEP_BACK)
    assert caught.value.codes == ("gm-array",)
    assert "np.ascontiguousarray(x)" in caught.value.diagnostics[0].fix


def test_an_exception_of_the_users_has_no_frame_of_ours() -> None:
    @kernel
    def divides() -> None:
        1 / 0  # here

    with pytest.raises(ZeroDivisionError) as caught:
        divides[1]()
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def test_a_misspelt_instruction_of_the_module() -> None:
    with pytest.raises(AttributeError, match=r"did you mean TADD\(dst, src0, src1\)\?"):
        ptokit.TAD


def test_advice_names_instructions_that_exist() -> None:
    named = {name for _, name in OPERATORS.values()} | set(FUNCTIONS.values())
    assert named <= set(INSTRUCTIONS)
    assert {f"__{name}__" for name in OPERATORS} <= set(dir(NotANumber))
