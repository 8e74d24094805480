"""Elementwise instructions: one element of each source makes one element of the destination."""

from __future__ import annotations

import numpy as np

from ptokit.base.layout import Array
from ptokit.isa.rules import located, row_major, same_dtype, same_valid
from ptokit.isa.spec import Rule, insn, out, src, types


def binary_rules(a2a3: str, a5: str) -> list[Rule]:
    """The rules every tile-tile instruction shares; the ids are those of the row-major check."""
    names = ("dst", "src0", "src1")
    kin = "a5 kirin9030 kirinx90"
    return [
        same_dtype(*names),
        row_major(*names, id=a2a3, on="a2a3"),
        row_major(*names, id=a5, on=kin),
        same_valid(*names, id="PA-0017"),
        located("Vec", *names, on="a2a3 " + kin),
    ]


@insn(
    out("dst"),
    src("src0"),
    src("src1"),
    types=types(
        a2a3="i16 i32 f16 f32",
        a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
        kirin="i8 u8 i16 u16 i32 u32 f16 f32",
        ids="SA-0134",
    ),
    rules=binary_rules(a2a3="SA-0136", a5="SA-0135"),
)
def TADD(dst: Array, src0: Array, src1: Array) -> None:
    """Add two tiles element by element over the valid region; integers wrap."""
    np.add(src0, src1, out=dst)
