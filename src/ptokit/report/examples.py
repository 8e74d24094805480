"""Programs of instruction pages: one that runs and says what comes of it, one with a mistake."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from enum import IntEnum
from io import StringIO
from math import isinf, isnan, prod
from typing import Any

import numpy as np

from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import DType
from ptokit.base.enums import BLayout, Layout, PadValue, TileType
from ptokit.base.layout import Array
from ptokit.base.namedtuple import NamedTuple
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.base.usercode import compiled
from ptokit.isa.devices import TARGETS
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Sample, Spec, sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS as PROFILES
from ptokit.isa.verify import verify

SHOWN = 4  # elements of a result


def example_sample(insn: Insn) -> Sample | None:
    """A legal call to show: on the first device that has the instruction, f32 where possible."""
    target = next((t for t in TARGETS if t in insn.targets), None)
    if target is None:
        return None
    every = list(samples(insn, PROFILES[target]))
    preferred = [s for s in every if "f32" in str(s)]
    return (preferred or every or [sample(insn, PROFILES[target], {})])[0]


def placed_by(insn: Insn) -> str:
    """The operand that an instruction puts at an address of the program's choice, if any."""
    others = [o for o in insn.operands if o.name != insn.binds and "tile" in o.kinds]
    return "" if others else insn.binds


def example_code(shown: Sample, *, telling: bool = False, cleared: bool = False) -> list[str]:
    """A complete program that makes the sample's operands and issues the instruction.

    Sources are full of ones, unless they are to be `telling`: then elements differ, and tiles that
    the instruction places are not placed before. Results may be `cleared`.
    """
    lines = ["import numpy as np", "", "from ptokit import *", ""]
    places = placed_by(shown.insn) if telling else ""
    mode = "manual" if places else "auto"
    lines.append(f'with device("{shown.target.name}", mode="{mode}"):')
    names: list[str] = []
    for name, spec in shown.operands.items():
        if spec is None:
            continue
        if isinstance(spec, int | float):
            names.append(shown.insn.operand(name).written(spec))
            continue
        names.append(shown.same.get(name, name))
        reads = shown.insn.operand(name).reads
        step = 1 + len(names) % 3 if reads else 0  # so that sources differ
        if name not in shown.same:
            lines.append(f"    {name} = {_construct(spec, step if telling else None)}")
        if name == places or not isinstance(spec, TileSpec | ConvSpec):
            continue
        if reads:
            plain = name in shown.contents or not telling
            filling = str(shown.contents.get(name, 1)) if plain else _telling(spec, step)
            lines.append(f"    {names[-1]}.fill({filling})")
        elif cleared and shown.insn.operand(name).role == "out":
            lines.append(f"    {names[-1]}.fill(0)")
    lines += [f"    {line.strip()}" for line in shown.insn.setup.split(";") if line.strip()]
    chosen = [(a, shown.attrs[a.name]) for a in shown.insn.attrs]
    attrs = [_argument(v) for a, v in chosen if not a.argument and v != a.default]
    names += [_argument(v) for a, v in chosen if a.argument and v is not None]
    brackets = f"[{', '.join(attrs)}]" if attrs else ""
    kept = "got = " if telling and _gives_number(shown.insn) else ""
    lines.append(f"    {kept}{shown.insn.name}{brackets}({', '.join(names)})")
    return lines


# ---- what comes of it ----------------------------------------------------------------------------


def asserted(shown: Sample) -> list[str]:
    """The program, with assertions about what it leaves behind: they hold as they are written."""
    for telling, cleared in ((True, False), (True, True), (False, False), (False, True)):
        lines = example_code(shown, telling=telling, cleared=cleared)
        found = [f"    {line}" for line in _assertions(shown, lines)]
        if found:
            return lines + found
    return example_code(shown)


def _gives_number(insn: Insn) -> bool:
    return insn.returns == "i1" or insn.returns in {o.name for o in insn.operands}


def _assertions(shown: Sample, lines: list[str]) -> Iterator[str]:
    insn = shown.insn
    written = [
        shown.same.get(o.name, o.name)
        for o in insn.operands
        if o.role in ("out", "inout")
        and isinstance(shown.operands.get(o.name), TileSpec | ConvSpec | GlobalSpec)
    ]
    for name in dict.fromkeys(written):
        if name == placed_by(insn):
            yield f"assert {name}.address == {_left_in(lines, f'{name}.address')}"
            continue
        value = _left_in(lines, f"{name}.numpy()")
        if isinstance(value, np.ndarray) and value.size:
            yield _about(f"{name}.numpy()", value)
    if _gives_number(insn) and any("got = " in line for line in lines):
        value = _left_in(lines, "got")
        if value is not None:
            yield f"assert got == {_number(value)}"


def _left_in(lines: list[str], expression: str) -> Any:
    """What an expression is at the end of a program; None where the program or it is refused."""
    names: dict[str, Any] = {}
    try:
        executed([*lines, f"    _found = {expression}"], names)
    except PtoError:
        return None
    return names["_found"]


def _about(expression: str, value: Array) -> str:
    """An assertion about the first elements: of a row, or of a column that has one each."""
    *outer, rows, cols = (1, *value.shape) if value.ndim == 1 else value.shape
    zeros = "0, " * (value.ndim - 2)
    if value.ndim > 1 and cols == 1 and rows > 1:
        part, first = f"[{zeros}:{SHOWN}, 0]", value[(0,) * len(outer)][:SHOWN, 0]
    else:
        zeros = "0, " * (value.ndim - 1)
        part, first = f"[{zeros}:{SHOWN}]", value[(0,) * (value.ndim - 1)][:SHOWN]
    numbers = [float(each) if first.dtype.kind not in "iub" else int(each) for each in first]
    words = [_number(each) for each in numbers]
    pairs = zip(numbers, words, strict=True)
    exact = all(w.startswith(("np.", "-np.")) or float(w) == n for n, w in pairs)
    check = "assert_array_equal" if exact else "assert_allclose"
    more = "" if exact else ", rtol=1e-3"
    part += "" if first.dtype.isbuiltin == 1 else ".astype(float)"
    return f"np.testing.{check}({expression}{part}, [{', '.join(words)}]{more})"


def _number(value: Any) -> str:
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        return "np.nan" if isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def executed(lines: list[str], names: dict[str, Any], file: str = "example.py") -> None:
    """Run a program for what it does; what it prints and warns of is not of interest."""
    program = compiled("\n".join(lines) + "\n", file)
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        exec(program, names)


# ---- a mistake -----------------------------------------------------------------------------------


class Mistake(NamedTuple):
    """A program that breaks one rule, the code of the rule, and what is said."""

    lines: list[str]
    code: str
    message: str


def mistake(shown: Sample) -> Mistake | None:
    """A small change of the sample that breaks exactly one rule of its target."""
    for changed in _changes(shown):
        if _is_refused(changed):
            lines = example_code(changed, telling=True)
            codes, said = _refusal(lines, "example.py")
            if len(codes) == 1:
                return Mistake(lines, codes[0], said)
    return None


def _is_refused(changed: Sample) -> bool:
    """Whether one rule is broken, as far as that is known before the program runs."""
    if any(isinstance(spec, str) for spec in changed.operands.values()):
        return True  # an object: it exists when the program runs
    mode = "manual" if placed_by(changed.insn) else "auto"
    found = verify(changed.insn, changed.facts(mode), advise=False)
    return [each.severity for each in found] == ["error"]


def _changes(shown: Sample) -> Iterator[Sample]:
    """The sample with one operand changed, its size, layout, memory or type, or the target."""
    given = {
        name: spec
        for name, spec in shown.operands.items()
        if isinstance(spec, TileSpec | GlobalSpec | ConvSpec) and name not in shown.same
    }
    for change in (_smaller, _turned, _elsewhere, _retyped):
        for name, spec in given.items():
            for other in change(spec, shown):
                is_formed = isinstance(other, GlobalSpec) or not any(other.violations())
                if is_formed and name not in shown.same.values():
                    yield replace(shown, operands=shown.operands | {name: other})
    for number in (8, 1025, -1, 1 << 20):
        for name, value in shown.operands.items():
            if isinstance(value, int):
                yield replace(shown, operands=shown.operands | {name: number})
        for name, value in shown.attrs.items():
            if type(value) is int:
                yield replace(shown, attrs=shown.attrs | {name: number})
    for target in TARGETS:
        if target not in shown.insn.targets:
            yield replace(shown, target=PROFILES[target])


def _smaller(spec: Spec, shown: Sample) -> Iterator[TileSpec | GlobalSpec | ConvSpec]:
    if isinstance(spec, TileSpec) and min(spec.valid_row, spec.valid_col) > 1:
        yield spec.but(valid_row=spec.valid_row // 2)
        yield spec.but(valid_col=spec.valid_col // 2)
        yield spec.but(valid_col=spec.valid_col - 1)
    elif isinstance(spec, GlobalSpec) and spec.shape[3] > 1:
        yield GlobalSpec.of(
            spec.dtype,
            (*spec.shape[:3], spec.shape[3] // 2, spec.shape[4]),
            spec.stride,
            spec.layout,
        )


def _turned(spec: Spec, shown: Sample) -> Iterator[TileSpec | GlobalSpec | ConvSpec]:
    if isinstance(spec, TileSpec) and not spec.is_boxed:
        yield spec.but(blayout=BLayout.ColMajor if spec.is_row_major else BLayout.RowMajor)


def _elsewhere(spec: Spec, shown: Sample) -> Iterator[TileSpec | GlobalSpec | ConvSpec]:
    if isinstance(spec, TileSpec):
        yield spec.but(loc=TileType.Mat if spec.loc == TileType.Vec else TileType.Vec)


def _retyped(spec: Spec, shown: Sample) -> Iterator[TileSpec | GlobalSpec | ConvSpec]:
    assert isinstance(spec, TileSpec | GlobalSpec | ConvSpec)
    for kind in sorted(shown.target.dtypes, key=lambda kind: (kind.bits != 16, kind.name)):
        if kind.is_packed or kind == spec.dtype:
            continue
        if isinstance(spec, TileSpec):
            yield spec.but(dtype=kind)
        elif isinstance(spec, GlobalSpec):
            yield GlobalSpec.of(kind, spec.shape, spec.stride, spec.layout)
        else:
            yield ConvSpec.of(spec.loc, kind, spec.buffer_size, spec.layout, spec.shape)


def _refusal(lines: list[str], name: str) -> tuple[tuple[str, ...], str]:
    """The codes of what is said of a program, and the words, which show its lines."""
    linecache.cache[name] = (1, None, [f"{line}\n" for line in lines], name)
    try:
        executed(lines, {}, name)
    except PtoError as error:
        return error.codes, str(error).strip()
    finally:
        linecache.cache.pop(name, None)
    return (), ""


# ---- operands as source --------------------------------------------------------------------------


def _argument(value: object) -> str:
    if isinstance(value, IntEnum):
        return f"{type(value).__name__}.{value.name}"
    return value.name if isinstance(value, DType) else repr(value)


def _telling(spec: TileSpec | ConvSpec, step: int) -> str:
    """An expression for contents in which elements can be told apart."""
    if spec.dtype.is_packed or (spec.dtype.bits == 8 and not spec.dtype.is_integer):
        return "1"
    shape = (spec.valid_row, spec.valid_col) if isinstance(spec, TileSpec) else spec.shape
    if min(shape) < 0:
        return "1"
    return f"np.arange({prod(shape)}).reshape({', '.join(map(str, shape))}) % {9 - step} + {step}"


def _construct(spec: object, step: int | None = None) -> str:
    """Python source that makes an operand of this type; memory is ones, unless there is a step.

    Then it counts from there on; with the step 0, that of a result, it is zeros.
    """
    if isinstance(spec, str):
        return f"{spec}()" if spec.isidentifier() else spec
    if isinstance(spec, GlobalSpec):
        shape = ", ".join(map(str, spec.shape))
        stride = ", ".join(map(str, spec.stride))
        kind = f"GlobalTensor[{spec.dtype.name}, Shape[{shape}], Stride[{stride}]"
        layout = "" if spec.layout == Layout.ND else f", Layout.{spec.layout.name}"
        size = max(prod(spec.shape), 1)
        name = _numpy_name(spec.dtype)
        values = f"np.{'ones' if step is None else 'zeros'}({size}, {name})"
        if step and not spec.dtype.is_packed:
            values = f"(np.arange({size}) % {9 - step} + {step}).astype({name})"
        return f"{kind}{layout}]({values})"
    if isinstance(spec, GroupSpec):
        return f"comm.ParallelGroup([{', '.join(map(_construct, spec.views))}], {spec.rootIdx})"
    if isinstance(spec, ConvSpec):
        shape = ", ".join(map(str, spec.shape))
        return (
            f"ConvTile[TileType.{spec.loc.name}, {spec.dtype.name}, {spec.buffer_size}, "
            f"Layout.{spec.layout.name}, ConvTileShape[{shape}]]()"
        )
    assert isinstance(spec, TileSpec)
    words = [f"TileType.{spec.loc.name}", spec.dtype.name, str(spec.rows), str(spec.cols)]
    more, defaults = (
        [
            f"BLayout.{each.blayout.name}",
            str(each.valid_row),
            str(each.valid_col),
            f"SLayout.{each.slayout.name}",
            str(each.fractal),
            f"PadValue.{PadValue(each.pad).name}",
            f"CompactMode.{each.compact.name}",
        ]
        for each in (spec, TileSpec.of(spec.loc, spec.dtype, spec.rows, spec.cols))
    )
    while more and more[-1] == defaults[len(more) - 1]:
        more.pop()
    return f"Tile[{', '.join(words + more)}]()"


def _numpy_name(kind: DType) -> str:
    return f"np.{kind.np.name}" if kind.np.isbuiltin == 1 else f"{kind.name}.np"
