"""Micro-operations of a kernel that is lowered: registers, masks and pointers are values of IR."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ptokit.base.dtypes import DType
from ptokit.base.location import Site
from ptokit.frontend.lowering.asynchronous import Handle
from ptokit.frontend.lowering.emitter import Emitter
from ptokit.frontend.lowering.numbers import Number, as_value, cast
from ptokit.frontend.lowering.symbols import BufferSymbol, PointerSymbol
from ptokit.ir.core import Value
from ptokit.ir.dialects.memory import TILE_ADDR
from ptokit.ir.dialects.micro import CAST_POINTER
from ptokit.ir.types import F32, I64, INDEX, PtrType, RegisterType, ScalarType, Type
from ptokit.isa.micro.samples import spelled

if TYPE_CHECKING:
    from ptokit.frontend.drafts import Draft


class VectorSymbol(Handle):
    """A register, a mask, or the state of a stream."""

    operand_kind = "register"

    @property
    def dtype(self) -> DType | None:
        """The element type of a register."""
        type_ = self.value.type
        return type_.element.dtype if isinstance(type_, RegisterType) else None


class OnChipSymbol(PointerSymbol):
    """A pointer into on-chip memory."""

    def __init__(self, emitter: Emitter, value: Value) -> None:
        from ptokit.ir.micro_calls import element_of  # for micro-instructions

        assert isinstance(value.type, PtrType)
        super().__init__(emitter, value, element_of(value.type.element), (), ())

    def renamed(self, value: Value) -> OnChipSymbol:
        """The pointer that a loop or branch hands on."""
        return OnChipSymbol(self.emitter, value)

    def __add__(self, elements: Any) -> OnChipSymbol:
        return OnChipSymbol(self.emitter, super().__add__(elements).value)

    __radd__ = __add__


class VectorWriter:
    """Who takes micro-operations while a kernel is lowered."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self._is_scope = False

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """While the body of a scope is written."""
        from ptokit.frontend.scopes import nested  # for micro-instructions

        if self._is_scope:
            raise nested(self.emitter.location)
        self._is_scope = True
        try:
            yield
        finally:
            self._is_scope = False

    def operand(self, given: Any, type_: Type) -> Value:
        if isinstance(given, Number | bool | int | float | np.generic):
            number = given.item() if isinstance(given, np.generic) else given
            return as_value(self.emitter, number, type_)
        return given.value

    def write(self, draft: Draft, site: Site) -> Any:
        from ptokit.frontend.scopes import misplaced  # for micro-instructions

        record = draft.record
        if record.is_inside is not self._is_scope:
            raise misplaced(record.name, record.is_inside, self.emitter.location)
        pairs = list(zip(draft.labels, draft.operands, strict=True))
        op = self.emitter.emit(f"pto.{record.name}", pairs, draft.results, draft.attrs)
        made = tuple(self._symbol(value) for value in op.results)
        return made[0] if len(made) == 1 else made or None

    def _symbol(self, value: Value) -> Any:
        if isinstance(value.type, PtrType):
            return OnChipSymbol(self.emitter, value)
        if isinstance(value.type, ScalarType):
            number = Number(self.emitter, value)
            return cast(self.emitter, number, F32 if number.is_float else INDEX)
        return VectorSymbol(self.emitter, value)

    def castptr(self, source: Any, kind: DType, space: str) -> Any:
        """An address, or a pointer, as a pointer to another type."""
        from ptokit.frontend.scopes import known_space  # for micro-instructions

        if isinstance(source, PointerSymbol):
            given, space = source.value, getattr(source.value.type, "space", "")
        else:
            given = as_value(self.emitter, source, I64)
            space = known_space(space)
        type_ = PtrType(ScalarType(spelled(kind)), space)
        op = self.emitter.emit(CAST_POINTER.name, [("source", given)], [("result", type_)])
        if space:
            return OnChipSymbol(self.emitter, op.result)
        return PointerSymbol(self.emitter, op.result, kind, source.shape, source.strides)

    def tile_address(self, tile: Any) -> OnChipSymbol:
        """Where a tile begins."""
        from ptokit.frontend.scopes import no_tile  # for micro-instructions
        from ptokit.ir.micro_calls import SPACES  # for micro-instructions

        if not isinstance(tile, BufferSymbol) or tile.operand_kind != "tile":
            raise no_tile(tile, self.emitter.location)
        space = next(name for name, loc in SPACES.items() if loc is tile.spec.loc)
        type_ = PtrType(ScalarType(spelled(tile.spec.dtype)), space)
        op = self.emitter.emit(TILE_ADDR.name, [("source", tile.value)], [("result", type_)])
        return OnChipSymbol(self.emitter, op.result)
