"""Operations on tiles, as `pl` and `pl.tile` have them: each is one of the value style, or one
instruction of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import product
from typing import Any

from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.entry import public
from ptokit.base.enums import AtomicType, CmpMode, PadValue, RoundMode, TileType
from ptokit.frontend.api import (
    TCONCAT,
    TEXTRACT,
    TFILLPAD,
    TINSERT,
    TMOV,
    TSTORE,
    load_scalar,
    store_scalar,
)
from ptokit.frontend.instruction import kind_of
from ptokit.frontend.session import current
from ptokit.frontend.types import TileAcc, TileLeft, TileRight
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn
from ptokit.machine.objects import pointer
from ptokit.values.choice import fitting
from ptokit.values.matrix import InL1, boxed, multiplied, stage
from ptokit.values.memory import load as load_value
from ptokit.values.memory import store as store_value
from ptokit.values.memory import view_of
from ptokit.values.tiles import Extent, beside_cube, made, vector_type
from ptokit.values.value import (
    Value,
    as_column,
    as_row,
    combine,
    extent,
    issue,
    reduce,
    seen_as,
    transposed,
    where,
)
from ptokit.values.value import full as full_value


class MemorySpace(Enum):
    """Where a tile lies."""

    Vec = TileType.Vec
    Mat = TileType.Mat
    Left = TileType.Left
    Right = TileType.Right
    Acc = TileType.Acc


def _is_tensor(given: Any) -> bool:
    return kind_of(given) in ("global", "pointer")


def _tile(given: Any, name: str) -> Any:
    """An operand of an operation on tiles: a tile or a number."""
    if _is_tensor(given):
        raise fail(
            "pypto.tensor",
            f"pl.{name} of tensors is cut into tiles by PyPTO's compiler; here it takes tiles",
            fix="pl.load(tensor, offsets, shapes) first, pl.store(tile, offsets, tensor) after it",
            kind=NotSupported,
        )
    return given


def _item(tensor: Any, index: Any) -> Any:
    """`tensor[index]`, also while a kernel is lowered."""
    taken = getattr(tensor, "lower_item", None)
    return tensor[index] if taken is None else taken(index)


def _part(tensor: Any, offsets: Sequence[Any], shape: Sequence[Any]) -> Any:
    """A part of a tensor: the last two of its dimensions, one element of each of the others."""
    places = [slice(at, at + size) for at, size in zip(offsets, shape, strict=True)]
    outer = [at for at, _ in zip(offsets, shape, strict=True)][:-2]
    return _item(tensor, (*outer, *places[-2:]))


# ---- memory --------------------------------------------------------------------------------------


@public
def load(
    tensor: Any,
    offsets: Sequence[Any],
    shapes: Sequence[int],
    valid_shape: Sequence[Any] | None = None,
    target_memory: MemorySpace = MemorySpace.Vec,
    clamp: bool = False,
) -> Value:
    """A part of a tensor as a tile; of one that is larger than its valid shape the rest is open."""
    part = _part(tensor, offsets, valid_shape or shapes)
    if target_memory is MemorySpace.Mat:
        return stage(part)
    rows, cols = (1, *shapes)[-2:]
    return load_value(part, shape=(rows, cols))


@public
def store(
    tile: Value,
    offsets: Sequence[Any],
    output_tensor: Any,
    shapes: Sequence[Any] | None = None,
    *,
    atomic: AtomicType = AtomicType.AtomicNone,
) -> Any:
    """Write a tile to a tensor; gives the tensor."""
    rows, cols = tile.shape
    inner = (rows * cols,) if len(offsets) == 1 else (*(1 for _ in offsets[2:]), rows, cols)
    part = _part(output_tensor, offsets, shapes or inner)
    if atomic == AtomicType.AtomicNone:
        store_value(part, tile)
    else:
        TSTORE(view_of(part), tile.tile, atomicType=atomic)
    return output_tensor


@public
def create_tile(
    shape: Sequence[int], dtype: DType, target_memory: MemorySpace = MemorySpace.Vec, **_: object
) -> Value:
    """A tile that holds nothing yet."""
    rows, cols = shape
    if target_memory is MemorySpace.Vec:
        return Value(made(vector_type(Extent(rows, cols, (rows, cols)), dtype), (rows, cols)))
    if target_memory is MemorySpace.Mat:
        return Value(made(boxed(dtype, (rows, cols)), (rows, cols)))
    return Value(beside_cube(_NEAR[target_memory][dtype, rows, cols]))


_NEAR = {MemorySpace.Left: TileLeft, MemorySpace.Right: TileRight, MemorySpace.Acc: TileAcc}


@public
def move(tile: Value, target_memory: MemorySpace, **_: object) -> Value:
    """A tile in another memory."""
    if tile.spec.loc == target_memory.value:
        return tile
    rows, cols = extent(tile).sizes
    moved = create_tile((rows, cols), tile.dtype, target_memory)
    TMOV(moved.tile, tile.tile)
    return moved


@public
def read(src: Any, offset: Any) -> Any:
    """One element of a tensor or of a tile; `offset` is its place, or its number."""
    offset = offset if isinstance(offset, list | tuple) else [offset]
    if hasattr(src, "lower_item"):  # while a kernel is lowered
        place: Any = 0
        for at, size in zip(offset, src.shape, strict=True):
            place = place * size + at
        return load_scalar(src, place)
    if _is_tensor(src):
        return src[tuple(offset)].item()
    row, col = (0, *offset)[-2:]
    return src.tile.GetValue(row * src.spec.cols + col)


@public
def write(dst: Any, offset: Sequence[Any], value: Any) -> Any:
    """Change one element of a tile, or of a tensor."""
    if _is_tensor(dst):
        place: Any = 0
        for at, size in zip(offset, dst.shape, strict=True):
            place = place * size + at
        store_scalar(dst if hasattr(dst, "lower_item") else pointer(dst), place, value)
        return dst
    row, col = (0, *offset)[-2:]
    _tile(dst, "write").tile.SetValue(row * dst.spec.cols + col, value)
    return dst


# ---- arithmetic ----------------------------------------------------------------------------------


def _binary(name: str, sign: str) -> Callable[..., Any]:
    def operation(lhs: Any, rhs: Any, *_: object, **__: object) -> Any:
        return combine(sign, _tile(lhs, name), _tile(rhs, name))

    operation.__name__ = name
    return public(operation)


def _unary(name: str, meant: str) -> Callable[..., Any]:
    def operation(tile: Any, *_: object, **__: object) -> Any:
        return combine(meant, _tile(tile, name))

    operation.__name__ = name
    return public(operation)


def _reduction(name: str, meant: str, axis: int) -> Callable[..., Any]:
    def operation(tile: Any, tmp_tile: Any = None) -> Any:  # scratch is found
        return reduce(meant, _tile(tile, name), axis)

    operation.__name__ = name
    return public(operation)


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_EXTREMES = {"max": "maximum", "min": "minimum"}
_BITS = {"and_": "&", "or_": "|", "xor": "^", "shl": "<<", "shr": ">>"}
ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{name: _binary(name, sign) for name, sign in (_SIGNS | _BITS).items()},
    **{f"{name.rstrip('_')}s": _binary(name, sign) for name, sign in (_SIGNS | _BITS).items()},
    **{name: _binary(name, name.rstrip("s")) for name in ("maximum", "minimum", "maximums",
                                                          "minimums")},
    **{f"{axis}_expand_{name}": _binary(name, sign)
       for axis in ("row", "col") for name, sign in (_SIGNS | _EXTREMES).items()},
    **{name: _unary(name, meant) for name, meant in {
        "exp": "exp", "log": "log", "sqrt": "sqrt", "rsqrt": "rsqrt", "recip": "recip",
        "relu": "relu", "abs": "abs", "neg": "negative", "not_": "~"}.items()},
    **{f"{('col', 'row')[axis]}_{name}": _reduction(f"{('col', 'row')[axis]}_{name}", name, axis)
       for axis in (0, 1) for name in ("max", "min", "sum", "prod")},
}  # fmt: skip


def spread(target: Value, vector: Value) -> Value:
    """A row or column in all rows or columns of another tile."""
    return combine("+", full(target.shape, vector.dtype, 0), vector)


@public
def expands(target: Value, scalar: Any) -> Value:
    """A number in all places of a tile."""
    return full(extent(target).sizes, target.dtype, scalar)


@public
def full(shape: Sequence[int], dtype: DType, value: Any) -> Value:
    """A tile with one number in all places."""
    rows, cols = shape
    return full_value((rows, cols), value, dtype)


@public
def cast(tile: Any, target_type: Any, mode: str = "round") -> Any:
    """A tile, or a number, in another element type."""
    if not isinstance(tile, Value):
        return _tile(tile, "cast")  # numbers have the type that their use wants
    return tile.to(target_type, RoundMode[f"CAST_{mode.upper()}"])


@public
def cmp(lhs: Value, rhs: Any, cmp_type: int = 0) -> Value:
    """A comparison: equal, unequal, less, at most, greater, at least."""
    sign = {CmpMode.EQ: "==", CmpMode.NE: "!=", CmpMode.LT: "<", CmpMode.LE: "<=",
            CmpMode.GT: ">", CmpMode.GE: ">="}[CmpMode(cmp_type)]  # fmt: skip
    return combine(sign, _tile(lhs, "cmp"), _tile(rhs, "cmp"))


@public
def sel(mask: Value, lhs: Any, rhs: Any, tmp: Any = None) -> Value:
    """Where a comparison holds the first, elsewhere the second."""
    return where(mask, lhs, rhs)


# ---- shapes --------------------------------------------------------------------------------------


@public
def reshape(tile: Value, shape: Sequence[int]) -> Value:
    """The same elements in other rows and columns."""
    rows, cols = shape
    value = _tile(tile, "reshape")
    if cols == 1 and rows > 1 and extent(value).rows == 1:
        return as_column(value)
    if rows == 1 and extent(value).cols == 1:
        return as_row(value)
    return seen_as(value, vector_type(Extent(rows, cols, (rows, cols)), value.dtype), (rows, cols))


@public
def transpose(tile: Value, axis1: int = 0, axis2: int = 1, tmp_tile: Any = None) -> Value:
    """Rows as columns, in memory too."""
    return transposed(_tile(tile, "transpose"))


@public
def transpose_view(tile: Value) -> Value:
    """The transposed matrix of a tile in L1: the same bytes, boxed the other way round."""
    spec = tile.spec
    turned = spec.but(
        rows=spec.cols, cols=spec.rows, valid_row=spec.valid_col, valid_col=spec.valid_row,
        blayout=type(spec.blayout)(1 - spec.blayout), slayout=type(spec.slayout)(3 - spec.slayout),
    )  # fmt: skip
    return seen_as(tile, turned, tile.shape[::-1])


@public
def slice_(
    data: Any, shape: Sequence[Any], offset: Sequence[Any], valid_shape: Any = None, **_: object
) -> Any:
    """A part of a tensor, or a copy of a part of a tile."""
    if _is_tensor(data):
        return _item(data, tuple(slice(at, at + n) for at, n in zip(offset, shape, strict=True)))
    rows, cols = shape
    part = create_tile((rows, cols), data.dtype, MemorySpace(data.spec.loc))
    TEXTRACT(part.tile, data.tile, *offset)
    return part


@public
def assemble(
    target: Any,
    source: Value,
    offset: Sequence[Any],
    *,
    atomic: AtomicType = AtomicType.AtomicNone,
) -> Any:
    """A tile put into another one, or into a tensor."""
    if _is_tensor(target):
        return store(_tile(source, "assemble"), offset, target, atomic=atomic)
    TINSERT(target.tile, source.tile, *offset)
    return target


@public
def concat(src0: Value, src1: Value) -> Value:
    """Two tiles beside each other."""
    rows, left = extent(_tile(src0, "concat")).sizes
    whole = create_tile((rows, left + extent(src1).cols), src0.dtype)
    TCONCAT(whole.tile, src0.tile, src1.tile)
    return whole


@public
def fillpad(tile: Value, pad_value: PadValue = PadValue.Zero) -> Value:
    """All of a tile valid, with a number where it was not."""
    spec = tile.spec
    whole = spec.but(valid_row=spec.rows, valid_col=spec.cols, pad=pad_value)
    padded = made(whole, (spec.rows, spec.cols))
    TFILLPAD(padded, tile.tile)
    return Value(padded)


@public
def set_validshape(tile: Value, valid_rows: Any, valid_cols: Any) -> Value:
    """The same tile with another valid region."""
    spec = tile.spec
    return seen_as(tile, spec.but(valid_row=-1, valid_col=-1), (valid_rows, valid_cols))


# ---- products ------------------------------------------------------------------------------------


@public
def matmul(lhs: Value, rhs: Value, out_dtype: Any = None, **_: object) -> Value:
    """The product of two matrices in L0 or L1."""
    return multiplied(InL1(_tile(lhs, "matmul")), InL1(_tile(rhs, "matmul")))


@public
def matmul_acc(acc: Value, lhs: Value, rhs: Value, **_: object) -> Value:
    """A product added to another one, which is used up."""
    return multiplied(InL1(_tile(lhs, "matmul_acc")), InL1(_tile(rhs, "matmul_acc")), acc)


# ---- instructions of the same name ---------------------------------------------------------------


def instruction(name: str) -> Callable[..., Value] | None:
    """The operation that an instruction is: `row_argmax` is TROWARGMAX; None: there is none."""
    insn = INSTRUCTIONS.get("T" + name.replace("_", "").upper())
    if insn is None or insn.operands[0].role != "out" or insn.operands[0].kinds[0] != "tile":
        return None

    @public
    def operation(*sources: Any, **attrs: Any) -> Value:
        given = [_tile(each, name) for each in sources]
        values = [each for each in given if isinstance(each, Value)]
        shape, target = extent(values[0]), current().target
        reads = sum(o.role == "in" for o in insn.operands)
        types = tuple(v.spec if isinstance(v, Value) else None for v in given[:reads])
        for kind, size in product(_kinds(insn, values[0]), (shape, shape.column, shape.row)):
            chosen = fitting(insn, types, vector_type(size, kind), target, (*attrs.items(),))
            if chosen is not None:
                return Value(issue(chosen, tuple(given[:reads]), size.valid))
        raise _refused(name, values)

    operation.__name__ = name
    return operation


def _kinds(insn: Insn, source: Value) -> list[DType]:
    """Element types that a result may have: that of the source first."""
    name = insn.operands[0].name
    found = {
        kinds[types.of.index(name)]: None
        for types in insn.types
        if name in types.of
        for kinds in sorted(types.allowed.get(current().target.name, ()), key=str)
    }
    return [*{source.dtype: None, **found}]


def _refused(name: str, values: Sequence[Value]) -> PtoError:
    return fail(
        "pypto.operands",
        f"no instruction of {current().target.name} does pl.{name} on these tiles",
        got=[(f"tile {n}", v.spec) for n, v in enumerate(values)],
        fix="the page of the instruction has its rules: ptokit isa NAME",
    )
