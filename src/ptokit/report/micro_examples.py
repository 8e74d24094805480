"""A program for every operation of a scope: what it makes of a few numbers, and that it does.

The program is made of the record. What it asserts was computed by running it: the page shows the
numbers, and the tests run the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from ptokit.base.dtypes import DType, dtype
from ptokit.isa.micro import Micro
from ptokit.isa.micro.samples import kinds
from ptokit.isa.micro.spec import REGISTER_BYTES, Slot

_SHOWN = 6  # numbers of a result
_WIDE = 4  # registers of memory behind a pointer


def example(record: Micro) -> list[str]:
    """The lines of a program that asserts what an operation makes; none for those it is not for."""
    needs = {slot.kind for slot in (*record.operands, *record.results)}
    if not record.is_inside or record.is_logical or "align" in needs or record.uses:
        return []
    lines, found = list[str](), dict[str, list[Any]]()
    # Functions that are not defined below 0 are shown above it, bits as those of integers.
    for kind, start in product(("f32", "i32"), (-3, 1)):
        made = _Program(record, kind, start)
        lines = list(made.lines())
        found = _results(lines, made.outputs)
        if all(np.isfinite(np.asarray(each, np.float64)).all() for each in found.values()):
            break
    if not found:
        return []
    checks = [f"    assert {n}.numpy()[0, :{_SHOWN}].tolist() == {v}" for n, v in found.items()]
    return [*lines, *checks]


def _results(lines: list[str], outputs: list[str]) -> dict[str, list[Any]]:
    names: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        exec("\n".join(lines), names)
        return {name: names[name].numpy()[0, :_SHOWN].tolist() for name in outputs}


class _Program:
    def __init__(self, record: Micro, preference: str, start: int) -> None:
        self.record, self.start = record, start
        every = list(kinds(record))
        preferred = [(t, u) for t, u in every if t.name == preference] or [
            (t, u) for t, u in every if t.name in ("i32", "i16")
        ]
        self.T, self.U = (preferred or every)[0]
        self.outputs: list[str] = []
        self._lanes = 0  # registers that have been given
        named = re.search(r"_b(\d+)$", record.name)
        self.width = int(named[1]) if named else 8 * min(self.T.itemsize, 4)

    def lines(self) -> Iterator[str]:
        record = self.record
        yield from ("import numpy as np", "", "from ptokit import *")
        yield from ("from ptokit.micro import *", "")
        yield 'with device("a5", mode="auto"):'
        inside: list[str] = []
        arguments: list[str] = []
        for slot in record.operands:
            before, within, argument = self._operand(slot)
            yield from (f"    {each}" for each in before)
            inside += within
            arguments.append(argument)
        words = [w.choices[0] for w in record.words if w.default is None]
        arguments += [f'"{word}"' for word in words]
        results = [slot for slot in record.results if not slot.is_optional]
        for slot in results:
            if slot.kind not in ("int",):
                is_mask = slot.kind in ("M", "N", "B")
                count = REGISTER_BYTES // 8 if is_mask else 0  # bytes of a mask
                yield f"    {self._output(slot)} = {self._tile(self._kind(slot), 1, count)}"
        is_open = results and results[0].kind == "W" and record.types == ()
        chosen = self.U if results and results[0].kind == "W" else self.T
        is_made = results and results[0].kind in "VW" and not _takes_lanes(record)
        bits = results and results[0].kind == "B" and not _takes_masks(record)
        bracket = f"[{chosen.name}]" if is_open or is_made or _narrows(record, self.T) else ""
        bracket = f"[{self.width}]" if bits else bracket
        target = ", ".join(slot.name for slot in results)
        yield "    with vecscope():"
        yield from (f"        {each}" for each in inside)
        call = f"{record.name}{bracket}({', '.join(arguments)})"
        yield f"        {target} = {call}" if target else f"        {call}"
        for slot in results:
            yield from (f"        {each}" for each in self._stored(slot))

    # ---- operands ------------------------------------------------------------------------------

    def _operand(self, slot: Slot) -> tuple[list[str], list[str], str]:
        """Lines before the scope, lines in it, and the argument."""
        T, name = self.T, slot.name
        size = T.itemsize
        if slot.kind in ("V", "L", "W", "X"):
            lanes = f"np.arange({REGISTER_BYTES // size})"
            sign = "-" if self.start < 0 else "+"
            kind, values = T, f"{lanes} {sign} {abs(self.start)}"
            if self._lanes:  # behind the first register others that are not the same
                values = f"{lanes} % 3 + {self._lanes}"
            self._lanes += slot.kind in "VL"
            if slot.kind == "W":
                kind, values = dtype(f"i{8 * size}"), f"{lanes} % 4"
            if slot.kind == "X":
                kind, values = dtype(f"u{8 * size}"), f"{lanes}[::-1]"
            made = [f"at_{name} = {self._tile(kind, 1)}", f"at_{name}.fill({values})"]
            return made, [f"{name} = vlds(tile_buf_addr(at_{name}), 0)"], name
        if slot.kind in ("M", "N", "B"):
            pattern = "PAT_ALL" if slot.name in ("mask", "a") else "PAT_M4"
            return [], [f'{name} = pset_b{self.width}("{pattern}")'], name
        if slot.kind == "ub":
            made = [f"{name} = {self._tile(T, _WIDE)}", f"{name}.fill({self._memory()})"]
            if self.record.footprint is not None and self.record.footprint.writes:
                self.outputs.append(name)
            return made, [], f"tile_buf_addr({name})"
        if slot.kind == "S":
            return [], [], "3" if T.is_integer else "2.5"
        return [], [], {"n": "5", "loop": "0"}.get(slot.name, "0" if slot.kind == "index" else "1")

    def _memory(self) -> str:
        count = _WIDE * REGISTER_BYTES // self.T.itemsize
        return f"np.arange({count}) % 100"

    # ---- results -------------------------------------------------------------------------------

    def _kind(self, slot: Slot) -> DType:
        if slot.kind in ("M", "N", "B"):
            return dtype("u8")
        return self.U if slot.kind == "W" else self.T

    def _output(self, slot: Slot) -> str:
        name = f"out_{slot.name}"
        if name not in self.outputs:
            self.outputs.append(name)
        return name

    def _stored(self, slot: Slot) -> Iterator[str]:
        if slot.kind in ("M", "N", "B"):
            yield f'psts({slot.name}, tile_buf_addr(out_{slot.name}), 0, "NORM")'
        elif slot.kind in ("V", "W"):
            bits = 8 * min(self._kind(slot).itemsize, 4)
            stored = f"{slot.name}, tile_buf_addr(out_{slot.name}), 0"
            yield f'vsts({stored}, pset_b{bits}("PAT_ALL"))'

    def _tile(self, kind: DType, registers: int, count: int = 0) -> str:
        count = count or registers * REGISTER_BYTES // kind.itemsize
        return f"Tile[TileType.Vec, {kind.name}, 1, {count}]()"


def _takes_lanes(record: Micro) -> bool:
    return any(slot.kind in "VL" for slot in record.operands) or any(
        slot.kind == "ub" for slot in record.operands
    )


def _takes_masks(record: Micro) -> bool:
    return any(slot.kind in "MNB" for slot in record.operands)


def _narrows(record: Micro, T: DType) -> bool:
    """Whether the operands leave the type of the result open."""
    others = {one[-1] for one in record.types if one[0] is T}
    return any(slot.kind == "W" for slot in record.results) and len(others) > 1
