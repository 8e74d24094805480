"""Every legality rule of the FIFO instructions, broken once per target it holds on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.verify import code_of

NO, UP, LEFT, UP_ODD, _ = TileSplitAxis
R, C = 32, 64
Slot = GlobalTensor[float32, Shape[1, 1, 1, R, C], Stride[1, 1, 1, C, 1]]
Open = GlobalTensor[float32, Shape[1, 1, 1, DYNAMIC, C], Stride[1, 1, 1, C, 1]]
MEMORY = np.zeros(8 * R * C, np.float32)


def pipe(way: Direction, size: int = R * C * 4) -> Any:
    direct = current_target() == "a5" and way < Direction.DIR_C2V_GM
    return TPipe[0, way, size, 2](None if direct else MEMORY, 0, 0)


def current_target() -> str:
    from ptokit.frontend.session import current

    return current().target.name


def through_gm(vector: bool = False) -> Any:
    first = Direction.DIR_C2V if current_target() == "a2a3" else Direction.DIR_C2V_GM
    return pipe(Direction(first + vector))


def elsewhere() -> Any:
    """A pipe without the GlobalTensor flavour."""
    if current_target() == "a5":
        return pipe(Direction.DIR_C2V)
    other = pipe(Direction.DIR_C2V)
    object.__setattr__(other, "spec", type(other.spec)(0, Direction.DIR_C2V_GM, R * C * 4, 2))
    other.key = other.spec
    return other


def acc(rows: int = R, cols: int = C, kind: Any = float32) -> Any:
    tile = TileAcc[kind, rows, cols]()
    TASSIGN(tile, 0)
    return tile


def vec(rows: int = R, cols: int = C, kind: Any = float32) -> Any:
    tile = Tile[TileType.Vec, kind, rows, -(-cols // 16) * 16, BLayout.RowMajor, rows, cols]()
    TASSIGN(tile, 0)
    return tile


def bias() -> Any:
    return Tile[TileType.Bias, float32, 1, 64]()


BROKEN: dict[tuple[str, str], Callable[[], Any]] = {
    ("TALLOC", "global-direction"): lambda: TALLOC(elsewhere(), Slot()),
    ("TALLOC", "split"): lambda: TALLOC[UP_ODD](through_gm(), Slot()),
    ("TALLOC", "static-shape"): lambda: TALLOC[UP](through_gm(True), Open()),
    ("TALLOC", "slot-size"): lambda: TALLOC[UP](through_gm(True), Slot()),
    ("TALLOC", "row-pitch"): lambda: TALLOC[LEFT](through_gm(True), Slot()),
    ("TPUSH", "global-direction"): lambda: TPUSH(elsewhere(), Slot()),
    ("TPUSH", "tile-direction"): lambda: TPUSH(pipe(Direction.DIR_BOTH_GM), acc()),
    ("TPUSH", "tile-location"): lambda: TPUSH(through_gm(), bias()),
    ("TPUSH", "split"): lambda: TPUSH[UP_ODD](through_gm(True), vec(8)),
    ("TPUSH", "slot-size"): lambda: TPUSH[UP](through_gm(True), vec()),
    ("TPUSH", "config-source"): lambda: TPUSH[FixpipeParams()](through_gm(True), vec()),
    ("TPUSH", "config-direction"): lambda: TPUSH[FixpipeParams()](through_gm(True), acc()),
    ("TPUSH", "config-gm"): lambda: TPUSH[FixpipeParams()](through_gm(), acc()),
    ("TPUSH", "rows-split"): lambda: TPUSH[UP](
        pipe(Direction.DIR_C2V), _dynamic(TileAcc[float32, R, C, DYNAMIC, C], 31)
    ),
    ("TPUSH", "columns-split"): lambda: TPUSH[LEFT](pipe(Direction.DIR_C2V), acc(R, 48)),
    ("TPUSH", "whole-blocks"): lambda: TPUSH[UP](pipe(Direction.DIR_V2C), vec(16, 12)),
    ("TPOP", "global-direction"): lambda: TPOP(elsewhere(), Slot()),
    ("TPOP", "tile-direction"): lambda: TPOP(pipe(Direction.DIR_BOTH_GM), vec()),
    ("TPOP", "tile-location"): lambda: TPOP(through_gm(), acc()),
    ("TPOP", "split"): lambda: TPOP[UP_ODD](pipe(Direction.DIR_C2V), vec(8)),
    ("TPOP", "slot-size"): lambda: TPOP[UP](through_gm(), vec()),
    ("TFREE", "global-direction"): lambda: TFREE(elsewhere(), Slot()),
}


def _dynamic(kind: Any, rows: int) -> Any:
    tile = kind(rows)
    TASSIGN(tile, 0)
    return tile


CASES = [
    pytest.param(insn, rule, target, id=f"{code_of(insn, rule)}-{target}")
    for insn in INSTRUCTIONS.values()
    if insn.moves_entries
    for rule in insn.rules
    for target in ("a2a3", "a5")
    if rule.targets is None or target in rule.targets
]


@pytest.mark.parametrize(("insn", "rule", "target"), CASES)
def test_each_rule_bites(insn: Any, rule: Any, target: str) -> None:
    with device(target), pytest.raises(ProgramError) as caught:
        BROKEN[insn.name, rule.id]()
    wanted = f"{insn.name}: {rule.text}"
    assert any(
        d.code == code_of(insn, rule) and d.message == wanted for d in caught.value.diagnostics
    ), str(caught.value)
