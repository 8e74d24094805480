"""Every micro-operation: its text, its types, and its meaning beside an independent formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptokit.base.dtypes import DType, dtype
from ptokit.from_text import loads
from ptokit.ir.printer import print_module
from ptokit.isa.micro import MICRO, Micro
from ptokit.isa.micro.samples import kinds, line, register, types
from tests.micro.formulas import FORMULAS, Given
from tests.micro.programs import run, scope
from tools.compiled import sample_function

CASES = [
    pytest.param(record, T, U, id=f"{record.name}-{T.name}-{U.name}")
    for record in MICRO.values()
    for T, U in kinds(record)
]


@pytest.mark.parametrize(("record", "T", "U"), CASES)
def test_the_sample_is_legal_and_its_text_a_fixpoint(record: Micro, T: DType, U: DType) -> None:
    program = loads(sample_function(record, T, U))
    assert [d for d in program.check("a5") if d.severity == "error"] == []
    assert str(loads(str(program))) == str(program)
    generic = print_module(program.module, generic=True)
    assert str(loads(generic)) == str(program)


@pytest.mark.parametrize("record", MICRO.values(), ids=str)
def test_a_type_that_is_not_listed_is_refused(record: Micro) -> None:
    every = {one[0] for one in record.types}
    tried = ("f8e8m0", "f32", "i8") if record.is_logical else ("f8e8m0", "i64", "f32", "i8")
    other = next((dtype(n) for n in tried if dtype(n) not in every), None)
    is_free = not record.types or other is None or not any(s.kind == "V" for s in record.operands)
    if is_free:
        return
    assert other is not None
    U = other if all(len(one) == 1 for one in record.types) else dtype("f32")
    found = loads(sample_function(record, other, U)).check("a5")
    assert "micro-type" in {d.code for d in found}


# ---- meaning -----------------------------------------------------------------------------------


def sources(record: Micro, T: DType, seed: int) -> dict[str, Any]:
    """Values for the operands: lanes, bits of masks, numbers."""
    rng = np.random.default_rng(seed)
    count = 256 // T.itemsize
    found: dict[str, Any] = {}
    for slot in record.operands:
        if slot.kind in ("V", "L"):
            if T.is_integer:
                raw = rng.integers(0, 256, 256, dtype=np.uint8).view(T.np)
                if record.name in ("vmula",) and T.itemsize == 4:
                    raw = raw % 1000
                found[slot.name] = raw.copy()
            else:
                values = rng.integers(-32, 33, count) / 4
                if record.name in ("vln", "vsqrt", "vrec"):
                    values = np.abs(values) + 1
                if slot.name == "b" and record.name == "vdiv":
                    values = np.abs(values) + 1
                found[slot.name] = values.astype(np.float32).astype(T.np)
        elif slot.kind == "W":
            found[slot.name] = rng.integers(0, T.bits, count).astype(f"i{T.itemsize}")
        elif slot.kind == "X":
            found[slot.name] = rng.integers(0, count, count).astype(f"u{T.itemsize}")
        elif slot.kind == "M":
            found[slot.name] = rng.integers(0, 4, count) > 0
        elif slot.kind == "S":
            found[slot.name] = 3 if T.is_integer else 1.5
        elif slot.kind in ("int", "index"):
            found[slot.name] = 1
    return found


def program_of(record: Micro, T: DType, U: DType, given: dict[str, Any], words: Any) -> Any:
    """A scope that loads what an operation takes, and stores its results one after the other."""
    shown = types(record, T, U)
    body: list[str] = ['%all = pto.pset_b8 "PAT_ALL" : !pto.mask<b8>']
    arrays: list[str] = []
    more: list[str] = []
    for slot in record.operands:
        value = given[slot.name]
        if isinstance(value, np.ndarray) and value.dtype == np.bool_:
            arrays.append(f"{slot.name}_:ui8")
            body.append(
                f'%{slot.name} = pto.plds %{slot.name}_[%c0], "NORM" : !pto.ptr<ui8, ub>, index '
                f"-> {shown[slot.name]}"
            )
        elif isinstance(value, np.ndarray):
            kind = shown[slot.name].partition("x")[2].removesuffix(">")
            kind = "ui8" if kind.startswith(("!pto.f4", "!pto.hif8", "!pto.f8", "f8")) else kind
            arrays.append(f"{slot.name}_:{kind}")
            element = dtype(kind)
            body.append(
                f"%{slot.name}_raw = pto.vlds %{slot.name}_[%c0] : !pto.ptr<{kind}, ub> -> "
                f"{register(element)}"
            )
            body.append(
                f"%{slot.name} = pto.vbitcast %{slot.name}_raw : {register(element)} -> "
                f"{shown[slot.name]}"
            )
        else:
            type_ = shown[slot.name]
            literal = f"{value}" if not isinstance(value, float) else f"{value:.6e}"
            if type_.startswith("ui"):
                more.append(f"%{slot.name}_s = arith.constant {literal} : {type_[1:]}")
                more.append(
                    f"%{slot.name} = builtin.unrealized_conversion_cast %{slot.name}_s : "
                    f"{type_[1:]} to {type_}"
                )
            else:
                more.append(f"%{slot.name} = arith.constant {literal} : {type_}")
    body.append(line(record, shown, words))
    for place, slot in enumerate(record.results):
        more.append(f"%at{place} = arith.constant {place * 256} : index")
        if slot.kind in ("M", "N", "B"):
            body.append(
                f'pto.psts %{slot.name}, %out[%at{place}], "NORM" : {shown[slot.name]}, '
                "!pto.ptr<ui8, ub>, index"
            )
        else:
            body += [
                f"%bytes{place} = pto.vbitcast %{slot.name} : {shown[slot.name]} -> "
                "!pto.vreg<256xui8>",
                f"pto.vsts %bytes{place}, %out[%at{place}], %all : !pto.vreg<256xui8>, "
                "!pto.ptr<ui8, ub>, !pto.mask<b8>",
            ]
    return scope("\n".join(body), " ".join(arrays), "ui8", "\n".join(more))


def bits_of(lanes: Any, size: int) -> Any:
    bits = np.zeros(256, np.bool_)
    bits[::size] = lanes
    return np.packbits(bits, bitorder="little")


COMPUTED = [
    pytest.param(record, T, U, id=f"{record.name}-{T.name}-{U.name}")
    for record in MICRO.values()
    if record.name in FORMULAS
    for T, U in kinds(record)
    if T.name not in ("f8e4m3", "f8e5m2", "f8e8m0", "hif8", "f4e2m1x2", "f4e1m2x2")
]


@pytest.mark.parametrize(("record", "T", "U"), COMPUTED)
def test_it_computes_what_its_formula_says(record: Micro, T: DType, U: DType) -> None:
    words = {w.name: w.choices[0] for w in record.words if w.default is None}
    given = sources(record, T, len(record.name) + T.bits)
    program = program_of(record, T, U, given, words)
    arrays = []
    for value in given.values():
        if isinstance(value, np.ndarray):
            is_mask = value.dtype == np.bool_
            array = bits_of(value, T.itemsize) if is_mask else value
            arrays.append(array)
    out = np.zeros(256 * len(record.results), np.uint8)
    run(program, *arrays, out=out)
    lists = {n: v.tolist() if isinstance(v, np.ndarray) and v.dtype.kind in "iub" else v
             for n, v in given.items()}  # fmt: skip
    lists = {n: [float(x) for x in v] if isinstance(v, np.ndarray) else v for n, v in lists.items()}
    made = FORMULAS[record.name](Given(T, U, **lists, **words))
    results = made if isinstance(made, tuple) else (made,)
    for place, (slot, lanes) in enumerate(zip(record.results, results, strict=True)):
        raw = out[place * 256 : place * 256 + 256]
        if slot.kind == "M":
            assert (raw[:32] == bits_of(lanes, T.itemsize)).all()
            continue
        kind = U if slot.kind == "W" else T
        found = raw.view(kind.np)
        if kind.is_integer:
            wanted = np.array([int(n) & ((1 << kind.bits) - 1) for n in lanes], kind.uint)
            assert (found.view(kind.uint) == wanted).all()
        else:
            with np.errstate(all="ignore"):  # bits may make any NaN
                doubles = found.astype(np.float64)
            wanted = np.array(lanes, np.float64)
            assert np.array_equal(doubles, wanted, equal_nan=True)


def test_every_operation_on_registers_has_a_formula() -> None:
    computed = {
        r.name
        for r in MICRO.values()
        if r.is_inside
        and not r.is_logical  # test_logical.py
        and r.footprint is None
        and any(s.kind in "VW" for s in r.results)
        and "unit" not in r.parameters
    }
    assert computed - set(FORMULAS) == {"vcvt"}  # which test_conversions holds against convert
