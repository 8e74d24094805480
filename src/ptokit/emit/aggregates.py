"""Arrays and structs of the scalar unit in C++: local variables."""

from __future__ import annotations

from ptokit.emit.expressions import scalar_type
from ptokit.emit.writer import Writer
from ptokit.ir.aggregates import path_of
from ptokit.ir.core import Op
from ptokit.ir.types import LocalArrayType, ScalarType, StructType, Type


class Aggregates(Writer):
    """Writes declarations and elements."""

    def declare_aggregate(self, op: Op) -> None:
        type_, name = op.result.type, self._declare(op.result)
        if isinstance(type_, LocalArrayType):
            sizes = "".join(f"[{n}]" for n in type_.shape)
            self._line(f"{scalar_type(type_.element)} {name}{sizes};")
        else:
            self._line(f"{_field_type(type_)} {name};")

    def read_element(self, op: Op) -> None:
        self._local(op, self._element(op))  # a copy: what is written later does not change it

    def write_element(self, op: Op) -> None:
        self._line(f"{self._element(op)} = {self._use(op.operands[-1])};")

    def _element(self, op: Op) -> str:
        if isinstance(op.operands[0].type, LocalArrayType):
            at = "".join(f"[{self._use(v)}]" for v in op.group("indices"))
        else:
            at = "".join(f".f{n}" for n in path_of(op))
        return self._use(op.operands[0]) + at


def _field_type(type_: Type) -> str:
    if isinstance(type_, ScalarType):
        return scalar_type(type_)
    assert isinstance(type_, StructType)
    fields = (f"{_field_type(each)} f{n};" for n, each in enumerate(type_.fields))
    return f"struct {{ {' '.join(fields)} }}"
