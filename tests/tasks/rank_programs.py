"""Programs of several ranks, right and wrong, for worlds in one process and on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ptokit import *
from ptokit.base.diagnostics import Diagnostic
from ptokit.comm import *
from tests.frontend.test_world import COLS, ROWS, ring_all_reduce
from tests.hazards.support import at, launch
from tests.text import test_comm as texts

Block = Tile[TileType.Vec, float32, 16, 16]
Worlds = Callable[[int], World]
Made = tuple[World, Callable[..., Any], tuple[Any, ...]]


def outcome(make: Callable[[Worlds], Made], worlds: Worlds, seed: int | None = None) -> Any:
    """All that a run leaves: what it returns or raises, and its windows."""
    known = {id(each) for size in (2, 3) for each in worlds(size).windows}
    world, program, args = make(worlds)
    told = result(lambda: world.run(program, *args, seed=seed))
    windows = [each for each in world.windows if id(each) not in known]
    return told, [array.tolist() for each in windows for array in each]


def result(run: Callable[[], Any]) -> Any:
    """What a run gives back or raises, as data."""
    try:
        return run()
    except PtoError as error:
        return type(error), [_told(d) for d in error.diagnostics], _notes(error)
    except Exception as error:
        return type(error), str(error), _notes(error)


def _notes(error: Exception) -> list[str]:
    """Which rank it was; from elsewhere there also is where that was."""
    return getattr(error, "__notes__", [])[-1:]


def _told(found: Diagnostic) -> Any:
    """A finding, wherever the windows lie."""
    if found.evidence is not None:
        found = replace(found, evidence=replace(found.evidence, span=(0, 0)))
    return found.to_json()


def all_reduce(worlds: Worlds) -> Made:
    world = worlds(3)
    data, inbox = world.window((3, ROWS, COLS)), world.window((4, ROWS, COLS))
    for rank, array in enumerate(data):
        array[...] = np.random.default_rng(rank).standard_normal(array.shape)
    return world, ring_all_reduce, (data, inbox, world.signals())


def behind_stores() -> None:
    PtoSetWaitFlag[PIPE_MTE3, PIPE_S]()


class Handing:
    """Rank 0 puts a block into the window of rank 1, which stores it; `without` leaves one out."""

    def __init__(self, without: str = "", rounds: int = 1, world: World | None = None) -> None:
        self.without, self.rounds = without, rounds
        self.world = world or World(2)
        self.data = self.world.window((16, 16))
        self.ready, self.free = self.world.signals(), self.world.signals()

    def step(self, name: str, do: Callable[..., Any], *args: Any) -> None:
        if name != self.without:
            do(*args)

    def program(self, rank: int) -> list[float]:
        found: list[float] = []
        stage, tile = at(Block(), 0), at(Block(), 0x400)
        for turn in range(1, self.rounds + 1):
            if rank == 0:
                mine = np.full((16, 16), turn, np.float32)
                if turn > 1:
                    self.step("wait free", TWAIT, self.free.signal(), turn - 1, WaitCmp.GE)
                TPUT(self.data.tensor(1), GlobalTensor(mine), stage)  # put
                self.step("stores", behind_stores)
                self.step("ready", TNOTIFY, self.ready.signal(1), 1, NotifyOp.AtomicAdd)
            else:
                self.step("wait ready", TWAIT, self.ready.signal(), turn, WaitCmp.GE)
                TLOAD(tile, self.data.tensor())  # load
                PtoSetWaitFlag[PIPE_MTE2, PIPE_S]()
                found.append(tile.GetValue(0))
                PtoSetWaitFlag[PIPE_S, PIPE_MTE2]()
                self.step("free", TNOTIFY, self.free.signal(0), 1, NotifyOp.AtomicAdd)
        return found


def handed(without: str, rounds: int, worlds: Worlds) -> Made:
    handing = Handing(without, rounds, worlds(2))
    return handing.world, handing.program, ()


def launched(waits: bool, worlds: Worlds, kind: str = "manual") -> Made:
    """Launches of two ranks, in which one waits for the other, or does not."""
    world = worlds(2)
    data, ready, result = world.window((16, 16)), world.signals(), world.window((16, 16))

    def sends() -> None:
        tile = Block() if kind == "auto" else at(Block(), 0)
        TEXPANDS(tile, 3.0)
        if kind == "manual":
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        TSTORE(data.tensor(1), tile)
        if kind == "manual":
            behind_stores()
        TNOTIFY(ready.signal(1), 1, NotifyOp.Set)

    def takes() -> None:
        tile = Block() if kind == "auto" else at(Block(), 0)
        if waits:
            TWAIT(ready.signal(), 1, WaitCmp.EQ)
        TLOAD(tile, data.tensor())
        if kind == "manual":
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
        TSTORE(result.tensor(), tile)

    def program(rank: int) -> None:
        launch({"vector": takes if rank else sends}, "a2a3", kind)

    return world, program, ()


def deadlock(worlds: Worlds) -> Made:
    world = worlds(3)
    word = world.signals(2, 4)

    def program(rank: int) -> None:
        if rank < 2:
            TWAIT(Signal2D[2, 4](word.local), 7 + rank, WaitCmp.GE)

    return world, program, ()


def deadlock_in_launches(worlds: Worlds) -> Made:
    world = worlds(2)
    word = world.signals()

    def program(rank: int) -> None:
        launch({"vector": lambda: TWAIT(word.signal(), 1, WaitCmp.EQ)})

    return world, program, ()


def sums(worlds: Worlds) -> Made:
    """Every rank adds to one window, and one that waits for all of them reads the sum."""
    world = worlds(3)
    data, ready = world.window((16, 16)), world.signals()

    def program(rank: int) -> float:
        stage = at(Block(), 0)
        mine = np.full((16, 16), rank + 0.5, np.float32)
        if rank:
            for _ in range(4):
                TPUT[AtomicType.AtomicAdd](data.tensor(0), GlobalTensor(mine), stage)
                behind_stores()
                TNOTIFY(ready.signal(0), 1, NotifyOp.AtomicAdd)
            return 0.0
        TWAIT(ready.signal(), 8, WaitCmp.GE)
        TLOAD(stage, data.tensor())
        PtoSetWaitFlag[PIPE_MTE2, PIPE_S]()
        return float(stage.GetValue(0))

    return world, program, ()


def hearing_of_two_blocks(count: int, worlds: Worlds) -> Made:
    """Rank 2 reads two blocks. Waiting for one signal, it may have heard of either."""
    world = worlds(3)
    data, ready = world.window((2, 16, 16)), world.signals()
    mine = np.ones((16, 16), np.float32)

    def program(rank: int) -> None:
        tile = at(Block(), 0)
        if rank < 2:
            TPUT(GlobalTensor(data[2][rank]), GlobalTensor(mine), tile)
            behind_stores()
            TNOTIFY(ready.signal(2), 1, NotifyOp.AtomicAdd)
            return
        TWAIT(ready.signal(), count, WaitCmp.GE)
        for part in data.local:
            TLOAD(tile, GlobalTensor(part))
            pipe_barrier(PIPE_MTE2)

    return world, program, ()


def passed_on_by_posts(worlds: Worlds) -> Made:
    world = worlds(2)
    inbox, word = world.window(32), world.signals()

    def program(rank: int) -> float:
        right = (rank + 1) % get_rank_num()
        scratch = Tile[TileType.Vec, u8, 1, 256]()
        session = AsyncSession()
        TASSIGN[0](scratch)
        assert BuildAsyncSession(scratch, np.zeros(1 << 16, np.uint8), session)
        mine = np.full(32, rank + 1, np.float32)
        assert TPUT_ASYNC(inbox.tensor(right), GlobalTensor(mine), session).Wait(session)
        TNOTIFY(word.signal(right), 1, NotifyOp.Set)
        TWAIT(word.signal(), 1, WaitCmp.EQ)
        return float(inbox.local.mean())

    return world, program, ()


def scalar_unit(is_told: bool, worlds: Worlds) -> Made:
    """Rank 0 writes a word of rank 1 with its scalar unit, and says so, or does not."""
    world = worlds(2)
    data, word = world.window((16, 16)), world.signals()

    def program(rank: int) -> float:
        tile = at(Block(), 0)
        if rank == 0:
            store_scalar(ptr(data[1]), 0, 7.0)
            dcci(ptr(data[1]), SINGLE_CACHE_LINE)
            dsb(DSB_DDR)
            if is_told:
                TNOTIFY(word.signal(1), 1, NotifyOp.Set)
            return 0.0
        if is_told:
            TWAIT(word.signal(), 1, WaitCmp.EQ)
        TLOAD(tile, data.tensor())
        PtoSetWaitFlag[PIPE_MTE2, PIPE_S]()
        return tile.GetValue(0)

    return world, program, ()


def asking(worlds: Worlds) -> Made:
    """A rank asks for a signal until it is there."""
    world = worlds(2)
    word = world.signals()

    def program(rank: int) -> None:
        if rank:
            TNOTIFY(word.signal(0), 1, NotifyOp.Set)
        while not rank and not TTEST(word.signal(), 1, WaitCmp.EQ):
            pass

    return world, program, ()


def broken(worlds: Worlds) -> Made:
    world = worlds(3)

    def program(rank: int) -> None:
        if rank == 1:
            raise ValueError("broken")

    return world, program, ()


def text(worlds: Worlds) -> Made:
    """The communication of a text."""
    words = [*map(texts.view, ("mine", "far")), *map(texts.word, ("here", "there"))]
    tiles = [f"%{name} = pto.alloc_tile : {texts.TILE}" for name in ("a", "b")]
    lines = "\n".join([*words, *tiles, texts.COPIES["two tiles"], texts.TOLD])
    kernel = texts.program(f"{texts.FLOATS}, {texts.WORDS}", lines)["f"]
    world = worlds(2)
    data, inbox = (world.window((texts.ROWS, texts.COLS)) for _ in range(2))
    signals = world.signals()
    for rank, own in enumerate(data):
        own[...] = rank + 1

    def program(rank: int) -> None:
        kernel[1](data.local, inbox[1 - rank], signals[rank], signals[1 - rank])

    return world, program, ()


PROGRAMS: dict[str, Callable[[Worlds], Made]] = {
    "all-reduce": all_reduce,
    "handed over": lambda worlds: handed("", 3, worlds),
    "put while it is read": lambda worlds: handed("wait ready", 1, worlds),
    "told too early": lambda worlds: handed("stores", 1, worlds),
    "put again too soon": lambda worlds: handed("wait free", 2, worlds),
    "never told": lambda worlds: handed("ready", 1, worlds),
    "launches": lambda worlds: launched(True, worlds),
    "launches that race": lambda worlds: launched(False, worlds),
    "deadlock": deadlock,
    "deadlock in launches": deadlock_in_launches,
    "sums": sums,
    "no more than it waits for": lambda worlds: hearing_of_two_blocks(1, worlds),
    "posts": passed_on_by_posts,
    "scalar unit": lambda worlds: scalar_unit(True, worlds),
    "scalar unit that tells nobody": lambda worlds: scalar_unit(False, worlds),
    "tests": asking,
    "error": broken,
    "text": text,
}
CLEAN = {"all-reduce", "handed over", "launches", "sums", "posts", "scalar unit", "tests", "text"}
