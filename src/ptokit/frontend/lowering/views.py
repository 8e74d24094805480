"""Views of global memory in a kernel: made from arrays, and cut by slices."""

from __future__ import annotations

from typing import Any

from ptokit.base.enums import Layout
from ptokit.base.tensors import GlobalSpec
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend.lowering import fifos
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import Number, as_value
from ptokit.frontend.lowering.symbols import (
    ArrayPart,
    GlobalSymbol,
    PointerSymbol,
    layout_attribute,
    rank_of,
)
from ptokit.frontend.tensor_types import GlobalTensor, check_dimensions, global_class
from ptokit.ir.attributes import Attribute
from ptokit.ir.core import Op, Value
from ptokit.ir.dialects.memory import constant
from ptokit.ir.types import INDEX, ScalarType, ViewType
from ptokit.machine.slices import rank_of as rank_of_view
from ptokit.machine.slices import window


def make_view(emitter: Emitter, kind: Any, args: list[Any]) -> GlobalSymbol:
    if not args and kind.TYPE is not None:
        return fifos.declare_slot(emitter, kind.TYPE)
    if not args or not isinstance(args[0], PointerSymbol):
        raise emitter.fail(
            "tensor",
            "a GlobalTensor in a kernel is made from an array parameter",
            "GlobalTensor[...](x), where x is a parameter, or x + offset",
        )
    at = args[0]
    spec: GlobalSpec | None = kind.TYPE
    if isinstance(at, ArrayPart) and spec is None:
        return _part_of(emitter, at)
    if spec is None:
        check_dimensions(at.shape)
        missing = 5 - len(at.shape)
        whole = max([n * s for n, s in zip(at.shape, at.strides, strict=True)], default=1)
        shape: tuple[Any, ...] = (1,) * missing + at.shape
        stride: tuple[Any, ...] = (whole,) * missing + at.strides
        spec = GlobalSpec.of(at.dtype, shape, stride, Layout.ND)
    else:
        if at.dtype is not spec.dtype:
            raise emitter.fail(
                "pointer-type",
                f"the array holds {at.dtype.name}, the GlobalTensor {spec.dtype.name} (SA-0054)",
            )
        sizes, steps = (*args[1:], None, None)[:2]
        shape = _ones(spec.shape) if sizes is None else sizes.values
        stride = _ones(spec.stride) if steps is None else steps.values
    attrs = layout_attribute(spec, stride)
    view = _tensor_view(emitter, spec, at.value, shape, stride, attrs, rank_of(spec, shape))
    made = _partition(emitter, spec, view, (0,) * 5, shape, stride)
    made.rank = rank_of_view(shape) if kind.TYPE is not None else len(at.shape)
    return made


def _part_of(emitter: Emitter, part: ArrayPart) -> GlobalSymbol:
    """A view of a slice of an array; of a transposed one, column by column."""
    if part.is_turned:
        return matrix_view(emitter, part)
    return make_view(emitter, GlobalTensor, [part.whole]).lower_item(part.index)


def matrix_view(emitter: Emitter, part: ArrayPart) -> GlobalSymbol:
    """A view of a slice of a matrix, which lies by rows or by columns as its strides have it."""
    whole = part.whole
    index = part.index if isinstance(part.index, tuple) else (part.index,)
    shape, stride, index = whole.shape, whole.strides, (*index, slice(None))[:2]
    if part.is_turned:
        shape, stride, index = shape[::-1], stride[::-1], index[::-1]
    by_columns = shape[0] != 1 and lies_by_columns(stride)
    spec = GlobalSpec.of(
        whole.dtype, (1, 1, 1, *shape), ((whole.size,) * 3 + stride),
        Layout.DN if by_columns else Layout.ND,
    )  # fmt: skip
    return make_view(emitter, global_class(spec), [whole]).lower_item(index)


def lies_by_columns(strides: tuple[int, ...]) -> bool:
    """Whether the elements of each column of a matrix follow each other, and not those of a row."""
    return len(strides) == 2 and strides[0] == 1 != strides[1]


def arranged(emitter: Emitter, view: GlobalSymbol, spec: GlobalSpec) -> GlobalSymbol:
    """The memory of a part of a view, from its first element on, in another arrangement."""
    attrs = layout_attribute(spec, spec.stride)
    pointer, rank = _first(emitter, view), rank_of(spec, spec.shape)
    whole = _tensor_view(emitter, spec, pointer, spec.shape, spec.stride, attrs, rank)
    return _partition(emitter, spec, whole, (0,) * 5, spec.shape, spec.stride)


def _ones(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if n == DYNAMIC else n for n in sizes)


def _tensor_view(
    emitter: Emitter,
    spec: GlobalSpec,
    pointer: Value,
    shape: tuple[Any, ...],
    stride: tuple[Any, ...],
    attrs: dict[str, Attribute],
    rank: int,
) -> Value:
    """A view over all of some memory."""
    values = {
        "shape": [as_value(emitter, n, INDEX) for n in shape[-rank:]],
        "strides": [as_value(emitter, n, INDEX) for n in stride[-rank:]],
    }
    pairs = [("ptr", pointer), *((k, v) for k, vs in values.items() for v in vs)]
    kind = ViewType("tensor_view", _static(shape[-rank:]), ScalarType(spec.dtype.mlir))
    op = emitter.emit("pto.make_tensor_view", pairs, [("result", kind)], attrs, hint="view")
    return op.result


def _partition(
    emitter: Emitter,
    spec: GlobalSpec,
    whole: Value,
    start: tuple[Any, ...],
    shape: tuple[Any, ...],
    stride: tuple[Any, ...],
) -> GlobalSymbol:
    """A part of a view; sizes that are known are part of its type."""
    assert isinstance(whole.type, ViewType)
    rank = len(whole.type.shape)
    pairs = [("source", whole)]
    pairs += [("offsets", as_value(emitter, n, INDEX)) for n in start[-rank:]]
    pairs += [("sizes", as_value(emitter, n, INDEX)) for n in shape[-rank:]]
    sizes = _static(shape[-rank:])
    kind = ViewType("partition_tensor_view", sizes, ScalarType(spec.dtype.mlir))
    op = emitter.emit("pto.partition_view", pairs, [("result", kind)], hint="part")
    part = GlobalSpec.of(spec.dtype, _static(shape), _static(stride), spec.layout)
    symbol = GlobalSymbol(part, op.result, whole, start, shape, stride)
    symbol.lower_item = lambda index: _slice(emitter, symbol, index)
    return symbol


def _static(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else DYNAMIC for n in sizes)


def _slice(emitter: Emitter, view: GlobalSymbol, index: Any) -> GlobalSymbol:
    start, shape = window(index, view.spec, view.shape, view.rank, Number)
    whole, moved = view.whole, tuple(a + b for a, b in zip(view.start, start, strict=True))
    if any(_may_leave(view, axis, start[axis], shape[axis]) for axis in range(5)):
        whole, moved = _by_itself(emitter, view), start
    part = _partition(emitter, view.spec, whole, moved, shape, view.stride)
    part.rank = view.rank
    return part


def _may_leave(view: GlobalSymbol, axis: int, start: Any, size: Any) -> bool:
    """Whether only a run can tell if a slice of a part lies in that part.

    It looks at the view that a slice is taken from, which may reach further than the part.
    """
    whole, extent = view.whole.owner, view.shape[axis]
    assert isinstance(whole, Op)
    place = axis - 5 + len(whole.group("shape"))
    if place < 0 or all(isinstance(n, int) for n in (start, size, extent)):
        return False
    given = whole.group("shape")[place]
    is_full = extent == constant(given) if isinstance(extent, int) else extent.value is given
    return not (is_full and isinstance(view.start[axis], int) and view.start[axis] == 0)


def _by_itself(emitter: Emitter, view: GlobalSymbol) -> Value:
    """A part of a view as a view of its own."""
    whole = view.whole.owner
    assert isinstance(whole, Op)
    first, rank = _first(emitter, view), len(whole.group("shape"))
    return _tensor_view(emitter, view.spec, first, view.shape, view.stride, dict(whole.attrs), rank)


def _first(emitter: Emitter, view: GlobalSymbol) -> Value:
    """A pointer to the first element of a part of a view."""
    whole = view.whole.owner
    assert isinstance(whole, Op)
    pointer, rank = whole.operands[0], len(whole.group("shape"))
    offset = sum(a * b for a, b in zip(view.start[-rank:], view.stride[-rank:], strict=True))
    if isinstance(offset, int) and offset == 0:
        return pointer
    at = [("ptr", pointer), ("offset", as_value(emitter, offset, INDEX))]
    return emitter.emit("pto.addptr", at, [("result", pointer.type)], hint=pointer.name).result
