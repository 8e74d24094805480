"""What many tests need: living operands for a sample, and a way to run it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

import ptokit
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.comm import ParallelGroup
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import conv_class, global_class
from ptokit.frontend.types import Tile
from ptokit.ir.builder import Builder
from ptokit.ir.core import Block, Function, Value
from ptokit.ir.instructions import RETURNED, attribute_for, text_key
from ptokit.ir.types import ScalarType
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Sample, Spec
from ptokit.machine.calls import tile_access
from ptokit.machine.machine import Machine
from ptokit.machine.objects import Bound, GlobalObject
from tests.text.table import type_of


def random_values(kind: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Small positive values that every instruction can digest (indices, shifts, divisors)."""
    return rng.integers(1, 8, shape).astype(np.uint8 if kind.np == np.uint8 else kind.np)


def realise(spec: Spec | None, rng: np.random.Generator) -> Any:
    """Make an operand of this type and fill it, all of its storage included."""
    if isinstance(spec, TileSpec):
        tile = Tile.of(spec)
        current().place(tile)
        everything = tile_access(tile, whole=True)
        everything.write(random_values(spec.dtype, everything.shape, rng))
        everything.memory.shadow[:] = 1
        return tile
    if isinstance(spec, ConvSpec):
        tile = conv_class(spec)()
        tile.fill(random_values(spec.dtype, spec.shape, rng))
        return tile
    if isinstance(spec, GlobalSpec):
        return global_class(spec)(random_values(spec.dtype, (_extent(spec),), rng))
    if isinstance(spec, GroupSpec):
        return ptokit.comm.ParallelGroup([realise(v, rng) for v in spec.views], spec.rootIdx)
    if isinstance(spec, str):  # a helper class, or an expression that makes the object
        return eval(f"{spec}()" if spec.isidentifier() else spec, {**vars(ptokit), "np": np})
    return spec


def _extent(spec: GlobalSpec) -> int:
    last = sum((n - 1) * s for n, s in zip(spec.shape, spec.stride, strict=True))
    return max(last + 1, prod(spec.shape))


def sample_operands(sample: Sample, seed: int = 0) -> dict[str, Any]:
    """Living operands of a sample on the machine in force, after what it needs beforehand."""
    rng = np.random.default_rng(seed)
    operands = {name: realise(spec, rng) for name, spec in sample.operands.items()}
    operands |= {name: operands[other] for name, other in sample.same.items()}
    for name, value in sample.contents.items():
        operands[name].fill(value)
    exec(sample.insn.setup, {**vars(ptokit), "np": np, **operands})
    return operands


def run_sample(sample: Sample, seed: int = 0) -> dict[str, Any]:
    """Run a sample on the machine in force and return its operands."""
    operands = sample_operands(sample, seed)
    attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
    here = ptokit.base.location.Location("sample", 1)
    current().execute(sample.insn, tuple(operands.values()), attrs, here)
    return operands


def listen(machine: Any) -> list[Any]:
    """The events of a machine from now on."""
    events: list[Any] = []
    machine.subscribe(events.append)
    return events


def sample_function(sample: Sample) -> Function | None:
    """A function whose only operation is the sample; None where its text is no plain line.

    Its parameters are the operands that are given, in the order of the record. Flags, FIFOs and
    groups are written in ways of their own (tests/paths).
    """
    insn, named = sample.insn, {}
    if insn.asm is None or insn.asm.syntax:
        return None
    given = {name: spec for name, spec in sample.operands.items() if spec is not None}
    body = Block()
    for name, spec in given.items():
        type_ = type_of(spec, insn.operand(name), is_value=False)
        if type_ is None or isinstance(spec, GroupSpec | str):
            return None
        named[name] = Value(name, type_, body)
    template = dict(zip((a.name for a in insn.attrs), insn.attrs, strict=True))
    chosen = {n: v for n, v in sample.attrs.items() if v != template[n].default}
    if any(isinstance(v, DType) or v is None for v in chosen.values()):
        return None
    attrs = {text_key(insn, template[n]): attribute_for(template[n], v) for n, v in chosen.items()}
    body.args = list(named.values())
    build = Builder(body)
    results = {RETURNED: ScalarType("f32")} if insn.returns else {}
    build.instruction(insn, named, results, attrs)
    build.op("func.return")
    return Function("f", body)


def contents(machine: Machine, operands: Mapping[str, Any]) -> dict[str, Any]:
    """All bytes of all memories and arrays that have a value, and which bytes have one."""
    memories = {str(loc): memory for loc, memory in machine.core.memories.items()}
    arrays: dict[str, Any] = {}
    for name, operand in operands.items():
        if isinstance(operand, Bound) and operand.storage is not None:
            memories[name] = operand.storage
        members = operand if isinstance(operand, ParallelGroup) else [operand]
        for number, view in enumerate(members):
            if isinstance(view, GlobalObject) and view.pointer is not None:
                arrays[f"{name} {number}"] = view.pointer.buffer.data.tobytes()
    return arrays | {
        name: (np.where(memory.shadow, memory.data, 0).tobytes(), memory.shadow.tobytes())
        for name, memory in memories.items()
    }
