"""Numbers that say where: an index that leads out of its tile is refused, or told, on every target.

The numbers are found in the table: those that move a region which an instruction touches, and those
that place a name over a part of another tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ptokit.base.diagnostics import InternalError, PtoError
from ptokit.base.location import Location
from ptokit.engines import ENGINES
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.facts import Ops
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine import machine as machine_module
from ptokit.machine.machine import Machine
from ptokit.machine.objects import Bound
from tests.support import sample_operands

BEFORE = (-1, -16, -(10**20))
BEHIND = (1024, 65535, 1 << 31, 10**20)


def regions(insn: Insn, ops: Ops) -> list[Any]:
    """What a call touches of each operand, where that depends on others."""
    return [o.view(ops) for o in insn.operands if callable(o.view) and ops[o.name] is not None]


def sizes(region: Any) -> Any:
    """A region without the place at which it begins."""
    if isinstance(region, tuple):
        return [sizes(part) for part in region]
    return region.stop - region.start if isinstance(region, slice) else region


def changed(sample: Sample, name: str, value: int) -> Sample:
    return replace(sample, operands={**sample.operands, name: value})


def indices(sample: Sample) -> Iterator[str]:
    """The operands that are the first row, column or element of something."""
    insn = sample.insn
    for operand in insn.operands:
        value = sample.operands[operand.name]
        if operand.takes is None or not isinstance(value, int):
            continue
        here, there = (
            regions(insn, changed(sample, operand.name, n).facts()) for n in (value, value + 16)
        )
        if insn.renames or (here != there and list(map(sizes, here)) == list(map(sizes, there))):
            yield operand.name


def cases(insn: Insn) -> Iterator[tuple[Sample, str]]:
    """Samples that differ in target, memory spaces or layouts, with each of their indices."""
    seen: set[Any] = set()
    for target in TARGETS.values():
        for sample in samples(insn, target) if target.name in insn.targets else ():
            specs = sample.operands.values()
            form = [(getattr(s, "loc", None), getattr(s, "layout", None)) for s in specs]
            if (key := (target.name, tuple(form))) not in seen:
                seen.add(key)
                yield from ((sample, name) for name in indices(sample))


def placed(machine: Machine, operands: dict[str, Any]) -> None:
    """Bind the tiles one after the other, everything around them defined."""
    free: dict[int, int] = {}
    for tile in operands.values():
        if isinstance(tile, Bound):
            memory = machine.core.memory(tile.spec.loc)  # type: ignore[attr-defined]
            memory.shadow[:] = 1
            tile.bind(memory, free.get(id(memory), 0))
            size = tile.spec.nbytes  # type: ignore[attr-defined]
            free[id(memory)] = -(-(tile.address + size) // 512) * 512


def outcome(sample: Sample, name: str, value: int, mode: str, engine: str) -> str:
    """ "refused", "told" or "silent"."""
    with running(Machine(sample.target, "auto")):
        operands = sample_operands(sample) | {name: value}
    machine = Machine(sample.target, mode, executor=ENGINES[engine].executor)
    attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
    with running(machine):
        if mode == "manual":
            placed(machine, operands)
        try:
            machine.execute(sample.insn, tuple(operands.values()), attrs, Location("sample", 1))
        except InternalError:
            raise
        except PtoError:
            return "refused"
    return "told" if list(machine.warnings) else "silent"


WITH_INDEX = [insn for insn in INSTRUCTIONS.values() if next(cases(insn), None) is not None]


def test_there_are_some() -> None:
    assert {"TEXTRACT", "TINSERT", "TSUBVIEW"} <= {insn.name for insn in WITH_INDEX}


@pytest.mark.parametrize("insn", WITH_INDEX, ids=lambda insn: insn.name)
def test_an_index_that_leads_out_of_its_tile(insn: Insn, monkeypatch: pytest.MonkeyPatch) -> None:
    verify: Any = machine_module.verify  # advice takes long to find, and changes no verdict
    monkeypatch.setattr(
        machine_module, "verify", lambda *of, **by: verify(*of, **by | {"advise": False})
    )
    for sample, name in cases(insn):
        for mode in ("auto", "manual"):
            for engine in ENGINES:
                where = str(sample), name, mode, engine
                for value in BEFORE:
                    assert outcome(sample, name, value, mode, engine) == "refused", (*where, value)
                for value in BEHIND:
                    assert outcome(sample, name, value, mode, engine) != "silent", (*where, value)
