"""Placement of MX scales: the cube looks for them at a sixteenth of the address of the data."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptokit import *
from ptokit.ir.types import TileBufType
from ptokit.isa.targets import target
from ptokit.passes.accesses import accesses_of
from tests.passes.scale_kernels import early_scales

C = np.zeros((16, 64), np.float32)


@kernel(mode="auto", target="a5")
def two_pairs(c: Any) -> None:
    """Two left tiles with their scales, in use at the same time."""
    lefts = [TileLeft[float8_e4m3, 16, 64](), TileLeft[float8_e4m3, 16, 64]()]
    scales = [TileLeftScale[float8_e8m0, 16, 2](), TileLeftScale[float8_e8m0, 16, 2]()]
    right, right_scale = TileRight[float8_e4m3, 64, 64](), TileRightScale[float8_e8m0, 2, 64]()
    acc = TileAcc[float32, 16, 64]()
    TGET_SCALE_ADDR(scales[1], lefts[1])  # said here, or found from the product below
    for _ in range(2):
        TMATMUL_MX(acc, lefts[0], scales[0], right, right_scale)
        TMATMUL_MX(acc, acc, lefts[1], scales[1], right, right_scale)
    TSTORE(GlobalTensor(c), acc)


@kernel(mode="auto", target="a5")
def one_scale_for_two(c: Any) -> None:
    lefts = [TileLeft[float8_e4m3, 16, 64](), TileLeft[float8_e4m3, 16, 64]()]
    scale = TileLeftScale[float8_e8m0, 16, 2]()
    right, right_scale = TileRight[float8_e4m3, 64, 64](), TileRightScale[float8_e8m0, 2, 64]()
    acc = TileAcc[float32, 16, 64]()
    TMATMUL_MX(acc, lefts[0], scale, right, right_scale)
    TMATMUL_MX(acc, acc, lefts[1], scale, right, right_scale)
    TSTORE(GlobalTensor(c), acc)


def test_scales_lie_at_a_sixteenth_of_their_data() -> None:
    module = two_pairs.lower(C)
    (function,) = module.functions
    known = accesses_of(function, target("a5")).known
    found: dict[TileType, list[int]] = {}
    for op in function.walk():
        if op.name == "pto.alloc_tile" and isinstance(op.result.type, TileBufType):
            address = known.number(op.operand("addr"))
            assert address is not None
            found.setdefault(op.result.type.spec.loc, []).append(address)
    assert len(set(found[TileType.Left])) == 2
    assert found[TileType.ScaleLeft] == [a >> 4 for a in found[TileType.Left]]
    assert found[TileType.ScaleRight] == [a >> 4 for a in found[TileType.Right]]
    assert not any(op.insn and op.insn.name == "TGET_SCALE_ADDR" for op in function.walk())


def test_a_scale_tile_has_one_owner() -> None:
    with pytest.raises(PtoError, match=r"place.scales"):
        one_scale_for_two.lower(C)


def test_scales_that_wait_for_their_data_keep_their_place() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, (64, 128)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    scales = [rng.integers(125, 130, (64, 4)).astype(np.uint8) for _ in range(2)]
    weights = [
        np.repeat(2.0 ** (s.astype(int) - 127), 32, axis=1) * x.astype(np.float64)
        for s, x in zip(scales, (a, b), strict=True)
    ]
    b_rows = np.ascontiguousarray(b.T)
    for path in ("eager", "lowered"):
        c = np.zeros((64, 64), np.float32)
        args = (a, scales[0].view(ml_dtypes.float8_e8m0fnu), b_rows)
        early_scales[1](*args, scales[1].view(ml_dtypes.float8_e8m0fnu), c, target="a5", path=path)
        np.testing.assert_array_equal(c, weights[0] @ weights[1].T)
