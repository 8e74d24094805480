"""PTO C++: a module as a self-contained kernel file for the real tool chain.

Values become `const` locals, tiles become `Tile<...>` objects bound with TASSIGN, views become
`GlobalTensor<...>` over pointer arithmetic, and control flow stays control flow. Instructions are
written from the table: their C++ operand order is the record's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.emit.convs import CONV_OPS, conv_calls
from ptokit.emit.expressions import CASTS, FUNCTIONS, INFIX, comparison, literal, scalar_type
from ptokit.emit.spelling import brackets, name_of
from ptokit.emit.words import KEYWORDS, QUERIES, SECTIONS, five, template_text, tile_type
from ptokit.ir.attributes import EnumAttr, IntAttr, StringAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.instructions import run_time_operands, template_arguments
from ptokit.ir.types import BufferType, PtrType, ScalarType, TileBufType, ViewType
from ptokit.isa.spec import Insn

HEADER = "#include <cstdint>\n\n#include <pto/pto-inst.hpp>\n\nusing namespace pto;\n"


def emit_cpp(module: Module) -> str:
    """The C++ source of a module."""
    parts = [HEADER]
    parts += [_FunctionWriter(function).text() for function in module.functions if function.body]
    return "\n".join(parts)


@dataclass
class _View:
    """A view of global memory: pointer expression, sizes and strides as C++ or numbers."""

    pointer: str
    dtype: DType
    shape: list[str]
    stride: list[str]
    layout: Layout


@dataclass
class _FunctionWriter:
    function: Function
    lines: list[str] = field(default_factory=list[str])
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    views: dict[Value, _View] = field(default_factory=dict[Value, _View])
    constants: dict[Value, int] = field(default_factory=dict[Value, int])
    slots: dict[Value, str] = field(default_factory=dict[Value, str])  # addresses of tiles
    types: dict[TileSpec | ConvSpec, str] = field(default_factory=dict[TileSpec | ConvSpec, str])
    _taken: set[str] = field(default_factory=set[str])
    _depth: int = 1

    def text(self) -> str:
        params = ", ".join(self._parameter(p) for p in self.function.params)
        assert self.function.body is not None
        self._block(self.function.body)
        is_entry = "pto.entry" in self.function.attrs
        kind = 'extern "C" __global__ AICORE void' if is_entry else "AICORE void"
        head = [f"{kind} {self.function.name}({params})", "{"]
        aliases = [f"    using {name} = {tile_type(spec)};" for spec, name in self.types.items()]
        return "\n".join([*head, *aliases, *self.lines, "}", ""])

    # ---- names and lines -------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _declare(self, value: Value) -> str:
        base = re.sub(r"\W", "_", value.name) or "v"
        base = f"v{base}" if base[0].isdigit() else base
        self.names[value] = self._unused(base)
        return self.names[value]

    def _unused(self, base: str) -> str:
        name, n = base, 0
        while name in self._taken or name in KEYWORDS:
            n += 1
            name = f"{base}_{n}"
        self._taken.add(name)
        return name

    def _use(self, value: Value) -> str:
        if value in self.constants:
            return str(self.constants[value])
        return self.names[value]

    def _parameter(self, param: Value) -> str:
        name = self._declare(param)
        if isinstance(param.type, PtrType):
            element = param.type.element.dtype
            assert element is not None
            return f"__gm__ {element.cpp} *{name}"
        if isinstance(param.type, ScalarType):
            return f"{scalar_type(param.type)} {name}"
        raise self._refuse(f"a parameter of type {param.type}", self.function)

    def _refuse(self, what: str, where: Op | Function) -> PtoError:
        return fail(
            "emit-cpp",
            f"PTO C++ cannot be written for {what}",
            site=where.location,
            kind=NotSupported,
        )

    # ---- blocks ----------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._op(op)

    def _nested(self, block: Block) -> None:
        self._depth += 1
        self._block(block)
        self._depth -= 1

    def _op(self, op: Op) -> None:
        if op.insn is not None:
            self._instruction(op)
            return
        writer = _WRITERS.get(op.name)
        if writer is not None:
            writer(self, op)
        elif op.name in QUERIES:
            self._local(op, QUERIES[op.name])
        elif op.name in SECTIONS:
            self.lines.append(f"#if defined({SECTIONS[op.name]})")
            self._block(op.regions[0])
            self.lines.append("#endif")
        elif op.name.startswith("arith."):
            self._arithmetic(op)
        else:
            raise self._refuse(op.name, op)

    def _local(self, op: Op, expression: str) -> None:
        kind = op.result.type
        assert isinstance(kind, ScalarType)
        self._line(f"const {scalar_type(kind)} {self._declare(op.result)} = {expression};")

    # ---- arithmetic ------------------------------------------------------------------------

    def _arithmetic(self, op: Op) -> None:
        name = op.name.removeprefix("arith.")
        args = [self._use(v) for v in op.operands]
        if name == "constant":
            self._constant(op)
        elif name in INFIX:
            self._local(op, f"{args[0]} {INFIX[name]} {args[1]}")
        elif name in FUNCTIONS:
            self._local(op, FUNCTIONS[name].format(*args))
        elif name in CASTS:
            kind = op.result.type
            assert isinstance(kind, ScalarType)
            self._local(op, f"static_cast<{scalar_type(kind)}>({args[0]})")
        elif name in ("cmpi", "cmpf"):
            predicate = op.attrs["predicate"]
            assert isinstance(predicate, IntAttr)
            self._local(op, comparison(op.name, predicate.value, args[0], args[1]))
        elif name == "select":
            self._local(op, f"{args[0]} ? {args[1]} : {args[2]}")
        else:
            raise self._refuse(op.name, op)

    def _constant(self, op: Op) -> None:
        value = op.attrs["value"]
        if isinstance(value, IntAttr):
            self.constants[op.result] = value.value
        else:
            self._local(op, literal(value))

    # ---- tiles and views -------------------------------------------------------------------

    def alloc_tile(self, op: Op) -> None:
        assert isinstance(op.result.type, BufferType)
        spec = op.result.type.spec
        alias = self._alias(spec)
        sizes = [op.operand(label) for label in ("valid_row", "valid_col")]
        given = ", ".join(self._use(v) for v in sizes if v is not None)
        name = self._declare(op.result)
        self._line(f"{alias} {name}({given});" if given else f"{alias} {name};")
        address = op.operand("addr")
        if address is not None:
            known = self.constants.get(address)
            shown = f"0x{known:x}" if known is not None else self._use(address)
            self._line(f"TASSIGN({name}, {shown});")
            self.slots[op.result] = shown

    def _alias(self, spec: TileSpec | ConvSpec) -> str:
        return self.types.setdefault(spec, f"Tile{len(self.types)}")

    def set_validshape(self, op: Op) -> None:
        tile, rows, cols = (self._use(v) for v in op.operands)
        kind = op.operands[0].type
        assert isinstance(kind, TileBufType)
        if kind.spec.valid_row == DYNAMIC:
            self._line(f"{tile}.SetValidRow({rows});")
        if kind.spec.valid_col == DYNAMIC:
            self._line(f"{tile}.SetValidCol({cols});")

    def conv(self, op: Op) -> None:
        for call in conv_calls(op, self._use):
            if op.results:
                self._local(op, call)
            else:
                self._line(f"{call};")

    def addptr(self, op: Op) -> None:
        base, offset = (self._use(v) for v in op.operands)
        assert isinstance(op.result.type, PtrType)
        element = op.result.type.element.dtype
        assert element is not None
        self._line(f"__gm__ {element.cpp} *{self._declare(op.result)} = {base} + {offset};")

    def make_view(self, op: Op) -> None:
        assert isinstance(op.result.type, ViewType)
        element = op.result.type.element.dtype
        assert element is not None
        given = op.attrs.get("layout")
        layout = Layout[given.value.upper()] if isinstance(given, EnumAttr) else Layout.ND
        self.views[op.result] = _View(
            self._use(op.operands[0]),
            element,
            [self._use(v) for v in op.group("shape")],
            [self._use(v) for v in op.group("strides")],
            layout,
        )

    def partition(self, op: Op) -> None:
        whole = self.views[op.operands[0]]
        moves = [
            f"{self._use(o)} * {s}" if s != "1" else self._use(o)
            for o, s in zip(op.group("offsets"), whole.stride, strict=True)
            if self.constants.get(o) != 0
        ]
        pointer = " + ".join([whole.pointer, *moves])
        sizes = [self._use(v) for v in op.group("sizes")]
        view = _View(pointer, whole.dtype, sizes, whole.stride, whole.layout)
        self.views[op.result] = view
        if _is_used(op.result, self.function):
            self._tensor(op.result, view)

    def _tensor(self, value: Value, view: _View) -> None:
        shape, shape_args = five(view.shape, "1")
        stride, stride_args = five(view.stride, "1")
        name = self._declare(value)
        kind = (
            f"GlobalTensor<{view.dtype.cpp}, Shape<{shape}>, Stride<{stride}>, "
            f"Layout::{view.layout.name}>"
        )
        more = ""
        if shape_args or stride_args:
            more = f", Shape<{shape}>({shape_args}), Stride<{stride}>({stride_args})"
        self._line(f"{kind} {name}({view.pointer}{more});")

    # ---- instructions ----------------------------------------------------------------------

    def _instruction(self, op: Op) -> None:
        insn = op.insn
        assert insn is not None
        values = dict(zip((o.name for o in insn.operands), run_time_operands(op), strict=True))
        for left_out, same_as in insn.cpp.implied.items():
            values[left_out] = values[left_out] or values[same_as]
        present = {name: value for name, value in values.items() if value is not None}
        args = [self._use(v) for v in present.values()]
        passed = self._arguments(insn, dict(zip(present, args, strict=True)))
        attrs = list(zip(insn.attrs, template_arguments(op), strict=True))
        given = {a.name: v for a, v in attrs if v is not None and v != a.default}
        words = brackets(insn, set(present), given)
        if words is None:
            said = ", ".join([*present, *given])
            raise self._refuse(f"{insn.name} with {said}", op)
        chosen = {a.name: v for a, v in attrs}
        inside = ", ".join(self._bracket(word, present, chosen) for word in words)
        beside = insn.asm.beside if insn.asm else {}
        passed += [
            template_text(v)
            for a, v in attrs
            if a.argument and v is not None and beside.get(a.name, "") in {"", *present}
        ]
        name = name_of(insn, set(present), given)
        if insn.cpp.method:
            name = f"{passed.pop(0)}.{insn.cpp.method}"
        call = f"{name}{f'<{inside}>' if inside else ''}({', '.join(passed)})"
        if op.results and isinstance(op.result.type, ScalarType):
            self._local(op, call)
        elif op.results:
            self.names[op.result] = args[0]
            if "addr" in present:
                self.slots[op.result] = self._use(present["addr"])
            self._line(f"{call};")
        else:
            self._line(f"{call};")

    def _arguments(self, insn: Insn, values: dict[str, str]) -> list[str]:
        """The arguments of a call: some go by pointer, some numbers together in an array."""
        for kind, names in insn.cpp.arrays.items():
            array = self._unused(kind.removeprefix("TRandom").lower())
            numbers = [f"static_cast<uint32_t>({values.pop(n)})" for n in names]
            self._line(f"{kind} {array} = {{{', '.join(numbers)}}};")
            values[array] = array
        return [f"&{a}" if n in insn.cpp.pointers else a for n, a in values.items()]

    def _bracket(self, word: str, present: dict[str, Value], chosen: dict[str, Any]) -> str:
        """A word in brackets: a value, the type of an operand, or of its elements."""
        if word.startswith("@"):
            return template_text(chosen[word[1:]])
        name, _, part = word.partition(".")
        value = present[name]
        if isinstance(value.type, BufferType):
            spec = value.type.spec
            return spec.dtype.cpp if part else self._alias(spec)
        return f"decltype({self._use(value)})"

    # ---- control flow ----------------------------------------------------------------------

    def loop(self, op: Op) -> None:
        body = op.regions[0]
        carried = list(zip(body.args[1:], op.group("inits"), strict=True))
        for arg, init in carried:
            self._carry(op, arg, init)
        lower, upper, step = (self._use(op.operand(n)) for n in ("lower", "upper", "step"))  # type: ignore[arg-type]
        i = self._declare(body.args[0])
        advance = f"++{i}" if step == "1" else f"{i} += {step}"
        self._line(f"for (int64_t {i} = {lower}; {i} < {upper}; {advance}) {{")
        self._depth += 1
        for arg, _ in carried:
            self._bind(arg)
        self._block(body)
        self._yield(op, body.ops[-1].group("args"), body.args[1:])
        self._depth -= 1
        self._line("}")
        for (arg, _), result in zip(carried, op.results, strict=True):
            self._take_over(result, arg)

    def branch(self, op: Op) -> None:
        for result in op.results:
            self._carry(op, result, None)
        for index, region in enumerate(op.regions):
            if index and len(region.ops) == 1 and not op.results:
                break  # an else branch that does nothing
            word = f"if ({self._use(op.operands[0])}) {{" if index == 0 else "} else {"
            self._line(word)
            self._depth += 1
            self._block(region)
            self._yield(op, region.ops[-1].group("args"), op.results)
            self._depth -= 1
        self._line("}")
        for result in op.results:
            self._bind(result)

    def while_loop(self, op: Op) -> None:
        before, after = op.regions
        for arg, init in zip(before.args, op.operands, strict=True):
            self._carry(op, arg, init)
        stop = before.ops[-1]
        handed = list(zip(after.args, stop.operands[1:], strict=True))
        own = [arg for arg, value in handed if value not in before.args]
        for arg in own:  # computed in the loop, needed behind it
            self._carry(op, arg, None)
        self._line("while (true) {")
        self._depth += 1
        for arg in before.args:
            self._bind(arg)
        self._block(before)
        self._yield(op, [value for arg, value in handed if arg in own], own)
        for arg, value in handed:
            if arg not in own:
                self.names[arg] = self._use(value)
                self.slots |= {arg: self.slots[value]} if value in self.slots else {}
        self._line(f"if (!({self._use(stop.operands[0])})) break;")
        for arg in own:
            self._bind(arg)
        self._block(after)
        self._yield(op, after.ops[-1].group("args"), before.args)
        self._depth -= 1
        self._line("}")
        for (arg, _), result in zip(handed, op.results, strict=True):
            self._take_over(result, arg)

    def _carry(self, op: Op, value: Value, init: Value | None) -> None:
        """Declare a variable for a value that changes: a number, or the address of a tile."""
        name = self._declare(value)
        kind = value.type
        if isinstance(kind, ScalarType):
            start = f" = {self._use(init)}" if init is not None else ""
            self._line(f"{scalar_type(kind)} {name}{start};")
            return
        if not isinstance(kind, TileBufType) or DYNAMIC in (
            kind.spec.valid_row,
            kind.spec.valid_col,
        ):
            raise self._refuse(f"a value of type {kind} carried through control flow", op)
        slot = self.slots[value] = self._unused(f"{name}_address")
        start = f" = {self._address(op, init)}" if init is not None else ""
        self._line(f"int64_t {slot}{start};")

    def _bind(self, value: Value) -> None:
        """Make the tile of a carried handle, at the address it has here."""
        if value in self.slots:
            assert isinstance(value.type, TileBufType)
            self._line(f"{self._alias(value.type.spec)} {self.names[value]};")
            self._line(f"TASSIGN({self.names[value]}, {self.slots[value]});")

    def _take_over(self, result: Value, arg: Value) -> None:
        """What a loop leaves behind is what its variable holds at the end."""
        if arg in self.slots:
            self._declare(result)
            self.slots[result] = self.slots[arg]
            self._bind(result)
        else:
            self.names[result] = self.names[arg]

    def _address(self, op: Op, value: Value) -> str:
        found = self.slots.get(value)
        if found is None:
            raise self._refuse("a tile without an address carried through control flow", op)
        return found

    def _yield(self, op: Op, values: list[Value], targets: list[Value]) -> None:
        """Assign all targets at once: one that is still to be read is saved first."""
        pairs: list[tuple[str, str]] = []
        for target, value in zip(targets, values, strict=True):
            is_tile = isinstance(target.type, TileBufType)
            where = self.slots[target] if is_tile else self.names[target]
            what = self._address(op, value) if is_tile else self._use(value)
            if where != what:
                pairs.append((where, what))
        written: set[str] = set()
        saved: dict[str, str] = {}
        for where, what in pairs:
            if what in written and what not in saved:
                saved[what] = self._unused(f"{what}_before")
                self._line(f"const auto {saved[what]} = {what};")
            written.add(where)
        for where, what in pairs:
            self._line(f"{where} = {saved.get(what, what)};")

    # ---- synchronisation -------------------------------------------------------------------

    def flag(self, op: Op) -> None:
        values = [op.attrs[k] for k in ("src_pipe", "dst_pipe", "event_id") if k in op.attrs]
        named = [v.value for v in values if isinstance(v, EnumAttr)]
        named += [f"static_cast<event_t>({self._use(v)})" for v in op.operands]
        self._line(f"{op.name.removeprefix('pto.').removesuffix('_dyn')}({', '.join(named)});")

    def barrier(self, op: Op) -> None:
        pipe = op.attrs["pipe"]
        assert isinstance(pipe, EnumAttr)
        self._line(f"pipe_barrier({pipe.value});")

    def print_number(self, op: Op) -> None:
        text = op.attrs["format"]
        assert isinstance(text, StringAttr)
        escaped = text.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        self._line(f'cce::printf("{escaped}", {self._use(op.operands[0])});')

    def nothing(self, op: Op) -> None:
        """Terminators: what they hand on is written where it arrives."""

    def trap(self, op: Op) -> None:
        self._line("trap();")


_WRITERS: dict[str, Callable[[_FunctionWriter, Op], None]] = {
    "pto.alloc_tile": _FunctionWriter.alloc_tile,
    "pto.set_validshape": _FunctionWriter.set_validshape,
    "pto.addptr": _FunctionWriter.addptr,
    "pto.make_tensor_view": _FunctionWriter.make_view,
    "pto.partition_view": _FunctionWriter.partition,
    "scf.for": _FunctionWriter.loop,
    "scf.if": _FunctionWriter.branch,
    "scf.while": _FunctionWriter.while_loop,
    "scf.yield": _FunctionWriter.nothing,
    "scf.condition": _FunctionWriter.nothing,
    "func.return": _FunctionWriter.nothing,
    "pto.set_flag": _FunctionWriter.flag,
    "pto.wait_flag": _FunctionWriter.flag,
    "pto.set_flag_dyn": _FunctionWriter.flag,
    "pto.wait_flag_dyn": _FunctionWriter.flag,
    "pto.barrier": _FunctionWriter.barrier,
    "pto.print": _FunctionWriter.print_number,
    "pto.trap": _FunctionWriter.trap,
    **dict.fromkeys(CONV_OPS, _FunctionWriter.conv),
}


def _is_used(value: Value, function: Function) -> bool:
    """Whether an instruction takes the view; one that is only divided further needs no object."""
    return any(op.insn is not None and value in op.operands for op in function.walk())
