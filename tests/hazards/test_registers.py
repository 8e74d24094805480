"""Registers of a core: one is not set to something else while work that depends on it may wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptokit import *
from ptokit.isa import INSTRUCTIONS
from ptokit.machine.entries import TRANSFERS
from tests.hazards.support import *

MODE = SetFmatrixMode.FMATRIX_A_MANUAL


class Set(NamedTuple):
    """How a register gets its first or its second value, and who depends on it, on which pipe."""

    to: Callable[[int], Any]
    use: Callable[[], Any]
    pipe: Any


def product(kind: Any) -> Any:
    left, right = at(TileLeft[kind, 16, 16](), 0), at(TileRight[kind, 16, 16](), 0)
    acc = at(TileAcc[int32 if kind is int8 else float32, 16, 16](), 0)
    left.fill(1)
    right.fill(1)
    return lambda: TMATMUL(acc, left, right)


def by_mode(kind: Any = float32) -> Set:
    return Set(lambda which: TSETTF32MODE[bool(which)](), product(kind), PIPE_M)


def by_map(setter: Any) -> Set:
    shape = (1, 1, 4, 4, 16)
    tile = ConvTile[TileType.Mat, half, 256, Layout.NC1HWC0, ConvTileShape[shape]]()
    TASSIGN(tile, 0)
    tile.fill(np.ones(shape))
    tile.SetFmapH(4)
    tile.SetFmapW(4)
    tile.SetFilterH(1)
    tile.SetFilterW(1)
    tile.SetChannelSize(16)
    left = at(TileLeft[half, 16, 16](), 0)
    for each in (SETFMATRIX, SET_IMG2COL_RPT, SET_IMG2COL_PADDING):
        each[MODE](tile)

    def load(which: int) -> None:
        tile.SetFmapH(4 - which)
        tile.SetRepeatStride(which)
        tile.SetPadValue(which)
        setter[MODE](tile)
        tile.SetFmapH(4)

    return Set(load, lambda: TIMG2COL[MODE](left, tile, 0, 0), PIPE_MTE1)


def by_scale(name: str) -> Set:
    acc = at(TileAcc[float32, 16, 16](), 0)
    acc.fill(1)
    pipe = TPipe[0, Direction.DIR_C2V, 1024, 2](np.zeros(512, np.float32), 0, 0)
    words = [at(Tile[TileType.Scaling, uint64, 1, 16](), 0x80 * i) for i in range(2)]
    for each in words:
        each.fill(0x3F800000)
    modes = {"QUANT_PRE": QuantMode_t.QF322B8_PRE, "FPC": QuantMode_t.VQF322B8_PRE}

    def load(which: int) -> None:
        if name == "FPC":
            SET_QUANT_VECTOR(words[which])
        else:
            SET_QUANT_SCALAR[int8](1.0 + which)

    return Set(load, lambda: TPUSH[FixpipeParams(QuantPre=modes[name])](pipe, acc), PIPE_FIX)


REGISTERS: dict[str, Callable[[], Set]] = {
    "CTRL": by_mode,
    "FMATRIX": lambda: by_map(SETFMATRIX),
    "L3D_RPT": lambda: by_map(SET_IMG2COL_RPT),
    "PADDING": lambda: by_map(SET_IMG2COL_PADDING),
    "QUANT_PRE": lambda: by_scale("QUANT_PRE"),
    "FPC": lambda: by_scale("FPC"),
}


def program(make: Callable[[], Set], *, second: int, waits: bool) -> Any:
    def cube() -> None:
        register = make()
        register.to(0)
        register.use()  # use
        if waits:
            PtoSetWaitFlag[register.pipe, PIPE_S]()
        register.to(second)  # set

    return cube


def found(
    make: Callable[[], Set], *, second: int = 1, waits: bool = False, **more: Any
) -> list[Any]:
    return [
        d
        for d in check({"cube": program(make, second=second, waits=waits)}, **more)
        if d.code in ("E6", "E7")
    ]


@pytest.mark.parametrize("name", REGISTERS)
def test_a_register_is_not_set_under_work_that_depends_on_it(name: str) -> None:
    (race,) = found(REGISTERS[name])
    assert (race.code, race.severity) == ("E6", "error")
    assert f"writes {name}" in race.message
    assert race.evidence is not None
    assert race.evidence.earlier.location.line != race.evidence.later.location.line
    assert found(REGISTERS[name], waits=True) == []
    assert found(REGISTERS[name], second=0) == [], "the value it has"


@pytest.mark.parametrize("name", sorted(REGISTERS.keys() - {"QUANT_PRE", "FPC"}))
def test_devices_take_the_value_along(name: str) -> None:
    """Left out: those of pushes, which here go to nobody, an error by itself."""
    (told,) = found(REGISTERS[name], rules="release")
    assert (told.code, told.severity) == ("E6", "warning")


def test_these_are_all_registers() -> None:
    everybody = (*INSTRUCTIONS.values(), *TRANSFERS)
    assert {name for each in everybody for name in each.sets} == set(REGISTERS)
    assert {name for each in everybody for name in each.uses} == set(REGISTERS)


@pytest.mark.parametrize(("kind", "races"), [(float32, 1), (half, 0), (int8, 0)])
def test_only_products_of_f32_heed_the_mode(kind: Any, races: int) -> None:
    assert len(found(lambda: by_mode(kind))) == races


@pytest.mark.parametrize(("name", "severity"), [("QUANT_PRE", "warning"), ("FPC", "error")])
def test_a_scale_that_was_never_set(name: str, severity: str) -> None:
    """The scale is 0 then; where there is one per column, nobody knows which."""

    def cube() -> None:
        by_scale(name).use()

    told = {d.code: d.severity for d in check({"cube": cube}, allow=["E10"])}
    assert told == {"TPUSH.register": severity}


@pytest.mark.parametrize("name", REGISTERS)
def test_work_that_has_waited_is_held_against_what_was_set_in_the_meantime(name: str) -> None:
    """Whichever of the two a schedule executes first: the finding is that of the program."""
    told = [(race.message, race.location, race.notes) for race in found(REGISTERS[name])]
    for seed in range(6):
        races = found(REGISTERS[name], seed=seed)
        assert [(race.message, race.location, race.notes) for race in races] == told
        assert found(REGISTERS[name], waits=True, seed=seed) == []
        assert found(REGISTERS[name], second=0, seed=seed) == []


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_the_first_change_behind_an_instruction_is_told(seed: int | None) -> None:
    """One that is set to the value it has changes nothing, and hides nothing."""

    def cube() -> None:
        register = by_mode()
        register.to(0)
        register.use()  # use
        register.to(0)
        TSETTF32MODE[True]()  # first
        TSETTF32MODE[False]()  # second

    (race,) = (d for d in check({"cube": cube}, seed=seed) if d.code == "E6")
    assert marked(cube, "first") in lines_of(race)


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_work_that_is_issued_behind_a_change_may_be_executed_late(seed: int | None) -> None:
    def cube() -> None:
        register = by_mode()
        register.to(0)
        register.to(1)
        register.use()

    assert not [d for d in check({"cube": cube}, seed=seed) if d.code == "E6"]
