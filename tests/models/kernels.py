# ruff: noqa: E501 - lines of kernels are as long as tools write them
"""Small kernels in the style of those that a model is made of: level 3, two halves, tails."""

from __future__ import annotations

import re

_LAYOUTS = {
    "vec": "blayout=row_major, slayout=none_box, fractal=512",
    "col": "blayout=col_major, slayout=none_box, fractal=512",
    "mat": "blayout=col_major, slayout=row_major, fractal=512",
    "left": "blayout=row_major, slayout=row_major, fractal=512",
    "right": "blayout=row_major, slayout=col_major, fractal=512",
    "acc": "blayout=col_major, slayout=row_major, fractal=1024",
}
_SHORT = re.compile(r"<(vec|col|mat|left|right|acc) (\w+) (\d+)x(\d+)( full)?>")
_NUMBER = re.compile(r"%c(\d+)(i64|i32|)\b")


def _spelled_out(found: re.Match[str]) -> str:
    place, kind, rows, cols, is_full = found.groups()
    loc = "vec" if place == "col" else place
    valid = f"v_row={rows}, v_col={cols}" if is_full else "v_row=?, v_col=?"
    return (
        f"!pto.tile_buf<loc={loc}, dtype={kind}, rows={rows}, cols={cols}, {valid}, "
        f"{_LAYOUTS[place]}, pad=0>"
    )


def written(target: str, *functions: str) -> str:
    """A module with types and constants written out, as tools write them."""
    whole: list[str] = []
    for text in functions:
        head, body = text.strip().split("\n", 1)
        used = sorted(set(_NUMBER.findall(body)), key=lambda each: (each[1], int(each[0])))
        made = [f"%c{n}{t} = arith.constant {n} : {t or 'index'}" for n, t in used]
        whole += [head, *made, body]
    text = _SHORT.sub(_spelled_out, "\n".join(whole))
    return f'module attributes {{pto.target_arch = "{target}"}} {{\n{text}\n}}\n'


def view(name: str, pointer: str, rows: str, cols: str, kind: str, dn: bool = False) -> str:
    """A matrix behind a pointer, row by row, or - one column - as devices want it."""
    strides = f"%c1, {rows}" if dn else f"{cols}, %c1"
    return (
        f"{name} = pto.make_tensor_view {pointer}, shape = [{rows}, {cols}], strides = [{strides}] "
        f"{{layout = #pto.layout<{'dn' if dn else 'nd'}>}} : !pto.tensor_view<?x?x{kind}>"
    )


def part(name: str, of: str, at: str, sizes: str, kind: str, shape: str) -> str:
    """A part of a view."""
    return (
        f"{name} = pto.partition_view {of}, offsets = [{at}], sizes = [{sizes}] : "
        f"!pto.tensor_view<?x?x{kind}> -> !pto.partition_tensor_view<{shape}x{kind}>"
    )


NORM = f"""
func.func @norm(%x: !pto.ptr<f32>, %y: !pto.ptr<bf16>, %n: index, %i: i32) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{view("%vx", "%x", "%n", "%c64", "f32")}
{view("%vy", "%y", "%n", "%c64", "bf16")}
%eps = arith.constant 9.99999997e-07 : f32
%mean = arith.constant 0.015625 : f32
scf.for %r = %c0 to %n step %c16 {{
%left = arith.subi %n, %r : index
%rows = arith.minsi %left, %c16 : index
%t = pto.alloc_tile addr = %c0i64 valid_row = %rows valid_col = %c64 : <vec f32 16x64>
{part("%p", "%vx", "%r, %c0", "%rows, %c64", "f32", "?x64")}
pto.tload ins(%p : !pto.partition_tensor_view<?x64xf32>) outs(%t : <vec f32 16x64>)
%sq = pto.alloc_tile addr = %c4096i64 valid_row = %rows valid_col = %c64 : <vec f32 16x64>
pto.tmul ins(%t, %t : <vec f32 16x64>, <vec f32 16x64>) outs(%sq : <vec f32 16x64>)
%tmp = pto.alloc_tile addr = %c8192i64 valid_row = %rows valid_col = %c64 : <vec f32 16x64>
%sum = pto.alloc_tile addr = %c12288i64 valid_row = %rows valid_col = %c1 : <col f32 16x1>
pto.trowsum ins(%sq, %tmp : <vec f32 16x64>, <vec f32 16x64>) outs(%sum : <col f32 16x1>)
%line = pto.alloc_tile addr = %c12288i64 valid_row = %c1 valid_col = %rows : <vec f32 1x16>
pto.tmuls ins(%line, %mean : <vec f32 1x16>, f32) outs(%line : <vec f32 1x16>)
pto.tadds ins(%line, %eps : <vec f32 1x16>, f32) outs(%line : <vec f32 1x16>)
%root = pto.alloc_tile addr = %c4096i64 valid_row = %c1 valid_col = %rows : <vec f32 1x16>
pto.tsqrt ins(%line : <vec f32 1x16>) outs(%root : <vec f32 1x16>)
%inv = pto.alloc_tile addr = %c8192i64 valid_row = %c1 valid_col = %rows : <vec f32 1x16>
pto.trecip ins(%root : <vec f32 1x16>) outs(%inv : <vec f32 1x16>)
%invs = pto.alloc_tile addr = %c8192i64 valid_row = %rows valid_col = %c1 : <col f32 16x1>
%o = pto.alloc_tile addr = %c4096i64 valid_row = %rows valid_col = %c64 : <vec f32 16x64>
pto.trowexpandmul ins(%t, %invs : <vec f32 16x64>, <col f32 16x1>) outs(%o : <vec f32 16x64>)
%b = pto.alloc_tile addr = %c4096i64 valid_row = %rows valid_col = %c64 : <vec bf16 16x64>
pto.tcvt ins(%o {{rmode = #pto<round_mode ROUND>}} : <vec f32 16x64>) outs(%b : <vec bf16 16x64>)
{part("%q", "%vy", "%r, %c0", "%rows, %c64", "bf16", "?x64")}
pto.tstore ins(%b : <vec bf16 16x64>) outs(%q : !pto.partition_tensor_view<?x64xbf16>)
}}
return
}}
"""

QUANTISE = f"""
func.func @quantise(%x: !pto.ptr<f32>, %y: !pto.ptr<i8>, %s: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{view("%vx", "%x", "%c8", "%c128", "f32")}
{view("%vy", "%y", "%c8", "%c128", "i8")}
{view("%vs", "%s", "%c8", "%c1", "f32", dn=True)}
%top = arith.constant 127.0 : f32
%t = pto.alloc_tile addr = %c0i64 valid_row = %c8 valid_col = %c128 : <vec f32 8x128>
{part("%p", "%vx", "%c0, %c0", "%c8, %c128", "f32", "8x128")}
pto.tload ins(%p : !pto.partition_tensor_view<8x128xf32>) outs(%t : <vec f32 8x128>)
%a = pto.alloc_tile addr = %c4096i64 valid_row = %c8 valid_col = %c128 : <vec f32 8x128>
pto.tabs ins(%t : <vec f32 8x128>) outs(%a : <vec f32 8x128>)
%tmp = pto.alloc_tile addr = %c8192i64 valid_row = %c8 valid_col = %c128 : <vec f32 8x128>
%m = pto.alloc_tile addr = %c12288i64 valid_row = %c8 valid_col = %c1 : <col f32 8x1>
pto.trowmax ins(%a, %tmp : <vec f32 8x128>, <vec f32 8x128>) outs(%m : <col f32 8x1>)
%q = pto.alloc_tile addr = %c4096i64 valid_row = %c8 valid_col = %c128 : <vec f32 8x128>
pto.trowexpanddiv ins(%t, %m : <vec f32 8x128>, <col f32 8x1>) outs(%q : <vec f32 8x128>)
pto.tmuls ins(%q, %top : <vec f32 8x128>, f32) outs(%q : <vec f32 8x128>)
%i = pto.alloc_tile addr = %c4096i64 valid_row = %c8 valid_col = %c128 : <vec i32 8x128>
pto.tcvt ins(%q {{rmode = #pto<round_mode RINT>}} : <vec f32 8x128>) outs(%i : <vec i32 8x128>)
%n = pto.alloc_tile addr = %c4096i64 valid_row = %c8 valid_col = %c128 : <vec f32 8x128>
pto.tcvt ins(%i {{rmode = #pto<round_mode NONE>}} : <vec i32 8x128>) outs(%n : <vec f32 8x128>)
%h = pto.alloc_tile addr = %c4096i64 valid_row = %c8 valid_col = %c128 : <vec f16 8x128>
pto.tcvt ins(%n {{rmode = #pto<round_mode ROUND>}} : <vec f32 8x128>) outs(%h : <vec f16 8x128>)
%b = pto.alloc_tile addr = %c4096i64 valid_row = %c8 valid_col = %c128 : <vec i8 8x128>
pto.tcvt ins(%h {{rmode = #pto<round_mode TRUNC>}} : <vec f16 8x128>) outs(%b : <vec i8 8x128>)
{part("%o", "%vy", "%c0, %c0", "%c8, %c128", "i8", "8x128")}
pto.tstore ins(%b : <vec i8 8x128>) outs(%o : !pto.partition_tensor_view<8x128xi8>)
{part("%os", "%vs", "%c0, %c0", "%c8, %c1", "f32", "8x1")}
pto.tstore ins(%m : <col f32 8x1>) outs(%os : !pto.partition_tensor_view<8x1xf32>)
return
}}
"""

ROTATE = f"""
func.func @rotate(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %at: !pto.ptr<i64>, %n: index) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{view("%vx", "%x", "%c8", "%c256", "f32")}
{view("%vy", "%y", "%n", "%c64", "f32")}
%zero = arith.constant 0 : i32
%t = pto.alloc_tile addr = %c2048i64 valid_row = %c8 valid_col = %c256 : <vec f32 8x256>
{part("%p", "%vx", "%c0, %c0", "%c8, %c256", "f32", "8x256")}
pto.tload ins(%p : !pto.partition_tensor_view<8x256xf32>) outs(%t : <vec f32 8x256>)
%f = pto.alloc_tile addr = %c16384i64 valid_row = %c8 valid_col = %c64 : <vec f32 8x64>
%w = pto.subview %t[%c0, %c192] sizes [8, 64] : <vec f32 8x256> -> <vec f32 8x64 full>
pto.tabs ins(%w : <vec f32 8x64 full>) outs(%f : <vec f32 8x64>)
%d = pto.alloc_tile addr = %c2048i64 valid_row = %c8 valid_col = %c64 : <vec f32 8x64>
pto.tadd ins(%w, %f : <vec f32 8x64 full>, <vec f32 8x64>) outs(%d : <vec f32 8x64>)
%k = pto.alloc_tile addr = %c20480i64 valid_row = %c1 valid_col = %c64 : <vec i32 1x64>
pto.tci ins(%zero : i32) outs(%k : <vec i32 1x64>) {{descending = false}}
%count = scf.for %r = %c0 to %c8 step %c1 iter_args(%seen = %c0) -> (index) {{
%slot = pto.load_scalar %at[%r] : !pto.ptr<i64> -> i64
%s = arith.index_cast %slot : i64 to index
%ok = arith.cmpi slt, %s, %n : index
%next = scf.if %ok -> (index) {{
%row = pto.subview %d[%r, %c0] sizes [1, 64] valid [%c1, %c64] : <vec f32 8x64> -> <vec f32 1x64>
%tmp = pto.alloc_tile addr = %c24576i64 valid_row = %c1 valid_col = %c64 : <vec i32 1x64>
%g = pto.alloc_tile addr = %c28672i64 valid_row = %c1 valid_col = %c64 : <vec f32 1x64>
pto.tgather ins(%row, %k, %tmp : <vec f32 1x64>, <vec i32 1x64>, <vec i32 1x64>) outs(%g : <vec f32 1x64>)
{part("%q", "%vy", "%s, %c0", "%c1, %c64", "f32", "1x64")}
pto.tstore ins(%g : <vec f32 1x64>) outs(%q : !pto.partition_tensor_view<1x64xf32>)
%more = arith.addi %seen, %c1 : index
scf.yield %more : index
}} else {{
scf.yield %seen : index
}}
scf.yield %next : index
}}
return
}}
"""

PROJECT = f"""
func.func @project(%x: !pto.ptr<bf16>, %w: !pto.ptr<bf16>, %y: !pto.ptr<f32>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{view("%vx", "%x", "%c16", "%c256", "bf16")}
{view("%vw", "%w", "%c64", "%c256", "bf16")}
{view("%vy", "%y", "%c16", "%c64", "f32")}
%mx = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c256 : <mat bf16 16x256>
{part("%px", "%vx", "%c0, %c0", "%c16, %c256", "bf16", "16x256")}
pto.tload ins(%px : !pto.partition_tensor_view<16x256xbf16>) outs(%mx : <mat bf16 16x256>)
%mw = pto.alloc_tile addr = %c32768i64 valid_row = %c64 valid_col = %c256 : <mat bf16 64x256>
{part("%pw", "%vw", "%c0, %c0", "%c64, %c256", "bf16", "64x256")}
pto.tload ins(%pw : !pto.partition_tensor_view<64x256xbf16>) outs(%mw : <mat bf16 64x256>)
%wt = pto.alloc_tile addr = %c32768i64 valid_row = %c256 valid_col = %c64 : !pto.tile_buf<loc=mat, dtype=bf16, rows=256, cols=64, v_row=?, v_col=?, blayout=row_major, slayout=col_major, fractal=512, pad=0>
scf.for %k = %c0 to %c256 step %c64 {{
%a = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c64 : <left bf16 16x64>
pto.textract ins(%mx, %c0, %k : <mat bf16 16x256>, index, index) outs(%a : <left bf16 16x64>)
%b = pto.alloc_tile addr = %c0i64 valid_row = %c64 valid_col = %c64 : <right bf16 64x64>
pto.textract ins(%wt, %k, %c0 : !pto.tile_buf<loc=mat, dtype=bf16, rows=256, cols=64, v_row=?, v_col=?, blayout=row_major, slayout=col_major, fractal=512, pad=0>, index, index) outs(%b : <right bf16 64x64>)
%first = arith.cmpi eq, %k, %c0 : index
scf.if %first {{
%c = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c64 : <acc f32 16x64>
pto.tmatmul ins(%a, %b : <left bf16 16x64>, <right bf16 64x64>) outs(%c : <acc f32 16x64>)
}} else {{
%c = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c64 : <acc f32 16x64>
pto.tmatmul.acc ins(%c, %a, %b : <acc f32 16x64>, <left bf16 16x64>, <right bf16 64x64>) outs(%c : <acc f32 16x64>)
}}
}}
%r = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c64 : <acc f32 16x64>
{part("%py", "%vy", "%c0, %c0", "%c16, %c64", "f32", "16x64")}
pto.tstore ins(%r : <acc f32 16x64>) outs(%py : !pto.partition_tensor_view<16x64xf32>)
return
}}
"""


def halves(split: int) -> tuple[str, str]:
    """A product whose tiles go to the vector cores, in halves or whole, and get a residual there."""
    rows = 8 if split else 16
    given = "%x: !pto.ptr<f32>, %w: !pto.ptr<f32>, %y: !pto.ptr<f32>"
    lane = ", %lane: i32" if split else ""
    own = "%row = arith.index_cast %lane : i32 to index\n%at = arith.muli %row, %c8 : index"
    cube = f"""
func.func @mix_aic({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{view("%vx", "%x", "%c16", "%c64", "f32")}
{view("%vw", "%w", "%c64", "%c32", "f32")}
%far = pto.import_reserved_buffer {{name = "q", peer_func = @mix_aiv}} -> i32
pto.aic_initialize_pipe {{dir_mask = 1, slot_size = 2048}} (c2v_consumer_buf = %far : i32, v2c_consumer_buf = %c0i32 : i32)
%a = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c64 : <mat f32 16x64>
{part("%px", "%vx", "%c0, %c0", "%c16, %c64", "f32", "16x64")}
pto.tload ins(%px : !pto.partition_tensor_view<16x64xf32>) outs(%a : <mat f32 16x64>)
%b = pto.alloc_tile addr = %c8192i64 valid_row = %c64 valid_col = %c32 : <mat f32 64x32>
{part("%pw", "%vw", "%c0, %c0", "%c64, %c32", "f32", "64x32")}
pto.tload ins(%pw : !pto.partition_tensor_view<64x32xf32>) outs(%b : <mat f32 64x32>)
%l = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c64 : <left f32 16x64>
pto.textract ins(%a, %c0, %c0 : <mat f32 16x64>, index, index) outs(%l : <left f32 16x64>)
%r = pto.alloc_tile addr = %c0i64 valid_row = %c64 valid_col = %c32 : <right f32 64x32>
pto.textract ins(%b, %c0, %c0 : <mat f32 64x32>, index, index) outs(%r : <right f32 64x32>)
%c = pto.alloc_tile addr = %c0i64 valid_row = %c16 valid_col = %c32 : <acc f32 16x32>
scf.for %n = %c0 to %c3 step %c1 {{
pto.tmatmul ins(%l, %r : <left f32 16x64>, <right f32 64x32>) outs(%c : <acc f32 16x32>)
pto.tpush_to_aiv(%c : <acc f32 16x32>) {{split = {split}}}
}}
return
}}
"""
    vector = f"""
func.func @mix_aiv({given}{lane}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{view("%vy", "%y", "%c16", "%c32", "f32")}
{own if split else "%at = arith.addi %c0, %c0 : index"}
%near = pto.reserve_buffer {{name = "q", size = 16384, location = #pto.address_space<vec>, auto = false, base = 0}} -> i32
pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 2048}} (c2v_consumer_buf = %near : i32, v2c_consumer_buf = %c0i32 : i32)
{part("%p", "%vy", "%at, %c0", f"%c{rows}, %c32", "f32", f"{rows}x32")}
%s = pto.alloc_tile addr = %c16384i64 valid_row = %c{rows} valid_col = %c32 : <vec f32 {rows}x32>
pto.tload ins(%p : !pto.partition_tensor_view<{rows}x32xf32>) outs(%s : <vec f32 {rows}x32>)
scf.for %n = %c0 to %c3 step %c1 {{
%t = pto.tpop_from_aic {{split = {split}}} -> <vec f32 {rows}x32>
pto.tadd ins(%t, %s : <vec f32 {rows}x32>, <vec f32 {rows}x32>) outs(%s : <vec f32 {rows}x32>)
pto.tfree_from_aic {{split = {split}}}
}}
pto.tstore ins(%s : <vec f32 {rows}x32>) outs(%p : !pto.partition_tensor_view<{rows}x32xf32>)
return
}}
"""
    return cube, vector


def idle_lane() -> tuple[str, str]:
    """The same through global memory, as on A2/A3: the second vector core takes its entries with
    no valid rows, so that both do the same on the pipe."""
    cube, vector = halves(0)
    pipe = "(c2v_consumer_buf"
    slots = "(gm_slot_buffer = %g : !pto.ptr<f32>, c2v_consumer_buf"
    given = "%y: !pto.ptr<f32>"
    cube = cube.replace(pipe, slots).replace(given, f"{given}, %g: !pto.ptr<f32>")
    vector = vector.replace(pipe, slots).replace(given, f"{given}, %g: !pto.ptr<f32>, %lane: i32")
    head, rest = vector.split("%s = pto.alloc_tile", 1)
    work = ("%s = pto.alloc_tile" + rest).removesuffix("return\n}\n")
    idle = """scf.for %n = %c0 to %c3 step %c1 {
%t = pto.tpop_from_aic(%c0, %c0) {split = 0} -> <vec f32 16x32>
%u = pto.alloc_tile addr = %c16384i64 valid_row = %c0 valid_col = %c0 : <vec f32 16x32>
pto.tabs ins(%t : <vec f32 16x32>) outs(%u : <vec f32 16x32>)
pto.tfree_from_aic {split = 0}
}
"""
    chosen = """%core = arith.index_cast %lane : i32 to index
%works = arith.cmpi eq, %core, %c0 : index
"""
    return cube, f"{head}{chosen}scf.if %works {{\n{work}}} else {{\n{idle}}}\nreturn\n}}\n"


def meeting() -> tuple[str, str]:
    """The cube core stores its last product, and all cores meet before the vector cores read it."""
    cube, vector = halves(1)
    meet = "pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<mix>"
    last = f"""{view("%vy", "%y", "%c16", "%c32", "f32")}
{part("%py", "%vy", "%c0, %c0", "%c16, %c32", "f32", "16x32")}
pto.tstore ins(%c : <acc f32 16x32>) outs(%py : !pto.partition_tensor_view<16x32xf32>)
"""
    cube = cube.replace("return", f"{last}{meet}\nreturn")
    again = f"""{meet}
pto.tload ins(%p : !pto.partition_tensor_view<8x32xf32>) outs(%s : <vec f32 8x32>)
pto.tadd ins(%s, %s : <vec f32 8x32>, <vec f32 8x32>) outs(%s : <vec f32 8x32>)
"""
    load = "pto.tload ins(%p : !pto.partition_tensor_view<8x32xf32>) outs(%s : <vec f32 8x32>)"
    clear = """%zero = arith.constant 0.0 : f32
pto.texpands ins(%zero : f32) outs(%s : <vec f32 8x32>)"""
    store = "pto.tstore ins(%s"
    return cube, vector.replace(load, clear).replace(store, again + store)


KERNELS = {
    "norm": (NORM,),
    "quantise": (QUANTISE,),
    "rotate": (ROTATE,),
    "project": (PROJECT,),
    "halves": halves(1),
    "whole": halves(0),
    "idle_lane": idle_lane(),
    "meeting": meeting(),
}
