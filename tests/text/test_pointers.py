"""Pointers as numbers and back, and the memories that pointers name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads
from ptokit.ir.printer import print_module

TWO = "%a: !pto.ptr<ui64>, %b: !pto.ptr<ui32>, %n: index"


def program(lines: str, params: str = TWO) -> Program:
    return loads(
        f"""func.func @f({params}) attributes {{pto.entry}} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        {lines}
        return
        }}""",
        "k.pto",
    )


HALVES = """%at = pto.addptr %a, %n : !pto.ptr<ui64> -> !pto.ptr<ui64>
        %i = pto.ptrtoint %at : !pto.ptr<ui64> -> i64
        %p = pto.inttoptr %i : i64 -> !pto.ptr<ui32>
        %x = pto.load_scalar %p[%c1] : !pto.ptr<ui32> -> ui32
        pto.store_scalar %x, %b[%c0] : !pto.ptr<ui32>, ui32"""


def test_the_same_bytes_under_another_type(engine: str) -> None:
    made = program(HALVES)
    assert made.check() == []
    assert str(loads(str(made))) == str(made)
    generic = print_module(made.module, generic=True)
    assert str(loads(generic)) == str(made)
    a, b = np.array([1, 7 << 32 | 5], "u8"), np.zeros(4, "u4")
    made["f"][1](a, b, 1, engine=engine)
    assert b[0] == 7
    cpp = made.cpp()
    assert "int64_t i = (int64_t)at;" in cpp
    assert "__gm__ uint32_t *p = (__gm__ uint32_t *)i;" in cpp


MOVED = """%i = pto.ptrtoint %b : !pto.ptr<ui32> -> i64
        %four = arith.constant 4 : i64
        %j = arith.addi %i, %four : i64
        %p = pto.inttoptr %j : i64 -> !pto.ptr<ui32>
        %x = pto.load_scalar %p[%c1] : !pto.ptr<ui32> -> ui32
        pto.store_scalar %x, %p[%c0] : !pto.ptr<ui32>, ui32"""


def test_numbers_count_bytes(engine: str) -> None:
    b = np.arange(4, dtype="u4")
    program(MOVED)["f"][1](np.zeros(1, "u8"), b, 0, engine=engine)
    assert b.tolist() == [0, 2, 2, 3]


def test_addresses_are_the_same_in_every_run() -> None:
    """They say which argument it is and how far behind its start, wherever the arrays lie."""
    made = program(
        """%at = pto.addptr %b, %n : !pto.ptr<i64> -> !pto.ptr<i64>
        %i = pto.ptrtoint %at : !pto.ptr<i64> -> i64
        pto.store_scalar %i, %b[%c0] : !pto.ptr<i64>, i64""",
        "%a: !pto.ptr<i64>, %b: !pto.ptr<i64>, %n: index",
    )
    found = set[int]()
    for size in (4, 4096):
        b = np.zeros(size, "i8")
        made["f"][1](np.zeros(size, "i8"), b, 3)
        found.add(int(b[0]))
    assert found == {(2 << 40) + 24}


def test_a_number_from_nowhere_is_no_address() -> None:
    made = program(
        """%p = pto.inttoptr %k : i64 -> !pto.ptr<ui32>
        %x = pto.load_scalar %p[%c0] : !pto.ptr<ui32> -> ui32""",
        "%k: i64",
    )
    with pytest.raises(PtoError, match="no array that the kernel was given lies there"):
        made["f"][1](4096)


TILE = "!pto.tile_buf<vec, 1x32xi32>"
STORED = f"""%v = pto.make_tensor_view %b, shape = [%c1, %n], strides = [%n, %c1]
          : !pto.tensor_view<?x?xi32>
        %part = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %n]
          : !pto.tensor_view<?x?xi32> -> !pto.partition_tensor_view<1x32xi32>
        %t = pto.alloc_tile : {TILE}
        %seven = arith.constant 7 : i32
        pto.texpands ins(%seven : i32) outs(%t : {TILE})
        pto.tstore ins(%t : {TILE}) outs(%part : !pto.partition_tensor_view<1x32xi32>)
        %i = pto.ptrtoint %from : !pto.ptr<i32> -> i64
        """
USED = """%x = pto.load_scalar %p[%c0] : !pto.ptr<i32> -> i32
        pto.store_scalar %x, %p[%c1] : !pto.ptr<i32>, i32"""


def test_what_was_stored_is_waited_for() -> None:
    """The number keeps the array; one that was computed may mean any."""
    direct = STORED.replace("%from", "%b") + "%p = pto.inttoptr %i : i64 -> !pto.ptr<i32>\n" + USED
    computed = (
        STORED.replace("%from", "%c")
        + "%j = arith.addi %i, %d : i64\n%p = pto.inttoptr %j : i64 -> !pto.ptr<i32>\n"
        + USED
    )
    params = "%b: !pto.ptr<i32>, %c: !pto.ptr<i32>, %n: index, %d: i64"
    for lines in (direct, computed):
        placed = str(program(lines, params).convert("l3"))
        assert re.search(r"tstore(.|\n)*wait_flag.*MTE3.*PIPE_S(.|\n)*load_scalar", placed), placed


WRONG = {
    "made-pointer": [
        "%p = pto.inttoptr %k : i64 -> !pto.ptr<f32>\n"
        "%q = pto.addptr %p, %c1 : !pto.ptr<f32> -> !pto.ptr<f32>",
        "%p = pto.inttoptr %k : i64 -> !pto.ptr<f32>\n"
        "%v = pto.make_tensor_view %p, shape = [%c1], strides = [%c1] : !pto.tensor_view<1xf32>",
    ],
    "type-mismatch": [
        "%p = pto.inttoptr %small : i32 -> !pto.ptr<f32>",
        "%i = pto.ptrtoint %ub : !pto.ptr<f32, ub> -> i64",
        "%v = pto.make_tensor_view %ub, shape = [%c1], strides = [%c1] : !pto.tensor_view<1xf32>",
    ],
    "element-type": ["%p = pto.inttoptr %k : i64 -> !pto.ptr<index>"],
    "unknown-type": [
        "%p = pto.inttoptr %k : i64 -> !pto.ptr<f32, l7>",
    ],
}


@pytest.mark.parametrize(
    ("code", "lines"), [(c, line) for c, all_ in WRONG.items() for line in all_]
)
def test_what_pointers_may_not_be_used_for(code: str, lines: str) -> None:
    try:
        made = program(lines, "%k: i64, %small: i32, %ub: !pto.ptr<f32, vec>")
        codes = [d.code for d in made.check()]
    except PtoError as error:
        codes = list(error.codes)
    assert codes[:1] == [code]


def test_memories_have_one_name_when_printed() -> None:
    names = {"vec": "ub", "mat": "l1", "left": "l0a", "right": "l0b", "acc": "l0c"}
    names |= {"bias": "bt", "scaling": "fb"}
    params = ", ".join(f"%{n}: !pto.ptr<f32, {n}>" for n in (*names, *names.values()))
    made = loads(f"func.func @f({params}, %gm: !pto.ptr<f32, gm>) {{\n  return\n}}")
    assert re.findall(r"ptr<f32(.*?)>", str(made)) == [
        *(f", {n}" for n in (*names.values(), *names.values())),
        "",
    ]
