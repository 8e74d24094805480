"""What many tests need: living operands for a sample, and a way to run it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import ptokit
from ptokit.base.dtypes import DType
from ptokit.base.layout import Array
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import conv_class, global_class
from ptokit.frontend.types import Tile
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Sample, Spec
from ptokit.machine.calls import tile_access


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


def run_sample(sample: Sample, seed: int = 0) -> dict[str, Any]:
    """Run a sample on the machine in force and return its operands."""
    rng = np.random.default_rng(seed)
    operands = {name: realise(spec, rng) for name, spec in sample.operands.items()}
    operands |= {name: operands[other] for name, other in sample.same.items()}
    for name, value in sample.contents.items():
        operands[name].fill(value)
    exec(sample.insn.setup, {**vars(ptokit), "np": np, **operands})
    attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
    here = ptokit.base.location.Location("sample", 1)
    current().execute(sample.insn, tuple(operands.values()), attrs, here)
    return operands


def listen(machine: Any) -> list[Any]:
    """The events of a machine from now on."""
    events: list[Any] = []
    machine.subscribe(events.append)
    return events
