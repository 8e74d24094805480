"""Arrays and structs of the scalar unit, and integers of another signedness."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.from_text import Program, loads

ARRAY = "!pto.local_array<2x3xi32>"
STRUCT = "!pto.struct<i32, !pto.struct<i8, i32>>"


def program(lines: str, types: str = "") -> Program:
    """A kernel that may write numbers to %out; %n is an argument."""
    return loads(
        f"""func.func @f(%out: !pto.ptr<i32>, %n: index{types}) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %a = arith.constant 7 : i32
        %b = arith.constant 9 : i32
        %small = arith.constant 5 : i8
        {lines}
        return
        }}""",
        "k.pto",
    )


def ran(made: Program, n: int = 0, engine: str = "fast") -> list[int]:
    out = np.zeros(4, "i4")
    assert not made.check()
    made["f"][1](out, n, engine=engine)
    return out.tolist()


FILLED = f"""%t = pto.declare_local_array -> {ARRAY}
        scf.for %i = %c0 to %c2 step %c1 {{
          scf.for %j = %c0 to %c3 step %c1 {{
            %ij = arith.addi %i, %j : index
            %v = arith.index_cast %ij : index to i32
            pto.local_array_set %t[%i, %j], %v : {ARRAY}, i32
          }}
        }}
        """


def test_an_array_holds_what_was_set(engine: str) -> None:
    made = program(
        FILLED
        + f"""%x = pto.local_array_get %t[%c1, %n] : {ARRAY} -> i32
        pto.local_array_set %t[%c1, %n], %a : {ARRAY}, i32
        %y = pto.local_array_get %t[%c1, %n] : {ARRAY} -> i32
        pto.store_scalar %x, %out[%c0] : !pto.ptr<i32>, i32
        pto.store_scalar %y, %out[%c1] : !pto.ptr<i32>, i32"""
    )
    assert ran(made, 2, engine)[:2] == [3, 7]
    assert str(loads(str(made))) == str(made)
    cpp = made.cpp()
    assert "int32_t t[2][3];" in cpp
    assert "t[1][n] = a;" in cpp


def test_a_struct_holds_what_was_set(engine: str) -> None:
    made = program(
        f"""%s = pto.declare_struct -> {STRUCT}
        pto.struct_set %s[0], %a : {STRUCT}, i32
        pto.struct_set %s[1, 0], %small : {STRUCT}, i8
        pto.struct_set %s[1, 1], %b : {STRUCT}, i32
        %x = pto.struct_get %s[0] : {STRUCT} -> i32
        %y = pto.struct_get %s[1, 1] : {STRUCT} -> i32
        pto.store_scalar %x, %out[%c0] : !pto.ptr<i32>, i32
        pto.store_scalar %y, %out[%c1] : !pto.ptr<i32>, i32"""
    )
    assert ran(made, engine=engine)[:2] == [7, 9]
    assert str(loads(str(made))) == str(made)
    assert "struct { int32_t f0; struct { int8_t f0; int32_t f1; } f1; } s;" in made.cpp()
    assert "s.f1.f1 = b;" in made.cpp()


def test_integers_of_another_signedness_have_the_same_bits() -> None:
    made = program(
        """%m = arith.constant -3 : i32
        %u = builtin.unrealized_conversion_cast %m : i32 to ui32
        %i = builtin.unrealized_conversion_cast %u : ui32 to i32
        pto.store_scalar %i, %out[%c0] : !pto.ptr<i32>, i32"""
    )
    assert ran(made)[0] == -3


DECLARED = f"%t = pto.declare_local_array -> {ARRAY}\n"
MADE = f"%s = pto.declare_struct -> {STRUCT}\n"
WRONG = {
    "local-element": [
        DECLARED + f"%x = pto.local_array_get %t[%c0] : {ARRAY} -> i32",
        MADE + f"%x = pto.struct_get %s[1] : {STRUCT} -> i32",
        MADE + f"%x = pto.struct_get %s[2] : {STRUCT} -> i32",
    ],
    "local-type": [
        DECLARED + f"pto.local_array_set %t[%c0, %c0], %small : {ARRAY}, i8",
        MADE + f"pto.struct_set %s[1, 0], %a : {STRUCT}, i32",
    ],
    "local-bounds": [DECLARED + f"pto.local_array_set %t[%c2, %c0], %a : {ARRAY}, i32"],
    "local-escapes": [
        f"""{MADE}%r = scf.for %i = %c0 to %c2 step %c1 iter_args(%k = %s) -> ({STRUCT}) {{
          scf.yield %k : {STRUCT}
        }}
        %q = scf.for %i = %c0 to %c2 step %c1 iter_args(%k = %r) -> ({STRUCT}) {{
          scf.yield %s : {STRUCT}
        }}"""
    ],
    "unknown-type": [
        "%t = pto.declare_local_array -> !pto.local_array<0xi32>",
        "%t = pto.declare_local_array -> !pto.local_array<?xi32>",
        "%s = pto.declare_struct -> !pto.struct<i1>",
        "%s = pto.declare_struct -> !pto.struct<!pto.local_array<2xi32>>",
    ],
}


@pytest.mark.parametrize(("code", "lines"), [(c, text) for c in WRONG for text in WRONG[c]])
def test_what_is_refused(code: str, lines: str) -> None:
    try:
        found = program(lines).check()
    except PtoError as error:
        found = list(error.diagnostics)
    assert found[0].code == code, found


@pytest.mark.parametrize(("n", "code"), [(3, "local-bounds"), (1, "poison-read")])
def test_what_only_a_run_knows(n: int, code: str, engine: str) -> None:
    made = program(DECLARED + f"%x = pto.local_array_get %t[%c1, %n] : {ARRAY} -> i32")
    with pytest.raises(PtoError) as caught:
        ran(made, n, engine)
    assert caught.value.codes == (code,)
