"""Matrix products of the cube unit: TMATMUL and TGEMV with their accumulate and bias forms.

What they share with the block-scaled (MX) forms is in `cube`.
"""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import RoundMode
from ptokit.base.layout import Array
from ptokit.isa.cube import (
    FREEDOM,
    KIRIN,
    PHASE,
    TF32_ON,
    TF32_ROUND,
    accumulate,
    bias_row,
    bias_rules,
    gemv_k,
    gemv_m,
    gemv_rules,
    left,
    matmul_rules,
    old_result,
    products,
    require_same_storage,
    result,
    right,
    same_accumulator,
)
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, insn, rule

# ---- TMATMUL -------------------------------------------------------------------------------------

_MATMUL = {"aMatrix": "Left {T} 32x64", "bMatrix": "Right {T} 64x48"}
_GEMV = {
    "aMatrix": "Left {T} 1x512 valid 1x64",
    "aMatrix@cpu": "Left {T} 16x64 valid 1x64",
    "bMatrix": "Right {T} 64x48",
}


@insn(
    result(),
    left(),
    right(),
    attrs=[PHASE],
    pipe=Pipe.M,
    types=products("cMatrix"),
    rules=matmul_rules(),
    example={"cMatrix": "Acc {T} 32x48", **_MATMUL},
    freedom=FREEDOM,
)
def TMATMUL(cMatrix: Array, aMatrix: Array, bMatrix: Array, ctx: Any) -> None:
    """Multiply two matrices into a fresh accumulator.

    m is the valid rows of aMatrix, k its valid columns, n the valid columns of bMatrix; the valid
    region of cMatrix is not looked at. Elements beyond k do not contribute. Afterwards the m x n
    result is defined and the rest of the touched 16x16 accumulator boxes is not: on A2/A3 a product
    with m == 1 really computes 16 rows, so use TGEMV for one row.

    int8 products are summed in int32 modulo 2^32, floats in float32 (in f16 on Kirin). The phase is
    the unit flag for the store that follows and has no effect on numbers.
    """
    accumulate(ctx, "cMatrix", cMatrix, aMatrix, bMatrix)


@insn(
    result("cOutMatrix", role="inout"),
    old_result(),
    left(),
    right(),
    attrs=[PHASE],
    pipe=Pipe.M,
    ops={"TMATMUL": Pipe.M},
    types=products("cOutMatrix"),
    rules=[*matmul_rules("cOutMatrix"), same_accumulator("cOutMatrix")],
    forms=["cOutMatrix cInMatrix aMatrix bMatrix", "cOutMatrix aMatrix bMatrix"],
    asm=Asm(name="tmatmul.acc", ins=("cInMatrix", "aMatrix", "bMatrix"), outs=("cOutMatrix",)),
    example={"cOutMatrix": "Acc {T} 32x48", "cInMatrix": "same cOutMatrix", **_MATMUL},
    freedom=FREEDOM,
    cpp=Cpp(implied={"cInMatrix": "cOutMatrix"}),
)
def TMATMUL_ACC(
    cOutMatrix: Array, cInMatrix: Array | None, aMatrix: Array, bMatrix: Array, ctx: Any
) -> None:
    """Multiply two matrices and add the product to an accumulator.

    Sizes, element types and what is left undefined are those of TMATMUL. The hardware adds to what
    cOutMatrix holds; cInMatrix must be the same storage and may be left out.
    """
    require_same_storage(ctx, "cOutMatrix")
    old = cOutMatrix if cInMatrix is None else cInMatrix
    accumulate(ctx, "cOutMatrix", cOutMatrix, aMatrix, bMatrix, old)


@insn(
    result(),
    left(),
    right(),
    bias_row(),
    attrs=[PHASE],
    pipe=Pipe.M,
    ops={"TMATMUL": Pipe.M},
    types=products("cMatrix"),
    rules=[*matmul_rules(), *bias_rules()],
    asm=Asm(name="tmatmul.bias"),
    example={"cMatrix": "Acc {T} 32x48", **_MATMUL, "biasData": "Bias {T} 1x48"},
    freedom=FREEDOM,
)
def TMATMUL_BIAS(cMatrix: Array, aMatrix: Array, bMatrix: Array, biasData: Array, ctx: Any) -> None:
    """Multiply two matrices, every column of the accumulator starting from its bias.

    Sizes, element types and what is left undefined are those of TMATMUL; biasData is one row of n
    elements of the accumulator's type.
    """
    accumulate(ctx, "cMatrix", cMatrix, aMatrix, bMatrix, biasData)


# ---- TGEMV ---------------------------------------------------------------------------------------


@insn(
    result(m=gemv_m),
    left(gemv_m, gemv_k),
    right(gemv_k),
    attrs=[PHASE],
    pipe=Pipe.M,
    types=products("cMatrix"),
    rules=gemv_rules(),
    example={"cMatrix": "Acc {T} 16x48", **_GEMV},
    freedom=FREEDOM,
)
def TGEMV(cMatrix: Array, aMatrix: Array, bMatrix: Array, ctx: Any) -> None:
    """Multiply a row by a matrix into a fresh accumulator row.

    The cube runs in its vector mode: aMatrix is one row of k elements stored one after the other, k
    the valid rows of bMatrix, n its valid columns. Afterwards row 0 of cMatrix is defined and the
    rest of the touched accumulator boxes is not. The permissive profile takes as many rows as
    aMatrix has.
    """
    accumulate(ctx, "cMatrix", cMatrix, aMatrix, bMatrix)


@insn(
    result("cOutMatrix", gemv_m, role="inout"),
    old_result(gemv_m),
    left(gemv_m, gemv_k),
    right(gemv_k),
    attrs=[PHASE],
    pipe=Pipe.M,
    ops={"TGEMV": Pipe.M},
    types=products("cOutMatrix"),
    rules=[*gemv_rules("cOutMatrix"), same_accumulator("cOutMatrix")],
    asm=Asm(name="tgemv.acc", ins=("cInMatrix", "aMatrix", "bMatrix"), outs=("cOutMatrix",)),
    example={"cOutMatrix": "Acc {T} 16x48", "cInMatrix": "same cOutMatrix", **_GEMV},
    freedom=FREEDOM,
)
def TGEMV_ACC(
    cOutMatrix: Array, cInMatrix: Array, aMatrix: Array, bMatrix: Array, ctx: Any
) -> None:
    """Multiply a row by a matrix and add the product to an accumulator row.

    As TGEMV; the hardware adds to what cOutMatrix holds, so cInMatrix must be the same storage.
    """
    require_same_storage(ctx, "cOutMatrix")
    accumulate(ctx, "cOutMatrix", cOutMatrix, aMatrix, bMatrix, cInMatrix)


@insn(
    result(m=gemv_m),
    left(gemv_m, gemv_k),
    right(gemv_k),
    bias_row(),
    attrs=[PHASE],
    pipe=Pipe.M,
    ops={"TGEMV": Pipe.M},
    types=products("cMatrix"),
    rules=[*gemv_rules(), *bias_rules(row_major_on="")],
    asm=Asm(name="tgemv.bias"),
    example={"cMatrix": "Acc {T} 16x48", **_GEMV, "biasData": "Bias {T} 1x48"},
    freedom=FREEDOM,
)
def TGEMV_BIAS(cMatrix: Array, aMatrix: Array, bMatrix: Array, biasData: Array, ctx: Any) -> None:
    """Multiply a row by a matrix, every element of the accumulator row starting from its bias.

    As TGEMV; biasData is one row of n elements of the accumulator's type.
    """
    accumulate(ctx, "cMatrix", cMatrix, aMatrix, bMatrix, biasData)


# ---- modes ---------------------------------------------------------------------------------------


@insn(
    attrs=[
        Attr("isEnable", bool, None, "whether f32 operands are reduced"),
        Attr("tf32TransMode", RoundMode, RoundMode.CAST_ROUND, "how they are rounded"),
    ],
    pipe=Pipe.S,
    rules=[
        rule(
            "switch",
            "the brackets say whether the mode is on",
            lambda o: o.attrs["isEnable"] is not None,
            fix="TSETTF32MODE[True]() or TSETTF32MODE[False]()",
        ),
        rule(
            "rounding",
            "TF32 rounds to nearest, CAST_ROUND or CAST_RINT",
            lambda o: (
                not o.attrs["isEnable"]
                or o.attrs["tf32TransMode"] in (RoundMode.CAST_ROUND, RoundMode.CAST_RINT)
            ),
        ),
        rule(
            "no-tf32",
            "the target can only switch the mode off: its cube takes no f32 operands",
            lambda o: not o.attrs["isEnable"],
            KIRIN,
        ),
    ],
    asm=Asm(ins=(), outs=(), attrs={"isEnable": "enable", "tf32TransMode": "mode"}),
    example={"isEnable": "False"},
    more_examples=[{"isEnable": "True", "on": "a2a3 a5"}],
)
def TSETTF32MODE(isEnable: bool, tf32TransMode: RoundMode, ctx: Any) -> None:
    """Switch the reduced precision of f32 matrix products on or off.

    While it is on, f32 operands of TMATMUL and TGEMV are rounded before they are multiplied, to 11
    mantissa bits on A2/A3 and 10 on A5; sums stay in float32. The mode is part of the control
    register and lasts until it is set again, so order it against products still under way. On the
    permissive profile it has no effect on numbers.
    """
    control = ctx.registers.get("CTRL", 0) & ~TF32_ON
    if isEnable:
        nearest_away = tf32TransMode == RoundMode.CAST_ROUND
        control = control & ~TF32_ROUND | TF32_ON | (TF32_ROUND if nearest_away else 0)
    ctx.registers["CTRL"] = control


@insn(
    attrs=[
        Attr("isEnable", bool, None, "whether f32 operands are reduced"),
        Attr("hf32TransMode", RoundMode, RoundMode.CAST_ROUND, "how they are rounded"),
    ],
    pipe=Pipe.S,
    targets="",
    asm=Asm(ins=(), outs=(), attrs={"isEnable": "enable", "hf32TransMode": "mode"}),
)
def TSETHF32MODE() -> None:
    """Switch HF32 mode; no supported device has it, use TSETTF32MODE.

    The page documents the call without saying what it does, and no device implements it.
    """
    raise NotImplementedError
