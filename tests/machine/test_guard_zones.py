"""Nothing outside the user's views is read into a result or written.

Every instruction with an operand in global memory, taken from the table with its samples, works on
arrays that are parts of larger ones: what lies in front of them, behind them and between their
elements is guarded. Each case runs twice with other bytes in the guard zones, on every engine,
called from Python and as an operation of a program. Whether it is refused or not, the guard zones
stay as they were, and what comes out does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit.base.diagnostics import InternalError, PtoError
from ptokit.base.location import Location
from ptokit.base.tensors import GlobalSpec
from ptokit.comm import ParallelGroup
from ptokit.engines import ENGINES
from ptokit.engines.fast import FastInterpreter, Prepared
from ptokit.engines.reference import ReferenceInterpreter
from ptokit.frontend.session import running
from ptokit.frontend.tensor_types import global_class
from ptokit.ir.core import Module
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine.machine import Machine
from ptokit.machine.objects import pointer
from tests.support import contents, random_values, realise, sample_function

Sizes = tuple[int, ...]
_LEAD = 64  # elements of guard zone on both sides
_GUARDS = (0x5A, 0xC3)


@dataclass(frozen=True)
class Layout:
    """How a view is given, and the array it is given for; strides in elements."""

    shape: Sizes
    stride: Sizes
    array_shape: Sizes
    array_stride: Sizes
    moved: int = 0  # elements by which the pointer goes astray
    locked: bool = False

    @staticmethod
    def of(spec: GlobalSpec, **changed: Any) -> Layout:
        return replace(Layout(spec.shape, spec.stride, spec.shape, spec.stride), **changed)


def wider(stride: Sizes) -> Sizes:
    return tuple(s if s == 1 else 2 * s for s in stride)


def grown(spec: GlobalSpec, axis: int) -> Layout:
    return Layout.of(spec, shape=tuple(n + (i == axis) for i, n in enumerate(spec.shape)))


# From the view of a sample to one that is at least as bad.
HOSTILE: dict[str, Callable[[GlobalSpec], Layout]] = {
    "as it is": Layout.of,
    "wide": lambda s: Layout.of(s, stride=wider(s.stride), array_stride=wider(s.stride)),
    "dense view of a wide array": lambda s: Layout.of(s, array_stride=wider(s.stride)),
    "wide view of a dense array": lambda s: Layout.of(s, stride=wider(s.stride)),
    "one before": lambda s: Layout.of(s, moved=-1),
    "one behind": lambda s: Layout.of(s, moved=1),
    "far away": lambda s: Layout.of(s, moved=10**12),
    "one more of the outermost": lambda s: grown(s, 0),
    "one more row": lambda s: grown(s, 3),
    "one more column": lambda s: grown(s, 4),
    "on one another": lambda s: Layout.of(s, stride=tuple(max(n // 2, 1) for n in s.stride)),
    "in one place": lambda s: Layout.of(s, stride=(0,) * 4 + s.stride[4:]),
    "no element": lambda s: Layout.of(s, shape=(*s.shape[:4], 0)),
    "huge": lambda s: Layout.of(s, shape=(1 << 40, *s.shape[1:])),
    "locked": lambda s: Layout.of(s, locked=True),
}


class Zone:
    """The memory of one array: its elements, and guard zones wherever it has none."""

    def __init__(self, spec: GlobalSpec, lies: Layout, rng: np.random.Generator, guard: int):
        shape, stride = lies.array_shape, lies.array_stride
        if spec.dtype.is_packed:  # two elements to a byte
            shape, stride = (-(-self._span(shape, stride) // 2),), (1,)
        size = spec.dtype.np.itemsize
        span = self._span(shape, stride)
        self.memory = np.full((span + 2 * _LEAD) * size, guard, np.uint8)
        is_own = np.zeros_like(self.memory)
        self.array, own = (
            np.lib.stride_tricks.as_strided(
                each.view(kind)[_LEAD:], shape, [s * size for s in stride]
            )
            for each, kind in ((self.memory, spec.dtype.np), (is_own, spec.dtype.uint))
        )
        self.array[...] = random_values(spec.dtype, shape, rng)
        own[...] = np.iinfo(own.dtype).max
        if lies.locked:
            self.array.flags.writeable = False
        self._guards, self._own = is_own == 0, is_own != 0
        self._guard, self._before = guard, self.own
        changed = GlobalSpec.of(spec.dtype, lies.shape, lies.stride, spec.layout)
        at = pointer(self.array, spec.dtype)
        at.buffer.title = "guarded"
        self.view = global_class(changed)(at.moved(lies.moved))
        self._locked = lies.locked

    @staticmethod
    def _span(shape: Sizes, stride: Sizes) -> int:
        return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))

    @property
    def own(self) -> bytes:
        return self.memory[self._own].tobytes()

    def check(self) -> None:
        assert (self.memory[self._guards] == self._guard).all(), "a guard zone was written"
        assert not self._locked or self.own == self._before, "a locked array was written"


def cases(insn: Insn) -> Iterator[Sample]:
    """Samples of an instruction that differ in target, memory spaces or the form of their views."""
    seen: set[Any] = set()
    for target in TARGETS.values():
        if target.name not in insn.targets:
            continue
        for sample in samples(insn, target):
            views = [view for each in sample.operands.values() for view in _views(each)]
            form = [(v.layout, v.shape, v.stride, v.dtype.is_packed) for v in views]
            spaces = [getattr(each, "loc", None) for each in sample.operands.values()]
            key = target.name, tuple(form), tuple(spaces)
            if views and key not in seen:
                seen.add(key)
                yield sample


def _views(spec: Any) -> tuple[GlobalSpec, ...]:
    """What an operand has in global memory."""
    if isinstance(spec, GroupSpec):
        return spec.views
    return (spec,) if isinstance(spec, GlobalSpec) else ()


class Guarded:
    """The operands of a sample, those in global memory in their zones."""

    def __init__(self, sample: Sample, lies: Callable[[GlobalSpec], Layout], guard: int) -> None:
        self.zones: list[Zone] = []
        rng = np.random.default_rng(3)
        self.operands: dict[str, Any] = {}
        for name, spec in sample.operands.items():
            made = [self._zone(v, lies(v), rng, guard) for v in _views(spec)]
            if isinstance(spec, GroupSpec):
                self.operands[name] = ParallelGroup(made, spec.rootIdx)
            else:
                self.operands[name] = made[0] if made else realise(spec, rng)
        self.operands |= {name: self.operands[other] for name, other in sample.same.items()}
        for name, value in sample.contents.items():
            self.operands[name].fill(value)
        exec(sample.insn.setup, {**vars(ptokit), "np": np, **self.operands})

    def _zone(self, spec: GlobalSpec, lies: Layout, rng: Any, guard: int) -> Any:
        self.zones.append(Zone(spec, lies, rng, guard))
        return self.zones[-1].view


def called(sample: Sample, machine: Machine, operands: dict[str, Any], engine: str) -> Any:
    attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
    here = Location("sample", 1)
    return machine.execute(sample.insn, tuple(operands.values()), attrs, here)


def interpreted(sample: Sample, machine: Machine, operands: dict[str, Any], engine: str) -> Any:
    function = sample_function(sample)
    if function is None:  # written in a way of its own
        return None
    module = Module([function])
    run: Any = ReferenceInterpreter(module, machine)
    if engine == "fast":
        run = FastInterpreter(Prepared(module), machine)
    return run.call(function, [each for each in operands.values() if each is not None])


def outcome(sample: Sample, how: str, path: Any, engine: str, guard: int) -> tuple[str, Any]:
    """Whether it went through, and all that came out: codes, or memories, arrays and the answer."""
    machine = Machine(sample.target, "auto", executor=ENGINES[engine].executor)
    with running(machine):
        try:
            given = Guarded(sample, HOSTILE[how], guard)
        except PtoError as error:
            assert how != "as it is"
            return "refused", error.codes
        try:
            answer = path(sample, machine, given.operands, engine)
        except InternalError:
            raise
        except PtoError as error:
            for zone in given.zones:
                zone.check()
            return "refused", error.codes
        for zone in given.zones:
            zone.check()
        left = contents(machine, given.operands)
    tiles = {name: each for name, each in left.items() if isinstance(each, tuple)}
    is_number = isinstance(answer, int | float)
    return "done", (tiles, [zone.own for zone in given.zones], answer if is_number else None)


WITH_GLOBAL = [insn for insn in INSTRUCTIONS.values() if next(cases(insn), None) is not None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("insn", WITH_GLOBAL, ids=lambda insn: insn.name)
def test_guard_zones(insn: Insn) -> None:
    done: set[Any] = set()
    for sample in cases(insn):
        for how in HOSTILE:
            for path in (called, interpreted):
                for engine in ENGINES:
                    first, second = (outcome(sample, how, path, engine, g) for g in _GUARDS)
                    assert first == second, (str(sample), how, path.__name__, engine)
                    if first[0] == "done":
                        done.add((how, path, engine))
    for path in (called, interpreted):  # the test sees something: the samples themselves run
        for engine in ENGINES:
            assert ("as it is", path, engine) in done or insn.effects is not None
