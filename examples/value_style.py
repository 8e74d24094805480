"""The other examples once more, computing with values: tiles, scratch and broadcasts are found.

Each kernel stands for the one of the same name in the file of that name, is given the same inputs
and must give the same result. `python examples/value_style.py` runs them; `softmax.text(x, y)`
shows the instructions that a kernel stands for.

Teaches: `ptokit.values`: load, store, arithmetic, reductions, where, dot, im2col, scaled matrices,
values through FIFOs.
"""

from dataclasses import replace

import conv as conv_tiles
import fifo as fifo_tiles
import flash_attention as attention_tiles
import flash_attention_cluster as cluster_tiles
import gelu as gelu_tiles
import gemm as gemm_tiles
import layer_norm as layer_norm_tiles
import mx_matmul as mx_tiles
import quantize as quantize_tiles
import softmax as softmax_tiles
import topk as topk_tiles
import transpose as transpose_tiles
import vector_add as vector_add_tiles
from fifo import C2V, NO, UP, V2C
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


@kernel(mode="auto")
def conv(x, weights, y, *, stride):
    TM, TK = 64, 96  # output positions, unrolled columns
    patches = im2col(x, kernel=3, stride=stride, padding=1)
    for m in range(0, y.shape[0], TM):
        acc = dot(patches[m : m + TM, 0:TK], weights[0:TK, :])
        for k in range(TK, weights.shape[0], TK):
            acc = dot(patches[m : m + TM, k : k + TK], weights[k : k + TK, :], acc)
        store(y[m : m + TM, :], acc)


def scaled_parts(a, a_scale, b, b_scale, k, s):
    """64 columns of A and rows of B from k on, and their scales, two for each row and column."""
    return scaled(a[:, k : k + 64], a_scale[:, s : s + 2]), scaled(
        b[k : k + 64, :], b_scale[:, s : s + 2].T
    )


@kernel(mode="auto")
def mx_matmul(a, a_scale, b, b_scale, c):
    acc = dot(*scaled_parts(a, a_scale, b, b_scale, 0, 0))
    for k in range(64, a.shape[1], 64):
        acc = dot(*scaled_parts(a, a_scale, b, b_scale, k, k // 32), acc)
    store(c, acc)


@kernel(mode="auto", core="mix")
def flash_attention_cluster(q, k, v, ring_s, ring_p, ring_o, out):
    T, SLOTS = 64, 2
    length, first = k.shape[0], get_block_idx() * T
    score_pipe = TPipe[0, C2V, T * T * 4, SLOTS](ptr(ring_s, first * T * SLOTS), 0, 0)
    weight_pipe = TPipe[2, V2C, T * T * 2, SLOTS](ptr(ring_p, first * T * SLOTS), 0, 0)
    value_pipe = TPipe[4, C2V, T * T * 4, SLOTS](ptr(ring_o, first * T * SLOTS), 0x8000, 0)
    with cube_section():
        queries = stage(q[first : first + T, :])
        for key in range(0, length + T, T):
            if key < length:
                push(score_pipe, dot(queries, k[key : key + T, :].T), UP)
            if key > 0:  # the weights of the step before
                weights = pop(weight_pipe, (T, T), half, UP)
                part = dot(weights, v[key - T : key, :])
                free(weight_pipe, UP)
                push(value_pipe, part, UP)
    with vector_section():
        row, _, mine, _ = share((T, T), UP)
        total, top, norm = full((mine, T), 0.0), full((mine, 1), -1.0e30), full((mine, 1), 0.0)
        for _ in range(0, length, T):
            scores = pop(score_pipe, (T, T), float32, UP)
            new_top = maximum(rowmax(scores), top)
            weights = exp(scores - new_top)
            free(score_pipe, UP)
            drop = exp(top - new_top)
            push(weight_pipe, weights.to(half), UP)
            norm = norm * drop + rowsum(weights)
            top = new_top
            total = total * drop + pop(value_pipe, (T, T), float32, UP)
            free(value_pipe, UP)
        store(out[first + row : first + row + mine, :], total / norm)


@kernel(mode="auto", core="mix")
def cube_to_vector(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    rows, cols = y.shape[0] // entries, y.shape[1]
    pipe = TPipe[0, way, fifo_tiles.BYTES, slots](ring, 0, 0)
    with cube_section():
        right = stage(b, side="right")
        for i in range(entries):
            push(pipe, dot(x[i * rows : i * rows + rows, :], right), split)
    with vector_section():
        row, col, mine, wide = share((rows, cols), split)
        if get_subblockid() < lanes:
            for i in range(entries):
                result = pop(pipe, (rows, cols), float32, split) + 1.0
                if way == C2V:
                    free(pipe, split)
                if split != NO or get_subblockid() == 0:
                    first = i * rows + row
                    store(y[first : first + mine, col : col + wide], result)


@kernel(mode="auto", core="mix")
def vector_to_cube(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    rows, cols = y.shape[0] // entries, y.shape[1]
    pipe = TPipe[0, way, fifo_tiles.BYTES, slots](ring, 0, 0)
    with vector_section():
        row, col, mine, wide = share((rows, cols), split)
        if get_subblockid() < lanes:
            for i in range(entries):
                first = i * rows + row
                source = load(x[first : first + mine, col : col + wide], shape=(mine, wide))
                push(pipe, (source + 1.0).to(half), split)
    with cube_section():
        right = stage(b, side="right")
        for i in range(entries):
            result = dot(pop(pipe, (rows, cols), half, split), right)
            if way == V2C:
                free(pipe, split)
            store(y[i * rows : i * rows + rows, :], result)


@kernel(mode="auto", core="mix")
def there_and_back(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    rows, cols = y.shape[0] // entries, y.shape[1]
    pipe = TPipe[0, way, fifo_tiles.BYTES, slots](ring, 0, 0)
    with cube_section():
        right = stage(b, side="right")
        for i in range(entries):
            push(pipe, dot(x[i * rows : i * rows + rows, :], right), split)
            result = dot(pop(pipe, (rows, cols), half, split), right)
            free(pipe, split)
            store(y[i * rows : i * rows + rows, :], result)
    with vector_section():
        if get_subblockid() < lanes:
            for _ in range(entries):
                answer = relu(pop(pipe, (rows, cols), float32, split)).to(half)
                free(pipe, split)
                push(pipe, answer, split)


@kernel(mode="auto", core="mix")
def slots_to_vector(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    # Slots in hand are views: values are stored there and loaded from there.
    rows, cols = y.shape[0] // entries, y.shape[1]
    pipe = TPipe[0, way, fifo_tiles.BYTES, slots](ring, 0, 0)
    with cube_section():
        right, slot = stage(b, side="right"), fifo_tiles.slot_of(float32, NO, rows, cols)
        for i in range(entries):
            product = dot(x[i * rows : i * rows + rows, :], right)
            TALLOC[split](pipe, slot)
            store(slot, product)
            TPUSH[split](pipe, slot)
    with vector_section():
        row, col, mine, wide = share((rows, cols), split)
        slot = fifo_tiles.slot_of(float32, split, rows, cols)
        if get_subblockid() < lanes:
            for i in range(entries):
                TPOP[split](pipe, slot)
                entry = load(slot)
                TFREE[split](pipe, slot)
                if split != NO or get_subblockid() == 0:
                    first = i * rows + row
                    store(y[first : first + mine, col : col + wide], entry + 1.0)


@kernel(mode="auto", core="mix")
def slots_to_cube(x, b, ring, y, *, way, split, slots, entries, lanes=2):
    rows, cols = y.shape[0] // entries, y.shape[1]
    pipe = TPipe[0, way, fifo_tiles.BYTES, slots](ring, 0, 0)
    with vector_section():
        row, col, mine, wide = share((rows, cols), split)
        slot = fifo_tiles.slot_of(half, split, rows, cols)
        if get_subblockid() < lanes:
            for i in range(entries):
                first = i * rows + row
                entry = load(x[first : first + mine, col : col + wide], shape=(mine, wide))
                TALLOC[split](pipe, slot)
                if split != NO or get_subblockid() == 0:
                    store(slot, entry)
                TPUSH[split](pipe, slot)
    with cube_section():
        right, slot = stage(b, side="right"), fifo_tiles.slot_of(half, NO, rows, cols)
        for i in range(entries):
            TPOP[split](pipe, slot)
            entry = stage(slot)
            TFREE[split](pipe, slot)
            store(y[i * rows : i * rows + rows, :], dot(entry, right))


def through_pipes(kernel):
    """The cases of one kernel of fifo.py: every split, and every depth once."""
    return [case for case in fifo_tiles.MUTATED if case.kernel.name == kernel.name]


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
    conv: conv_tiles.CASES,
    mx_matmul: mx_tiles.CASES[0],
    flash_attention_cluster: cluster_tiles.CASES,
    cube_to_vector: through_pipes(cube_to_vector),
    vector_to_cube: through_pipes(vector_to_cube),
    there_and_back: through_pipes(there_and_back),
    slots_to_vector: through_pipes(slots_to_vector),
    slots_to_cube: through_pipes(slots_to_cube),
}
CASES = [
    replace(case, name=f"{case.name}, values", kernel=kernel)
    for kernel, cases in HERE.items()
    for case in (cases if isinstance(cases, list) else [cases])
]

if __name__ == "__main__":
    main(CASES)
