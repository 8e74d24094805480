"""Texts with a cube and a vector function: a product goes through pipes, and out again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptokit.from_text import Program

ACC = "!pto.tile_buf<acc, 16x32x<to>, blayout=col_major, slayout=row_major, fractal=1024>"
MAT_A = "!pto.tile_buf<mat, 16x32x<of>, blayout=col_major, slayout=row_major>"
MAT_B = "!pto.tile_buf<mat, 32x32x<of>, blayout=col_major, slayout=row_major>"
LEFT = "!pto.tile_buf<left, 16x32x<of>, blayout=<left>, slayout=row_major>"
RIGHT = "!pto.tile_buf<right, 32x32x<of>, slayout=col_major>"
_ARGS = "%a: !pto.ptr<<of>>, %b: !pto.ptr<<of>>, %s: !pto.ptr<<scale>>, %ring: !pto.ptr<<ring>>"
_TYPES = "!pto.ptr<<of>>, !pto.ptr<<of>>, !pto.ptr<<scale>>, !pto.ptr<<ring>>, !pto.ptr<<out>>"
_NUMBERS = "\n".join(
    f"    %c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 32)
)
TEXT = f"""
!acc = {ACC}
module attributes {{pto.target_arch = "<arch>"}} {{
  func.func @both({_ARGS}, %z: !pto.ptr<<out>>) attributes {{pto.entry}} {{
    func.call @cube(%a, %b, %s, %ring, %z) : ({_TYPES}) -> ()
    func.call @vector(%a, %b, %s, %ring, %z) : ({_TYPES}) -> ()
    return
  }}
  func.func private @cube({_ARGS}, %z: !pto.ptr<<out>>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
{_NUMBERS}
    <opened>
    %va = pto.make_tensor_view %a, shape = [%c16, %c32], strides = [%c32, %c1]
        : !pto.tensor_view<16x32x<of>>
    %vb = pto.make_tensor_view %b, shape = [%c32, %c32], strides = [%c32, %c1]
        : !pto.tensor_view<32x32x<of>>
    %pa = pto.partition_view %va, offsets = [%c0, %c0], sizes = [%c16, %c32]
        : !pto.tensor_view<16x32x<of>>
    %pb = pto.partition_view %vb, offsets = [%c0, %c0], sizes = [%c32, %c32]
        : !pto.tensor_view<32x32x<of>>
    %m = pto.alloc_tile : {MAT_A}
    %n = pto.alloc_tile : {MAT_B}
    %l = pto.alloc_tile : {LEFT}
    %r = pto.alloc_tile : {RIGHT}
    %acc = pto.alloc_tile : !acc
    pto.tload ins(%pa : !pto.partition_tensor_view<16x32x<of>>) outs(%m : {MAT_A})
    pto.tload ins(%pb : !pto.partition_tensor_view<32x32x<of>>) outs(%n : {MAT_B})
    pto.tmov ins(%m : {MAT_A}) outs(%l : {LEFT})
    pto.tmov ins(%n : {MAT_B}) outs(%r : {RIGHT})
    pto.tmatmul ins(%l, %r : {LEFT}, {RIGHT}) outs(%acc : !acc)
    <push>
    return
  }}
  func.func private @vector({_ARGS}, %z: !pto.ptr<<out>>)
      attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
{_NUMBERS}
    %zero = arith.constant 0 : i64
    <reserved>
    %core = pto.get_subblock_idx
    %sub = arith.index_cast %core : i64 to index
    %is_first = arith.cmpi eq, %core, %zero : i64
    <pop>
    return
  }}
}}
"""
_KINDS = {"f32": ("f32", "f32"), "i8": ("i8", "i32")}  # of the operands: theirs, and the product's


def program_text(arch: str, kind: str = "f32", **parts: str) -> str:
    """The program of an architecture whose operands have a type; `parts` fill the rest in."""
    of, to = _KINDS[kind]
    left = "col_major" if arch == "a5" else "row_major"
    usual = {"scale": "f32", "ring": to, "out": to, "opened": "", "reserved": ""}
    text = TEXT
    for name, value in (usual | parts).items():
        text = text.replace(f"<{name}>", value)
    for name, value in {"arch": arch, "of": of, "to": to, "left": left}.items():
        text = text.replace(f"<{name}>", value)
    return text


def product(kind: str) -> tuple[Any, Any, Any]:
    """Two operands and their product."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(-4, 5, (16, 32)), rng.integers(-3, 4, (32, 32))
    np_kind = "f4" if kind == "f32" else "i1"
    return a.astype(np_kind), b.astype(np_kind), a @ b


def errors(made: Program, target: str | None = None) -> list[str]:
    """The codes of what is wrong with a program."""
    return [d.code for d in made.check(target) if d.severity == "error"]
