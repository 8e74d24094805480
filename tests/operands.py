"""Operands from the short notation of samples, alive or as the verifier sees them.

`make("Vec f16 16x32 valid 13x20")` is a tile, `make("GM f16 13x20 DN")` a GlobalTensor over an
array of its own, `codes("TLOAD", "a5", ...)` the rules that a call of these operand types breaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.base.dtypes import f32
from ptokit.base.enums import TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import GlobalTensor, conv_class, global_class
from ptokit.frontend.types import Tile
from ptokit.ir.asmform import looks_like, print_asm
from ptokit.ir.core import Op
from ptokit.ir.parser import parse as parse_text
from ptokit.ir.printer import print_module
from ptokit.ir.rewrite import same_module
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, parse
from ptokit.isa.targets import TARGETS
from ptokit.isa.verify import verify
from ptokit.machine.access import Access
from ptokit.machine.calls import tile_access

_rng = np.random.default_rng(7)


def make(text: str, at: int = 0) -> Any:
    """A living operand; tiles are bound to `at` where addresses are given by hand."""
    machine = current()
    spec: Any = parse(text, f32, machine.target)
    if isinstance(spec, GlobalSpec):
        return tensor(spec)
    if not isinstance(spec, TileSpec | ConvSpec):
        return spec
    made: Any = Tile.of(spec) if isinstance(spec, TileSpec) else conv_class(spec)()
    machine.place(made)
    if made.storage is None:
        made.bind(machine.core.memory(spec.loc), at)
    return made


def tensor(spec: GlobalSpec) -> GlobalTensor:
    """A GlobalTensor over random bits."""
    last = sum((n - 1) * s for n, s in zip(spec.shape, spec.stride, strict=True)) + 1
    room = max(last, int(np.prod(spec.shape)), 1)
    if spec.layout.name == "NDC1HWC0":
        room += spec.stride[4]
    return global_class(spec)(noise(spec.dtype, (room,)))


def noise(kind: Any, shape: tuple[int, ...]) -> Array:
    """Random bits: every copy must bring over each of them."""
    size = kind.np.itemsize
    return _rng.integers(0, 256, (*shape[:-1], shape[-1] * size), np.uint8).view(kind.np)


def bits(array: Array) -> Array:
    """The bits of an array; NaNs compare like everything else."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def whole(tile: Any) -> Access:
    """The whole capacity of a tile."""
    return tile_access(tile, whole=True)


def flood(tile: Any, byte: int = 0x5A) -> None:
    """Set every byte of a tile, so that a test sees which ones an instruction touches."""
    part = slice(tile.address, tile.address + tile.spec.nbytes)
    tile.storage.data[part] = byte
    tile.storage.shadow[part] = 1


def codes(name: str, target: str, *texts: str | None, **attrs: Any) -> set[str]:
    """Codes of the rules that a call with these operand types breaks; empty: it is legal."""
    insn, chosen = INSTRUCTIONS[name], TARGETS[target]
    specs = [None if text is None else parse(text, f32, chosen) for text in texts]
    specs += [None] * (len(insn.operands) - len(specs))
    operands = {o.name: spec for o, spec in zip(insn.operands, specs, strict=True)}
    values = {a.name: attrs.get(a.name, a.default) for a in insn.attrs}
    sample = Sample(insn, chosen, operands, values)
    return {d.code for d in verify(insn, sample.facts("auto"))}


def instruction_in(text: str) -> Op:
    """The one instruction of a text in any of the assembly forms."""
    (found,) = [op for op in parse_text(text).walk() if op.insn is not None]
    return found


def printed(text: str) -> list[str]:
    """The lines of a text in any of the assembly forms after reading and printing it."""
    module = parse_text(text)
    again = print_asm(module) if looks_like(text) else print_module(module)
    assert same_module(module, parse_text(again)), again
    return [line.strip() for line in again.splitlines()]


__all__ = [
    "TileType",
    "bits",
    "codes",
    "flood",
    "instruction_in",
    "make",
    "noise",
    "printed",
    "tensor",
    "whole",
]
