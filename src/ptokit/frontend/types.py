"""Tile, ConvTile and GlobalTensor as the pages write them, with brackets for template arguments.

`Tile[TileType.Vec, float32, 16, 16]` forms a type - its static rules are checked right there - and
calling the type makes a tile. `TileLeft`, `TileRight` and `TileAcc` leave the layout to the target
in force when the tile is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, ClassVar, cast

import numpy as np

from ptokit.base.diagnostics import Diagnostic, ProgramError, fail, where
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, CompactMode, Layout, PadValue, SLayout, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import (
    ConvSpec,
    GlobalSpec,
    matrix_shape,
    matrix_stride,
    matrix_violations,
)
from ptokit.base.tiles import DYNAMIC, LAYOUT_NAMES, TileSpec, Violation
from ptokit.frontend.conv_parameters import ConvParameters
from ptokit.frontend.instruction import Instruction
from ptokit.frontend.session import current
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.targets import Target
from ptokit.isa.verify import recipe
from ptokit.machine.objects import GlobalObject, Pointer, TileObject, pointer
from ptokit.machine.window import Window

_LAYOUTS = {name: pair for pair, name in LAYOUT_NAMES.items()}


def reject(violations: Iterable[Violation], what: str) -> None:
    """Raise one error with every static rule that does not hold."""
    found = [
        Diagnostic(
            v.code,
            f"{what}: {v.rule}",
            where(None),
            tuple((name, str(value)) for name, value in v.got),
            recipe(v.code),
        )
        for v in violations
    ]
    if found:
        raise ProgramError(found)


def _arguments(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


# ---- tiles -------------------------------------------------------------------------------------


class TileMeta(type):
    """Gives tile classes their brackets and their static members."""

    spec_for: Callable[[Target], TileSpec] | None = None

    def __getitem__(cls, given: Any) -> type[Tile]:
        args = _arguments(given)
        try:
            spec = _tile_spec(*args)
        except (TypeError, ValueError) as error:
            raise fail(
                "tile-arguments",
                f"Tile takes TileType, DType, Rows, Cols and up to seven more: {error}",
                got=[("arguments", args)],
                fix="Tile[Loc, DType, Rows, Cols, BLayout, ValidRow, ValidCol, SLayout, "
                "SFractalSize, PadValue, CompactMode]",
            ) from None
        reject(spec.violations(), f"Tile[{spec}]")
        return tile_class(spec)

    def __getattr__(cls, name: str) -> Any:
        reader = _STATIC.get(name)
        if reader is None or cls.spec_for is None:
            raise AttributeError(f"{cls.__name__} has no attribute {name}")
        return reader(cls.spec_for(current().target))

    def __repr__(cls) -> str:
        return cls.__name__


_STATIC: dict[str, Callable[[TileSpec], Any]] = {
    "Loc": lambda s: s.loc,
    "DType": lambda s: s.dtype,
    "Rows": lambda s: s.rows,
    "Cols": lambda s: s.cols,
    "ValidRow": lambda s: s.valid_row,
    "ValidCol": lambda s: s.valid_col,
    "RowStride": lambda s: s.row_stride,
    "ColStride": lambda s: s.col_stride,
    "Numel": lambda s: s.numel,
    "BFractal": lambda s: s.blayout,
    "SFractal": lambda s: s.slayout,
    "SFractalSize": lambda s: s.fractal,
    "PadVal": lambda s: s.pad,
    "Compact": lambda s: s.compact,
    "isRowMajor": lambda s: s.is_row_major,
    "InnerRows": lambda s: s.inner[0],
    "InnerCols": lambda s: s.inner[1],
}


class Tile(TileObject, metaclass=TileMeta):
    """A two-dimensional tile of on-chip memory; write `Tile[...]` to form its type."""

    __slots__ = ()
    spec_for: ClassVar[Callable[[Target], TileSpec] | None] = None

    def __init__(self, *valid: int) -> None:
        if self.spec_for is None:
            raise fail(
                "tile-type",
                "Tile is not a type yet",
                fix="form one first: TileT = Tile[TileType.Vec, float32, 16, 16]",
            )
        spec = type(self).spec_for(current().target)  # type: ignore[misc]
        super().__init__(spec, *_valid_sizes(spec, valid))

    @classmethod
    def of(cls, spec: TileSpec) -> Tile:
        """Make a tile of a given spec; dynamic valid sizes start at the capacity."""
        return tile_class(spec)(
            *(n for v, n in ((spec.valid_row, spec.rows), (spec.valid_col, spec.cols)) if v < 0)
        )

    def numpy(self) -> Array:
        """The valid region as an array; poisoned elements make it an error."""
        window = self._window()
        if not window.is_defined():
            row, col = window.first_poison()
            raise fail(
                "poison-read",
                f"element [{row}, {col}] of this tile was never written",
                got=[("tile", self)],
            )
        return window.read().copy()

    def fill(self, values: Any) -> None:
        """Write the valid region from an array (for set-up and tests, not an instruction)."""
        window = self._window()
        window.write(np.broadcast_to(np.asarray(values, self.spec.dtype.np), window.shape))
        window.mark_defined()

    def GetValue(self, offset: int) -> int | float:
        """Read the element at an offset in memory order, in the scalar unit (see GETVAL)."""
        return cast("Any", Instruction(INSTRUCTIONS["GETVAL"])(self, offset))

    def SetValue(self, offset: int, value: float) -> None:
        """Write the element at an offset in memory order, in the scalar unit (see SETVAL)."""
        Instruction(INSTRUCTIONS["SETVAL"])(self, offset, value)

    def _window(self) -> Window:
        current().place(self)
        if self.storage is None:
            raise fail("unbound-tile", "this tile has no address", got=[("tile", self)])
        axis_map = self.spec.axis_map(self.vr, self.vc)
        rows, cols = slice(0, self.vr), slice(0, self.vc)
        return Window(self.storage, self.address, axis_map, self.spec.dtype, rows, cols, "tile")

    def __repr__(self) -> str:
        return str(self)


def _tile_spec(
    loc: Any,
    element: Any,
    rows: int,
    cols: int,
    blayout: Any = BLayout.RowMajor,
    valid_row: int | None = None,
    valid_col: int | None = None,
    slayout: Any = SLayout.NoneBox,
    fractal: int = 512,
    pad: int = PadValue.Null,
    compact: Any = CompactMode.Null,
) -> TileSpec:
    return TileSpec.of(
        TileType(loc),
        dtype(element),
        int(rows),
        int(cols),
        BLayout(blayout),
        valid_row,
        valid_col,
        SLayout(slayout),
        int(fractal),
        int(pad),
        CompactMode(compact),
    )


def _valid_sizes(spec: TileSpec, given: tuple[int, ...]) -> tuple[int, int]:
    static = (spec.valid_row, spec.valid_col)
    wanted = static.count(DYNAMIC)
    if len(given) != wanted:
        raise fail(
            "tile-constructor",
            "a tile is made with one argument per DYNAMIC valid size",
            got=[("arguments", given), ("DYNAMIC sizes", wanted), ("tile", spec)],
        )
    values = iter(given)
    rows, cols = (int(next(values)) if size == DYNAMIC else size for size in static)
    if not (0 <= rows <= spec.rows and 0 <= cols <= spec.cols):
        raise fail(
            "valid-capacity",
            "the valid region lies inside the tile",
            got=[("valid", f"{rows}x{cols}"), ("tile", spec)],
        )
    return rows, cols


@cache
def tile_class(spec: TileSpec) -> type[Tile]:
    members = {"__slots__": (), "spec_for": staticmethod(lambda _: spec)}
    return TileMeta(f"Tile[{spec}]", (Tile,), members)  # type: ignore[return-value]


class _Alias:
    """A tile type whose layout the target decides: `TileLeft[half, 64, 128]`."""

    def __init__(
        self,
        name: str,
        loc: TileType,
        layout: Callable[[Target], str],
        fractal: int,
        compact: CompactMode = CompactMode.Null,
    ) -> None:
        self.__name__ = name
        self._loc = loc
        self._layout = layout
        self._fractal = fractal
        self._compact = compact

    def __getitem__(self, given: Any) -> type[Tile]:
        element, rows, cols, *valid = _arguments(given)
        return self._class(dtype(element), rows, cols, tuple(valid))

    @cache  # noqa: B019 - the aliases live as long as the module
    def _class(
        self, element: DType, rows: int, cols: int, valid: tuple[int | None, ...]
    ) -> type[Tile]:
        valid_row, valid_col = (*valid, None, None)[:2]

        def spec_for(target: Target) -> TileSpec:
            blayout, slayout = _LAYOUTS[self._layout(target)]
            return TileSpec.of(
                self._loc,
                element,
                rows,
                cols,
                blayout,
                valid_row,
                valid_col,
                slayout,
                self._fractal,
                PadValue.Null,
                self._compact,
            )

        name = f"{self.__name__}[{element.name}, {rows}, {cols}]"
        reject(spec_for(current().target).violations(), name)
        members = {"__slots__": (), "spec_for": staticmethod(spec_for)}
        return TileMeta(name, (Tile,), members)  # type: ignore[return-value]

    def __repr__(self) -> str:
        return self.__name__


def _left(target: Target) -> str:
    return target.left_layout


TileLeft = _Alias("TileLeft", TileType.Left, _left, 512)
TileRight = _Alias("TileRight", TileType.Right, lambda _: "ZN", 512)
TileAcc = _Alias("TileAcc", TileType.Acc, lambda _: "NZ", 1024)
TileLeftScale = _Alias("TileLeftScale", TileType.ScaleLeft, lambda _: "ZZ", 32)
TileRightScale = _Alias("TileRightScale", TileType.ScaleRight, lambda _: "NN", 32)
_NORMAL = CompactMode.Normal
TileLeftCompact = _Alias("TileLeftCompact", TileType.Left, _left, 512, _NORMAL)
TileRightCompact = _Alias("TileRightCompact", TileType.Right, lambda _: "ZN", 512, _NORMAL)
TileAccCompact = _Alias("TileAccCompact", TileType.Acc, lambda _: "NZ", 1024, _NORMAL)
TileLeftScaleCompact = _Alias(
    "TileLeftScaleCompact", TileType.ScaleLeft, lambda _: "ZZ", 32, _NORMAL
)
TileRightScaleCompact = _Alias(
    "TileRightScaleCompact", TileType.ScaleRight, lambda _: "NN", 32, _NORMAL
)


# ---- convolution tiles ---------------------------------------------------------------------------


class _ShapeMeta(type):
    dims: tuple[int, ...]

    def __getitem__(cls, given: Any) -> Any:
        dims = tuple(int(d) for d in _arguments(given))
        return _dims_class(cls, dims)

    def __repr__(cls) -> str:
        return cls.__name__


@cache
def _dims_class(base: Any, dims: tuple[int, ...]) -> Any:
    name = f"{base.__name__}[{', '.join('DYNAMIC' if d < 0 else str(d) for d in dims)}]"
    made = _ShapeMeta(name, (base,), {"dims": dims})
    made.check_rank()  # type: ignore[attr-defined]
    return made


class ConvTileShape(metaclass=_ShapeMeta):
    """One to six dimensions of a convolution tile."""

    dims: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def check_rank(cls) -> None:
        """The rank is checked where the ConvTile is formed."""


class _Sizes(metaclass=_ShapeMeta):
    """Five sizes, some of them DYNAMIC: what Shape and Stride share."""

    dims: ClassVar[tuple[int, ...]] = ()

    def __init__(self, *values: int) -> None:
        dynamic = self.dims.count(DYNAMIC)
        if len(values) == 5:
            self.values = tuple(
                int(v) if d == DYNAMIC else d for v, d in zip(values, self.dims, strict=True)
            )
            return
        if values and len(values) != dynamic:
            raise fail(
                f"SA-000{min(len(values), 4)}",
                f"{type(self).__name__} is made from exactly as many values as it has DYNAMIC "
                "dimensions",
                got=[("values", len(values)), ("DYNAMIC dimensions", dynamic)],
                fix=recipe("SA-0001"),
            )
        given = iter(values or (1,) * dynamic)
        self.values = tuple(int(next(given)) if d == DYNAMIC else d for d in self.dims)

    @classmethod
    def check_rank(cls) -> None:
        if len(cls.dims) != 5:
            raise fail(
                "tensor-rank",
                "global tensors have five dimensions",
                got=[("dimensions", cls.dims)],
                fix="put 1 in front for the dimensions you do not need",
            )


class Shape(_Sizes):
    """`Shape[1, 1, 1, 16, DYNAMIC]`: the sizes of a global tensor."""


class Stride(_Sizes):
    """`Stride[1, 1, 1, 16, 1]`: the strides of a global tensor, in elements."""


class _Matrix2D:
    """`TileShape2D` and `BaseShape2D`: shape and stride of a matrix in a given layout."""

    def __init__(self, name: str, base: Any, sizes: Callable[..., tuple[int, ...]]) -> None:
        self.__name__ = name
        self._base = base
        self._sizes = sizes

    def __getitem__(self, given: Any) -> Any:
        element, rows, cols, *layout = _arguments(given)
        arrangement = Layout(layout[0]) if layout else Layout.ND
        kind = dtype(element)
        reject(matrix_violations(kind, rows, cols, arrangement), self.__name__)
        return self._base[self._sizes(kind, rows, cols, arrangement)]


TileShape2D = _Matrix2D("TileShape2D", Shape, matrix_shape)
BaseShape2D = _Matrix2D("BaseShape2D", Stride, matrix_stride)


class _ConvMeta(type):
    spec: ConvSpec

    def __getitem__(cls, given: Any) -> type[ConvTile]:
        loc, element, buffer_size, layout, shape = _arguments(given)
        kind = Layout(layout)
        spec = ConvSpec.of(TileType(loc), dtype(element), int(buffer_size), kind, shape.dims)
        reject(spec.violations(), f"ConvTile[{spec}]")
        return conv_class(spec)

    def __repr__(cls) -> str:
        return cls.__name__


class ConvTile(ConvParameters, metaclass=_ConvMeta):
    """A convolution tile; write `ConvTile[...]` to form its type."""

    TYPE: ClassVar[ConvSpec]

    def __init__(self, *sizes: int) -> None:
        spec = self.TYPE
        super().__init__(spec, tuple(1 if n == DYNAMIC else n for n in spec.shape))
        if sizes:
            self.SetDynamicShape(*sizes)

    def numpy(self) -> Array:
        """The contents in the shape of the tile."""
        window = self._window()
        if not window.is_defined():
            raise fail("poison-read", "this tile is not fully written", got=[("tile", self)])
        return window.read().reshape(self.shape).copy()

    def fill(self, values: Any) -> None:
        """Write the contents from an array (for set-up and tests, not an instruction)."""
        window = self._window()
        window.write(
            np.broadcast_to(np.asarray(values, self.spec.dtype.np), self.shape).reshape(1, -1)
        )
        window.mark_defined()

    def _window(self) -> Window:
        current().place(self)
        if self.storage is None:
            raise fail("unbound-tile", "this tile has no address", got=[("tile", self)])
        axis_map = self.spec.axis_map(self.shape)
        rows, cols = slice(0, 1), slice(0, axis_map.cols)
        return Window(self.storage, self.address, axis_map, self.spec.dtype, rows, cols, "tile")

    def __repr__(self) -> str:
        return str(self)


@cache
def conv_class(spec: ConvSpec) -> type[ConvTile]:
    return _ConvMeta(f"ConvTile[{spec}]", (ConvTile,), {"TYPE": spec})  # type: ignore[return-value]


# ---- global tensors ----------------------------------------------------------------------------


class _GlobalMeta(type):
    TYPE: GlobalSpec | None = None

    def __getitem__(cls, given: Any) -> type[GlobalTensor]:
        element, shape, stride, *layout = _arguments(given)
        kind = Layout(layout[0]) if layout else Layout.ND
        return global_class(GlobalSpec.of(dtype(element), shape.dims, stride.dims, kind))

    def __repr__(cls) -> str:
        return cls.__name__


class GlobalTensor(GlobalObject, metaclass=_GlobalMeta):
    """A five-dimensional view of an array in global memory.

    `GlobalTensor[float32, Shape[...], Stride[...], Layout.ND](array)` is the full form; a plain
    `GlobalTensor(array)` takes element type, shape and strides from the array (up to five
    dimensions, row-major view).
    """

    TYPE: ClassVar[GlobalSpec | None] = None

    def __init__(
        self, memory: Any = None, shape: Shape | None = None, stride: Stride | None = None
    ) -> None:
        spec = self.TYPE
        if spec is None:
            spec = _inferred(memory)
        sizes = shape.values if shape is not None else tuple(1 if n < 0 else n for n in spec.shape)
        steps = (
            stride.values if stride is not None else tuple(1 if n < 0 else n for n in spec.stride)
        )
        at = None if memory is None else pointer(memory, spec.dtype)
        super().__init__(spec, at, sizes, steps)

    @classmethod
    def sliced(
        cls, spec: GlobalSpec, pointer: Pointer, shape: tuple[int, ...], stride: tuple[int, ...]
    ) -> GlobalTensor:
        return global_class(spec)(pointer)

    def __repr__(self) -> str:
        return str(self)


@cache
def global_class(spec: GlobalSpec) -> type[GlobalTensor]:
    return _GlobalMeta(f"GlobalTensor[{spec}]", (GlobalTensor,), {"TYPE": spec})  # type: ignore[return-value]


def _inferred(memory: Any) -> GlobalSpec:
    from ptokit.machine.objects import as_array, element_type

    if memory is None or isinstance(memory, Pointer):
        raise fail(
            "tensor-type",
            "a GlobalTensor without template arguments is made from an array",
            fix="GlobalTensor(array), or GlobalTensor[DType, Shape[...], Stride[...]](pointer)",
        )
    array = as_array(memory)
    if array.ndim > 5:
        raise fail("tensor-rank", "global tensors have five dimensions", got=[("ndim", array.ndim)])
    missing = 5 - array.ndim
    steps = tuple(s // array.itemsize for s in array.strides)
    whole = max([n * s for n, s in zip(array.shape, steps, strict=True)], default=1)
    return GlobalSpec.of(
        element_type(array), (1,) * missing + array.shape, (whole,) * missing + steps, Layout.ND
    )


def ptr(array: Any, offset: int = 0) -> Pointer:
    """A pointer to element `offset` of an array, for TASSIGN and GlobalTensor."""
    return pointer(array) + offset
