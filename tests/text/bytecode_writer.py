"""Programs as bytecode: what the reader is held against. Nothing of ptokit writes it."""

from __future__ import annotations

from ptokit.ir import generic
from ptokit.ir.attributes import (
    ArrayAttr,
    Attribute,
    BoolAttr,
    FloatAttr,
    IntAttr,
    StringAttr,
    TypeAttr,
    bits_of_float,
    dict_text,
    float_bits,
)
from ptokit.ir.bytecode import _KNOWN, _ORDERS, _VARIANTS
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.limits import MAGIC
from ptokit.ir.types import FunctionType, ScalarType

NUMBERS = {known.name: number for number, known in reversed(_KNOWN.items())}
NUMBERS |= {f"pto.{name}": number for number, names in _VARIANTS.items() for name in names}


def leb(value: int) -> bytes:
    found = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        found.append(low | (0x80 if value else 0))
        if not value:
            return bytes(found)


def signed(value: int) -> bytes:
    found = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        is_last = value == (-1 if low & 0x40 else 0)
        found.append(low | (0 if is_last else 0x80))
        if is_last:
            return bytes(found)


def section(number: int, data: bytes) -> bytes:
    return bytes([number]) + len(data).to_bytes(4, "little") + data


def whole(sections: list[bytes]) -> bytes:
    """A file of sections."""
    body = b"".join(sections)
    return MAGIC + bytes(4) + len(body).to_bytes(4, "little") + body


class Writer:
    """Writes one module; `is_generic`: every operation with its name."""

    def __init__(self, is_generic: bool = False) -> None:
        self._is_generic = is_generic
        self._strings: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._attrs: dict[str, int] = {}
        self._constants: dict[bytes, int] = {}
        self._values: dict[Value, int] = {}
        self._names: list[tuple[int, int, str]] = []

    def module(self, module: Module) -> bytes:
        code = bytes([0, 64]) + self._dictionary(module.attrs) + leb(0)
        code += leb(len(module.functions))
        for function in module.functions:
            code += self._head(function)
        for number, function in enumerate(module.functions):
            self._values = {}
            if function.body is not None:
                code += self._region(function.body)
                self._names += [(number, at, v.name) for v, at in self._values.items()]
        debug = leb(0) + leb(len(self._names))
        for function_number, value, name in self._names:
            debug += leb(function_number) + leb(value) + leb(self._string(name))
        spelled = [
            leb(len(table)) + b"".join(bytes([0, 1]) + leb(self._string(text)) for text in table)
            for table in (self._types, self._attrs)
        ]
        strings = leb(len(self._strings))
        strings += b"".join(leb(len(t.encode())) + t.encode() for t in self._strings)
        constants = leb(len(self._constants)) + b"".join(self._constants)
        return whole(
            [
                section(1, strings),
                section(2, spelled[0]),
                section(3, spelled[1]),
                section(4, constants),
                section(6, code),
                section(7, debug + leb(0) + leb(0)),
            ]
        )

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _type(self, type_: object) -> bytes:
        return leb(self._types.setdefault(str(type_), len(self._types) + 1))

    def _dictionary(self, attrs: dict[str, Attribute]) -> bytes:
        if not attrs:
            return leb(0)
        return leb(self._attrs.setdefault(dict_text(attrs), len(self._attrs) + 1))

    def _head(self, function: Function) -> bytes:
        kind = FunctionType(function.input_types, function.results)
        attrs: dict[str, Attribute] = {
            **function.attrs,
            "function_type": TypeAttr(kind),
            "sym_name": StringAttr(function.name),
        }
        if function.is_private:
            attrs["sym_visibility"] = StringAttr("private")
        head = leb(self._string(function.name)) + self._type(kind)
        return head + bytes([function.body is None]) + self._dictionary(attrs)

    def _region(self, block: Block) -> bytes:
        code = leb(1) + leb(len(block.args))
        for arg in block.args:
            self._values[arg] = len(self._values)
            code += self._type(arg.type)
        return code + leb(len(block.ops)) + b"".join(map(self._op, block.ops))

    def _op(self, op: Op) -> bytes:
        operands, _ = generic._generic_operands(op)
        sizes = generic._sizes(op)
        i32 = ScalarType("i32")
        attrs = dict(op.attrs)
        if sizes is not None:
            attrs["operandSegmentSizes"] = ArrayAttr(tuple(IntAttr(n, i32) for n in sizes), i32)
        ids = [self._values[v] for v in operands]
        for result in op.results:
            self._values[result] = len(self._values)
        regions = [self._region(r) for r in op.regions]
        number = -1 if self._is_generic else NUMBERS.get(op.name, -1)
        found = self._numbered(op, number, dict(attrs), ids, sizes, regions)
        if found is not None:
            return found
        code = b"\xff\xff" + self._dictionary(attrs) + leb(self._string(op.name))
        code += leb(len(op.results)) + b"".join(self._type(r.type) for r in op.results)
        code += leb(len(ids)) + b"".join(map(leb, ids))
        return code + leb(len(regions)) + b"".join(regions)

    def _numbered(
        self,
        op: Op,
        number: int,
        attrs: dict[str, Attribute],
        ids: list[int],
        sizes: list[int] | None,
        regions: list[bytes],
    ) -> bytes | None:
        known = _KNOWN.get(number)
        if known is None or (known.results != "*" and int(known.results) != len(op.results)):
            return None
        if known.regions == len(regions) + 1:  # a branch that is not there
            regions = [*regions, leb(0)]
        if known.regions != len(regions):
            return None
        code = b""
        if number in _VARIANTS:
            variants = [f"pto.{name}" for name in _VARIANTS[number]]
            code += bytes([variants.index(op.name)])
        if known.mark == "p":
            predicate = attrs.pop("predicate")
            assert isinstance(predicate, IntAttr)
            if predicate.value > 5:
                return None
            code += bytes([predicate.value])
        elif known.mark == "c":
            constant = self._constant(attrs.pop("value"))
            if constant is None:
                return None
            code += leb(self._constants.setdefault(constant, len(self._constants)))
        elif known.mark == "e":
            return None
        if known.operands.endswith("+"):
            assert sizes is not None
            code += bytes([0]) + leb(sizes[1]) + leb(sizes[2])
            del attrs["operandSegmentSizes"]
        elif known.operands == "?":
            assert sizes is not None
            code += bytes([sizes[0] * 4 | sizes[1] | sizes[2] * 2])
        elif known.operands == "*":
            code += leb(len(ids))
        elif known.operands != "v" and int(known.operands) != len(ids):
            return None
        if number in _ORDERS:
            order = _ORDERS[number]
            ids = [ids[order.index(place)] for place in range(len(order))]
        code += b"".join(map(leb, ids))
        if known.results == "*":
            code += leb(len(op.results))
        code += b"".join(self._type(r.type) for r in op.results)
        return number.to_bytes(2, "little") + self._dictionary(attrs) + code + b"".join(regions)

    def _constant(self, value: Attribute) -> bytes | None:
        if isinstance(value, BoolAttr):
            return b"\x01" + self._type("i1") + signed(-int(value.value))
        if isinstance(value, IntAttr):
            bits = 64 if str(value.type) == "index" else ScalarType(str(value.type)).bits
            wrapped = (value.value + (1 << bits >> 1)) % (1 << bits) - (1 << bits >> 1)
            return b"\x01" + self._type(value.type) + signed(wrapped)
        if isinstance(value, FloatAttr):
            size = bits_of_float(value.type) // 8
            data = float_bits(value.value, value.type).to_bytes(size, "little")
            return b"\x02" + self._type(value.type) + leb(size) + data
        return None
