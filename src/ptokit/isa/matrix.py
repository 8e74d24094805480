"""Matrix products of the cube unit: TMATMUL and TGEMV with their accumulate and bias forms.

Six instructions differ in two ways: which tiles say how large the product is, and what the sum
starts from. The block-scaled (MX) forms are in `matrix_mx`, what they share in `cube`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptokit.base import dtypes as dt
from ptokit.base.enums import RoundMode
from ptokit.base.layout import Array
from ptokit.isa import cube
from ptokit.isa.devices import A5_FAMILY, KIRIN
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import Product
from ptokit.isa.language import single
from ptokit.isa.rules import behind, located, must, under
from ptokit.isa.services import Places, Registers
from ptokit.isa.spec import Asm, Attr, Cpp, Pipe, Rule, insn, rule, types

# ---- element types and layouts -------------------------------------------------------------------

_A2A3 = "i32,i8,i8 f32,f16,f16 f32,f32,f32 f32,bf16,bf16"
_FP8 = "f32,f8e4m3,f8e4m3 f32,f8e4m3,f8e5m2 f32,f8e5m2,f8e4m3 f32,f8e5m2,f8e5m2 f32,hif8,hif8"
_A5_PAIRS = types("a b", a5="f16,f16 bf16,bf16 f32,f32 " + _FP8.replace("f32,", "")).allowed["a5"]


def _a5_types(c: str) -> list[Rule]:
    """The element types of a5, which it reports as three checks."""

    def pair(o: Any) -> tuple[Any, Any]:
        return o.aMatrix.dtype, o.bMatrix.dtype

    text = f"with an f32 {c}, aMatrix and bMatrix are both f16, bf16, f32 or hif8, or are fp8"
    return [
        rule("SA-0005", f"{c} is i32 or f32", lambda o: o[c].dtype in (dt.i32, dt.f32), "a5"),
        must("SA-0068", "a5")(
            f"with an i32 {c}, aMatrix and bMatrix are i8",
            lambda o: o[c].dtype is not dt.i32 or pair(o) == (dt.i8, dt.i8),
        ),
        rule("SA-0076", text, lambda o: o[c].dtype is not dt.f32 or pair(o) in _A5_PAIRS, "a5"),
    ]


def _layouts(c: str) -> list[Rule]:
    """The order of the fractals; the left operand's differs between the targets."""

    def by_rows(o: Any) -> bool:
        # One row of boxes is the same in both orders.
        a = o.aMatrix.layout == "ZZ" or (o.aMatrix.layout == "NZ" and o.aMatrix.rows <= 16)
        return a and (o.bMatrix.layout, o[c].layout) == ("ZN", "NZ")

    fix = "use TileLeft, TileRight and TileAcc, which take the layout of the target"
    return [
        cube.column_fractals(c, "SA-0080", "a5", fix),
        cube.column_fractals(c, "layout", "kirin9030", fix),
        must("layout", "a2a3 kirinx90")(
            f"aMatrix has row-major fractals with rows inside (ZZ), {c} column-major fractals with "
            "rows inside (NZ), bMatrix row-major ones with columns inside (ZN)",
            by_rows,
            fix,
        ),
    ]


def _rules(sizes: cube.Sizes, c: str) -> list[Rule]:
    """What every form asks for."""
    ids = {"SA-0060": "a2a3", "shapes": A5_FAMILY}  # an assertion of A2/A3 that others follow
    agree = (
        cube.shapes_agree(c, ids) if sizes is cube.MATMUL else cube.row_shapes_agree(c, sizes, ids)
    )
    k_is = "valid columns of aMatrix" if sizes is cube.MATMUL else "valid rows of bMatrix"
    m_in_range = cube.in_range("m", sizes.m, "valid rows of aMatrix", "PA-0006")
    return [
        located("Left", "aMatrix", id="SA-0225"),
        located("Right", "bMatrix", id="SA-0227"),
        located("Acc", c, id="SA-0226"),
        *agree,
        *cube.shapes_agree(c, {"SA-0059": "cpu"}),
        *([m_in_range] if sizes is cube.MATMUL else []),
        cube.in_range("k", sizes.k, k_is, "PA-0005"),
        cube.in_range("n", cube.n_of, "valid columns of bMatrix", "PA-0007"),
        must("same-k")(
            "the valid columns of aMatrix are the valid rows of bMatrix",
            lambda o: o.aMatrix.vc == o.bMatrix.vr,
            "give both tiles the same valid K (the template arguments, or SetValidShape)",
            behind(
                f"k is the {k_is}, whatever the other one says",
                lambda o: sizes.k(o) <= min(o.aMatrix.cols, o.bMatrix.rows),
            ),
        ),
        *([cube.ONE_PADDED_ROW] if sizes is cube.GEMV else []),
        *_a5_types(c),
        *_layouts(c),
        cube.fits(sizes.left(), sizes.right(), sizes.result(c)),
    ]


def _bias_rules(sizes: cube.Sizes) -> list[Rule]:
    order = under(
        {"SA-0078": "a5", "bias-order": KIRIN},
        "biasData is row-major",
        lambda o: o.biasData.is_row_major,
    )
    return [
        *cube.bias_rules("SA-0219"),
        *under(
            {"SA-0075": "a2a3 a5", "bias-type": KIRIN},
            "biasData has the element type of cMatrix",
            lambda o: o.biasData.dtype is o.cMatrix.dtype,
        ),
        cube.fits(cube.bias_row()),
        *(order if sizes is cube.MATMUL else []),
    ]


# ---- what a sum starts from ----------------------------------------------------------------------


def _fresh(cMatrix: Array, aMatrix: Array, bMatrix: Array, ops: Ops, registers: Registers) -> None:
    cube.accumulate("cMatrix", cMatrix, aMatrix, bMatrix, ops, registers)


def _onto_old(
    cOutMatrix: Array,
    cInMatrix: Array | None,
    aMatrix: Array,
    bMatrix: Array,
    ops: Ops,
    registers: Registers,
    places: Places,
) -> None:
    cube.require_same_storage("cOutMatrix", ops, places)
    is_other = cInMatrix is None or cube.adds_to_result(ops, "cOutMatrix")
    old = cOutMatrix if is_other else cInMatrix
    cube.accumulate("cOutMatrix", cOutMatrix, aMatrix, bMatrix, ops, registers, old)


def _onto_bias(
    cMatrix: Array, aMatrix: Array, bMatrix: Array, biasData: Array, ops: Ops, registers: Registers
) -> None:
    cube.accumulate("cMatrix", cMatrix, aMatrix, bMatrix, ops, registers, biasData)


def _loop(o: Ops, c: str, start: str) -> Product | None:
    """A product whose sum starts from nothing, from the result itself or from a row.

    Off the device it starts from the accumulator that is named, wherever that lies.
    """
    if start == "ACC" and not o.target.is_device and o.cInMatrix is not None:
        return None
    first = {"": None, "ACC": c, "BIAS": "biasData"}[start]
    return Product(c, "aMatrix", "bMatrix", first)


# ---- the products --------------------------------------------------------------------------------

_OPERANDS = {
    "TMATMUL": {"c": "Acc {T} 32x48", "aMatrix": "Left {T} 32x64", "bMatrix": "Right {T} 64x48"},
    "TGEMV": {
        "c": "Acc {T} 16x48",
        "aMatrix": "Left {T} 1x512 valid 1x64",
        "aMatrix@cpu": "Left {T} 16x64 valid 1x64",
        "bMatrix": "Right {T} 64x48",
    },
}


def _product(name: str, doc: str) -> None:
    """Define one product; what its sum starts from is the second part of its name."""
    base, _, start = name.partition("_")
    sizes = cube.MATMUL if base == "TMATMUL" else cube.GEMV
    c = "cOutMatrix" if start == "ACC" else "cMatrix"
    operands = [sizes.result(c, "inout" if start == "ACC" else "out"), sizes.left(), sizes.right()]
    rules = _rules(sizes, c)
    if sizes is cube.GEMV:
        rules += [single(c, "valid_row"), single("aMatrix", "valid_row")]
    example = {(c if n == "c" else n): text for n, text in _OPERANDS[base].items()}
    asm = Asm(name=f"{base}.{start}".lower() if start else None, attrs=cube.PHASE_KEY)
    more: dict[str, Any] = {}
    if start == "ACC":
        operands.insert(1, sizes.old_result(c, "the storage of cOutMatrix"))
        rules.append(cube.same_accumulator(c))
        example["cInMatrix"] = "same cOutMatrix"
        asm = replace(asm, ins=("cInMatrix", "aMatrix", "bMatrix"), outs=(c,))
        if sizes is cube.MATMUL:
            more["forms"] = [f"{c} cInMatrix aMatrix bMatrix", f"{c} aMatrix bMatrix"]
            more["cpp"] = Cpp(implied={"cInMatrix": c})
    elif start == "BIAS":
        operands.append(cube.bias_row())
        rules += _bias_rules(sizes)
        example["biasData"] = "Bias {T} 1x48"
    insn(
        *operands,
        name=name,
        attrs=[cube.PHASE],
        pipe=Pipe.M,
        uses="CTRL",
        uses_when=cube.heeds_tf32,
        ops={base: Pipe.M} if start else {},
        types=types(
            f"{c} aMatrix bMatrix",
            a2a3=_A2A3,
            a5=f"{_A2A3} {_FP8}",
            kirin="f16,f16,f16 i32,i8,i8",
            ids={"a2a3": "SA-0185", "a5": ""},
        ),
        rules=rules,
        asm=asm,
        example=example,
        freedom=cube.FREEDOM,
        doc=doc,
        idiom=lambda o: _loop(o, c, start),
        **more,
    )({"": _fresh, "ACC": _onto_old, "BIAS": _onto_bias}[start])


_PRODUCTS = {
    "TMATMUL": """Multiply two matrices into a fresh accumulator.

    m is the valid rows of aMatrix, k its valid columns, n the valid columns of bMatrix; the valid
    region of cMatrix is not looked at. Elements beyond k do not contribute. Afterwards the m x n
    result is defined and the rest of the touched 16x16 accumulator boxes is not: on A2/A3 a product
    with m == 1 really computes 16 rows, so use TGEMV for one row.

    int8 products are summed in int32 modulo 2^32, floats in float32 (in f16 on Kirin). The phase is
    the unit flag for the store that follows and has no effect on numbers.
    """,
    "TMATMUL_ACC": """Multiply two matrices and add the product to an accumulator.

    Sizes, element types and what is left undefined are those of TMATMUL. The hardware adds to what
    cOutMatrix holds; cInMatrix must be the same storage and may be left out.
    """,
    "TMATMUL_BIAS": """\
    Multiply two matrices, every column of the accumulator starting from its bias.

    Sizes, element types and what is left undefined are those of TMATMUL; biasData is one row of n
    elements of the accumulator's type.
    """,
    "TGEMV": """Multiply a row by a matrix into a fresh accumulator row.

    The cube runs in its vector mode: aMatrix is one row of k elements stored one after the other, k
    the valid rows of bMatrix, n its valid columns. Afterwards row 0 of cMatrix is defined and the
    rest of the touched accumulator boxes is not. The permissive profile takes as many rows as
    aMatrix has.
    """,
    "TGEMV_ACC": """Multiply a row by a matrix and add the product to an accumulator row.

    As TGEMV; the hardware adds to what cOutMatrix holds, so cInMatrix must be the same storage.
    """,
    "TGEMV_BIAS": """\
    Multiply a row by a matrix, every element of the accumulator row starting from its bias.

    As TGEMV; biasData is one row of n elements of the accumulator's type.
    """,
}
for _name, _doc in _PRODUCTS.items():
    _product(_name, _doc)


# ---- modes ---------------------------------------------------------------------------------------


def _mode(name: str) -> list[Attr]:
    return [
        Attr("isEnable", bool, None, "whether f32 operands are reduced"),
        Attr(name, RoundMode, RoundMode.CAST_ROUND, "how they are rounded"),
    ]


@insn(
    attrs=_mode("tf32TransMode"),
    pipe=Pipe.S,
    rules=[
        must("switch")(
            "the brackets say whether the mode is on",
            lambda o: o.attrs["isEnable"] is not None,
            "TSETTF32MODE[True]() or TSETTF32MODE[False]()",
        ),
        must("rounding")(
            "TF32 rounds to nearest, CAST_ROUND or CAST_RINT",
            lambda o: (
                not o.attrs["isEnable"]
                or o.attrs["tf32TransMode"] in (RoundMode.CAST_ROUND, RoundMode.CAST_RINT)
            ),
        ),
        must("no-tf32", KIRIN)(
            "the target can only switch the mode off: its cube takes no f32 operands",
            lambda o: not o.attrs["isEnable"],
        ),
    ],
    sets="CTRL",
    asm=Asm(ins=(), outs=(), attrs={"isEnable": "enable", "tf32TransMode": "mode"}),
    example={"isEnable": "False"},
    more_examples=[{"isEnable": "True", "on": "a2a3 a5"}],
)
def TSETTF32MODE(isEnable: bool, tf32TransMode: RoundMode, registers: Registers) -> None:
    """Switch the reduced precision of f32 matrix products on or off.

    While it is on, f32 operands of TMATMUL and TGEMV are rounded before they are multiplied, to 11
    mantissa bits on A2/A3 and 10 on A5; sums stay in float32. The mode is part of the control
    register and lasts until it is set again, so order it against products still under way. On the
    permissive profile it has no effect on numbers.
    """
    control = registers.get("CTRL", 0) & ~cube.TF32_ON
    if isEnable:
        control = control & ~cube.TF32_ROUND | cube.TF32_ON
        control |= cube.TF32_ROUND if tf32TransMode == RoundMode.CAST_ROUND else 0
    registers["CTRL"] = control


@insn(
    attrs=_mode("hf32TransMode"),
    pipe=Pipe.S,
    targets="",
    asm=Asm(ins=(), outs=(), attrs={"isEnable": "enable", "hf32TransMode": "mode"}),
)
def TSETHF32MODE() -> None:
    """Switch HF32 mode; no supported device has it, use TSETTF32MODE.

    The page documents the call without saying what it does, and no device implements it.
    """
    raise NotImplementedError
