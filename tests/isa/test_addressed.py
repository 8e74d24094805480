"""Operands of which a device sees only the address: it counts in one memory, whatever was declared.

Every such operand of every record is moved to a tile of another memory with the same address. What
then happens must be what happens with the tile that the rules ask for, to the last byte of every
memory; and where the compiler chooses the address, it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.base.diagnostics import Diagnostic, PtoWarning
from ptokit.base.layout import Array
from ptokit.base.location import Location
from ptokit.base.tiles import TileSpec
from ptokit.frontend.session import current
from ptokit.frontend.types import Tile
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.isa.verify import verify
from ptokit.machine.entries import words_behind
from tests.isa.raw import Raw, tile, warned
from tests.operands import tensor

OTHER = {TileType.Vec: TileType.Mat}  # and a Vec tile for all others


def moved(sample: Sample, name: str) -> Sample:
    """The sample with one tile declared in another memory."""
    spec = sample.operands[name]
    assert isinstance(spec, TileSpec)
    there = spec.but(loc=OTHER.get(spec.loc, TileType.Vec))
    return Sample(
        sample.insn,
        sample.target,
        {**sample.operands, name: there},
        sample.attrs,
        sample.same,
        addresses(sample),
        sample.contents,
    )


def addresses(sample: Sample) -> dict[str, int]:
    """Places apart from each other, in each memory from its start on."""
    found: dict[str, int] = {}
    ends: dict[TileType, int] = {}
    for name, spec in sample.operands.items():
        if isinstance(spec, TileSpec):
            found[name] = ends.get(spec.loc, 0)
            ends[spec.loc] = found[name] + -(-spec.nbytes // 512) * 512 + 1024
    return found


def found(sample: Sample, mode: str) -> list[Diagnostic]:
    return verify(sample.insn, sample.facts(mode), advise=False)


def cases() -> Iterator[Any]:
    """Every addressed operand that may be declared elsewhere with no more than a warning."""
    for insn in INSTRUCTIONS.values():
        for target in TARGETS.values():
            if target.name not in insn.targets or not target.is_device:
                continue
            legal = next(samples(insn, target), None)
            for index in insn.addressed if legal is not None else ():
                name = insn.operands[index].name
                if legal is None or not isinstance(legal.operands.get(name), TileSpec):
                    continue
                if {d.severity for d in found(moved(legal, name), "manual")} == {"warning"}:
                    id = f"{insn.name}-{name}-{target.name}"
                    yield pytest.param(legal, moved(legal, name), id=id)


CASES = [*cases()]


def memories() -> dict[TileType, Any]:
    target = current().target
    locs = [loc for loc in TileType if loc in target.spaces and target.spaces[loc].capacity]
    return {loc: current().core.memory(loc) for loc in locs}


def run(sample: Sample) -> tuple[list[Array], set[str]]:
    """Run a sample over memories full of known bytes: what they hold, what is defined, codes."""
    insn = sample.insn
    with device(sample.target.name, check=False) as machine:
        for loc, memory in memories().items():
            numbers = np.random.default_rng(int(loc)).integers(0, 60, memory.nbytes, np.uint8)
            memory.data[:], memory.shadow[:] = numbers, 1
        where, operands = addresses(sample) | sample.addresses, list[Any]()
        for declared in insn.operands:
            spec: Any = sample.operands.get(declared.name)
            if isinstance(spec, TileSpec):
                made = Tile.of(spec)
                made.bind(machine.core.memory(spec.loc), where[declared.name])
                operands.append(made)
            else:
                operands.append(tensor(spec) if hasattr(spec, "stride") else spec)
        machine.execute(insn, operands, tuple(sample.attrs.values()), Location("sample", 1))
        held = [each for m in memories().values() for each in (m.data.copy(), m.shadow.copy())]
        return held, warned(machine)


@pytest.mark.parametrize(("legal", "elsewhere"), CASES)
def test_the_address_counts_in_one_memory(legal: Sample, elsewhere: Sample) -> None:
    expected, quiet = run(legal)
    held, told = run(elsewhere)
    assert told - quiet == {d.code for d in found(elsewhere, "manual")} != set()
    assert all((a == b).all() for a, b in zip(held, expected, strict=True))


@pytest.mark.parametrize("elsewhere", [param.values[1] for param in CASES], ids=str)
def test_what_a_compiler_placed_must_lie_where_it_is_used(elsewhere: Sample) -> None:
    assert "error" in {d.severity for d in found(elsewhere, "auto")}


def test_every_record_with_such_a_rule_is_tried() -> None:
    tried = {param.values[0].insn.name for param in CASES}
    assert tried == {insn.name for insn in INSTRUCTIONS.values() if says_so(insn)}


def says_so(insn: Insn) -> bool:
    """Whether a rule on the location of a tile has an outcome."""
    return any("location" in r.id and r.otherwise for r in insn.rules) or insn.name == "TSTORE_FP"


# ---- the words of a fix pipe -------------------------------------------------------------------


@pytest.mark.parametrize("target", ["a2a3", "a5", "kirin9030", "kirinx90"])
def test_the_low_bits_of_the_address_of_words_are_dropped(target: str) -> None:
    with device(target) as machine:
        Raw(TileType.Scaling)
        sums = Raw(TileType.Acc)
        sums.put(0, np.full((32, 32), 3, "i4"))
        words = machine.core.memory(TileType.Scaling).data.view("u8")
        words[16:48] = np.arange(1, 33).astype("f4").view("u4")
        array = np.zeros((32, 32), "i1")
        fp = tile("Scaling u64 1x32", 128 + 64)
        TSTORE_FP(GlobalTensor(array), tile("Acc i32 32x32", 0), fp)
        assert (array[0] == 3 * np.arange(1, 33)).all()
        assert warned(machine) == {"TSTORE_FP.word-address"}


def test_the_register_of_words_drops_the_low_bits_too() -> None:
    """A push converts with the words that lie at the multiple of 128 bytes below the tile."""
    with device("a2a3") as machine:
        SET_QUANT_VECTOR(tile("Scaling u64 1x32", 128 + 64))
        assert machine.core.registers["FPC"] == 1 << 8
        assert warned(machine) == {"SET_QUANT_VECTOR.fpc-alignment"}
        raw = Raw(TileType.Scaling)
        found = words_behind(machine.core.registers["FPC_TILE"])
        assert (found == raw.before[128 : 128 + 256].view("u8")).all()


def test_a_store_without_a_conversion_writes_anything() -> None:
    with device("a2a3") as machine:
        Raw(TileType.Acc)
        array = np.full((32, 32), 7, "f2")
        TSTORE(GlobalTensor(array), tile("Acc i32 32x32", 0))
        assert warned(machine) == {"TSTORE.plain-result"}
        assert (array == 7).all()  # whatever else would be as good


# ---- several cores -----------------------------------------------------------------------------


@kernel(core="mix")
def both_vector_cores(y: Any) -> None:
    with vector_section():
        elsewhere, here = (
            Tile[TileType.Mat, float32, 16, 64](),
            Tile[TileType.Vec, float32, 16, 64](),
        )
        TASSIGN(elsewhere, 0x1000)
        TASSIGN(here, 0x1000)
        TTRI(elsewhere, 0)
        PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        first = get_subblockid() * 16
        TSTORE(GlobalTensor(y)[first : first + 16, :], here)


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_each_core_uses_the_address_in_a_memory_of_its_own(path: str) -> None:
    """The tile is declared in a memory that both share: it is not where they write."""
    y = np.full((32, 64), 7, "f4")
    with pytest.warns(PtoWarning, match=r"TTRI\.location"):
        both_vector_cores[1](y, path=path)
    assert (y.reshape(2, 16, 64) == np.tri(16, 64)).all()
