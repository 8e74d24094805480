"""Random calls with hostile arguments: whatever comes out is a diagnostic, or Python's own word."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptokit import *
from ptokit import comm, micro
from tests.fuzz.api import USAGE, Anything, outcomes, own_frame

VEC = Tile[TileType.Vec, float32, 16, 64]
ARRAY = np.zeros((2, 3), np.float32)
CONV = ConvTile[TileType.Mat, float16, 4096, Layout.NC1HWC0, ConvTileShape[1, 1, 8, 16, 16]]


@kernel(mode="auto")
def fixed(x: Any, *, n: Any) -> None:
    TADDS(VEC(), VEC(), n)


def on_lanes(factor: Any) -> None:
    with micro.vecscope():
        micro.vlrelu(micro.vbr[float32](1.0), factor, micro.pset_b32("PAT_ALL"))


# Calls that once leaked something of ours, each in a way of its own.
ONCE_WRONG: list[Callable[[], Any]] = [
    lambda: TEXPANDS(VEC(), np.array("1.0")),
    lambda: TEXPANDS(VEC(), 10**5000),
    lambda: TTRI(VEC(), float("inf")),
    lambda: SET_QUANT_SCALAR(1e39),
    lambda: SETVAL(VEC(), 2.0, PIPE_ALL),
    lambda: TPUSH(object(), VEC()),
    lambda: TMIN(VEC(), VEC(), Anything()),
    lambda: TRESHAPE(VEC(), AsyncSession()),
    lambda: TCOLSUM[ARRAY](VEC(), VEC()),
    lambda: TPOP(TPipe[0, Direction.DIR_C2V, 4096, 2](np.zeros(8192, np.uint8)), VEC(), 32768),
    lambda: Shape[10**5000, 1, 1, 1, 1],
    lambda: TileAcc[float32, 32, 10**5000],
    lambda: TileShape2D[float32, 32, 32, Layout.SCALE],
    lambda: GlobalTensor(ARRAY)[10**5000 :],
    lambda: float32[0],
    lambda: PadCustom(1e39),
    lambda: PadCustom("x"),  # type: ignore[arg-type]
    lambda: PadValueCustom([]),  # type: ignore[arg-type]
    lambda: static_range(),
    lambda: subblock(slice(None)),  # type: ignore[arg-type]
    lambda: getFFTSMsg("x", 1),  # type: ignore[arg-type]
    lambda: supports(ARRAY),  # type: ignore[arg-type]
    lambda: loads(3),  # type: ignore[arg-type]
    lambda: subblock(Fraction(1, 3)),  # type: ignore[arg-type]
    lambda: VEC().fill(10**400),
    lambda: Tile[TileType.Vec, int8, 16, 32]().fill(300),
    lambda: load(2),  # type: ignore[arg-type]
    lambda: load(print),  # type: ignore[arg-type]
    lambda: kernel(3),  # type: ignore[call-overload]
    lambda: Event(),
    lambda: Event[Op.TLOAD, Op.TADD]().Wait("1"),
    lambda: BuildAsyncSession[ARRAY](),  # type: ignore[index]
    lambda: PrefetchAsyncContext(None, ARRAY),  # type: ignore[arg-type]
    lambda: comm.SymmetricWindow(1, 2, 3),  # type: ignore[arg-type]
    lambda: comm.World(2).window((10**20,)),
    lambda: comm.World(2).window((1 << 45,)),
    lambda: comm.World(2).remote(np.ma.masked_array(ARRAY, True), 0),
    lambda: FixpipeParams(ARRAY),  # type: ignore[arg-type]
    lambda: device("a2a3", allow=ARRAY),  # type: ignore[arg-type]
    lambda: device("a2a3", allow=[1]),  # type: ignore[list-item]
    lambda: fixed[1](ARRAY, n=ARRAY),
    lambda: fixed.text(ARRAY, n=slice(3), target=[]),  # type: ignore[arg-type]
    lambda: fixed.cpp(ARRAY, n=1, place=ARRAY),  # type: ignore[arg-type]
    lambda: fixed[1](ARRAY, n=1, rules=ARRAY),
    lambda: subblock(10**20),
    lambda: CONV().GetShape(ARRAY),  # type: ignore[arg-type]
    lambda: GlobalTensor[float32, Anything(), Stride[1, 1, 1, 64, 1]],
    lambda: PadCustom(10**100),
    lambda: Event[Op.TLOAD, Op.TADD, ARRAY],
    lambda: on_lanes(Op.TADD),
    lambda: on_lanes(np.ones(4, np.float32)),
]


def only_refusals(seeds: range) -> None:
    leaks = [f"seed {o.seed}: {o.kind}: {o.told}" for o in outcomes(seeds) if o.verdict == "leaked"]
    assert not leaks, "\n".join(leaks)


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_hostile_calls_are_refused(first: int) -> None:
    only_refusals(range(first, first + 250))


@pytest.mark.parametrize("call", range(len(ONCE_WRONG)))
def test_calls_that_once_leaked_are_refused(call: int) -> None:
    with device("a5", mode="auto"), pytest.raises((PtoError, *USAGE)) as caught:
        ONCE_WRONG[call]()
    assert not isinstance(caught.value, InternalError)
    assert not own_frame(caught.value)
    assert len(str(caught.value)) < 3000


def test_an_address_that_matters_and_is_missing_is_asked_for() -> None:
    with device("a2a3"):
        mask = Tile[TileType.Vec, uint8, 16, 32]()
        TASSIGN(mask, 0)
        with pytest.raises(PtoError, match=r"unbound-tile.*src0 has no address"):
            TCMPS[CmpMode.GE](mask, VEC(), 1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 101_000, 1000))
def test_hostile_calls_are_refused_for_long(first: int) -> None:
    only_refusals(range(first, first + 1000))


def test_the_closing_line_counts() -> None:
    command = [sys.executable, "-m", "tests.fuzz.api", "--seeds", "0:20"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1].startswith("fuzz.api: 20 calls, seeds 0:20: ")
