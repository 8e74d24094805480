"""What `arith` computes, held against NumPy and fractions on the edges of every width."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from ptokit.ir.arithmetic import CASTS, FLOATS, INTEGERS, PRODUCTS, Undefined
from ptokit.ir.attributes import IntAttr
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.arith import CMPF, CMPI, predicates
from ptokit.ir.evaluate import evaluate, is_total
from ptokit.ir.types import F32, I1, I64, INDEX, ScalarType

WIDTHS = (8, 16, 32, 64)
Oracle = Callable[[Any, Any], Any]


def computed(name: str, args: tuple[Any, ...], given: str, *made: str, **attrs: Any) -> Any:
    """What an operation makes of operands of one type."""
    operands = [Value(f"v{n}", ScalarType(given)) for n in range(len(args))]
    results = [Value(f"r{n}", ScalarType(kind)) for n, kind in enumerate(made or (given,))]
    op = Op(name, operands, (), results, (), attrs)
    found = evaluate(op, args)
    assert found is not None
    return found if len(made) > 1 else found[0]


def edges(bits: int) -> list[int]:
    top = 1 << bits - 1
    return [-top, 1 - top, -7, -3, -1, 0, 1, 2, 3, 5, bits - 1, top - 1]


def rounded(how: Callable[[Fraction], int]) -> Oracle:
    return lambda a, b: how(Fraction(int(a), int(b)))


def remainder(a: Any, b: Any) -> int:
    return int(a) - int(b) * math.trunc(Fraction(int(a), int(b)))


# Of numbers with the type that NumPy gives them; a name that takes them without sign ends in "ui".
WHOLE: dict[str, Oracle] = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "div": rounded(math.trunc),
    "rem": remainder,
    "ceildiv": rounded(math.ceil),
    "floordiv": rounded(math.floor),
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shr": np.right_shift,
    "max": np.maximum,
    "min": np.minimum,
}


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, bits: int) -> None:
    oracle = WHOLE[name] if name in WHOLE else WHOLE[name[:-2]]
    kind = np.dtype(f"{'u' if name.endswith('ui') else 'i'}{bits // 8}")
    has_holes = False
    for a, b in product(edges(bits), repeat=2):
        x, y = (np.array(n, f"i{bits // 8}").view(kind)[()] for n in (a, b))
        divides = oracle in (WHOLE["rem"], WHOLE["div"]) or "div" in name
        if (divides and b == 0) or ("sh" in name and not 0 <= b < bits):
            has_holes = True
            with pytest.raises(Undefined):
                computed(f"arith.{name}", (a, b), f"i{bits}")
            continue
        with np.errstate(over="ignore"):
            wanted = int(oracle(x, y)) & ((1 << bits) - 1)
        assert computed(f"arith.{name}", (a, b), f"i{bits}") & ((1 << bits) - 1) == wanted, (a, b)
    operands = [Value(n, ScalarType(f"i{bits}")) for n in "ab"]
    assert is_total(Op(f"arith.{name}", operands, (), [Value("r", I64)])) != has_holes


@pytest.mark.parametrize("name", ["addui_extended", *PRODUCTS])
@pytest.mark.parametrize("bits", WIDTHS)
def test_results_of_twice_the_bits(name: str, bits: int) -> None:
    for a, b in product(edges(bits), repeat=2):
        x, y = (a, b) if "si" in name else (a % (1 << bits), b % (1 << bits))
        wanted = x + y if "add" in name else x * y
        high = "i1" if "add" in name else f"i{bits}"
        low, over = computed(f"arith.{name}", (a, b), f"i{bits}", f"i{bits}", high)
        mask = (1 << bits) - 1
        assert (low & mask, over & mask) == (wanted & mask, wanted >> bits & mask), (a, b)


def test_an_index_is_not_meant_to_wrap() -> None:
    for name, args in (("muli", (1 << 40, 1 << 40)), ("shli", (1, 63))):
        with pytest.raises(Undefined, match="more than 64 bits"):
            computed(f"arith.{name}", args, "index")
        op = Op(f"arith.{name}", [], (), [Value("r", INDEX)])
        assert not is_total(op)
    assert computed("arith.addi", ((1 << 63) - 1, 1), "index") == -(1 << 63)


REAL: dict[str, Oracle] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    values = [0.0, 1.0, -2.5, 3e38, 1e-30, float("inf"), float("nan")]
    for a, b in product(values, repeat=2):
        with np.errstate(all="ignore"):
            wanted = float(REAL[name](np.float32(a), np.float32(b)))
        found = computed(f"arith.{name}", (float(np.float32(a)), float(np.float32(b))), "f32")
        assert found == wanted or (math.isnan(found) and math.isnan(wanted)), (a, b)


ORDER: dict[str, Oracle] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def test_comparisons_of_integers() -> None:
    for number, word in enumerate(predicates(CMPI)):
        kind = np.uint8 if word[0] == "u" else np.int8
        for a, b in product(edges(8), repeat=2):
            x, y = (np.array(n, np.int8).view(kind) for n in (a, b))
            attr = IntAttr(number, I64)
            found = computed("arith.cmpi", (a, b), "i8", "i1", predicate=attr)
            assert found == bool(ORDER[word[-2:]](x, y)), (word, a, b)


def test_comparisons_of_floats() -> None:
    """The first letter says what holds where one of the two is no number."""
    for number, word in enumerate(predicates(CMPF)):
        for a, b in product([0.0, 1.0, float("nan")], repeat=2):
            is_open = math.isnan(a) or math.isnan(b)
            wanted = {"true": True, "false": False, "ord": not is_open, "uno": is_open}.get(word)
            if wanted is None:
                wanted = word[0] == "u" if is_open else bool(ORDER[word[1:]](a, b))
            found = computed("arith.cmpf", (a, b), "f32", "i1", predicate=IntAttr(number, I64))
            assert found == wanted, (word, a, b)


@pytest.mark.parametrize(
    ("name", "value", "given", "made", "wanted"),
    [
        ("index_cast", -1, "i32", "index", -1),
        ("index_castui", -1, "i32", "index", (1 << 32) - 1),
        ("extsi", -1, "i8", "i32", -1),
        ("extsi", 1, "i1", "i32", -1),
        ("extui", -1, "i8", "i32", 255),
        ("trunci", 0x1FF, "i32", "i8", -1),
        ("extf", 0.5, "f16", "f32", 0.5),
        ("truncf", 1 / 3, "f32", "f16", float(np.float16(1 / 3))),
        ("sitofp", -3, "i32", "f32", -3.0),
        ("uitofp", -1, "i8", "f32", 255.0),
        ("fptosi", -2.9, "f32", "i32", -2),
        ("fptoui", 2.9, "f32", "i32", 2),
        ("bitcast", 1.0, "f32", "i32", 0x3F800000),
        ("bitcast", 0x3F800000, "i32", "f32", 1.0),
    ],
)
def test_casts(name: str, value: Any, given: str, made: str, wanted: Any) -> None:
    assert name in CASTS
    assert computed(f"arith.{name}", (value,), given, made) == wanted


@pytest.mark.parametrize("name", ["fptosi", "fptoui"])
def test_what_is_no_integer_of_the_type_is_undefined(name: str) -> None:
    for value in (float("nan"), float("inf"), 3e10, -3e10):
        with pytest.raises(Undefined):
            computed(f"arith.{name}", (value,), "f32", "i32")
    op = Op(f"arith.{name}", [Value("a", F32)], (), [Value("r", I1)])
    assert not is_total(op)
