"""The greatest elements of rows of 1,024, two rows a step, on the vector cores.

TSORT32 makes sorted runs of 32 records, TMRGSORT merges four runs into one until two are left,
which a last merge of two lists joins; TGATHER takes values and indices apart.
"""

from __future__ import annotations

import numpy as np

from ptokit import *
from published.gemm import at
from published.grid import Case, up

COLS, PITCH, BEST, ROWS = 1024, 1280, 1000, 2  # of a row: valid, stored, wanted; rows of a step
RECORDS = 2 * COLS  # elements: value and index of each
ROW_BYTES = RECORDS * 4

Values = Tile[TileType.Vec, float32, ROWS, COLS]
Index = Tile[TileType.Vec, uint32, 1, COLS]
Line = Tile[TileType.Vec, float32, 1, COLS]
Records = Tile[TileType.Vec, float32, 1, RECORDS]
Half = Tile[TileType.Vec, float32, 1, RECORDS, BLayout.RowMajor, 1, RECORDS // 2]
Front = Tile[TileType.Vec, float32, 1, 2 * BEST]
Words = Tile[TileType.Vec, uint32, 1, 2 * BEST]
Best = Tile[TileType.Vec, float32, ROWS, BEST]
Places = Tile[TileType.Vec, uint32, ROWS, BEST]
BestRow = Tile[TileType.Vec, float32, 1, BEST]
PlacesRow = Tile[TileType.Vec, uint32, 1, BEST]

RUNS, MERGED, SCRATCH = 0x0, 0x8000, 0x10000  # two buffers each, of two rows
INDEX, SOURCE, OUT = 0x14000, 0x15000, 0x19000


def rows_at(kind, address, pitch):
    """A tile of one row for each row of a step."""
    return [at(kind(), address + row * pitch) for row in range(ROWS)]


class Buffers:
    """The tiles of one of two turns."""

    def __init__(self, turn):
        runs, merged = RUNS + turn * 2 * ROW_BYTES, MERGED + turn * 2 * ROW_BYTES
        source, out = SOURCE + turn * 0x2000, OUT + turn * 0x4000
        self.values, self.lines = at(Values(), source), rows_at(Line, source, COLS * 4)
        self.runs, self.other = rows_at(Records, runs, ROW_BYTES), at(Records(), SCRATCH)
        self.halves = [rows_at(Half, runs + h * ROW_BYTES // 2, ROW_BYTES) for h in range(2)]
        self.sorted = rows_at(Front, runs, ROW_BYTES)
        self.fronts, self.words = (rows_at(kind, merged, ROW_BYTES) for kind in (Front, Words))
        self.best, self.best_rows = at(Best(), out), rows_at(BestRow, out, BEST * 4)
        self.places = at(Places(), out + 0x2000)
        self.places_rows = rows_at(PlacesRow, out + 0x2000, BEST * 4)


def merge_row(buffers, row, taken):
    """Sorted runs of 32 become one, over the same bytes."""
    mine, other = buffers.runs[row], buffers.other
    for length in (64, 256):
        TMRGSORT(other, mine, length)
        pipe_barrier(PIPE_V)
        TMOV(mine, other)
        pipe_barrier(PIPE_V)
    TMRGSORT(mine, taken, other, buffers.halves[0][row], buffers.halves[1][row])
    pipe_barrier(PIPE_V)


def rows_of(gx, gbest, gplaces, index, first, turn, b, taken):
    """Two rows, in the buffers of this turn."""
    wait_flag(PIPE_V, PIPE_MTE2, turn)
    TLOAD(b.values, gx[first : first + ROWS, 0:COLS])
    set_flag(PIPE_MTE2, PIPE_V, turn)
    wait_flag(PIPE_MTE2, PIPE_V, turn)
    for row in range(ROWS):
        TSORT32(b.runs[row], b.lines[row], index)
        pipe_barrier(PIPE_V)
    set_flag(PIPE_V, PIPE_MTE2, turn)
    for row in range(ROWS):
        merge_row(b, row, taken)
        TMOV(b.fronts[row], b.sorted[row])
    pipe_barrier(PIPE_V)
    wait_flag(PIPE_MTE3, PIPE_V, turn)
    for row in range(ROWS):
        TGATHER[MaskPattern.P0101](b.best_rows[row], b.fronts[row])
    set_flag(PIPE_V, PIPE_MTE3, turn)
    for row in range(ROWS):
        TGATHER[MaskPattern.P1010](b.places_rows[row], b.words[row])
    set_flag(PIPE_V, PIPE_MTE3, 2 + turn)
    wait_flag(PIPE_V, PIPE_MTE3, turn)
    TSTORE(gbest[first : first + ROWS, :], b.best)
    wait_flag(PIPE_V, PIPE_MTE3, 2 + turn)
    TSTORE(gplaces[first : first + ROWS, :], b.places)
    set_flag(PIPE_MTE3, PIPE_V, turn)


@kernel(mode="manual", core="vector")
def topk(x, order, best, places, *, rows):
    gx, gbest, gplaces = GlobalTensor(x), GlobalTensor(best), GlobalTensor(places)
    index, buffers, taken = at(Index(), INDEX), [Buffers(0), Buffers(1)], MrgSortExecutedNumList()
    TLOAD(index, GlobalTensor(order))
    set_flag(PIPE_MTE2, PIPE_V, 2)
    wait_flag(PIPE_MTE2, PIPE_V, 2)
    for turn in range(2):
        set_flag(PIPE_V, PIPE_MTE2, turn)
        set_flag(PIPE_MTE3, PIPE_V, turn)
    first = get_block_idx() * rows
    for row in range(first, first + rows, 2 * ROWS):
        for turn in range(2):
            place = row + turn * ROWS
            rows_of(gx, gbest, gplaces, index, place, turn, buffers[turn], taken)
    for turn in range(2):
        wait_flag(PIPE_V, PIPE_MTE2, turn)
        wait_flag(PIPE_MTE3, PIPE_V, turn)


def case(cores: int, *, rows: int) -> Case:
    """Every core takes as many rows, in fours."""
    each = up(rows, cores * 2 * ROWS) * 2 * ROWS
    args = (
        np.zeros((each * cores, PITCH), np.float32),
        np.arange(COLS, dtype=np.uint32).reshape(1, COLS),
        np.zeros((each * cores, BEST), np.float32),
        np.zeros((each * cores, BEST), np.uint32),
    )
    # Lists of lengths have no text form: the function runs as it stands.
    return Case(topk, cores, args, {"rows": each, "path": "eager"})
