"""The k greatest elements of every row, with their column numbers, in descending order.

TSORT32 sorts runs of 32 and pairs every value with an index: 8-byte records, so a row of n floats
becomes 2 n elements. TMRGSORT merges four neighbouring runs into one: 16 runs of 32 become 4 of
128, then 1 of 512. The front of it is the answer; TGATHER takes values and indices apart.

Teaches: sorting in steps, a window onto the front of a tile (TSUBVIEW), gathering by a pattern,
counting with TCI, tiles of other types over the same bits.
"""

import numpy as np
from harness import Case, main

from ptokit import *

COLS, RUN = 512, 32
Values = Tile[TileType.Vec, float32, 1, COLS]
Index = Tile[TileType.Vec, uint32, 1, COLS]
Records = Tile[TileType.Vec, float32, 1, 2 * COLS]
RECORD = 2  # elements per record: the value, then the bits of its index


@kernel(mode="auto")
def topk(x, values, indices, *, k):
    gx, gvalues, gindices = GlobalTensor(x), GlobalTensor(values), GlobalTensor(indices)
    row, columns = Values(), Index()
    runs, merged, ordered = Records(), Records(), Records()
    front = Tile[TileType.Vec, float32, 1, RECORD * k]()
    best, where = Tile[TileType.Vec, float32, 1, k](), Tile[TileType.Vec, uint32, 1, k]()
    TCI(columns, 0)  # 0, 1, 2, ...
    TSUBVIEW(front, ordered, 0, 0)
    for r in range(x.shape[0]):
        TLOAD(row, gx[r : r + 1, :])
        TSORT32(runs, row, columns)
        TMRGSORT(merged, runs, RECORD * RUN)  # the length of a run, in elements
        TMRGSORT(ordered, merged, RECORD * RUN * 4)
        TGATHER[MaskPattern.P0101](best, front)  # the first of every two: values
        TGATHER[MaskPattern.P1010](where, front)  # the second: indices
        TSTORE(gvalues[r : r + 1, :], best)
        TSTORE(gindices[r : r + 1, :], where)


def inputs_for(k):
    def inputs(rng):
        x = rng.standard_normal((8, COLS)).astype(np.float32)
        x[:, 100] = x[:, 7]  # equal values keep their order
        return x, np.zeros((8, k), np.float32), np.zeros((8, k), np.uint32)

    return inputs


def expected_for(k):
    def expected(x, values, indices):
        order = np.argsort(-x, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(x, order, axis=1), order

    return expected


CASES = [
    Case(f"top {k} of {COLS}", topk, inputs_for(k), expected_for(k), outputs=2, consts={"k": k})
    for k in (8, 64)
]

if __name__ == "__main__":
    main(CASES)
