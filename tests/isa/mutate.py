"""The search for a violating example: change a legal sample a little until a rule breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from typing import Any

from ptokit.base.dtypes import ALL
from ptokit.base.enums import CompactMode, Layout, PadValue, TileType
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import DYNAMIC, LAYOUT_NAMES, TileSpec
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Sample
from ptokit.isa.spec import Operand, Rule
from ptokit.isa.verify import code_of, verify

SIZES = (0, 1, 2, 3, 7, 8, 15, 16, 17, 32, 33, 48, 64, 96, 128, 256, 512, 1024, 4096, 4097, 8193,
         16320, 16385, 65536, 65537)  # fmt: skip


def variants(spec: Any) -> Iterator[Any]:
    """Neighbours of one operand."""
    if isinstance(spec, TileSpec):
        yield from (replace(spec, dtype=t) for t in ALL)
        yield from (replace(spec, loc=loc) for loc in TileType)
        for blayout, slayout in LAYOUT_NAMES:
            for fractal in (512, 1024, 32):
                yield replace(spec, blayout=blayout, slayout=slayout, fractal=fractal)
        for n in SIZES:
            yield replace(spec, valid_row=n)
            yield replace(spec, valid_col=n)
            yield replace(spec, rows=n, valid_row=n)
            yield replace(spec, cols=n, valid_col=n)
            yield replace(spec, rows=n)
            yield replace(spec, cols=n)
            yield replace(spec, rows=n, cols=n, valid_row=n, valid_col=n)
        yield from (replace(spec, pad=p) for p in PadValue)
        yield from (replace(spec, compact=c) for c in CompactMode)
        yield from (replace(spec, valid_row=DYNAMIC), replace(spec, valid_col=DYNAMIC))
    elif isinstance(spec, GlobalSpec):
        yield from (replace(spec, dtype=t) for t in ALL)
        yield from (replace(spec, layout=layout) for layout in Layout)
        for axis in range(5):
            for n in (*SIZES, DYNAMIC):
                yield replace(spec, shape=_with(spec.shape, axis, n))
                yield replace(spec, stride=_with(spec.stride, axis, n))
    elif isinstance(spec, ConvSpec):
        yield from (replace(spec, dtype=t) for t in ALL)
        yield from (replace(spec, loc=loc) for loc in TileType)
        yield from (replace(spec, layout=layout) for layout in Layout)
        for axis in range(len(spec.shape)):
            for n in SIZES:
                yield replace(spec, shape=_with(spec.shape, axis, n))
        yield replace(spec, buffer_size=1)
    elif isinstance(spec, GroupSpec):
        yield replace(spec, views=())
        yield from (replace(spec, rootIdx=root) for root in (-1, 1, spec.nranks))
        for changed in variants(spec.views[0]):
            yield replace(spec, views=(changed,) * spec.nranks)
            yield replace(spec, views=(*spec.views[1:], changed))
    elif isinstance(spec, int | float):
        yield from (-1, 0, 1, 2, 3, 7, 8, 17, 33, 255, 256, 4096, 65536, 1 << 40, 0.5)


def of_other_kinds(operand: Operand, spec: Any) -> Iterator[Any]:
    """A tensor or a convolution tile in place of a tile, where the operand may be one."""
    if "conv" in operand.kinds and not isinstance(spec, ConvSpec):
        yield ConvSpec.of(TileType.Mat, ALL[0], 64, Layout.NC1HWC0, (1, 1, 2, 1, 32))
    if "global" in operand.kinds and not isinstance(spec, GlobalSpec):
        yield GlobalSpec.of(ALL[0], (1, 1, 1, 16, 64), (1024, 1024, 1024, 64, 1))


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])


def neighbours(sample: Sample) -> Iterator[Sample]:
    """Samples that differ in one operand or one template argument."""
    for name, spec in sample.operands.items():
        for changed in (*variants(spec), *of_other_kinds(sample.insn.operand(name), spec)):
            yield replace(sample, operands={**sample.operands, name: changed})
        if isinstance(spec, TileSpec | ConvSpec):
            yield replace(sample, addresses={name: 48})
        if spec is None and sample.insn.operand(name).kinds == ("scalar",):
            yield replace(sample, operands={**sample.operands, name: 1})
    for attr in sample.insn.attrs:
        if issubclass(attr.type, IntEnum):
            values: Any = [*attr.type, attr.default]
        else:
            values = (
                (True, False, attr.default)
                if attr.type is bool
                else (None, -1, 0, 1, 3, 33, 1 << 30)
            )
        for value in values:
            yield replace(sample, attrs={**sample.attrs, attr.name: value})


def breaks(sample: Sample, rule: Rule, mode: str) -> bool:
    """Whether the verifier reports this very rule."""
    try:
        # The other rules of the record would only cost time.
        found = verify(
            replace(sample.insn, rules=(rule,), types=()), sample.facts(mode), advise=False
        )
    except (ZeroDivisionError, IndexError, KeyError, TypeError, AttributeError):
        return False  # a nonsense neighbour; the rule it was made for is checked elsewhere
    wanted = f"{sample.insn.name}: {rule.text}"
    return any(d.code == code_of(sample.insn, rule) and d.message == wanted for d in found)


def violating(samples: list[Sample], rule: Rule) -> Sample | None:
    """The first neighbour, one or two changes away, that breaks the rule."""
    for mode in ("auto", "manual"):
        for sample in samples:
            for candidate in neighbours(sample):
                if breaks(candidate, rule, mode):
                    return candidate
    for sample in samples[:1]:
        for first in _coarse(sample):
            for candidate in neighbours(first):
                if breaks(candidate, rule, "manual"):
                    return candidate
    return None


def _coarse(sample: Sample) -> Iterator[Sample]:
    """A thinner set of first steps for the two-step search: layouts, spaces and template modes."""
    for attr in sample.insn.attrs:
        if issubclass(attr.type, IntEnum):
            for value in attr.type:
                yield replace(sample, attrs={**sample.attrs, attr.name: value})
    for name, spec in sample.operands.items():
        if isinstance(spec, TileSpec):
            for loc in TileType:
                yield replace(sample, operands={**sample.operands, name: replace(spec, loc=loc)})
            for blayout, slayout in LAYOUT_NAMES:
                changed = replace(spec, blayout=blayout, slayout=slayout)
                yield replace(sample, operands={**sample.operands, name: changed})
        elif isinstance(spec, GlobalSpec):
            for layout in Layout:
                changed_view = replace(spec, layout=layout)
                yield replace(sample, operands={**sample.operands, name: changed_view})
