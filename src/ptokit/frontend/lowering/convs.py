"""Convolution tiles in a kernel being lowered: making one, its parameters, its run-time sizes.

A setter with a known value is checked here, at its line; one with a run-time value when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ptokit.base.convs import CONV_PARAMETERS, ConvField, ConvParameter, initial_parameters
from ptokit.base.diagnostics import fail
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, Violation
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import Number, as_value, cast, compare
from ptokit.frontend.lowering.symbols import BufferSymbol
from ptokit.ir.attributes import IntAttr, StringAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.conv import GET_DIM, GET_PARAM, SET_PARAM, SET_SHAPE, field_type
from ptokit.ir.types import F64, I1, I64, INDEX, ConvTileType

ACCESSORS = {p.accessor: p for p in CONV_PARAMETERS.values()}


class ConvSymbol(BufferSymbol):
    """A convolution tile of the kernel, with the accessors of the pages.

    `_known` holds parameters and sizes whose value is certain: those set in the block that made the
    tile. A getter inside a loop or branch, where a later line may have changed them, reads the tile
    at run time.
    """

    def __init__(
        self, emitter: Emitter, spec: ConvSpec, value: Value, alloc: Op | None = None
    ) -> None:
        super().__init__(emitter, spec, value, alloc)
        self._spec = spec
        self._block: Block | None = emitter.block
        sizes = enumerate(spec.in_force((1,) * spec.dynamic))
        self._known: dict[str | int, Any] = {**initial_parameters(), **dict(sizes)}

    def renamed(self, value: Value) -> ConvSymbol:
        """The tile under another handle. From here on nothing is certain: either may change it."""
        symbol = ConvSymbol(self.emitter, self._spec, value, self.alloc)
        symbol._block = self._block = None
        return symbol

    # ---- parameters --------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """`SetFmapH`, `GetFmapH`: one pair per parameter."""
        if name[:3] not in ("Set", "Get") or name[3:] not in ACCESSORS:
            raise AttributeError(name)
        return partial(self._set if name[0] == "S" else self._get, ACCESSORS[name[3:]])

    def _set(self, parameter: ConvParameter, value: Any) -> None:
        values = tuple(value) if parameter.entries else (value,)
        fields = parameter.fields
        if len(values) != len(fields):
            self._refuse(parameter.violations(values))
        taken = tuple(self._write(f, each) for f, each in zip(fields, values, strict=True))
        self._remember(parameter.name, taken if parameter.entries else taken[0])

    def _get(self, parameter: ConvParameter) -> Any:
        def read() -> Any:
            numbers = tuple(self._read(field) for field in parameter.fields)
            return numbers if parameter.entries else numbers[0]

        return self._recall(parameter.name, read)

    def _write(self, field: ConvField, value: Any) -> Any:
        """Write a change of one field; returns the value it takes."""
        if isinstance(value, Number):
            value = self._converted(field, value)
            given = value.value
        else:
            self._refuse(field.parameter.violations(value))
            value = field.parameter.converted(value, self._spec.dtype)
            # A float keeps all its digits: the instruction that uses it rounds it.
            given = as_value(self.emitter, value, F64 if isinstance(value, float) else None)
        pairs, attrs = [("tile", self.value), ("value", given)], {"field": StringAttr(field.name)}
        self.emitter.emit(SET_PARAM.name, pairs, [], dict(attrs))
        return value

    def _converted(self, field: ConvField, value: Number) -> Number:
        if field.kind == "i1":
            return value if value.type == I1 else compare(self.emitter, "!=", value, 0)
        if field.kind == "num" and value.is_float == self._spec.dtype.is_float:
            return value
        return cast(self.emitter, value, field_type(field, self.value.type))

    def _read(self, field: ConvField) -> Number:
        results = [("value", field_type(field, self.value.type))]
        attrs = {"field": StringAttr(field.name)}
        op = self.emitter.emit(GET_PARAM.name, [("tile", self.value)], results, dict(attrs))
        return Number(self.emitter, op.result, nonnegative=field.kind == "index")

    # ---- sizes -------------------------------------------------------------------------------

    def GetShape(self, dim: Any) -> Any:
        """Size of a dimension; -1 for a dimension the tile does not have."""
        dim = int(dim)
        if not 0 <= dim < len(self._spec.shape):
            return -1
        if self._spec.shape[dim] != DYNAMIC:
            return self._spec.shape[dim]
        return self._recall(dim, lambda: self._read_size(dim))

    def _read_size(self, dim: int) -> Number:
        attrs = {"dim": IntAttr(dim, I64)}
        op = self.emitter.emit(GET_DIM.name, [("tile", self.value)], [("size", INDEX)], dict(attrs))
        return Number(self.emitter, op.result, nonnegative=True)

    def SetDynamicShape(self, *sizes: Any) -> None:
        """Give a value to each DYNAMIC dimension, in order."""
        sizes = tuple(n if isinstance(n, Number) else int(n) for n in sizes)
        if len(sizes) != self._spec.dynamic or not any(isinstance(n, Number) for n in sizes):
            self._refuse(self._spec.size_violations(sizes))
        pairs = [("sizes", as_value(self.emitter, n, INDEX)) for n in sizes]
        self.emitter.emit(SET_SHAPE.name, [("tile", self.value), *pairs])
        for dim, size in enumerate(self._spec.in_force(sizes)):
            self._remember(dim, size)

    # ---- what is certain ---------------------------------------------------------------------

    def _remember(self, key: str | int, value: Any) -> None:
        if self._block is self.emitter.block:
            self._known[key] = value
        else:
            self._known.pop(key, None)

    def _recall(self, key: str | int, read: Callable[[], Any]) -> Any:
        if self._block is self.emitter.block and key in self._known:
            return self._known[key]
        return read()

    def _refuse(self, violations: Iterable[Violation]) -> None:
        for broken in violations:
            raise fail(broken.code, broken.rule, got=broken.got, site=self.emitter.location)

    def __repr__(self) -> str:
        return f"<convolution tile {self._spec}>"


def make_conv_tile(emitter: Emitter, spec: ConvSpec, sizes: list[Any]) -> ConvSymbol:
    """Write the making of a convolution tile."""
    op = emitter.emit("pto.alloc_tile", [], [("result", ConvTileType(spec))], hint="tile")
    tile = ConvSymbol(emitter, spec, op.result, op)
    if sizes:
        tile.SetDynamicShape(*sizes)
    return tile
