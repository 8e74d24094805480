"""Each operand that is a number takes those its record declares, and no other on any path."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import ProgramError, kernel
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import device
from ptokit.ir.core import Module
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.facts import ScalarFacts
from ptokit.isa.samples import Sample, samples
from ptokit.isa.scalars import Takes
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine.objects import GlobalObject
from ptokit.passes.verify import Verify
from tests.support import sample_function, sample_operands


def numbers(insn: Insn) -> dict[str, Takes]:
    return {operand.name: takes for operand, takes in insn.numbers}


CASES = [(insn, name) for insn in INSTRUCTIONS.values() for name in numbers(insn)]


def shown(insn: Insn, name: str) -> Sample | None:
    """A legal call in which the operand is a number; None: no sample has one."""
    for target in sorted(insn.targets, key=list(TARGETS).index):
        for sample in samples(insn, TARGETS[target]):
            if isinstance(sample.operands[name], int | float):
                return sample
    return None


def unfit(sample: Sample, name: str) -> Iterator[float]:
    """Numbers just beyond what the operand takes, and some that nothing takes."""
    takes = numbers(sample.insn)[name]
    element = getattr(sample.operands[takes.of], "dtype", None) if takes.of else None
    yield 10**5000  # more digits than Python prints
    if takes.is_integer:
        yield from (int(takes.low) - 1, int(takes.high) + 1, 0.5, 2.0, nan, inf)
    elif element is None:
        yield from (1e39, -1e39)
    else:
        yield from (2**64, -(2**63) - 1)
        if element.is_integer:
            yield from (nan, -inf, float(element.max_value) * 2, float(element.min_value) * 2 - 1)


def code_of(insn: Insn, name: str) -> str:
    return insn.operand(name).refused or f"{insn.name}.number"


@pytest.mark.parametrize(("insn", "name"), CASES, ids=lambda x: getattr(x, "name", x))
def test_other_numbers_are_refused_where_they_are_written(insn: Insn, name: str) -> None:
    sample = shown(insn, name)
    if sample is None:
        pytest.skip("no sample gives it as a number")
    for value in unfit(sample, name):
        with device(sample.target, mode="auto"):
            operands = sample_operands(sample) | {name: value}
            given = [v for v in operands.values() if v is not None]
            attrs = tuple(sample.attrs.values())
            with pytest.raises(ProgramError) as caught:
                Instruction(insn).call(tuple(given), attrs, ())
            assert code_of(insn, name) in caught.value.codes, value
            found = caught.value.diagnostics[0]
            assert found.fix
            assert dict(found.got)[name] == str(ScalarFacts(known=value)), "not its type"
            assert len(found.render()) < 1500, "the number itself is no message"


@pytest.mark.parametrize(("insn", "name"), CASES, ids=lambda x: getattr(x, "name", x))
def test_lowered_kernels_are_refused_alike(insn: Insn, name: str) -> None:
    sample = shown(insn, name)
    if sample is None or insn.asm is None or "." in insn.name or insn.overload_of:
        pytest.skip("no sample gives it as a number, or it has no text")
    with device(sample.target, mode="auto"):
        operands = {n: v for n, v in sample_operands(sample).items() if v is not None}
    if any(isinstance(v, str) or insn.operand(n).is_object for n, v in operands.items()):
        pytest.skip("no kernel takes it as an argument")
    known = [n for n, v in operands.items() if isinstance(v, int | float)]
    others = [n for n in operands if n not in known]
    template = [v for a, v in sample.attrs.items() if v != _default(insn, a)]
    brackets = f"[{', '.join(f'T[{k}]' for k in range(len(template)))}]" if template else ""
    text = (
        f"def k({', '.join(others)}):\n"
        f"    {insn.name}{brackets}({', '.join(_written(n, v) for n, v in operands.items())})\n"
    )
    linecache.cache[f"<{insn.name}>"] = (len(text), None, text.splitlines(True), f"<{insn.name}>")
    space: dict[str, Any] = {**vars(ptokit), "T": template}
    exec(compile(text, f"<{insn.name}>", "exec"), space)
    made = kernel(mode="auto")(space["k"])
    arrays = [_argument(operands[n]) for n in others]
    for value in unfit(sample, name):
        # Not arguments, of which kernels take none that no device holds.
        space |= {n: value if n == name else operands[n] for n in known}
        with pytest.raises(ProgramError) as caught:
            made.lower(*arrays, target=sample.target)
        assert code_of(insn, name) in caught.value.codes, value


def _default(insn: Insn, name: str) -> Any:
    return next(a.default for a in insn.attrs if a.name == name)


def _written(name: str, value: Any) -> str:
    return f"GlobalTensor({name})" if isinstance(value, GlobalObject) else name


def _argument(value: Any) -> Any:
    """Kernels take arrays, and make views of them."""
    if not isinstance(value, GlobalObject):
        return value
    return np.zeros(value.shape, value.spec.dtype.np)


@pytest.mark.parametrize(("insn", "name"), CASES, ids=lambda x: getattr(x, "name", x))
def test_a_text_gives_no_float_for_an_integer(insn: Insn, name: str) -> None:
    sample = shown(insn, name)
    if sample is None or not numbers(insn)[name].is_integer:
        pytest.skip("it may be a float")
    function = sample_function(replace(sample, operands={**sample.operands, name: 0.5}))
    if function is None:
        pytest.skip("its text is no plain line")
    found = Verify().check(Module([function]), sample.target)
    assert [d.code for d in found] == [code_of(insn, name)]


def test_numbers_of_other_types_are_numbers() -> None:
    class Whole(int):
        pass

    with device("a2a3", mode="auto"):
        tile = ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 16, 64]()
        for number in (2, 2.0, Whole(2), np.int8(2), np.float16(2), np.longdouble(2), np.bool_(1),
                       np.array(2.0), np.array(2, np.int8)):  # fmt: skip
            ptokit.TEXPANDS(tile, number)
            assert (tile.numpy() == float(number)).all()
        for thing in (np.array(2j), 2j, "2", np.complex64(2), None, np.timedelta64(2)):
            with pytest.raises(ProgramError, match=r"TEXPANDS\.operands"):
                ptokit.TEXPANDS(tile, thing)


@pytest.mark.parametrize("thing", [object(), 3, "pipe", ptokit.Tile, np.zeros(3)])
def test_what_is_no_pipe_or_group_is_refused(thing: Any) -> None:
    objects = [(i, o) for i in INSTRUCTIONS.values() for o in i.operands if o.is_object]
    assert len(objects) > 10
    for insn, operand in objects:
        target = next(t for t in TARGETS if t in insn.targets)
        sample = next(iter(samples(insn, TARGETS[target])))
        with device(target, mode="auto"):
            operands = sample_operands(sample)
            if operands[operand.name] is None:
                continue
            given = [v for v in (operands | {operand.name: thing}).values() if v is not None]
            code = operand.refused or f"{insn.name}.operands"
            with pytest.raises(ProgramError, match=re.escape(code)):
                Instruction(insn)(*given)
