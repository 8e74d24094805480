"""Devices that put blocks into each other's memory: signals in global memory order them."""

from types import SimpleNamespace

import numpy as np

from ptokit import *
from ptokit.comm import *

ROWS, COLS = 8, 16
Block = Tile[TileType.Vec, float32, ROWS, COLS]
Chunk = Tile[TileType.Vec, float32, 4, COLS]


def at(tile, address):
    TASSIGN(tile, address)
    return tile


def hand_over(rank, state):
    """Rank 0 puts a block into the window of rank 1, which takes it, round after round."""
    stage, tile = at(Chunk(), 0), at(Block(), 0x400)
    for turn in range(1, state.rounds + 1):
        if rank == 0:
            if turn > 1:
                TWAIT(state.free.signal(), turn - 1, WaitCmp.GE)
            TPUT(state.data.tensor(1), GlobalTensor(state.mine[turn - 1]), stage)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_S]()
            TNOTIFY(state.ready.signal(1), 1, NotifyOp.AtomicAdd)
        elif rank == 1:
            TWAIT(state.ready.signal(), turn, WaitCmp.GE)
            TLOAD(tile, state.data.tensor())
            PtoSetWaitFlag[PIPE_MTE2, PIPE_S]()
            TNOTIFY(state.free.signal(0), 1, NotifyOp.AtomicAdd)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3]()
            TSTORE(GlobalTensor(state.result[turn - 1]), tile)
            PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2]()


def ring(rank, state):
    """Sum over all ranks, slice by slice around the ring, in place on every rank."""
    ranks = get_rank_num()
    right = (rank + 1) % ranks
    mine, other, stage = at(Block(), 0x0), at(Block(), 0x400), at(Chunk(), 0x800)
    for step in range(2 * ranks - 2):
        outgoing, incoming = (rank - step) % ranks, (rank - step - 1) % ranks
        there = state.data.world.remote(GlobalTensor(state.inbox.local[step]), right)
        TPUT(there, GlobalTensor(state.data.local[outgoing]), stage)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_S]()
        TNOTIFY(state.ready.signal(right), 1, NotifyOp.AtomicAdd)
        TWAIT(state.ready.signal(), step + 1, WaitCmp.GE)
        slot = GlobalTensor(state.inbox.local[step])
        target = GlobalTensor(state.data.local[incoming])
        TLOAD(mine, slot)
        if step < ranks - 1:
            TLOAD(other, target)
            PtoSetWaitFlag[PIPE_MTE2, PIPE_V]()
            TADD(mine, mine, other)
            PtoSetWaitFlag[PIPE_V, PIPE_MTE3]()
        else:
            PtoSetWaitFlag[PIPE_MTE2, PIPE_MTE3](5, 5)
        TSTORE(target, mine)
        PtoSetWaitFlag[PIPE_MTE3, PIPE_MTE2](5, 5)


class Ranks:
    """A program of several ranks, run as a case of an example is."""

    paths = ("eager",)
    targets = ("a2a3", "a5")

    def __init__(self, program, size, rounds):
        self.name = f"{program.__name__} of {size}, {rounds} rounds"
        self.kernel = SimpleNamespace(name=program.__name__, source=SimpleNamespace(mode="manual"))
        self.program, self.size, self.rounds = program, size, rounds

    def run_once(self, target, seed=None, schedule=None):
        world = World(self.size, target=target)
        rng = np.random.default_rng(7)
        data = world.window((self.size, ROWS, COLS) if self.program is ring else (ROWS, COLS))
        inbox = world.window((max(2 * self.size - 2, 1), ROWS, COLS))
        blocks = rng.integers(-9, 10, (self.rounds, ROWS, COLS)).astype(np.float32)
        state = SimpleNamespace(
            rounds=self.rounds, data=data, inbox=inbox, mine=blocks, ready=world.signals(),
            free=world.signals(), result=np.zeros_like(blocks),
        )  # fmt: skip
        for array in data:
            array[...] = rng.integers(-9, 10, array.shape)
        if schedule is not None:
            seed = schedule.seed if schedule.seed is not None else len(schedule.late)
        world.run(self.program, state, seed=seed)
        kept = data if self.program is ring else [state.result]
        return [np.asarray(array).tobytes() for array in kept]


CASES = [
    Ranks(hand_over, 2, 1),
    Ranks(hand_over, 2, 3),
    Ranks(ring, 2, 1),
    Ranks(ring, 3, 1),
]
