"""Values from global memory and back."""

from __future__ import annotations

from typing import Any

from ptokit.base.diagnostics import PtoError, fail
from ptokit.base.dtypes import dtype
from ptokit.base.entry import public
from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import GlobalSpec
from ptokit.frontend.api import TLOAD, TSTORE
from ptokit.frontend.instruction import kind_of
from ptokit.frontend.lowering import views
from ptokit.frontend.lowering.symbols import ArrayPart, ArraySymbol
from ptokit.frontend.lowering.tracer import Tracer
from ptokit.frontend.session import current
from ptokit.frontend.tensor_types import GlobalTensor, global_class
from ptokit.machine.gm import as_array
from ptokit.values.tiles import Extent, made, vector_type
from ptokit.values.value import Value, as_column, as_row, extent


@public
def load(part: Any, shape: tuple[int, int] | None = None) -> Value:
    """The contents of a part of an array: `load(x[i : i + 16, :])`.

    `shape` is how large the part can become, where its sizes are known only when the kernel runs.
    """
    view = view_of(part)
    sizes = sizes_of(view)
    across = None if shape is None else (shape[1], shape[0])
    if _is_column(sizes) and hasattr(part, "T"):  # it comes as a row does: one element by another
        return as_column(load(part.T, across))
    if _is_turned(part, view, sizes):
        return load(part.T, across).T
    most = Extent(*_most(sizes, shape), sizes)
    tile = made(vector_type(most, view.spec.dtype), most.valid)
    TLOAD(tile, view)
    return Value(tile)


@public
def store(part: Any, value: Any) -> None:
    """Write a value to a part of an array: `store(y[i : i + 16, :], t)`."""
    if not isinstance(value, Value) or value.is_mask:
        raise fail(
            "value-operand",
            "what is stored is a value",
            got=[("given", type(value).__name__)],
            fix="store(y[i:j, :], value); TSTORE(GlobalTensor(y), tile) stores a tile",
        )
    view = view_of(part)
    rows, cols = sizes_of(view)
    in_vector_unit = value.spec.loc == TileType.Vec  # a product is converted on its way
    if in_vector_unit and value.dtype is not view.spec.dtype:
        raise fail(
            "value-type",
            "a value is stored in an array of its own element type",
            got=[("value", value.dtype), ("array", view.spec.dtype)],
            fix=f"store(y, value.to({view.spec.dtype.name!r})) converts it",
        )
    # One element a row goes where one row is meant: a column lies in memory as a row does.
    turned = as_row(value) if extent(value).cols == 1 and rows == 1 and cols != 1 else value
    if any(isinstance(a, int) and isinstance(b, int) and a != b
           for a, b in zip(turned.shape, (rows, cols), strict=True)):  # fmt: skip
        raise fail(
            "value-shape",
            "a value is stored in a part of its own size",
            got=[("value", extent(value)), ("part", f"{rows}x{cols}")],
            fix="store(y[i : i + rows, j : j + columns], value)",
        )
    if in_vector_unit and _is_turned(part, view, (rows, cols)):
        return store(part.T, value.T)
    TSTORE(view, turned.tile)
    return None


def view_of(part: Any) -> Any:
    """A part of an array, or a view of one, as instructions take it."""
    if kind_of(part) == "global":
        return part
    if kind_of(part) != "pointer":
        raise fail(
            "value-operand",
            "values are loaded from parts of arrays and stored there",
            got=[("given", type(part).__name__)],
            fix="load(x[i : i + 16, :]), where x is an array that the kernel is given",
        )
    machine = current()
    if isinstance(machine, Tracer):
        if isinstance(part, ArraySymbol | ArrayPart) and views.lies_by_columns(part.strides):
            whole = part.lower_item(slice(None)) if isinstance(part, ArraySymbol) else part
            return views.matrix_view(machine.emitter, whole)
        return views.make_view(machine.emitter, GlobalTensor, [part])
    array = as_array(part)
    if views.lies_by_columns(tuple(step // array.itemsize for step in array.strides)):
        return _by_columns(array)
    return GlobalTensor(array)


def _is_turned(part: Any, view: Any, sizes: tuple[Any, Any]) -> bool:
    """Whether a matrix lies column by column: the vector unit moves rows, and transposes them."""
    return view.spec.layout == Layout.DN and hasattr(part, "T") and 1 not in sizes


def _by_columns(array: Array) -> Any:
    """A view of a transposed array, whose columns lie one after the other."""
    step = array.strides[1] // array.itemsize
    outer = (array.shape[1] * step,) * 3
    spec = GlobalSpec.of(dtype(array.dtype), (1, 1, 1, *array.shape), (*outer, 1, step), Layout.DN)
    return global_class(spec)(array)


def arranged(view: Any, shape: tuple[int, ...], stride: tuple[int, ...], layout: Layout) -> Any:
    """The memory of a view, from its first element on, in another arrangement."""
    spec = GlobalSpec.of(view.spec.dtype, shape, stride, layout)
    machine = current()
    if isinstance(machine, Tracer):
        return views.arranged(machine.emitter, view, spec)
    return global_class(spec)(view.pointer)


def sizes_of(view: Any) -> tuple[Any, Any]:
    """Rows and columns of a view; the outer sizes are 1."""
    *outer, rows, cols = (view.GetShape(axis) for axis in range(5))
    if outer != [1, 1, 1]:
        raise fail(
            "value-shape",
            "a value has rows and columns: the part has more dimensions",
            got=[("sizes", (*outer, rows, cols))],
            fix="take one of each outer dimension: x[b, h, i:j, :]",
        )
    return rows, cols


def _is_column(sizes: tuple[Any, Any]) -> bool:
    rows, cols = sizes
    return isinstance(cols, int) and cols == 1 and not (isinstance(rows, int) and rows == 1)


def _most(sizes: tuple[Any, Any], shape: tuple[int, int] | None) -> tuple[int, int]:
    if shape is not None:
        return shape
    if all(isinstance(n, int) for n in sizes):
        return sizes
    raise _open(sizes)


def _open(sizes: tuple[Any, Any]) -> PtoError:
    return fail(
        "value-shape",
        "how large the value can become is known only when the kernel runs",
        got=[("sizes", sizes)],
        fix="say it: load(x[i:end, :], shape=(16, 64))",
    )
