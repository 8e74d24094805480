"""The parts of the model one by one: what each holds, and for how long."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from published import flash_attention

from ptokit import *
from ptokit import comm
from ptokit.base.diagnostics import NotSupported
from ptokit.micro import castptr, mte_gm_ub, vecscope, vlds
from ptokit.timing.memory import Bus, Cache, Transfer
from ptokit.timing.report import Timing
from ptokit.timing.streams import Kind
from tests.timing.test_model import ROWS, add_one_by_one, arrays, at


def spans(found: Timing, label: str, pipe: str = "") -> list[tuple[float, float]]:
    """When an instruction is at work, in cycles."""
    scale = 1e3 * found.clock
    return [
        (span.start * scale, span.end * scale)
        for span in found.spans
        if span.label == label and pipe in ("", span.pipe)
    ]


# ---- global memory -------------------------------------------------------------------------------


def ends(bus: Bus, *transfers: Transfer) -> list[float]:
    """When transfers that begin together are complete."""
    found: dict[Transfer, float] = {}
    for each in transfers:
        bus.begin(0.0, each)
    while (now := bus.next_end()) is not None:
        found |= dict.fromkeys(bus.end(now), now)
    return [found[each] for each in transfers]


def read(size: float, cap: float = 100.0, weight: int = 1, unique: int = 0) -> Transfer:
    return Transfer(None, size, cap, weight, unique, writes=False)


def test_a_transfer_alone_has_the_rate_of_its_core() -> None:
    assert ends(Bus(1000, 1000), read(800)) == [8.0]


def test_transfers_share_the_rate_of_all_cores() -> None:
    """Whoever needs less than an equal share leaves the rest to the others."""
    assert ends(Bus(100, 1000), read(500), read(500)) == [10.0, 10.0]
    slow, quick = ends(Bus(100, 1000), read(100, cap=20.0), read(400))
    assert (slow, quick) == pytest.approx((5.0, 5.0))
    assert ends(Bus(100, 1000), read(100, weight=4)) == [4.0]


def test_bytes_beyond_the_l2_share_less() -> None:
    assert ends(Bus(1000, 50), read(500, unique=1), read(500)) == [10.0, 5.0]


def test_the_l2_holds_what_fits() -> None:
    regions = [(4096 * n, "a view", 0) for n in range(8)]
    roomy, tight = Cache(8 * 4096), Cache(2 * 4096)
    for cache in (roomy, tight):
        assert cache.misses(regions, 4096, False) == (1.0, 8)
    assert roomy.misses(regions, 4096, False) == (0.0, 0)
    assert tight.misses(regions, 4096, False)[1] >= 6
    # Cores that load the same at the same time all wait for it, and it comes once.
    assert Cache(1e6).misses([regions[0]] * 4, 4096, False) == (1.0, 1)


@kernel(core="vector")
def loads_twice(x, y):
    a = at(ROWS(), 0)
    for _ in range(2):
        TLOAD(a, GlobalTensor(x)[0:16, :])


def test_what_was_loaded_before_comes_from_the_l2() -> None:
    first, second = spans(loads_twice.time(1, arrays(16), target="a2a3"), "TLOAD")
    assert second[1] - second[0] < first[1] - first[0]


def test_a_launch_ends_when_its_stores_have_landed() -> None:
    found = add_one_by_one.time(1, arrays(), target="a2a3", extra=False)
    last = max(end for _, end in spans(found, "TSTORE"))
    tail = found.params["cost.transfer, UB to GM.completion.tail"]
    assert tail > 0
    assert found.cycles >= last + tail


# ---- pipes ---------------------------------------------------------------------------------------


@kernel(core="vector")
def runs_ahead(x, y):
    """Much for V, then a load that waits for nothing."""
    a, b = at(ROWS(), 0), at(ROWS(), 0x1000)
    for _ in range(64):
        TADD(a, a, a)
    TLOAD(b, GlobalTensor(x)[0:16, :])


def test_the_scalar_unit_runs_ahead_as_far_as_queues_go() -> None:
    found = runs_ahead.time(1, arrays(16), target="a2a3")
    starts = [
        spans(found.what_if({"scalar.queue": depth}), "TLOAD")[0][0] for depth in (1, 8, 32, 128)
    ]
    assert starts == sorted(starts, reverse=True)
    assert starts[0] > starts[-1]


BOX = Tile[TileType.Mat, half, 64, 64, BLayout.ColMajor, 64, 64, SLayout.RowMajor]


@kernel(mode="manual")
def loads_both_sides(x, y):
    a, b = at(ROWS(), 0), at(BOX(), 0)
    TLOAD(a, GlobalTensor(x)[0:16, :])
    TLOAD(b, GlobalTensor(y))


def test_a_core_that_plays_both_parts_has_two_pipes_for_loads() -> None:
    x, y = np.ones((16, 64), np.float32), np.ones((64, 64), np.float16)
    found = loads_both_sides.time(1, (x, y), target="a2a3")
    (one,), (other,) = spans(found, "TLOAD", "MTE2"), spans(found, "TLOAD", "MTE2 (vector)")
    assert max(one[0], other[0]) < min(one[1], other[1])  # at the same time


# ---- cores ---------------------------------------------------------------------------------------


@kernel(mode="manual", core="mix")
def passes_on(x, ring, y, *, slots, slow):
    """The vector cores hand over an entry after the other, and the cube core is slow to take it."""
    fifo = TPipe[0, Direction.DIR_V2C, 64 * 64 * 2, slots](ptr(ring, 0), 0, 0)
    split = TileSplitAxis.TILE_UP_DOWN
    with vector_section():
        a = at(Tile[TileType.Vec, half, 32, 64](), 0)
        for _ in range(8):
            TLOAD(a, GlobalTensor(x)[0:32, :])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TPUSH[split](fifo, a)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()
    with cube_section():
        b, c = at(BOX(), 0), at(BOX(), 0x4000)
        for _ in range(8):
            TPOP[split](fifo, b)
            for _ in range(slow):
                TLOAD(c, GlobalTensor(y))
            TFREE[split](fifo)


def passed(slots: int, slow: int) -> Timing:
    x, ring = np.ones((32, 64), np.float16), np.zeros(slots * 64 * 64, np.float16)
    args = (x, ring, np.ones((64, 64), np.float16))
    return passes_on.time(1, args, target="a2a3", slots=slots, slow=slow)


def test_an_entry_is_taken_when_it_has_come_and_space_when_it_is_free() -> None:
    found = passed(slots=2, slow=8)
    pushes, pops = spans(found, "TPUSH"), sorted(spans(found, "TPOP"))
    assert len(pushes) == 16  # of two vector cores
    for turn, (start, _) in enumerate(pops):
        came = sorted(end for _, end in pushes)[2 * turn + 1]
        assert start >= came
    for turn in range(2, 8):  # the third entry goes where the first one was
        assert sorted(pushes)[2 * turn][0] >= pops[turn - 2][1]

    def held(found: Timing) -> bool:
        return any("TPUSH" in w.reason and "for free space" in w.reason for w in found.waits)

    assert held(found)
    assert not held(passed(slots=8, slow=1))


def test_accumulators_pass_on_piece_by_piece() -> None:
    """The fix pipe follows a product by its unit flags: it begins before, and ends behind it."""
    case = flash_attention.case(1, s0=128, s1=1024)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = case.kernel.time(case.blocks, case.args, target="a2a3")
    assert any(item.is_early for item in found.streams.items if item.kind == Kind.GIVE)
    products = sorted(spans(found, "TMATMUL", "M") + spans(found, "TMATMUL_ACC", "M"))
    stores = sorted(spans(found, "TSTORE", "FIX"))
    followed = [
        (product, store)
        for store in stores
        for product in products
        if product[0] <= store[0] < product[1]
    ]
    assert followed
    assert all(store[1] >= product[1] for product, store in followed)


# ---- devices -------------------------------------------------------------------------------------


@kernel(core="vector")
def puts(mine, theirs):
    comm.TPUT(GlobalTensor(theirs), GlobalTensor(mine), at(ROWS(), 0))


def put_to(rank: int) -> Timing:
    """Rank 0 puts a block into the window of a rank."""
    world, found = comm.World(2), list[Timing]()
    window = world.window((16, 64))

    def program(number: int) -> None:
        if number == 0:
            x = np.ones((16, 64), np.float32)
            found.append(puts.time(1, (x, window[rank]), target="a2a3"))

    world.run(program)
    return found[0]


def test_what_goes_to_another_device_takes_the_link_and_is_not_validated() -> None:
    near, far = put_to(0), put_to(1)
    assert near.validated
    assert not far.validated
    assert set(far.assumed) == {"between devices"}
    assert "not validated" in far.band
    assert "between devices" in far.band
    link = {f"cost.between devices.work.{n}": 2 * far.params[f"cost.between devices.work.{n}"]
            for n in ("start", "bytes")}  # fmt: skip
    (slow,), (quick,) = (spans(each, "TSTORE") for each in (far.what_if(link), far))
    assert slow[1] - slow[0] == pytest.approx(2 * (quick[1] - quick[0]))
    assert near.what_if(link).cycles == near.cycles


def test_figures_stand_behind_a_prediction_or_it_says_so() -> None:
    """Of loads of the vector cores of A5 nothing is published."""
    a2a3, a5 = (add_one_by_one.time(1, arrays(), target=t, extra=False) for t in ("a2a3", "a5"))
    assert a2a3.validated
    assert not a2a3.assumed
    assert not a5.validated
    assert "transfer, GM to UB" in a5.band
    assert a5.as_dict()["assumed"]["transfer, GM to UB"] > 0.2


# ---- below instructions --------------------------------------------------------------------------


@kernel
def registers(x: Any) -> None:
    a = castptr(0, float32, "ub")
    mte_gm_ub(x, a, 0, 256, (1, 256, 256))
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
    with vecscope():
        vlds(a, 0)


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_what_has_no_class_of_cost_is_refused_by_name(path: str) -> None:
    x = np.ones(64, np.float32)
    with pytest.raises(NotSupported, match="mte_gm_ub works below instructions"):
        registers.time(1, (x,), target="a5", path=path)
