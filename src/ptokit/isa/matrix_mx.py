"""Block-scaled matrix products (microscaling, MX): one e8m0 scale per 32 elements of K."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptokit.base import dtypes as dt
from ptokit.base.convert import to_float64
from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType
from ptokit.base.enums import BLayout, SLayout, TileType
from ptokit.base.layout import Array
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.isa import cube
from ptokit.isa.facts import Ops
from ptokit.isa.idioms import Product
from ptokit.isa.language import in_text, known, single
from ptokit.isa.regions import Reach
from ptokit.isa.rules import must, on_devices
from ptokit.isa.services import Places, Poison
from ptokit.isa.spec import Asm, Extent, Operand, Pipe, Rule, insn, src, types

BLOCK = 32  # elements of K that share a scale
_SCALED = "aMatrix aScaleMatrix bMatrix bScaleMatrix"
_FORMS = [f"cMatrix {_SCALED}", f"cMatrix cInMatrix {_SCALED}", f"cMatrix {_SCALED} biasData"]
_NOT_TOLD = "only the place counts: the bytes beside the data are taken for boxes of scales"
_FP8 = ("f8e4m3", "f8e5m2")
_FP4 = ("f4e1m2x2", "f4e2m1x2")


def _blocks(k: int) -> int:
    """Scales per row or column: K is padded to a multiple of 64."""
    return -(-k // 64) * 2


def _box_rows(rows: int) -> int:
    """The rows of boxes; a single row is just a row."""
    return rows if rows == 1 else -(-rows // 16) * 16


@dataclass(frozen=True)
class _Side:
    """The scales of one operand of a product, in boxes of 16 rows (columns) and two blocks of K.

    The hardware is not told of their tile: it looks at a sixteenth of the address of the data. A
    tile that is declared as it should be says the same as the hardware does.
    """

    name: str
    memory: TileType
    layout: tuple[BLayout, SLayout]
    size: Callable[[Any], tuple[int, int]]  # of the scales in use
    asked: Callable[[Any], tuple[int, int]]  # of the tile that the rules ask for
    room: Callable[[Any], tuple[int, int]]  # of the scales beside all of the data tile

    def is_located(self, o: Any) -> bool:
        return o[self.name].loc == self.memory

    def is_held(self, o: Any) -> bool:
        rows, cols = self.asked(o)
        return o[self.name].rows >= rows and o[self.name].cols >= cols

    def operand(self) -> Operand:
        return src(self.name, view=self._region, memory=self.memory)

    def _region(self, o: Any) -> Extent:
        is_as_asked = self.is_located(o) and self.is_held(o) and o[self.name].itemsize == 1
        if is_as_asked or not o.target.is_device:
            return self.size(o)
        rows, cols = self.room(o)
        order, inner = self.layout
        spec = TileSpec.of(self.memory, dt.f8e8m0, rows, cols, order, rows, cols, inner, 32)
        return Reach(spec.axis_map(rows, cols), dt.f8e8m0, self.size(o))


def _sides(sizes: cube.Sizes) -> tuple[_Side, _Side]:
    def used(o: Any) -> int:
        return -(-cube.MATMUL.k(o) // BLOCK)

    return (
        _Side(
            *("aScaleMatrix", TileType.ScaleLeft, (BLayout.RowMajor, SLayout.RowMajor)),
            size=lambda o: (sizes.m(o), used(o)),
            asked=lambda o: (sizes.m(o), _blocks(sizes.k(o))),
            room=lambda o: (_box_rows(o.aMatrix.rows), _blocks(o.aMatrix.cols)),
        ),
        _Side(
            *("bScaleMatrix", TileType.ScaleRight, (BLayout.ColMajor, SLayout.ColMajor)),
            size=lambda o: (used(o), cube.n_of(o)),
            asked=lambda o: (_blocks(sizes.k(o)), cube.n_of(o)),
            room=lambda o: (_blocks(o.bMatrix.rows), -(-o.bMatrix.cols // 16) * 16),
        ),
    )


def _operands(sizes: cube.Sizes) -> tuple[Operand, ...]:
    """All operands over the three forms, in C++ order."""
    old = "accumulate form: the storage of cMatrix"
    of_rows, of_cols = _sides(sizes)
    return (
        sizes.result(),
        sizes.old_result("cMatrix", old, optional=True, space="Acc"),
        sizes.left(),
        of_rows.operand(),
        sizes.right(),
        of_cols.operand(),
        cube.bias_row(optional=True),
    )


def _rules(sizes: cube.Sizes) -> list[Rule]:
    """What both block-scaled products ask for."""
    k, sides = sizes.k, _sides(sizes)
    return [
        must("no-hif4")(
            "neither operand is hif4x2: TMATMUL_MX_HIF4 exists on no supported target",
            lambda o: dt.hif4x2 not in (o.aMatrix.dtype, o.bMatrix.dtype),
        ),
        must("SA-0246")(
            "aMatrix is a Left, bMatrix a Right and cMatrix an Acc tile",
            lambda o: (
                (o.aMatrix.loc, o.bMatrix.loc, o.cMatrix.loc)
                == (TileType.Left, TileType.Right, TileType.Acc)
            ),
        ),
        cube.column_fractals("cMatrix", "SA-0246", "a5"),
        cube.in_range("k", k, "valid columns of aMatrix", "PA-0005"),
        cube.in_range("n", cube.n_of, "valid columns of bMatrix", "PA-0007"),
        must("scale-type")(
            "the scales are f8e8m0",
            lambda o: o.aScaleMatrix.dtype is dt.f8e8m0 and o.bScaleMatrix.dtype is dt.f8e8m0,
            otherwise=on_devices("their bytes are read as f8e8m0"),
        ),
        must("scale-location")(
            "aScaleMatrix is a ScaleLeft and bScaleMatrix a ScaleRight tile",
            lambda o: all(side.is_located(o) for side in sides),
            otherwise=on_devices(_NOT_TOLD),
        ),
        must("scale-shape")(
            "aScaleMatrix holds m x ceil64(k)/32 scales and bScaleMatrix ceil64(k)/32 x n",
            lambda o: all(side.is_held(o) for side in sides),
            otherwise=on_devices(_NOT_TOLD),
        ),
        must("scale-address", "a5")(
            "the address of the scales is a sixteenth of that of the data they belong to",
            lambda o: (
                o.mode == "auto"
                or (
                    o.aScaleMatrix.addr == o.aMatrix.addr >> 4
                    and o.bScaleMatrix.addr == o.bMatrix.addr >> 4
                )
            ),
            "TASSIGN(scale, data_address >> 4); the hardware looks nowhere else",
        ),
        must("SA-0243", "a5")(
            "aMatrix.Cols is a multiple of 64", lambda o: o.aMatrix.cols % 64 == 0
        ),
        must("whole-blocks", "a5")(
            "bMatrix.Cols is a multiple of 64 for 4-bit and of 32 for 8-bit elements",
            lambda o: o.bMatrix.cols % (64 if o.bMatrix.dtype.is_packed else 32) == 0,
            otherwise="the boxes of bMatrix lie as its type says, and are multiplied as they lie",
        ),
        cube.same_accumulator("cMatrix", "a5"),
        must("SA-0244", "a5")(
            "biasData is f32", lambda o: o.biasData is None or o.biasData.dtype is dt.f32
        ),
        *cube.bias_rules("SA-0247", "a5"),
        cube.fits(*(o for o in _operands(sizes) if o.name != "cInMatrix")),
    ]


_MATRIX = [
    cube.in_range("m", cube.MATMUL.m, "valid rows of aMatrix", "PA-0006"),
    *cube.shapes_agree("cMatrix", {"SA-0242": "a5 cpu"}),
    must("padded-k", "a5")(
        "k is a multiple of 64: the padding counts as valid and is zero in both operands",
        lambda o: o.aMatrix.vc % 64 == 0,
        "pad both operands with TFILLPAD and make the valid K the padded one",
        "k elements are multiplied: what lies past them in the last 64 has to be zero",
    ),
]
_ROW = [
    *cube.row_shapes_agree("cMatrix", cube.GEMV_MX, {"SA-0242": "a5"}),
    *cube.shapes_agree("cMatrix", {"SA-0242": "cpu"}),
    cube.ONE_PADDED_ROW,
]


# ---- the products --------------------------------------------------------------------------------


def _multiply_scaled(
    cMatrix: Array,
    cInMatrix: Array | None,
    aMatrix: Array,
    aScaleMatrix: Array,
    bMatrix: Array,
    bScaleMatrix: Array,
    biasData: Array | None,
    ops: Ops,
    places: Places,
    poison: Poison,
) -> None:
    """Scale, multiply and add in float64, where nothing overflows; round once to the result."""
    cube.require_same_storage("cMatrix", ops, places)
    a = aMatrix.reshape(cMatrix.shape[0], -1)
    b = bMatrix.reshape(a.shape[1], -1)
    of_rows = _spread(aScaleMatrix, ops.aScaleMatrix.dtype, 1, a.shape[1], ops.target.is_device)
    of_cols = _spread(bScaleMatrix, ops.bScaleMatrix.dtype, 0, a.shape[1], ops.target.is_device)
    rows = to_float64(a, ops.aMatrix.dtype) * of_rows
    cols = to_float64(b, ops.bMatrix.dtype) * of_cols
    total = cube.multiply(rows, cols, cMatrix.shape)
    start = biasData if cInMatrix is None else cInMatrix
    if cube.adds_to_result(ops, "cMatrix"):
        poison.demand("cMatrix", (slice(None), slice(None)))
        start = np.empty((cMatrix.shape[0], cMatrix.size // cMatrix.shape[0]), cMatrix.dtype)
        poison.leave("cMatrix", start)
    if start is not None:
        total = total + start.reshape(-1, *cMatrix.shape[1:])
    cMatrix[...] = cube.settled(total, ops.cMatrix.dtype)


def _loop(o: Ops) -> Product | None:
    """A product whose sum starts from nothing, from the result itself or from a row."""
    if not o.target.is_device or not cube.is_result(o, "cMatrix"):
        return None
    start = "cMatrix" if o.cInMatrix is not None else None
    start = "biasData" if o.biasData is not None else start
    return Product("cMatrix", "aMatrix", "bMatrix", start, ("aScaleMatrix", "bScaleMatrix"))


def _spread(scales: Array, kind: DType, axis: int, k: int, is_device: bool) -> Array:
    """One scale per element of K; devices are not told what type the bytes are declared with."""
    if is_device:
        scales, kind = scales.view(dt.f8e8m0.np), dt.f8e8m0
    return np.take(to_float64(scales, kind), np.arange(k) // BLOCK, axis)


def _in_text(sizes: cube.Sizes) -> list[Rule]:
    """What texts state of the scales of 8-bit elements: one for each 32 of K."""
    is_row = sizes is cube.GEMV_MX
    facts = ("valid_row", "valid_col") if is_row else ("rows", "cols")

    def fits(o: Any, rows: str, cols: str) -> bool:
        m, k, n = (getattr(o.aMatrix, rows), getattr(o.aMatrix, cols), getattr(o.bMatrix, cols))
        blocks = known(k, per=BLOCK)
        wanted = ((o.aScaleMatrix, known(m), blocks), (o.bScaleMatrix, blocks, known(n)))
        return all(
            size is None or getattr(tile, fact) in (DYNAMIC, size)
            for tile, *sizes in wanted
            for fact, size in zip((rows, cols), sizes, strict=True)
        )

    return [
        in_text(
            "scale-shape",
            "the scales of aMatrix are [M, ceil(K/32)], those of bMatrix [ceil(K/32), N]",
            lambda o: (
                o.aMatrix.dtype.is_packed or (fits(o, *facts) and fits(o, "valid_row", "valid_col"))
            ),
            "a5",
            "declare the scale tiles with a scale for each 32 elements along K",
        ),
        *([single("cMatrix", "valid_row"), single("aMatrix", "valid_row")] if is_row else []),
    ]


def _product(sizes: cube.Sizes, name: str, doc: str, rules: list[Rule], rows: int, a: str) -> None:
    """Define a block-scaled product; `a` says how the left operand of its example is stored."""

    def example(kind: str, c: str = "f32", **more: str) -> dict[str, str]:
        return {
            "cMatrix": f"Acc {c} {rows}x64",
            "aMatrix": f"Left {kind} {a}",
            "aScaleMatrix": f"ScaleLeft f8e8m0 {rows}x2",
            "bMatrix": f"Right {kind} 64x64",
            "bScaleMatrix": "ScaleRight f8e8m0 2x64",
            **more,
        }

    base = name.removesuffix("_MX")
    further = {"on": "a5"} if sizes is cube.GEMV_MX else {}
    cpu = {"aMatrix@cpu": "Left {T} 16x64 valid 1x64"} if sizes is cube.GEMV_MX else {}
    insn(
        *_operands(sizes),
        name=name,
        attrs=[cube.PHASE],
        pipe=Pipe.M,
        ops={base: Pipe.M},
        types=types(
            "cMatrix aMatrix bMatrix",
            a5=" ".join(f"f32,{a},{b}" for pair in (_FP8, _FP4) for a in pair for b in pair),
            ids="SA-0245",
        ),
        rules=[*_rules(sizes), *rules, *_in_text(sizes)],
        forms=_FORMS,
        asm=Asm(
            name=f"{base.lower()}.mx",
            ins=("cInMatrix", *_SCALED.split(), "biasData"),
            outs=("cMatrix",),
            suffixes={"cInMatrix": ".acc", "biasData": ".bias"},
            attrs=cube.PHASE_KEY,
        ),
        example=example("{T}", "{T}") | cpu,
        more_examples=[
            example("f8e4m3", cInMatrix="same cMatrix") | further,
            example("f4e2m1x2", biasData="Bias f32 1x64") | further,
        ],
        freedom=cube.FREEDOM,
        doc=doc,
        idiom=_loop,
    )(_multiply_scaled)


_product(
    cube.MATMUL,
    "TMATMUL_MX",
    """Multiply two block-scaled matrices: fp8 or fp4 elements, one e8m0 scale per 32 along K.

    Each product is a * 2^(sa - 127) * b * 2^(sb - 127). The sum starts from zero, from the old
    contents of the accumulator (cInMatrix, which must be the storage of cMatrix) or from a bias per
    column. m, k and n and what is left undefined are as in TMATMUL, but k is the padded K, a
    multiple of 64, and the padding must be zero. The hardware takes the scales from a sixteenth of
    the data's address, so the scale tiles must be bound there. Scale 0xFF counts as NaN.
    """,
    _MATRIX,
    rows=32,
    a="32x64",
)
_product(
    cube.GEMV_MX,
    "TGEMV_MX",
    """Multiply a block-scaled row by a block-scaled matrix.

    As TMATMUL_MX for one row: aMatrix is stored as one row of whole 512-byte blocks, k is its valid
    columns and need not be padded, and only row 0 of cMatrix is defined afterwards. The permissive
    profile takes as many rows as aMatrix has.
    """,
    _ROW,
    rows=16,
    a="1x1024 valid 1x64",
)


@insn(
    *_operands(cube.MATMUL),
    attrs=[cube.PHASE],
    pipe=Pipe.M,
    ops={"TMATMUL": Pipe.M},
    targets="",
    forms=_FORMS,
    asm=None,
    freedom=cube.FREEDOM,
)
def TMATMUL_MX_HIF4(
    cMatrix: Array,
    cInMatrix: Array | None,
    aMatrix: Array,
    aScaleMatrix: Array,
    bMatrix: Array,
    bScaleMatrix: Array,
    biasData: Array | None,
) -> None:
    """Multiply HiFloat4 matrices with three-level scales; no supported device has it.

    TMATMUL_MX on hif4x2 tiles: an element is its e1m2 code times an e6m2 scale per 64 elements of
    K, a power of two per 8 and another per 4 elements. Only the newer A6 generation accepts the
    type.
    """
    raise NotImplementedError
