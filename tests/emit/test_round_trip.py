"""The C++ of every example, compiled against our header and run: the same bytes, the same findings.

Kernels of one target share a source for each kind of core, so that few sources are compiled.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptokit import PtoError, cpp
from ptokit.base.enums import TileSplitAxis
from ptokit.isa.targets import TARGETS
from ptokit.machine.codes import CODES
from tests.native.support import needs_compiler

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = needs_compiler


@dataclass(frozen=True, eq=False)
class Written:
    """A case of an example on a target, and the name of its kernel in the source."""

    case: Any
    target: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.case.name} {self.target}"

    def arguments(self) -> list[Any]:
        return list(self.case.inputs(np.random.default_rng(7)))

    def source(self, **options: Any) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = self.case.kernel.cpp(
                *self.arguments(), target=self.target, **options, **self.case.consts
            )
        return re.sub(rf"\b(launch_)?{self.case.kernel.name}(?=\(|<<<)", rf"\1{self.name}", text)


@cache
def examples() -> list[Any]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        found = [importlib.import_module(path.stem) for path in sorted(EXAMPLES.glob("*.py"))]
    finally:
        sys.path.remove(str(EXAMPLES))
    return [module for module in found if hasattr(module, "CASES")]


def cases() -> Iterator[Written]:
    for module in examples():
        for number, case in enumerate(module.CASES):
            for target in _targets(case):
                yield Written(case, target, f"{case.kernel.name}_{number}_{target}")


def _targets(case: Any) -> tuple[str, ...]:
    """Those it is for; what all devices take, the permissive profile takes."""
    devices = [name for name, each in TARGETS.items() if each.is_device]
    is_for_all = set(case.targets) == set(devices)
    return (*case.targets, *(set(TARGETS).difference(devices) if is_for_all else ()))


def is_short(written: Written) -> bool:
    """On the two large devices all but pipes, each kernel and direction of which once, and
    convolutions; on the others the first examples."""
    slots, split = (written.case.consts.get(name) for name in ("slots", "split"))
    if written.target not in ("a2a3", "a5"):
        return "softmax" in written.case.name or "gelu" in written.case.name
    is_plain = slots is None and "convolution" not in written.case.name
    return is_plain or (slots == 2 and split == TileSplitAxis.TILE_UP_DOWN)


CASES = list(cases())
SHORT = [each for each in CASES if is_short(each)]
OTHERS = [each for each in CASES if not is_short(each)]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The compiled source that holds a case, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("round")

    @cache
    def program(target: str, core: str, short: bool) -> Any:
        chosen = [
            each
            for each in (SHORT if short else OTHERS)
            if each.target == target and _core(each) == core
        ]
        path = folder / f"{core}_{target}_{'short' if short else 'others'}.cpp"
        path.write_text("\n".join(each.source() for each in chosen))
        return cpp(path, target=target)

    return program


def _core(written: Written) -> str:
    return "mix" if "__DAV_" in written.source() else "single"


def launched(made: Any, written: Written) -> tuple[list[Any], list[tuple[str, str]]]:
    """Run the C++ kernel: its arguments, and what was found."""
    arguments = written.arguments()
    head = made.entries[written.name].parameters
    first = [np.zeros(1, np.uint64)] if "*ffts" in head else []  # where signals are counted
    run = made[written.name][written.case.blocks](*first, *arguments)
    return arguments, told(run.warnings)


def told(found: Iterable[Any]) -> list[tuple[str, str]]:
    """What a run has found; what a pass over the program says has no counterpart in C++."""
    return sorted((each.code, each.message) for each in found if each.code in CODES)


def check(program: Any, written: Written) -> None:
    wanted = written.arguments()
    case = written.case
    run = case.kernel[case.blocks](*wanted, target=written.target, **case.consts)
    got, found = launched(program(written.target, _core(written), is_short(written)), written)
    for ours, theirs in zip(wanted, got, strict=True):
        if isinstance(ours, np.ndarray):
            assert ours.tobytes() == theirs.tobytes()
    assert found == told(run.warnings)


@pytest.mark.parametrize("written", SHORT, ids=lambda each: each.id)
def test_an_example_leaves_the_same_bytes(programs: Any, written: Written) -> None:
    check(programs, written)


@pytest.mark.slow
@pytest.mark.parametrize("written", OTHERS, ids=lambda each: each.id)
def test_every_other_example_does(programs: Any, written: Written) -> None:
    check(programs, written)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_races_are_found_in_the_cpp_too(target: str, tmp_path: Path) -> None:
    """An example whose pipes nobody orders: the same pairs of instructions, by both doors."""
    written = next(e for e in SHORT if e.target == target and "softmax" in e.name)
    path = tmp_path / "racy.cpp"
    path.write_text(written.source(sync="keep"))
    case = written.case
    with pytest.raises(PtoError) as ours:
        case.kernel[1](*written.arguments(), target=target, sync="keep", **case.consts)
    with pytest.raises(PtoError) as theirs:
        cpp(path, target=target)[written.name][1](*written.arguments())
    assert told(ours.value.diagnostics) == told(theirs.value.diagnostics) != []
