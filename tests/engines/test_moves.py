"""Bodies that only move bytes: what they are taken for, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from ptokit.base.diagnostics import PtoError
from ptokit.base.location import Location
from ptokit.engines.compiled.bodies import Noted
from ptokit.engines.compiled.host import Unsupported
from ptokit.engines.compiled.library import library
from ptokit.engines.compiled.moves import _sources, moves
from ptokit.engines.compiled.natives import idiom_of
from ptokit.engines.compiled.replay import Tape
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.idioms import Moves
from ptokit.isa.samples import Sample
from ptokit.isa.spec import Insn
from ptokit.machine.machine import Machine
from tests.engines.test_instructions import of
from tests.support import contents, sample_operands

pytestmark = pytest.mark.skipif(library() is None, reason="llvmlite is not installed")

HERE = Location("sample", 1)
MOVING = [insn for insn in INSTRUCTIONS.values() if insn.idiom is not None]


def executed(sample: Sample, followed: bool) -> tuple[Any, list[Noted], Machine]:
    """What a call leaves, and what a tape takes down of it."""
    machine = Machine(sample.target, "auto")
    notes: list[Noted] = []
    with running(machine):
        operands = sample_operands(sample, 0)
        if followed:
            tape = Tape([])
            tape._note = notes.append  # type: ignore[method-assign]
            tape.follow(machine)
        attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
        machine.execute(sample.insn, tuple(operands.values()), attrs, HERE)
        for note in notes:
            if isinstance(idiom_of(note.call), Moves):
                moves(note, machine)
        return contents(machine, operands), notes, machine


def legal(insn: Insn) -> Iterator[Sample]:
    for sample in of(insn):
        with suppress(PtoError):
            executed(sample, followed=False)
            yield sample


@pytest.mark.parametrize("insn", MOVING, ids=lambda insn: insn.name)
def test_asking_a_body_leaves_no_trace(insn: Insn) -> None:
    for sample in legal(insn):
        plain, asked = (executed(sample, followed)[0] for followed in (False, True))
        assert plain == asked, str(sample)


@pytest.mark.parametrize("name", ["TADD", "TEXP", "TROWSUM", "TMAXS", "TNOT", "TMATMUL"])
def test_what_computes_is_refused(name: str) -> None:
    """Whatever a record says: bytes that are made of others are seen."""
    asked = 0
    for sample in legal(INSTRUCTIONS[name]):
        _, notes, machine = executed(sample, followed=True)
        for note in notes:
            asked += 1
            with pytest.raises(Unsupported):
                moves(note, machine)
    assert asked


def test_bytes_that_are_moved_and_overwritten_are_refused() -> None:
    """A table says nothing of an order."""
    swapped = np.arange(8, dtype=np.uint8)[[1, 0, 2, 3, 4, 5, 6, 7]]
    with pytest.raises(Unsupported, match="overwritten"):
        _sources([swapped, 255 - swapped, 0 * swapped, 0 * swapped])


def test_constants_are_told_from_moves() -> None:
    """Byte 1 comes from byte 3, byte 2 is always 3, the others stay."""
    places = np.arange(4, dtype=np.uint8)
    places[1] = 3
    left = [places, 255 - places, 0 * places, 0 * places]
    for each in left:
        each[2] = 3
    written, source, constants = _sources(left)
    assert (written.tolist(), source.tolist(), constants.tolist()) == ([1, 2], [3, 4], [3])
