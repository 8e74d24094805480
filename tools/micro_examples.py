"""A program for every operation on logical vectors: it loads, does it, stores, and asserts.

The pages show it with plain numbers and what comes out; the tests build the same kernels around
random ones, and hold them against formulas of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.from_text import loads
from ptokit.isa.micro import Micro
from ptokit.isa.micro.samples import examples, kinds, line, names, types
from ptokit.isa.micro.spec import Slot

SPACING = 4096  # bytes between arrays in the unified buffer
MEMORY = 512  # elements of what a load reads or a store writes
_VECTOR = re.compile(r"!pto\.(?:vmi\.)?vreg<(\d+)x(!?[\w.]+)[,>]")
_MASK = re.compile(r"!pto\.vmi\.mask<(\d+)x(\w+)[,>]")


# What a mask is, by its name and lanes: every bit, or how many lanes at the front are active.
Bits = Callable[[str, int], Sequence[bool] | int]


@dataclass
class Array:
    """An array that a kernel is handed, and where it meets the operation."""

    name: str
    element: str  # as pointers write it
    count: int
    is_result: bool = False
    is_index: bool = False

    @property
    def kind(self) -> DType:
        return dtype({"!pto.f4E2M1x2": "u8", "!pto.f4E1M2x2": "u8"}.get(self.element, self.element))


@dataclass
class Kernel:
    """A kernel around one operation; its parameters are the arrays, in order."""

    record: Micro
    arrays: list[Array] = field(default_factory=list[Array])
    front: list[str] = field(default_factory=list[str])  # numbers
    body: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        params = ", ".join(f"%g_{a.name}: !pto.ptr<{a.element}>" for a in self.arrays)
        lines = ["%zero = arith.constant 0 : i64", "%one = arith.constant 1 : i64"]
        lines += ["%c0 = arith.constant 0 : index", *self.front]
        for place, a in enumerate(self.arrays):
            size = a.count * a.kind.itemsize
            lines += [
                f"%at_{a.name} = arith.constant {place * SPACING} : i64",
                f"%{a.name} = pto.castptr %at_{a.name} : i64 -> !pto.ptr<{a.element}, ub>",
                f"%n_{a.name} = arith.constant {size} : i64",
                f"pto.mte_gm_ub %g_{a.name}, %{a.name}, %zero, %n_{a.name} "
                f"nburst(%one, %n_{a.name}, %n_{a.name}) : !pto.ptr<{a.element}>, "
                f"!pto.ptr<{a.element}, ub>, i64, i64, i64, i64, i64",
            ]
        lines += _ordered("MTE2", "V")
        lines += ["pto.vecscope {", *(f"  {each}" for each in self.body), "}"]
        lines += _ordered("V", "MTE3")
        lines += [
            f"pto.mte_ub_gm %{a.name}, %g_{a.name}, %n_{a.name} nburst(%one, %n_{a.name}, "
            f"%n_{a.name}) : !pto.ptr<{a.element}, ub>, !pto.ptr<{a.element}>, i64, i64, i64, i64"
            for a in self.arrays
            if a.is_result
        ]
        inside = "\n".join(f"  {each}" for each in [*lines, "return"])
        return f"func.func @example({params}) attributes {{pto.kernel}} {{\n{inside}\n}}\n"


def _ordered(first: str, second: str) -> list[str]:
    return [
        f"pto.{word}_flag[<PIPE_{first}>, <PIPE_{second}>, <EVENT_ID0>]" for word in ("set", "wait")
    ]


def kernel(
    record: Micro,
    T: DType,
    U: DType,
    bits: Bits,
    numbers: Mapping[str, int | float],
    more: Iterable[str] = (),
    written: Mapping[str, str] | None = None,
) -> Kernel:
    """The kernel of an operation on operands of these types.

    `bits` say what masks are; `numbers` the values of operands that are
    numbers; `more` the operands that might be left out and are not.
    """
    made, given = Kernel(record), types(record, T, U, more)
    for slot in record.operands:
        for name in names([slot], given):
            _operand(made, slot, name[1:], given[slot.name], bits, numbers)
    shown = {**examples(record, T, U), **(written or {})}
    made.body.append(line(record, given, written=shown))
    for slot in record.results:
        for name in names([slot], given):
            _result(made, name[1:], given[slot.name])
    return made


def _operand(
    made: Kernel,
    slot: Slot,
    name: str,
    type_: str,
    bits: Bits,
    numbers: Mapping[str, int | float],
) -> None:
    vector, mask = _VECTOR.match(type_), _MASK.match(type_)
    if mask is not None:
        lanes = int(mask[1])
        chosen = bits(name, lanes)
        if isinstance(chosen, int):
            made.front += number(f"of_{name}", "index", chosen)
            made.body.append(f"%{name} = pto.vmi.create_mask %of_{name} : index -> {type_}")
            return
        listed = ", ".join(str(bool(bit)).lower() for bit in chosen)
        made.body.append(
            f'%{name} = "pto.vmi.constant_mask"() {{value = dense<[{listed}]> : '
            f"vector<{lanes}xi1>}} : () -> {type_}"
        )
    elif vector is not None:
        is_index = slot.kind == "X"
        made.arrays.append(Array(f"{name}_", vector[2], int(vector[1]), is_index=is_index))
        load = "pto.vmi.load" if ".vmi." in type_ else "pto.vlds"
        pointer = f"!pto.ptr<{vector[2]}, ub>"
        made.body.append(f"%{name} = {load} %{name}_[%c0] : {pointer} -> {type_}")
    elif type_.startswith("!pto.ptr"):
        element = type_.removeprefix("!pto.ptr<").partition(",")[0]
        footprint = made.record.footprint
        writes = footprint is not None and footprint.writes
        made.arrays.append(Array(name, element, MEMORY, is_result=writes))
    else:
        made.front += number(name, type_, numbers[slot.name])


def number(name: str, type_: str, value: float) -> Iterator[str]:
    """Lines that make a number; one with a word about its sign is cast."""
    plain = type_.lstrip("su") if type_[0] in "su" else type_
    literal = f"{value:.6e}" if plain[0] in "bf" else str(int(value))
    if plain == type_:
        yield f"%{name} = arith.constant {literal} : {type_}"
        return
    yield f"%{name}_bits = arith.constant {literal} : {plain}"
    cast = "builtin.unrealized_conversion_cast"
    yield f"%{name} = {cast} %{name}_bits : {plain} to {type_}"


def _result(made: Kernel, name: str, type_: str) -> None:
    vector, mask = _VECTOR.match(type_), _MASK.match(type_)
    if vector is None:  # a mask, or a number: what vectors show of it
        lanes = int(mask[1]) if mask is not None else 64
        width = "8" if mask is None or mask[2] == "pred" else mask[2][1:]
        kind = f"ui{width}" if mask is not None else type_
        shown = f"!pto.vmi.vreg<{lanes}x{kind}>"
        if mask is not None:
            made.front += [*number("yes", kind, 1), *number("no", kind, 0)]
            made.body += [
                f"%ones = pto.vmi.broadcast %yes : {kind} -> {shown}",
                f"%zeros = pto.vmi.broadcast %no : {kind} -> {shown}",
                f"%seen_{name} = pto.vmi.select %{name}, %ones, %zeros : "
                f"{type_}, {shown}, {shown} -> {shown}",
            ]
        else:
            made.body.append(f"%seen_{name} = pto.vmi.broadcast %{name} : {kind} -> {shown}")
        name, type_ = f"seen_{name}", shown
        vector = _VECTOR.match(type_)
        assert vector is not None
    array = Array(f"{name}_out", vector[2], int(vector[1]), is_result=True)
    made.arrays.append(array)
    pointer = f"!pto.ptr<{vector[2]}, ub>"
    if ".vmi." in type_:
        made.body.append(f"pto.vmi.store %{name}, %{array.name}[%c0] : {type_}, {pointer}")
        return
    width = f"b{8 * array.kind.itemsize}"
    made.body += [
        f'%all_{name} = pto.pset_{width} "PAT_ALL" : !pto.mask<{width}>',
        f"pto.vsts %{name}, %{array.name}[%c0], %all_{name} : {type_}, {pointer}, "
        f"!pto.mask<{width}>",
    ]


def run(made: Kernel, contents: Mapping[str, Any]) -> dict[str, Any]:
    """Run it on arrays with these contents, zeros where there are none; what is in the results."""
    given = [_array(a, contents) for a in made.arrays]
    loads(made.text)["example"][1](*given, target="a5")
    return {a.name: x for a, x in zip(made.arrays, given, strict=True) if a.is_result}


def _array(array: Array, contents: Mapping[str, Any]) -> Any:
    blank = np.zeros(array.count, array.kind.np)
    return contents[array.name].copy() if array.name in contents else blank


# ---- pages -------------------------------------------------------------------------------------

_NUMBERS: dict[str, int | float] = {"offset": 8, "row_stride": 16, "block_stride": 2,
                                    "repeat_stride": 1, "n": 5}  # fmt: skip
_SHOWN = 8  # elements of a result


def section(record: Micro) -> str:
    """The example as a part of its page, of what works on logical vectors."""
    if not record.is_logical:
        return ""
    return "\n".join(["## Example", "", "```python", *example(record), "```", ""])


def example(record: Micro) -> list[str]:
    """The program on a page: with plain numbers, and what comes out at the front of each result."""
    T, U = min(kinds(record), key=_is_odd)
    shown = {slot.name: 2 for slot in record.operands} | _NUMBERS
    masks = [slot.name for slot in record.operands if slot.is_optional and slot.kind == "M"]
    made = kernel(record, T, U, lambda *_: 5, shown, masks)
    contents = {a.name: _plain(a, n) for n, a in enumerate(made.arrays) if not a.is_result}
    found = run(made, contents)
    lines = ["import numpy as np", "", "from ptokit import loads"]
    lines += ["", f'program = loads("""\n{made.text}""")']
    for n, a in enumerate(made.arrays):
        lines.append(f"{a.name} = {_spelled(a, n)}")
    called = ", ".join(a.name for a in made.arrays)
    lines.append(f'program["example"][1]({called}, target="a5")')
    for name, array in found.items():
        start = int(np.flatnonzero(array)[0]) // _SHOWN * _SHOWN if array.any() else 0
        values = ", ".join(map(_literal, array[start : start + _SHOWN].tolist()))
        lines.append(f"np.testing.assert_array_equal({name}[{start}:{start + _SHOWN}], [{values}])")
    return lines


def _is_odd(pair: tuple[DType, DType]) -> tuple[bool, bool]:
    """First what NumPy has by itself, of that f32."""
    return any(kind.np.isbuiltin != 1 for kind in pair), pair[0].name != "f32"


def _plain(a: Array, n: int) -> Any:
    if a.is_index:
        return np.arange(a.count)[::-1].astype(a.kind.np)
    steps = np.arange(a.count) % (7 + n)
    return (steps / 2 - 1).astype(a.kind.np) if a.kind.is_float else steps.astype(a.kind.np)


def _spelled(a: Array, n: int) -> str:
    kind = f"np.{a.kind.np.name}"
    if a.is_result:
        return f"np.zeros({a.count}, {kind})"
    if a.is_index:
        return f"np.arange({a.count})[::-1].astype({kind})"
    steps = f"np.arange({a.count}) % {7 + n}"
    return f"({steps} / 2 - 1).astype({kind})" if a.kind.is_float else f"({steps}).astype({kind})"


def _literal(value: float) -> str:
    return repr(value) if np.isfinite(value) else f"{'-' * (value < 0)}np.{abs(value)}"
