"""Under rules="release" poison travels: what is made of undefined bytes is undefined, no more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptokit
from ptokit import *
from ptokit.base.layout import Array
from ptokit.base.location import Location
from ptokit.base.policy import Policy
from ptokit.engines import ENGINES
from ptokit.frontend.session import running
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn
from ptokit.isa.targets import TARGETS
from ptokit.machine.calls import tile_access
from ptokit.machine.machine import Machine
from tests.support import contents, sample_operands

Wide = Tile[TileType.Vec, float32, 16, 64]
Half = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 8, 32]  # the same bytes, in part
Column = Tile[TileType.Vec, float32, 16, 1, BLayout.ColMajor]


def half_written(value: float = 1.0) -> Any:
    """A tile of which rows 0 to 7 and columns 0 to 31 are written."""
    tile = Wide()
    TASSIGN(tile, 0x1000)
    part = Half()
    TASSIGN(part, 0x1000)
    part.fill(value)
    return tile


def defined(tile: Any) -> Array:
    return tile_access(tile).defined()


WRITTEN = np.zeros((16, 64), bool)
WRITTEN[:8, :32] = True


@pytest.fixture(params=["fast", "reference"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    made = Machine(
        TARGETS["a2a3"], executor=ENGINES[request.param].executor, policy=Policy("release")
    )
    with running(made):
        yield made


def tile_at(kind: Any, address: int, value: float | None = None) -> Any:
    tile = kind()
    TASSIGN(tile, address)
    if value is not None:
        tile.fill(value)
    return tile


# ---- how far it goes ---------------------------------------------------------------------------


def test_elementwise_results_are_undefined_element_by_element(machine: Machine) -> None:
    whole, out = tile_at(Wide, 0x4000, 2.0), tile_at(Wide, 0x8000)
    TADD(out, half_written(), whole)
    assert np.array_equal(defined(out), WRITTEN)
    assert (tile_access(out).read()[:8, :32] == 3).all()
    TADDS(out, out, 1.0)  # in place
    assert np.array_equal(defined(out), WRITTEN)
    TEXPANDS(out, 0.0)  # and written anew
    assert defined(out).all()
    assert not machine.warnings


def test_a_reduction_loses_the_lines_it_reads(machine: Machine) -> None:
    tile, out, scratch = half_written(), tile_at(Column, 0x8000), tile_at(Wide, 0xC000)
    TROWSUM(out, tile, scratch)
    assert not defined(out).any()
    part = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 16, 32]()
    TASSIGN(part, 0x1000)
    TROWSUM(out, part, scratch)
    assert defined(out)[:, 0].tolist() == [True] * 8 + [False] * 8


def test_what_is_not_said_loses_every_result(machine: Machine) -> None:
    records = Tile[TileType.Vec, float32, 1, 64]
    source, sorted_ = tile_at(records, 0x0), tile_at(Tile[TileType.Vec, float32, 1, 128], 0x8000)
    index = tile_at(Tile[TileType.Vec, uint32, 1, 64], 0x200, 1)
    first = tile_at(Tile[TileType.Vec, float32, 1, 32], 0x0, 1.0)
    assert defined(first).all()
    TSORT32(sorted_, source, index)
    assert not defined(sorted_).any()


def test_moves_carry_it_along(machine: Machine) -> None:
    out, scratch = tile_at(Tile[TileType.Vec, float32, 64, 16], 0x8000), tile_at(Wide, 0xC000)
    TTRANS(out, half_written(), scratch)
    assert np.array_equal(defined(out), WRITTEN.T)
    copy = tile_at(Wide, 0x14000)
    TMOV(copy, half_written())
    assert np.array_equal(defined(copy), WRITTEN)


def test_gathers_lose_what_they_take(machine: Machine) -> None:
    packed = tile_at(Tile[TileType.Vec, float32, 16, 32], 0x8000)
    TGATHER[MaskPattern.P0101](packed, half_written())
    assert np.array_equal(defined(packed), WRITTEN[:, ::2])
    rows = tile_at(Tile[TileType.Vec, float32, 8, 64], 0x8000)
    TGATHER[MaskPattern.P1010, GatherAxis.GATHER_COL](rows, half_written())
    assert np.array_equal(defined(rows), WRITTEN[1::2])
    Indices = Tile[TileType.Vec, int32, 16, 64]
    index, out, scratch = tile_at(Indices, 0x4000), tile_at(Wide, 0x8000), tile_at(Indices, 0xC000)
    index.fill(np.arange(16 * 64)[::-1].reshape(16, 64))
    TGATHER(out, half_written(), index, scratch)
    assert np.array_equal(defined(out), WRITTEN[::-1, ::-1])


# ---- where it ends -----------------------------------------------------------------------------


def test_storing_it_is_a_warning_that_names_the_region(machine: Machine) -> None:
    y = np.zeros((32, 128), np.float32)
    for _ in range(2):
        TSTORE(GlobalTensor(y[16:, 64:]), half_written())
    (found,) = machine.warnings
    assert (found.code, found.severity) == ("poison-store", "warning")
    got = dict(found.got)
    assert (got["rows"], got["columns"]) == ("0..15", "0..63")
    assert (y[16:24, 64:96] == 1).all()


def test_only_what_is_undefined_is_named(machine: Machine) -> None:
    y = np.zeros((16, 64), np.float32)
    rows = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, 10, 64]
    tile_at(rows, 0x8000, 1.0)
    TSTORE(GlobalTensor(y), tile_at(Wide, 0x8000))
    (found,) = machine.warnings
    got = dict(found.got)
    assert (got["rows"], got["columns"]) == ("10..15", "0..63")
    assert got["array"] == "float32 16x64 [10:16, 0:64]"


def test_an_index_is_an_error(machine: Machine) -> None:
    index = tile_at(Tile[TileType.Vec, int32, 16, 64], 0x4000)
    out, source = tile_at(Wide, 0x8000), tile_at(Wide, 0xC000, 1.0)
    scratch = tile_at(Tile[TileType.Vec, int32, 16, 64], 0x14000)
    with pytest.raises(ProgramError) as error:
        TGATHER(out, source, index, scratch)
    assert error.value.codes == ("poison-read",)


def test_a_number_in_the_hands_of_the_program_is_an_error(machine: Machine) -> None:
    tile = half_written()
    assert tile.GetValue(0) == 1
    with pytest.raises(ProgramError) as error:
        tile.GetValue(40)
    assert error.value.codes == ("poison-read",)


def test_every_operand_that_steers_is_known() -> None:
    """Indices, offsets and lengths; whoever adds such an operand marks it."""
    found = {f"{i.name}.{o.name}" for i in INSTRUCTIONS.values() for o in i.operands if o.steers}
    assert found == {
        *("MGATHER.indexes", "MSCATTER.indexes", "TSCATTER.indexes"),
        *("TGATHER.src1", "TGATHERB.offset", "TCONCAT.src0Idx", "TCONCAT.src1Idx"),
    }


# ---- at every door -----------------------------------------------------------------------------


@kernel(mode="auto", target="a2a3")
def careless(x: Any, y: Any) -> None:
    a = Tile[TileType.Vec, float32, 16, 64, BLayout.RowMajor, DYNAMIC, DYNAMIC](8, 64)
    TLOAD(a, GlobalTensor(x))
    a.SetValidShape(16, 64)
    TADDS(a, a, 1.0)
    TSTORE(GlobalTensor(y), a)


def arrays() -> tuple[Array, Array]:
    return np.ones((8, 64), np.float32), np.zeros((16, 64), np.float32)


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_release_is_one_switch(path: str, engine: str) -> None:
    x, y = arrays()
    with pytest.raises(ProgramError) as error:
        careless[1](x, y, path=path, engine=engine)
    assert error.value.codes == ("poison-read",)
    (at,) = error.value.diagnostics
    assert at.location is not None
    run = careless[1](x, y, path=path, engine=engine, rules="release")
    (found,) = run.warnings
    assert found.code == "poison-store"
    assert dict(found.got)["rows"] == "8..15"
    assert (y[:8] == 2).all()
    here = f"poison-read@test_poison_travels.py:{at.location.line}"
    with pytest.raises(ProgramError):  # now it is the store that reads them
        careless[1](x, y, path=path, engine=engine, allow={here})
    store = f"poison-read@test_poison_travels.py:{at.location.line + 1}"
    allowed = careless[1](x, y, path=path, engine=engine, allow={here, store})
    assert [d.code for d in allowed.warnings] == ["poison-store"]
    assert not careless[1](*arrays(), path=path, rules="release", allow=["poison-store"]).warnings


def test_a_race_stays_a_race() -> None:
    """Bytes that are about to be written are no poison."""

    @kernel(target="a2a3")
    def early(x: Any) -> None:
        a, b = Wide(), Wide()
        TASSIGN[0](a)
        TASSIGN[0x4000](b)
        TLOAD(a, GlobalTensor(x))
        TADDS(b, a, 1.0)
        pipe_barrier(PIPE_ALL)

    x = np.ones((16, 64), np.float32)
    for seed in (None, 1, 2, 3):
        for rules in ("default", "release"):
            with pytest.raises(ProgramError) as error:
                early[1](x, seed=seed, rules=rules)
            assert error.value.codes == ("E6",)


# ---- every instruction -------------------------------------------------------------------------


def left(sample: Sample, name: str, engine: str, garbage: int) -> Any:
    """What an instruction leaves when a part of one of its sources holds garbage."""
    machine = Machine(
        sample.target, "auto", executor=ENGINES[engine].executor, policy=Policy("release")
    )
    with running(machine):
        operands = sample_operands(sample)
        access = tile_access(operands[name])
        rows, cols = access.shape
        chosen = np.zeros(access.shape, bool)
        chosen[rows // 2 : rows // 2 + 3, cols // 3 : cols // 3 + 5] = True
        values = access.read().copy()
        raw = np.full((rows, cols, access.dtype.itemsize), garbage, np.uint8)
        values[chosen] = raw.view(access.dtype.np)[..., 0][chosen]
        access.write(values)
        access.poison(chosen)
        attrs = tuple(sample.attrs[a.name] for a in sample.insn.attrs)
        try:
            machine.execute(sample.insn, tuple(operands.values()), attrs, Location("here", 1))
        except ptokit.PtoError as error:
            return error.codes
        arrays = {n: v for n, v in contents(machine, operands).items() if isinstance(v, tuple)}
        stored = [(d.code, d.got[:2]) for d in machine.warnings]
        return arrays, stored


def cases(insn: Insn) -> Iterator[tuple[Sample, str]]:
    """A source of each sample, on the first target that has the instruction."""
    target = next((TARGETS[t] for t in TARGETS if t in insn.targets), None)
    for sample in samples(insn, target) if target else ():
        for operand in insn.operands:
            spec = sample.operands.get(operand.name)
            is_tile = isinstance(spec, ptokit.base.tiles.TileSpec) and spec.dtype.itemsize
            if operand.reads and is_tile and operand.name not in sample.same:
                yield sample, operand.name
        break


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=lambda insn: insn.name)
def test_nothing_defined_is_made_of_garbage(insn: Insn) -> None:
    """Defined bytes do not depend on what undefined ones hold; engines agree which they are."""
    for sample, name in cases(insn):
        found = left(sample, name, "fast", 0x11)
        assert left(sample, name, "fast", 0x3C) == found, f"{sample}: {name}"
        assert left(sample, name, "reference", 0x11) == found, f"{sample}: {name}"


def test_the_table_is_looked_at() -> None:
    assert sum(1 for insn in INSTRUCTIONS.values() for _ in cases(insn)) > 150
