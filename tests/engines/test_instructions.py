"""Every instruction of the table leaves the same bytes and events on every engine and path.

The reference engine is the definition. The fast one is held against it with every sample of every
instruction: called from Python, and as the only operation of a program where IR has a form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.dtypes import f32
from ptokit.base.tiles import TileSpec
from ptokit.engines import ENGINES
from ptokit.engines.fast import FastInterpreter, Prepared
from ptokit.engines.reference import ReferenceInterpreter
from ptokit.frontend.session import running
from ptokit.ir.core import Module
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, parse, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine.machine import Machine
from ptokit.machine.objects import TileObject
from tests.support import contents, listen, run_sample, sample_function, sample_operands


def of(insn: Insn) -> Iterator[Sample]:
    """All samples of an instruction on all targets that have it."""
    for target in TARGETS.values():
        if target.name in insn.targets:
            yield from samples(insn, target)


def touched_by(events: list[Any]) -> list[Any]:
    """What was executed, and the bytes it touched; those of arrays counted from the first."""
    found: list[Any] = []
    for event in events:
        touched: list[Any] = []
        for access in event.accesses:
            base = access.ranges[0][0] if access.memory == "GM" and access.ranges else 0
            ranges = tuple((a - base, b - base) for a, b in access.ranges)
            touched.append(access._replace(ranges=ranges))
        found.append((event.insn.name, event.pipe, touched))
    return found


def called(sample: Sample, engine: str) -> Any:
    """What a call of the instruction from Python leaves."""
    machine = Machine(sample.target, "auto", executor=ENGINES[engine].executor)
    events = listen(machine)
    with running(machine):
        try:
            operands = run_sample(sample)
        except PtoError as error:
            return error.codes
    return contents(machine, operands), touched_by(events)


def interpreted(sample: Sample, engine: str) -> Any:
    """What a program with this one operation leaves; None where IR has no form for it."""
    function = sample_function(sample)
    if function is None:
        return None
    module = Module([function])
    machine = Machine(sample.target, "auto", executor=ENGINES[engine].executor)
    runs = {
        "fast": lambda: FastInterpreter(Prepared(module), machine),
        "reference": lambda: ReferenceInterpreter(module, machine),
    }
    events = listen(machine)
    with running(machine):
        operands = sample_operands(sample)
        runs[engine]().call(function, [o for o in operands.values() if o is not None])
    return contents(machine, operands), touched_by(events)


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=lambda insn: insn.name)
def test_engines_agree(insn: Insn) -> None:
    for sample in of(insn):
        assert called(sample, "fast") == called(sample, "reference"), str(sample)


def has_plain_line(insn: Insn) -> bool:
    return any(sample_function(sample) is not None for sample in of(insn))


PLAIN = [insn for insn in INSTRUCTIONS.values() if has_plain_line(insn)]


def test_nearly_all_instructions_run_as_an_operation() -> None:
    assert len(PLAIN) > 0.75 * len(INSTRUCTIONS)


@pytest.mark.parametrize("insn", PLAIN, ids=lambda insn: insn.name)
def test_an_operation_of_a_program_is_the_call(insn: Insn) -> None:
    for sample in of(insn):
        programs = [interpreted(sample, engine) for engine in ENGINES]
        if programs[0] is not None:
            assert programs == [called(sample, "fast")] * len(programs), str(sample)


def test_a_tile_without_an_address_lies_at_the_head_of_its_own_storage() -> None:
    machine = Machine(TARGETS["a2a3"])
    spec = parse("Vec f32 4x16", f32, machine.target)
    assert isinstance(spec, TileSpec)
    tile = TileObject(spec, 4, 16)
    ReferenceInterpreter(Module([]), machine).give_storage(tile)
    assert tile.storage is not None
    assert (tile.address, tile.storage.nbytes) == (0, tile.spec.nbytes)
