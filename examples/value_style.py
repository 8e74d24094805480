"""The other examples once more, computing with values: tiles, scratch and broadcasts are found.

Each kernel stands for the one of the same name in the file of that name, is given the same inputs
and must give the same result. `python examples/value_style.py` runs them; `softmax.text(x, y)`
shows the instructions that a kernel stands for.

Teaches: `ptokit.values`: load, store, arithmetic, reductions, where, dot.
"""

from dataclasses import replace

import flash_attention as attention_tiles
import gelu as gelu_tiles
import gemm as gemm_tiles
import layer_norm as layer_norm_tiles
import quantize as quantize_tiles
import softmax as softmax_tiles
import topk as topk_tiles
import transpose as transpose_tiles
import vector_add as vector_add_tiles
from harness import main

from ptokit import *
from ptokit.values import *


@kernel(mode="auto")
def vector_add(x, y, z):
    for i in range(0, x.shape[0], 16):
        store(z[i : i + 16, :], load(x[i : i + 16, :]) + load(y[i : i + 16, :]))


@kernel(mode="auto")
def gelu(x, y, *, cols):
    row = get_block_idx() * 16
    t = load(x[row : row + 16, :])
    store(y[row : row + 16, :], t / (exp(t * -1.702) + 1.0))


@kernel(mode="auto")
def softmax(x, y):
    for row in range(0, x.shape[0], 32):
        t = load(x[row : row + 32, :])
        e = exp(t - rowmax(t))
        store(y[row : row + 32, :], e / rowsum(e))


@kernel(mode="auto")
def layer_norm(x, gamma, beta, y):
    scale, shift, n = load(gamma), load(beta), x.shape[1]
    for row in range(0, x.shape[0], 32):
        t = load(x[row : row + 32, :])
        centred = t - rowsum(t) * (1.0 / n)
        spread = sqrt(rowsum(centred * centred) * (1.0 / n) + 1e-5)
        store(y[row : row + 32, :], centred / spread * scale + shift)


@kernel(mode="auto")
def transpose(x, y):
    for r in range(0, x.shape[0], 32):
        for c in range(0, x.shape[1], 64):
            store(y[c : c + 64, r : r + 32], load(x[r : r + 32, c : c + 64]).T)


@kernel(mode="auto")
def quantize(x, codes, back, *, with_scratch):
    # Quantising is an instruction of its own: calls stand between values, on the tiles of theirs.
    small = Tile[TileType.Vec, int8, 32, 128]()
    restored, scratch = [Tile[TileType.Vec, float32, 32, 128]() for _ in range(2)]
    zero = full((32, 1), 0.0)
    for row in range(0, x.shape[0], 32):
        t = load(x[row : row + 32, :])
        top = rowmax(abs(t))
        given = [(127.0 / top).tile, scratch] if with_scratch else [(127.0 / top).tile]
        TQUANT[QuantType.INT8_SYM](small, t.tile, *given)
        TDEQUANT(restored, small, (top * (1.0 / 127.0)).tile, zero.tile)
        store(codes[row : row + 32, :], Value(small))
        store(back[row : row + 32, :], Value(restored))


@kernel(mode="auto")
def topk(x, values, indices, *, k):
    columns = Tile[TileType.Vec, uint32, 1, 512]()
    runs, merged, ordered = [Tile[TileType.Vec, float32, 1, 1024]() for _ in range(3)]
    front = Tile[TileType.Vec, float32, 1, 2 * k]()
    best, where_ = Tile[TileType.Vec, float32, 1, k](), Tile[TileType.Vec, uint32, 1, k]()
    TCI(columns, 0)
    for r in range(x.shape[0]):
        TSORT32(runs, load(x[r : r + 1, :]).tile, columns)  # sorting has no sign of its own
        TMRGSORT(merged, runs, 64)
        TMRGSORT(ordered, merged, 256)
        TSUBVIEW(front, ordered, 0, 0)
        TGATHER[MaskPattern.P0101](best, front)
        TGATHER[MaskPattern.P1010](where_, front)
        store(values[r : r + 1, :], Value(best))
        store(indices[r : r + 1, :], Value(where_))


@kernel(mode="auto")
def gemm(a, b, c, *, kind, acc_kind, tile=(64, 64, 32)):
    TM, TN, TK = tile
    for m in range(0, a.shape[0], TM):
        for n in range(0, b.shape[1], TN):
            acc = dot(a[m : m + TM, 0:TK], b[0:TK, n : n + TN])
            for k in range(TK, a.shape[1], TK):
                acc = dot(a[m : m + TM, k : k + TK], b[k : k + TK, n : n + TN], acc)
            store(c[m : m + TM, n : n + TN], acc)


@kernel(mode="auto")
def flash_attention(q, k, v, mask, work_s, work_p, work_o, out, *, scale, causal, tile=64):
    length = q.shape[0]
    for i in range(0, length, tile):
        queries = stage(q[i : i + tile, :])
        total = full((tile, q.shape[1]), 0.0)
        top, norm = full((tile, 1), -1.0e30), full((tile, 1), 0.0)
        for j in range(0, i + tile if causal else length, tile):
            # The cube's results reach the vector unit through memory, as on A2/A3.
            store(work_s, dot(queries, k[j : j + tile, :].T))
            scores = load(work_s) * scale
            if causal and j == i:
                scores = scores + load(mask)
            new_top = maximum(rowmax(scores), top)
            weights = exp(scores - new_top)
            drop = exp(top - new_top)
            norm = norm * drop + rowsum(weights)
            top = new_top
            store(work_p, weights.to(float16))
            store(work_o, dot(work_p, v[j : j + tile, :]))
            total = total * drop + load(work_o)
        store(out[i : i + tile, :], total / norm)


HERE = {
    vector_add: vector_add_tiles.CASES[0],
    gelu: gelu_tiles.CASES[0],
    softmax: softmax_tiles.CASES[0],
    layer_norm: layer_norm_tiles.CASES[0],
    transpose: transpose_tiles.CASES[0],
    gemm: gemm_tiles.CASES,
    quantize: quantize_tiles.CASES,
    topk: topk_tiles.CASES,
    flash_attention: attention_tiles.CASES,
}
CASES = [
    replace(case, name=f"{case.name}, values", kernel=kernel)
    for kernel, cases in HERE.items()
    for case in (cases if isinstance(cases, list) else [cases])
]

if __name__ == "__main__":
    main(CASES)
