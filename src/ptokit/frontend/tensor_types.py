"""Views of global memory and convolution tiles as the pages write them, with their sizes.

`Shape[1, 1, 1, 16, DYNAMIC]`, `Stride[...]` and `GlobalTensor[...]` form types; calling a
GlobalTensor type with an array makes a view of it, uncopied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ptokit.base.diagnostics import fail
from ptokit.base.dtypes import dtype
from ptokit.base.entry import public
from ptokit.base.enums import Layout, TileType
from ptokit.base.layout import Array
from ptokit.base.tensors import (
    ConvSpec,
    GlobalSpec,
    matrix_shape,
    matrix_stride,
    matrix_violations,
)
from ptokit.base.tiles import DYNAMIC
from ptokit.frontend.advice import NotANumber
from ptokit.frontend.arguments import (
    arguments,
    choice,
    class_name,
    index,
    no_such_argument,
    template,
)
from ptokit.frontend.conv_parameters import ConvParameters
from ptokit.frontend.types import broadcast, contents, reject
from ptokit.isa.verify import recipe
from ptokit.machine.faults import never_written
from ptokit.machine.gm import as_array, element_type
from ptokit.machine.objects import GlobalObject, Pointer, pointer

__all__ = [
    "BaseShape2D", "ConvTile", "ConvTileShape", "GlobalTensor", "Shape", "Stride", "TileShape2D",
    "ptr",
]  # fmt: skip

# ---- convolution tiles ---------------------------------------------------------------------------


@public
class _ShapeMeta(type):
    dims: tuple[int, ...]
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> Any:
        with template(cls.__name__, f"{cls.__name__}[1, 1, 1, 16, DYNAMIC]", given):
            dims = tuple(index(d) for d in arguments(given))
        return _dims_class(cls, dims)


@cache
def _dims_class(base: Any, dims: tuple[int, ...]) -> Any:
    name = f"{base.__name__}[{', '.join('DYNAMIC' if d == DYNAMIC else str(d) for d in dims)}]"
    made = _ShapeMeta(name, (base,), {"dims": dims, "made_by": (_dims_class, (base, dims))})
    made.check_dims()  # type: ignore[attr-defined]
    return made


class ConvTileShape(metaclass=_ShapeMeta):
    """One to six dimensions of a convolution tile."""

    dims: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def check_dims(cls) -> None:
        """They are checked where the ConvTile is formed."""


@public
class _Sizes(metaclass=_ShapeMeta):
    """Five sizes, some of them DYNAMIC: what Shape and Stride share."""

    dims: ClassVar[tuple[int, ...]] = ()

    def __init__(self, *values: int, **unknown: Any) -> None:
        if unknown:
            raise no_such_argument(type(self), unknown)
        dynamic = self.dims.count(DYNAMIC)
        name = type(self).__name__
        with template(name, f"{name}(a whole number per DYNAMIC size)", values, "arguments"):
            values = tuple(index(v) for v in values)
        _not_negative(name, values, min(values, default=0))
        if len(values) == 5:
            self.values = tuple(
                v if d == DYNAMIC else d for v, d in zip(values, self.dims, strict=True)
            )
            return
        if values and len(values) != dynamic:
            raise fail(
                f"SA-000{min(len(values), 4)}",
                f"{name} is made from exactly as many values as it has DYNAMIC dimensions",
                got=[("values", len(values)), ("DYNAMIC dimensions", dynamic)],
                fix=recipe("SA-0001"),
            )
        given = iter(values or (1,) * dynamic)
        self.values = tuple(next(given) if d == DYNAMIC else d for d in self.dims)

    @classmethod
    def check_dims(cls) -> None:
        _not_negative(cls.__name__, cls.dims, min(set(cls.dims) - {DYNAMIC}, default=0))
        if len(cls.dims) != 5:
            raise fail(
                "tensor-rank",
                "global tensors have five dimensions",
                got=[("dimensions", cls.dims)],
                fix="put 1 in front for the dimensions you do not need",
            )


def _not_negative(name: str, given: tuple[int, ...], least: int) -> None:
    if least < 0:
        raise fail(
            "view-size",
            f"the sizes and strides of a view are not negative: {name}",
            got=[("values", given)],
            fix="a view goes forwards through memory; DYNAMIC, which is -1, is no size",
        )


class Shape(_Sizes):
    """`Shape[1, 1, 1, 16, DYNAMIC]`: the sizes of a global tensor."""


class Stride(_Sizes):
    """`Stride[1, 1, 1, 16, 1]`: the strides of a global tensor, in elements."""


@public
class _Matrix2D:
    """`TileShape2D` and `BaseShape2D`: shape and stride of a matrix in a given layout."""

    def __init__(self, name: str, base: Any, sizes: Callable[..., tuple[int, ...]]) -> None:
        self.__name__ = name
        self._base = base
        self._sizes = sizes

    def __getitem__(self, given: Any) -> Any:
        with template(self.__name__, f"{self.__name__}[DType, Rows, Cols, Layout]", given):
            element, rows, cols, *layout = arguments(given)
            arrangement = choice(Layout, *layout) if layout else Layout.ND
            kind, rows, cols = dtype(element), index(rows), index(cols)
            sizes = self._sizes(kind, rows, cols, arrangement)
        reject(matrix_violations(kind, rows, cols, arrangement), self.__name__)
        return self._base[sizes]


TileShape2D = _Matrix2D("TileShape2D", Shape, matrix_shape)
BaseShape2D = _Matrix2D("BaseShape2D", Stride, matrix_stride)


@public
class _ConvMeta(type):
    spec: ConvSpec
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> type[ConvTile]:
        with template("ConvTile", "ConvTile[Loc, DType, BufferSize, Layout, ConvTileShape]", given):
            loc, element, buffer_size, layout, shape = arguments(given)
            space, kind = choice(TileType, loc), choice(Layout, layout)
            dims = tuple(index(n) for n in shape.dims)
            spec = ConvSpec.of(space, dtype(element), index(buffer_size), kind, dims)
        reject(spec.violations(), f"ConvTile[{spec}]")
        return conv_class(spec)


@public
class ConvTile(NotANumber, ConvParameters, metaclass=_ConvMeta):
    """A convolution tile; write `ConvTile[...]` to form its type."""

    TYPE: ClassVar[ConvSpec | None] = None

    def __init__(self, *sizes: int, **unknown: Any) -> None:
        if unknown:
            raise no_such_argument(type(self), unknown)
        spec = self.TYPE
        if spec is None:
            raise fail(
                "tile-type",
                "ConvTile is not a type yet",
                fix="form one first: ConvTile[Loc, DType, BufferSize, Layout, ConvTileShape[...]]",
            )
        super().__init__(spec, tuple(1 if n == DYNAMIC else n for n in spec.shape))
        if sizes:
            self.SetDynamicShape(*sizes)

    def numpy(self) -> Array:
        """The contents in the shape of the tile."""
        access = contents(self)
        if not access.is_defined():
            fix = "load or compute all of its shape first"
            raise never_written(self, "this tile is not fully written", fix)
        return access.read().reshape(self.shape).copy()

    def fill(self, values: Any) -> None:
        """Write the contents from an array (for set-up and tests, not an instruction)."""
        access = contents(self)
        access.write(broadcast(values, self.spec.dtype, self.shape).reshape(1, -1))
        access.mark_defined()


@cache
def conv_class(spec: ConvSpec) -> type[ConvTile]:
    members = {"TYPE": spec, "made_by": (conv_class, (spec,))}
    return _ConvMeta(f"ConvTile[{spec}]", (ConvTile,), members)  # type: ignore[return-value]


# ---- global tensors ----------------------------------------------------------------------------


@public
class _GlobalMeta(type):
    TYPE: GlobalSpec | None = None
    __repr__ = class_name

    def __getitem__(cls, given: Any) -> type[GlobalTensor]:
        pattern = "GlobalTensor[DType, Shape[...], Stride[...], Layout], or GlobalTensor(array)"
        with template("GlobalTensor", pattern, given):
            element, shape, stride, *layout = arguments(given)
            kind = choice(Layout, *layout) if layout else Layout.ND
            sizes, strides = (tuple(map(index, each.dims)) for each in (shape, stride))
            spec = GlobalSpec.of(dtype(element), sizes, strides, kind)
        return global_class(spec)


@public
class GlobalTensor(GlobalObject, NotANumber, metaclass=_GlobalMeta):
    """A five-dimensional view of an array in global memory.

    `GlobalTensor[float32, Shape[...], Stride[...], Layout.ND](array)` is the full form; a plain
    `GlobalTensor(array)` takes element type, shape and strides from the array (up to five
    dimensions, row-major view).
    """

    TYPE: ClassVar[GlobalSpec | None] = None

    def __init__(
        self,
        memory: Any = None,
        shape: Shape | None = None,
        stride: Stride | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise no_such_argument(GlobalTensor, unknown)
        spec = _inferred(memory) if self.TYPE is None else self.TYPE
        if (shape is not None and not isinstance(shape, Shape)) or (
            stride is not None and not isinstance(stride, Stride)
        ):
            raise fail(
                "GlobalTensor.arguments",
                "a GlobalTensor is made from its memory, a Shape and a Stride",
                got=[("shape", shape), ("stride", stride)],
                fix="GT(memory, Shape[...](sizes), Stride[...](sizes))",
            )
        sizes, steps = (
            tuple(1 if n == DYNAMIC else n for n in static) if given is None else given.values
            for static, given in ((spec.shape, shape), (spec.stride, stride))
        )
        at = None if memory is None else pointer(memory, spec.dtype)
        super().__init__(spec, at, sizes, steps)
        if self.TYPE is None:
            self.rank = np.ndim(cast("Any", memory))

    if TYPE_CHECKING:

        def __getitem__(self, part: Any) -> GlobalTensor: ...

    @classmethod
    def _sliced(
        cls, spec: GlobalSpec, pointer: Pointer, shape: tuple[int, ...], stride: tuple[int, ...]
    ) -> GlobalTensor:
        return global_class(spec)(pointer)


@cache
def global_class(spec: GlobalSpec) -> type[GlobalTensor]:
    members = {"TYPE": spec, "made_by": (global_class, (spec,))}
    return _GlobalMeta(f"GlobalTensor[{spec}]", (GlobalTensor,), members)  # type: ignore[return-value]


def _inferred(memory: Any) -> GlobalSpec:
    if memory is None or isinstance(memory, Pointer):
        raise fail(
            "tensor-type",
            "a GlobalTensor without template arguments is made from an array",
            fix="GlobalTensor(array), or GlobalTensor[DType, Shape[...], Stride[...]](pointer)",
        )
    array = as_array(memory)
    check_dimensions(array.shape)
    missing = 5 - array.ndim
    steps = tuple(s // array.itemsize for s in array.strides)
    whole = max([n * s for n, s in zip(array.shape, steps, strict=True)], default=1)
    return GlobalSpec.of(
        element_type(array), (1,) * missing + array.shape, (whole,) * missing + steps, Layout.ND
    )


def check_dimensions(shape: tuple[int, ...]) -> None:
    """Refuse arrays that no view of global memory can stand for."""
    if not 1 <= len(shape) <= 5:
        raise fail(
            "tensor-rank",
            "a GlobalTensor is made from an array of one to five dimensions",
            got=[("dimensions", len(shape))],
            fix="merge dimensions: array.reshape(...)" if shape else "array.reshape(1)",
        )


@public
def ptr(array: Any, offset: int = 0) -> Pointer:
    """A pointer to element `offset` of an array, for TASSIGN and GlobalTensor."""
    return pointer(array) + offset
