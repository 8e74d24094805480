"""Convolution tiles in a kernel being lowered: making one, its parameters, its run-time sizes.

A setter with a known value is checked here, at its line, and joins the operation of the setter
before it; one with a run-time value is an operation of its own, checked when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ptokit.base.diagnostics import fail
from ptokit.base.tensors import CONV_PARAMETERS, ConvSpec, parameter_violations
from ptokit.base.tiles import DYNAMIC, Violation
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.symbols import BufferSymbol, Number, as_value, cast, compare
from ptokit.ir.attributes import IntAttr, StringAttr
from ptokit.ir.core import Block, Op, Value
from ptokit.ir.dialects.conv import (
    BY_PARAMETER,
    GET_DIM,
    GET_PARAM,
    SET_PARAMS,
    SET_SHAPE,
    Field,
)
from ptokit.ir.types import I1, I64, INDEX, ConvTileType


class ConvSymbol(BufferSymbol):
    """A convolution tile of the kernel, with the accessors of the pages.

    `_known` holds parameters and sizes whose value is certain: those set in the block that made the
    tile. A getter inside a loop or branch, where a later line may have changed them, reads the tile
    at run time.
    """

    def __init__(self, emitter: Emitter, spec: ConvSpec, value: Value, alloc: Op) -> None:
        super().__init__(emitter, spec, value, alloc)
        self._spec = spec
        self._block: Block | None = emitter.block
        self._known: dict[Any, Any] = {
            (name, None): first for name, (first, _) in CONV_PARAMETERS.items()
        }
        self._known |= {d: 1 if n == DYNAMIC else n for d, n in enumerate(spec.shape)}

    def renamed(self, value: Value) -> ConvSymbol:
        """The tile under another handle. From here on nothing is certain: either may change it."""
        symbol = ConvSymbol(self.emitter, self._spec, value, self.alloc)
        symbol._block = self._block = None
        return symbol

    # ---- parameters --------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """`SetFmapH`, `GetFmapH`: one pair per parameter."""
        verb, parameter = name[:3], name[3:4].lower() + name[4:]
        if verb not in ("Set", "Get") or (parameter, None) not in BY_PARAMETER:
            raise AttributeError(name)
        return partial(self._set if verb == "Set" else self._get, parameter)

    def SetPadListArray(self, pads: Sequence[Any]) -> None:
        """Padding left, right, top, bottom."""
        if len(pads) != 4:
            rule = "padList has four entries: left, right, top, bottom"
            raise self._broken(Violation("conv-parameter", rule, (("padList", tuple(pads)),)))
        fields = (BY_PARAMETER["padList", n] for n in range(4))
        taken = tuple(self._write(f, pad) for f, pad in zip(fields, pads, strict=True))
        self._remember(("padList", None), taken)

    def GetPadListArray(self) -> tuple[Any, ...]:
        """Padding left, right, top, bottom."""
        return self._recall(
            ("padList", None),
            lambda: tuple(self._read(BY_PARAMETER["padList", n]) for n in range(4)),
        )

    def _set(self, parameter: str, value: Any) -> None:
        value = self._write(BY_PARAMETER[parameter, None], value)
        self._remember((parameter, None), value)

    def _get(self, parameter: str) -> Any:
        field = BY_PARAMETER[parameter, None]
        return self._recall((parameter, None), lambda: self._read(field))

    def _write(self, field: Field, value: Any) -> Any:
        """Write a change of one field; returns the value it takes."""
        if isinstance(value, Number):
            value = self._converted(field, value)
            pairs = [("tile", self.value), (field.name, value.value)]
            self.emitter.emit(SET_PARAMS, pairs)
            return value
        if field.kind == "num":
            value = float(value) if self._spec.dtype.is_float else int(value)
        else:
            value = bool(value) if field.kind == "i1" else int(value)
        for broken in parameter_violations(field.parameter, value):
            raise self._broken(broken)
        self._open().attrs[field.name] = field.literal(self.value.type, value)
        return value

    def _converted(self, field: Field, value: Number) -> Number:
        if field.kind == "index":
            return cast(self.emitter, value, INDEX)
        if field.kind == "i1":
            return value if value.type == I1 else compare(self.emitter, "!=", value, 0)
        if value.is_float == self._spec.dtype.is_float:
            return value
        return cast(self.emitter, value, field.type_for(self.value.type))

    def _open(self) -> Op:
        """The operation a known value joins: the last one, while nothing else has been written."""
        ops = self.emitter.block.ops
        last = ops[-1] if ops else None
        if last is not None and last.name == SET_PARAMS and last.operands == [self.value]:
            return last
        return self.emitter.emit(SET_PARAMS, [("tile", self.value)])

    def _read(self, field: Field) -> Number:
        attrs = {"field": StringAttr(field.name)}
        results = [("value", field.type_for(self.value.type))]
        op = self.emitter.emit(GET_PARAM, [("tile", self.value)], results, dict(attrs))
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
        op = self.emitter.emit(GET_DIM, [("tile", self.value)], [("size", INDEX)], dict(attrs))
        return Number(self.emitter, op.result, nonnegative=True)

    def SetDynamicShape(self, *sizes: Any) -> None:
        """Give a value to each DYNAMIC dimension, in order."""
        sizes = tuple(n if isinstance(n, Number) else int(n) for n in sizes)
        is_later = len(sizes) == self._spec.dynamic and any(isinstance(n, Number) for n in sizes)
        for broken in () if is_later else self._spec.size_violations(sizes):
            raise self._broken(broken)
        pairs = [("sizes", as_value(self.emitter, n, INDEX)) for n in sizes]
        self.emitter.emit(SET_SHAPE, [("tile", self.value), *pairs])
        dynamic = [d for d, n in enumerate(self._spec.shape) if n == DYNAMIC]
        for dim, size in zip(dynamic, sizes, strict=True):
            self._remember(dim, size)

    # ---- what is certain ---------------------------------------------------------------------

    def _remember(self, key: Any, value: Any) -> None:
        if self._block is self.emitter.block:
            self._known[key] = value
        else:
            self._known.pop(key, None)

    def _recall(self, key: Any, read: Callable[[], Any]) -> Any:
        if self._block is self.emitter.block and key in self._known:
            return self._known[key]
        return read()

    def _broken(self, violation: Violation) -> Exception:
        here = self.emitter.location
        return fail(violation.code, violation.rule, got=violation.got, site=here)

    def __repr__(self) -> str:
        return f"<convolution tile {self._spec}>"


def make_conv_tile(emitter: Emitter, spec: ConvSpec, sizes: list[Any]) -> ConvSymbol:
    """Write the making of a convolution tile."""
    results = [("result", ConvTileType(spec))]
    op = emitter.emit("pto.alloc_tile", [], results, hint="tile")
    tile = ConvSymbol(emitter, spec, op.result, op)
    if sizes:
        tile.SetDynamicShape(*sizes)
    return tile
