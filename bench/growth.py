"""How the cost of the checks grows: with width, tiles, blocks, trips, atomics, meetings and FIFOs.

    python bench/growth.py [--quick] [NAME ...]    goals: on/off <= 1.3, exponents <= 1.1

Names are parts of those of the rows: "FIFO" measures that one alone.

Each kernel runs at sizes that double, with the checks on and off in turn, on the lowered path, for
at least five rounds and a second; the best round of each counts, and garbage of one is not
collected in another. Of a first launch the trips that repeat what the checker knows are
passed over; the next one like it comes to the same verdict, which is remembered where no data
decides; in full (`check="full"`) every access is looked at. A size is the work
it stands for - tiles, additions, entries - so a program whose time is proportional to its work has
the exponent 1: the slope of log(time) over log(size) by least squares. Times are those of the
processor, so that a busy machine does not count.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import fifo
import growth_passes

from ptokit import *

MOST_FOR_CHECKS, MOST_EXPONENT = 1.3, 1.1
LEAST_ROUNDS, ENOUGH = 5, 1.0  # rounds and seconds of each size
GOALS = ("first", "again")  # launches for which they are meant
Wide = Tile[TileType.Vec, float32, 16, 256]
Square = Tile[TileType.Vec, float32, 16, 16]
Pass = Callable[[bool | str], None]  # runs a program once; with which checks


@kernel(mode="manual")
def plus_one(x, y, *, kind, rows, cols):
    """y = x + 1, tile by tile, with two buffers each for what comes and what goes."""
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    came, goes = kind(), kind()
    TASSIGN(came, 0x0)
    TASSIGN(goes, 0x8000)
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    for row in range(0, x.shape[0], rows):
        for col in range(0, x.shape[1], cols):
            wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
            TLOAD(came, gx[row : row + rows, col : col + cols])
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
            TADDS(goes, came, 1.0)
            set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
            TSTORE(gy[row : row + rows, col : col + cols], goes)
            set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0)


@kernel(mode="manual")
def shares(x, y):
    """y = x + 1, sixteen rows per block."""
    first = get_block_idx() * 16
    tile = Square()
    TASSIGN(tile, 0x0)
    TLOAD(tile, GlobalTensor(x)[first : first + 16, :])
    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    TADDS(tile, tile, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y)[first : first + 16, :], tile)


@kernel(mode="manual")
def added_up(total):
    """Every block adds one to the same place."""
    tile = Square()
    TASSIGN(tile, 0x0)
    TEXPANDS(tile, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE[AtomicType.AtomicAdd](GlobalTensor(total), tile)


@kernel(mode="manual")
def meetings(x, y):
    """Every block writes its rows, all meet, every block reads those of its neighbour."""
    mine = get_block_idx() * 16
    other = (get_block_idx() + 1) % get_block_num() * 16
    gx, gy = GlobalTensor(x), GlobalTensor(y)
    tile, back = Square(), Square()
    TASSIGN(tile, 0x0)
    TASSIGN(back, 0x400)
    TEXPANDS(tile, 1.0)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(gx[mine : mine + 16, :], tile)
    pipe_barrier(PIPE_ALL)
    SYNCALL()
    TLOAD(back, gx[other : other + 16, :])
    PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
    TSTORE(gy[mine : mine + 16, :], back)


@kernel(mode="manual")
def trips(x, y, times: int):
    """Add one to a tile many times over."""
    tile, more = Square(), Square()
    TASSIGN(tile, 0x0)
    TASSIGN(more, 0x400)
    TLOAD(tile, GlobalTensor(x))
    PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
    for _ in range(times):
        TADDS(more, tile, 1.0)
        pipe_barrier(PIPE_V)
        TMULS(tile, more, 0.5)
        pipe_barrier(PIPE_V)
    PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
    TSTORE(GlobalTensor(y), tile)


@dataclass(frozen=True)
class Series:
    """A program and the sizes at which it is measured."""

    name: str
    sizes: tuple[int, ...]
    make: Callable[[int], Pass]


def zeros(*shape: int, kind: type = np.float32) -> np.ndarray:
    return np.zeros(shape, kind)


def wide_rows(tiles: int) -> Pass:
    x, y = zeros(16, 256 * tiles), zeros(16, 256 * tiles)
    consts = {"kind": Wide, "rows": 16, "cols": 256}
    return lambda check: _run(plus_one, 1, x, y, check=check, **consts)


def small_tiles(columns: int) -> Pass:
    x, y = zeros(64, 16 * columns), zeros(64, 16 * columns)
    consts = {"kind": Square, "rows": 16, "cols": 16}
    return lambda check: _run(plus_one, 1, x, y, check=check, **consts)


def tall(tiles: int) -> Pass:
    x, y = zeros(16 * tiles, 256), zeros(16 * tiles, 256)
    consts = {"kind": Wide, "rows": 16, "cols": 256}
    return lambda check: _run(plus_one, 1, x, y, check=check, **consts)


def many_blocks(blocks: int) -> Pass:
    x, y = zeros(16 * blocks, 16), zeros(16 * blocks, 16)
    return lambda check: _run(shares, blocks, x, y, check=check)


def many_additions(blocks: int) -> Pass:
    total = zeros(16, 16)
    return lambda check: _run(added_up, blocks, total, check=check)


def many_meetings(blocks: int) -> Pass:
    x, y = zeros(16 * blocks, 16), zeros(16 * blocks, 16)
    return lambda check: _run(meetings, blocks, x, y, check=check)


def many_trips(times: int) -> Pass:
    x, y = zeros(16, 16), zeros(16, 16)
    return lambda check: _run(trips, 1, x, y, times, check=check)


def many_entries(entries: int) -> Pass:
    x, b = zeros(32 * entries, 64, kind=np.float16), zeros(64, 64, kind=np.float16)
    ring, y = zeros(4 * 2 * 32 * 64), zeros(32 * entries, 64)
    consts = {"way": fifo.C2V, "split": fifo.UP, "slots": 4, "entries": entries}
    return lambda check: _run(fifo.cube_to_vector, 1, x, b, ring, y, check=check, **consts)


SERIES = (
    Series("[16, W], 16x256 tiles", (64, 128, 256, 512), wide_rows),
    Series("[64, W], 16x16 tiles", (16, 32, 64, 128), small_tiles),
    Series("[H, 256], 16x256 tiles", (64, 128, 256, 512), tall),
    Series("blocks", (250, 500, 1000, 2000, 4000), many_blocks),
    Series("atomic additions", (40, 400, 4000), many_additions),
    Series("SYNCALL of all blocks", (20, 40, 80, 160, 320), many_meetings),
    Series("trips", (250, 500, 1000, 2000), many_trips),
    Series("entries of a FIFO", (16, 32, 64, 128), many_entries),
)


def _run(program, blocks: int, *args, check, **more) -> None:
    if check == "first":
        program.programs.memory.forget_verdicts()
        check = True
    program[blocks](*args, target="a2a3", path="lowered", check=check, engine="stepwise", **more)


def seconds(call: Pass, check: bool | str) -> float:
    gc.collect()
    started = time.process_time()
    call(check)
    return time.process_time() - started


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """The slope of log(time) over log(size)."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def rounds(call: Pass, quick: bool) -> list[tuple[float, ...]]:
    """Seconds of every way to launch, one after the other, again and again."""
    ways = (False, "first", True, "full")
    least, enough = (2, 0.0) if quick else (LEAST_ROUNDS, ENOUGH)
    found: list[tuple[float, ...]] = []
    while len(found) < least or sum(map(sum, found)) < enough:
        found.append(tuple(seconds(call, check) for check in ways))
    return found


def measure(series: Series, quick: bool) -> tuple[list[float], ...]:
    """Seconds per size: unchecked, of a first launch, of another like it, and read in full."""
    best: tuple[list[float], ...] = ([], [], [], [])
    for size in series.sizes:
        call = series.make(size)
        call(True)  # leaves lowering, done once, out of the times
        for times, found in zip(best, zip(*rounds(call, quick), strict=True), strict=True):
            times.append(min(found))
    return best


def is_chosen(name: str) -> bool:
    """Whether a row is asked for."""
    asked = [word for word in sys.argv[1:] if not word.startswith("-")]
    return not asked or any(word in name for word in asked)


def before_a_run(quick: bool) -> list[float]:
    """Print the rows of reading, lowering, verifying, placing and ordering; their exponents."""
    slopes: list[float] = []
    name = ""
    for what, step, sizes, times in growth_passes.rows(quick, is_chosen):
        slopes.append(exponent(sizes, times))
        shown = "  ".join(f"{n}: {t * 1e3:.0f} ms" for n, t in zip(sizes, times, strict=True))
        print(f"{what if what != name else '':<24}{step:<7}{shown:<56}{slopes[-1]:>8.2f}")
        name = what
    return slopes


def main() -> int:
    quick = "--quick" in sys.argv
    print(f"{'what grows':<24}{'launch':<7}{'on/off at each size':<56}{'exponent':>8}")
    costs: dict[str, list[float]] = {"first": [], "again": [], "full": []}
    slopes: list[float] = []
    for series in (each for each in SERIES if is_chosen(each.name)):
        sizes = series.sizes[: 3 if quick else None]
        off, *checked = measure(Series(series.name, sizes, series.make), quick)
        for launch, on in zip(costs, checked, strict=True):
            ratios = [a / b for a, b in zip(on, off, strict=True)]
            slope = exponent(sizes, on)
            slopes += [slope] * (launch in GOALS)
            costs[launch] += ratios
            shown = "  ".join(f"{n}: {r:.2f}" for n, r in zip(sizes, ratios, strict=True))
            name = series.name if launch == "first" else ""
            print(f"{name:<24}{launch:<7}{shown:<56}{slope:>8.2f}")
    slopes += before_a_run(quick)
    met = {True: "met", False: "MISSED"}
    for launch in GOALS:
        most = max(costs[launch], default=0.0)
        is_met = met[most <= MOST_FOR_CHECKS]
        print(f"goal: on/off <= {MOST_FOR_CHECKS}, {launch}: {is_met}, at most {most:.2f}")
    most = max(slopes, default=0.0)
    print(f"goal: exponents <= {MOST_EXPONENT}: {met[most <= MOST_EXPONENT]}, at most {most:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
