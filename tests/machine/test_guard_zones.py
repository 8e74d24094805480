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
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import Direction, TPipe
from ptokit.base.diagnostics import InternalError, PtoError
from ptokit.base.layout import Array
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
from ptokit.machine import machine as machine_module
from ptokit.machine.machine import Machine
from ptokit.machine.objects import pointer
from ptokit.report.paths import gap
from tests.paths.harness import CHECKS, Example
from tests.support import contents, random_values, realise, sample_function

Sizes = tuple[int, ...]
_LEAD = 64  # elements of guard zone on both sides
_GUARDS = (0x5A, 0xC3)
_PLAINLY = {"advise": False}


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


def span(shape: Sizes, stride: Sizes) -> int:
    """Elements from the first to the last."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


class Zone:
    """The memory of one array: its elements, and guard zones wherever it has none."""

    def __init__(self, values: Array, stride: Sizes, guard: int) -> None:
        """`stride` counts elements."""
        size, shape = values.itemsize, values.shape
        self.memory = np.full((span(shape, stride) + 2 * _LEAD) * size, guard, np.uint8)
        is_own = np.zeros_like(self.memory)
        self.array, own = (
            np.lib.stride_tricks.as_strided(
                each.view(kind)[_LEAD:], shape, [s * size for s in stride]
            )
            for each, kind in ((self.memory, values.dtype), (is_own, f"u{size}"))
        )
        self.array[...] = values
        own[...] = np.iinfo(own.dtype).max
        self._is_own, self._guard, self._before = is_own != 0, guard, b""

    def lock(self) -> None:
        self.array.flags.writeable, self._before = False, self.own

    @property
    def own(self) -> bytes:
        return self.memory[self._is_own].tobytes()

    def check(self) -> None:
        assert (self.memory[~self._is_own] == self._guard).all(), "a guard zone was written"
        assert self.own == (self._before or self.own), "a locked array was written"


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
        shape, stride, kind = lies.array_shape, lies.array_stride, spec.dtype
        if kind.is_packed:  # two elements to a byte
            shape, stride = (-(-span(shape, stride) // 2),), (1,)
        zone = Zone(random_values(kind, shape, rng), stride, guard)
        self.zones.append(zone)
        if lies.locked:
            zone.lock()
        changed = GlobalSpec.of(kind, lies.shape, lies.stride, spec.layout)
        return global_class(changed)(pointer(zone.array, kind).moved(lies.moved))


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
def test_guard_zones(insn: Insn, monkeypatch: pytest.MonkeyPatch) -> None:
    # Advice is looked for with every refusal, which is most of the time, and changes no verdict.
    verify: Any = machine_module.verify
    monkeypatch.setattr(machine_module, "verify", lambda *of, **by: verify(*of, **by | _PLAINLY))
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


# ---- every path ----------------------------------------------------------------------------------


class GuardedExample(Example):
    """The example of a page with its arrays in guard zones."""

    guard = _GUARDS[0]
    zones: list[Zone]

    def operands(self, machine: Machine) -> dict[str, Any]:
        made = super().operands(machine)
        self.zones = []
        for name in self.arrays:
            values = made[name]
            zone = Zone(values, tuple(s // values.itemsize for s in values.strides), self.guard)
            self.zones.append(zone)
            made[name] = zone.array
        return made


@pytest.mark.parametrize("insn", WITH_GLOBAL, ids=lambda insn: insn.name)
def test_guard_zones_on_every_path(insn: Insn, tmp_path: Path) -> None:
    if insn.targets.isdisjoint(TARGETS):
        return
    example = GuardedExample(insn, tmp_path)
    for path, check in CHECKS.items():
        if gap(insn, path):
            continue
        for example.guard in _GUARDS:  # each is compared with what the first has left
            check(example)
            for zone in example.zones:
                zone.check()


# ---- slots of FIFOs ------------------------------------------------------------------------------

SLOTS, SIZE = 3, 32 * 64


def pushed_and_popped(memory: Any, values: Array) -> Array:
    """An accumulator through a ring of slots in global memory, round after round."""
    with ptokit.device("a2a3"):
        pipe = TPipe[0, Direction.DIR_C2V, SIZE * 4, SLOTS](memory, 0x1000, 0)
        for _ in range(2 * SLOTS + 1):
            source = ptokit.TileAcc[ptokit.float32, 32, 64]()
            ptokit.TASSIGN(source, 0)
            source.fill(values)
            ptokit.TPUSH(pipe, source)
            for core in (0, 1):
                with ptokit.subblock(core):
                    tile = ptokit.Tile[ptokit.TileType.Vec, ptokit.float32, 32, 64]()
                    ptokit.TPOP(pipe, tile)
                    found = tile.numpy()
                    ptokit.TFREE(pipe)
    return found


@pytest.mark.parametrize("guard", _GUARDS)
def test_guard_zones_around_slots(guard: int) -> None:
    values = np.arange(SIZE, dtype=np.float32).reshape(32, 64)
    zone = Zone(np.zeros(SLOTS * SIZE, np.float32), (1,), guard)
    assert np.array_equal(pushed_and_popped(zone.array, values), values)
    zone.check()


@pytest.mark.parametrize(("count", "step"), [(SLOTS * SIZE - 1, 1), (SLOTS * SIZE, 2)])
def test_slots_that_are_too_small_or_scattered(count: int, step: int) -> None:
    zone = Zone(np.zeros(count, np.float32), (step,), _GUARDS[0])
    with pytest.raises(PtoError, match="E10"):
        pushed_and_popped(zone.array, np.ones((32, 64), np.float32))
    zone.check()
