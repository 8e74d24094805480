"""PTO C++: a module as a kernel file for the real tool chain, as its author would have written it.

Values that are taken once stand where they are taken, others are `const` locals; tiles are objects
bound with TASSIGN, views are `GlobalTensor` objects over pointer arithmetic, and control flow stays
control flow. Types and numbers have the names of the source, whose lines are quoted. Instructions
are written from the table: their C++ operand order is the record's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.tensors import in_boxes
from ptokit.base.tiles import DYNAMIC
from ptokit.emit.aggregates import Aggregates
from ptokit.emit.asynchronous import Asynchronous
from ptokit.emit.control import ControlFlow
from ptokit.emit.convs import conv_call
from ptokit.emit.expressions import (
    ATOM,
    Expr,
    arithmetic,
    comparison,
    literal,
    plus,
    scalar_type,
    times,
    value_type,
)
from ptokit.emit.expressions import whole as whole_number
from ptokit.emit.fifos import Fifos
from ptokit.emit.launchers import launcher, wrapped
from ptokit.emit.scopes import SPACES, Scopes
from ptokit.emit.simplify import simplified
from ptokit.emit.uses import is_named
from ptokit.emit.windows import Windows
from ptokit.emit.words import QUERIES, SECTIONS, camel
from ptokit.emit.writer import GlobalView
from ptokit.ir.attributes import BoolAttr, EnumAttr, FloatAttr, IntAttr, StringAttr, SymbolAttr
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.dialects import (
    Definition,
    aggregates,
    arith,
    asynchronous,
    conv,
    definition_of,
    fifo,
    func,
    memory,
    micro,
    scf,
    sync,
    system,
)
from ptokit.ir.entries import is_entry, kind_of
from ptokit.ir.fifos import is_transfer, leaves_core_idle
from ptokit.ir.flow import core_of
from ptokit.ir.ordering import lacks_signal_base
from ptokit.ir.types import (
    I64,
    BufferType,
    MultiTileType,
    PtrType,
    ScalarType,
    ShapedType,
    TileBufType,
    ViewType,
)
from ptokit.isa.targets import Target

HEADER = "#include <cstdint>\n\n#include <pto/pto-inst.hpp>\n\nusing namespace pto;\n"


def emit_cpp(
    module: Module, target: Target, *, guard_sync: bool = False, origins: bool = False
) -> str:
    """The C++ source of a module.

    `guard_sync`: what orders the pipes stands under `#ifndef __PTO_AUTO__`, so that the source
    serves a compiler that does it itself, too. `origins`: every statement says the line it was
    made from, as `print_module` does.
    """
    module = simplified(module)
    called = {op.attrs["callee"] for op in module.walk() if func.CALL.matches(op)}
    defined = [function for function in module.functions if function.body is not None]
    writers = [_FunctionWriter(function, module, target) for function in defined]
    texts = [writer.text(guard_sync, origins) for writer in writers]
    heads = [f"{w.head};" for w in writers if SymbolAttr(w.function.name) in called]
    title = f"// Written by ptokit for {target.name}"
    if module.names.shows_lines:
        title += f", from {Path(module.location.file).name}; numbers are lines there"
    launchers = [launcher(w.function.name, w.params) for w in writers if w.is_kernel]
    return "\n".join([f"{title}.", HEADER, *heads, *([""] if heads else []), *texts, *launchers])


class _FunctionWriter(ControlFlow, Fifos, Asynchronous, Aggregates, Windows, Scopes):
    head: str = ""
    is_kernel: bool = False
    params: tuple[tuple[str, str], ...] = ()  # types and names

    def text(self, guard_sync: bool, origins: bool) -> str:
        function = self._at = self.function
        if len(function.results) > 1:
            raise self._refuse("a function that returns several values", function)
        returned = "void"
        for kind in function.results:
            returned = value_type(kind)
            if not returned:
                raise self._refuse(f"a function that returns {kind}", function)
        if function.results and kind_of(function):
            raise self._refuse("a function of one kind of core that returns a value", function)
        if not function.name.isidentifier():
            raise self._refuse(f"a function with the name {function.name!r}", function)
        params = [self._parameter(p) for p in function.params]
        self.is_kernel = is_entry(function, self.module)
        if self.is_kernel and self.target.needs_signal_base and lacks_signal_base(self.module):
            base = self._declare(Value("ffts", I64))
            params.insert(0, ("__gm__ uint64_t *", base))
            self.lines.insert(f"set_ffts_base_addr((uint64_t){base});")
        assert function.body is not None
        kind = function.attrs.get("pto.kernel_kind")
        if isinstance(kind, EnumAttr):
            self._guarded(kind.value, function.body)
        else:
            self._block(function.body)
        self.params = tuple(params)
        word = 'extern "C" __global__ AICORE void' if self.is_kernel else f"AICORE {returned}"
        self.head = wrapped(f"{word} {function.name}", [f"{t}{n}" for t, n in params])
        declared = self.declarations()
        body = list(self.lines.written(guard=guard_sync, origins=origins))
        apart = [""] if declared and body else []
        return "\n".join([self.head, "{", *declared, *apart, *body, "}", ""])

    def _parameter(self, param: Value) -> tuple[str, str]:
        name = self._declare(param)
        kind = param.type
        if isinstance(kind, ScalarType):
            return f"{scalar_type(kind)} ", name
        if isinstance(kind, ShapedType) and (kind.space != "gm" or self._is_taken(param)):
            raise self._refuse(f"a parameter of type {kind}", self.function)
        if isinstance(kind, PtrType | ShapedType):
            return f"{self._pointer(kind, self.function)} *", name
        raise self._refuse(f"a parameter of type {kind}", self.function)

    def _pointer(self, kind: PtrType | ShapedType, where: Op | Function) -> str:
        space = kind.space if isinstance(kind, PtrType) else ""
        return f"{SPACES.get(space, space)} {self._dtype(kind, where).cpp}"

    def _dtype(self, kind: PtrType | ShapedType | ViewType, where: Op | Function) -> DType:
        if kind.element.dtype is None:
            raise self._refuse(f"elements of type {kind.element}", where)
        return kind.element.dtype

    # ---- blocks ----------------------------------------------------------------------------

    def _op(self, op: Op) -> None:
        if op.insn is not None:
            self.transfer(op) if is_transfer(op) else self._instruction(op)
            return
        definition = definition_of(op)
        if definition is not None and definition.micro is not None:
            self.micro_operation(op)
        elif definition in _WRITERS:
            _WRITERS[definition](self, op)
        else:
            raise self._refuse(op.name, op)

    def query(self, op: Op) -> None:
        definition = definition_of(op)
        assert definition is not None
        self._computed(op, Expr(QUERIES[definition]))

    def section(self, op: Op) -> None:
        self._guarded(core_of(op), op.regions[0])

    def _guarded(self, kind: str, block: Block) -> None:
        """Code of one kind of core. The vector mask may be anything: it is set to all lanes."""
        self.lines.raw(f"#if defined({SECTIONS[kind]})")
        if kind == "vector":
            self.lines.insert("set_mask_norm();", "set_vector_mask(-1, -1);")
        # On A5 entries that are not divided go to vector core 0, and it alone answers.
        is_body = block is self.function.body
        alone = kind == "vector" and is_body and leaves_core_idle(self.function, self.target)
        if alone:
            self.lines.insert("if (get_subblockid() == 0) {")
        self.lines.depth += alone
        self._block(block)
        self.lines.depth -= alone
        if alone:
            self.lines.insert("}")
        self.lines.raw("#endif")

    # ---- arithmetic ------------------------------------------------------------------------

    def arithmetic(self, op: Op) -> None:
        record = arith.arithmetic_of(op)
        assert record is not None
        args = [self._expr(v) for v in op.operands]
        given = op.operands[-1].type
        if record.predicates:
            predicate = op.attrs["predicate"]
            assert isinstance(predicate, IntAttr)
            made = comparison(record.predicates[predicate.value], args[0], args[1], given)
        else:
            made = arithmetic(record, args, given, op.results[0].type)
        if made is None:
            raise self._refuse(op.name, op)
        self._computed(op, made)

    def constant(self, op: Op) -> None:
        value = op.attrs["value"]
        if isinstance(value, IntAttr):
            self.constants[op.result] = value.value
        elif isinstance(value, BoolAttr | FloatAttr):
            self.folded[op.result] = literal(value)
            if isinstance(value, FloatAttr):
                self.reals[op.result] = value
        else:
            raise self._refuse(f"a constant {value}", op)

    # ---- tiles and views -------------------------------------------------------------------

    def alloc_tile(self, op: Op) -> None:
        assert isinstance(op.result.type, BufferType)
        sizes = [op.operand(label) for label in ("valid_row", "valid_col")]
        name = self._make(op.result, [self._use(v) for v in sizes if v is not None] or None)
        address = op.operand("addr")
        if address is not None:
            self.slots[op.result] = self._hex(address)
            self._bind(name, self.slots[op.result])

    def alloc_tiles(self, op: Op) -> None:
        """Tiles side by side: what is kept of them is the address of the first."""
        address = op.operand("addr")
        if address is None or len(op.operands) > 1:
            raise self._refuse(
                "tiles to choose from without an address, or with run-time sizes", op
            )
        self.slots[op.result] = self._hex(address)

    def get_tile(self, op: Op) -> None:
        source, slot = op.operands
        assert isinstance(source.type, MultiTileType)
        stride = Expr(f"0x{source.type.stride:x}")
        place = plus(self.slots[source], times(self._expr(slot), stride))
        name = self._make(op.result)
        if place.level == ATOM:
            self.slots[op.result] = place
        else:
            kept = self._unused(f"{name}_address")
            self.slots[op.result] = Expr(kept)
            self._line(f"const int64_t {kept} = {place.text};")
        self._bind(name, self.slots[op.result])

    def set_validshape(self, op: Op) -> None:
        tile, rows, cols = (self._use(v) for v in op.operands)
        kind = op.operands[0].type
        assert isinstance(kind, TileBufType)
        if kind.spec.valid_row == DYNAMIC:
            self._line(f"{tile}.SetValidRow({rows});")
        if kind.spec.valid_col == DYNAMIC:
            self._line(f"{tile}.SetValidCol({cols});")

    def get_validshape(self, op: Op) -> None:
        tile = self._use(op.operands[0])
        for result, getter in zip(op.results, ("GetValidRow", "GetValidCol"), strict=True):
            if self.uses.count(result):
                self._line(f"const int64_t {self._declare(result)} = {tile}.{getter}();")

    def valid_size(self, op: Op) -> None:
        getter = "GetValidRow" if memory.VALID_ROWS.matches(op) else "GetValidCol"
        self._line(
            f"const int64_t {self._declare(op.result)} = {self._use(op.operands[0])}.{getter}();"
        )

    def address(self, op: Op) -> None:
        """Where a tile or view lies."""
        source = op.operands[0]
        view = self.views.get(source)
        text = f"{self._use(source)}.data()" if view is None else view.pointer.text
        self._line(f"auto {self._declare(op.result)} = {text};")

    def conv(self, op: Op) -> None:
        call = conv_call(op, self._use)
        if op.results:
            self._local(op, call)
        else:
            self._line(f"{call};")

    def addptr(self, op: Op) -> None:
        base, offset = op.operands
        sum_ = plus(self._expr(base), self._expr(offset))
        self.roots[op.result] = self.roots.get(base, self._use(base))
        if self.uses.is_folded(op):
            self.folded[op.result] = sum_
            return
        assert isinstance(op.result.type, PtrType)
        kind = self._pointer(op.result.type, op)
        self._line(f"{kind} *{self._declare(op.result)} = {sum_.text};")

    def cast_pointer(self, op: Op) -> None:
        """A pointer as a number, or a number as a pointer."""
        made = op.result.type
        is_pointer = isinstance(made, PtrType)
        kind = f"{self._pointer(made, op)} *" if is_pointer else "int64_t "
        value = self._expr(op.operands[0]).within(ATOM)
        self._line(f"{kind}{self._declare(op.result)} = ({kind.strip()}){value};")

    def make_view(self, op: Op, pointer: str = "") -> None:
        assert isinstance(op.result.type, ViewType)
        element = self._dtype(op.result.type, op)
        given = op.attrs.get("layout")
        layout = Layout[given.value.upper()] if isinstance(given, EnumAttr) else Layout.ND
        root, start = op.result.name, Expr(pointer)
        if not pointer:
            base = op.operands[0]
            start = self._expr(base)
            root = self.roots.get(base, start.text)
        self.views[op.result] = GlobalView(
            root,
            start,
            element,
            [self._expr(v) for v in op.group("shape")],
            [self._expr(v) for v in op.group("strides")],
            layout,
        )
        if not pointer and self._is_taken(op.result):
            self._tensor(op.result, self.views[op.result], f"{root}_view")

    def _is_taken(self, view: Value) -> bool:
        """Whether an instruction takes the view; one that is only divided needs no object."""
        return any(op.insn is not None for op in self.uses.users.get(view, ()))

    def view_dim(self, op: Op) -> None:
        view, at = op.operands
        if at not in self.constants:
            raise self._refuse(f"{op.name} of a dimension that is chosen as it runs", op)
        known = self._view(view, op)
        sizes = known.stride if memory.VIEW_STRIDE.matches(op) else known.shape
        size = sizes[self.constants[at]]
        if size.number is not None:
            self.constants[op.result] = size.number
        else:
            self.folded[op.result] = size

    def _view(self, value: Value, op: Op) -> GlobalView:
        if value not in self.views:
            raise self._refuse(f"{op.name} of %{value.name}, which is no view made here", op)
        return self.views[value]

    def declare_view(self, op: Op) -> None:
        """A view without memory; TALLOC or TPOP points it at a slot."""
        self.make_view(op, "nullptr")
        view = self.views[op.result]
        self._tensor(op.result, view, op.result.name)
        view.pointer = Expr(f"{self._use(op.result)}.data()")

    def partition(self, op: Op) -> None:
        whole = self._view(op.operands[0], op)
        offsets = [self._expr(v) for v in op.group("offsets")]
        moves = [times(o, s) for o, s in zip(offsets, whole.stride, strict=True) if o.number != 0]
        if moves and whole.dtype.is_packed:  # pointers move by bytes
            raise self._refuse("a part of a view of 4-bit elements past its start", op)
        sizes = [self._expr(v) for v in op.group("sizes")]
        numbers = [self.constants.get(v) for v in op.group("sizes")]
        for at, (size, all_) in enumerate(zip(numbers, whole.shape, strict=True)):
            if offsets[at].number == 0 and size is not None and size == all_.number:
                sizes[at] = all_  # not cut: the number is that of the whole, whatever has it too
        view = GlobalView(
            whole.root, plus(whole.pointer, *moves), whole.dtype, sizes, whole.stride, whole.layout
        )
        self.views[op.result] = view
        if self._is_taken(op.result):
            is_whole = not moves and [e.text for e in sizes] == [e.text for e in whole.shape]
            self._tensor(op.result, view, f"{view.root}_{'view' if is_whole else 'part'}")

    def _tensor(self, value: Value, view: GlobalView, base: str) -> None:
        """An object for a view, called `base` where the author has no name for it."""
        shape, strides = self._lying(value, view)
        if {e.number for e in shape[:-1]} <= {1} and strides[-1].number == 1:
            strides = [shape[-1]] * 4 + [strides[-1]]  # one row is flat, whatever it was cut out of
        more: list[str] = []
        words: list[str] = []
        for word, sizes in (("Shape", shape), ("Stride", strides)):
            known = ["1"] * (5 - len(sizes))
            known += [e.text if self._is_known(e) else "DYNAMIC" for e in sizes]
            given = [e.text for e in sizes if not self._is_known(e)]
            words.append(f"{word}<{', '.join(known)}>")
            more.append(f"::{word}({', '.join(given)})" if given else f"::{word}()")
        while more and more[-1].endswith("()"):
            more.pop()
        layout = [f"Layout::{view.layout.name}"] if view.layout != Layout.ND else []
        text = f"GlobalTensor<{', '.join([view.dtype.cpp, *words, *layout])}>"
        kind = self._kinds[value] = self._alias(f"Global{camel(view.root)}", text)
        name = self._declare(value, value.name if is_named(value) else base)
        args = ", ".join([view.pointer.text, *(f"{kind}{each}" for each in more)])
        self._line(f"{kind} {name}({args});")

    def _lying(self, value: Value, view: GlobalView) -> tuple[list[Expr], list[Expr]]:
        """The sizes and strides of a view as it lies: matrices of scales lie in boxes."""
        numbers = [[e.number for e in sizes] for sizes in (view.shape, view.stride)]
        shape, strides = (tuple(DYNAMIC if n is None else n for n in each) for each in numbers)
        found = in_boxes(view.dtype, shape, strides, view.layout)
        if found == (shape, strides):
            return view.shape, view.stride
        if any(DYNAMIC in sizes for sizes in found):
            assert isinstance(value.owner, Op)
            raise self._refuse("a matrix of scales whose sizes are known as it runs", value.owner)
        boxes, steps = found
        return [*map(whole_number, boxes)], [*map(whole_number, steps)]

    # ---- debugging and control -------------------------------------------------------------

    def print_number(self, op: Op) -> None:
        text = op.attrs["format"]
        assert isinstance(text, StringAttr)
        escaped = text.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        self._line(f'cce::printf("{escaped}", {self._use(op.operands[0])});')

    def end_function(self, op: Op) -> None:
        for value in op.operands:
            self._line(f"return {self._use(value)};")

    def nothing(self, op: Op) -> None:
        """Terminators: what they hand on is written where it arrives."""

    def trap(self, op: Op) -> None:
        self._line("trap();")


_WRITERS: dict[Definition | None, Callable[[_FunctionWriter, Op], None]] = {
    **dict.fromkeys(system.QUERIES, _FunctionWriter.query),
    **dict.fromkeys(arith.DEFINITIONS, _FunctionWriter.arithmetic),
    arith.CONSTANT: _FunctionWriter.constant,
    sync.CUBE_SECTION: _FunctionWriter.section,
    sync.VECTOR_SECTION: _FunctionWriter.section,
    memory.ALLOC: _FunctionWriter.alloc_tile,
    memory.ALLOC_TILES: _FunctionWriter.alloc_tiles,
    memory.GET_TILE: _FunctionWriter.get_tile,
    memory.DECLARE_TILE: _FunctionWriter.declare_tile,
    fifo.RESERVE: _FunctionWriter.buffer,
    fifo.IMPORT: _FunctionWriter.buffer,
    **dict.fromkeys(fifo.OPENINGS, _FunctionWriter.open_pipe),
    memory.SUBSET: _FunctionWriter.window,
    memory.SUBVIEW: _FunctionWriter.window,
    memory.BITCAST: _FunctionWriter.bitcast,
    memory.VIEW_DIM: _FunctionWriter.view_dim,
    memory.VIEW_STRIDE: _FunctionWriter.view_dim,
    memory.VIEW_ADDR: _FunctionWriter.address,
    memory.SET_VALID: _FunctionWriter.set_validshape,
    memory.GET_VALID: _FunctionWriter.get_validshape,
    memory.VALID_ROWS: _FunctionWriter.valid_size,
    memory.VALID_COLS: _FunctionWriter.valid_size,
    memory.TILE_ADDR: _FunctionWriter.address,
    **dict.fromkeys(micro.SCOPES, _FunctionWriter.vector_scope),
    micro.CAST_POINTER: _FunctionWriter.cast_local,
    memory.ADDPTR: _FunctionWriter.addptr,
    memory.PTR_TO_INT: _FunctionWriter.cast_pointer,
    memory.INT_TO_PTR: _FunctionWriter.cast_pointer,
    memory.MAKE_VIEW: _FunctionWriter.make_view,
    memory.PARTITION: _FunctionWriter.partition,
    memory.DECLARE_VIEW: _FunctionWriter.declare_view,
    **dict.fromkeys(aggregates.DECLARATIONS, _FunctionWriter.declare_aggregate),
    **dict.fromkeys(aggregates.READS, _FunctionWriter.read_element),
    **dict.fromkeys(aggregates.WRITES, _FunctionWriter.write_element),
    scf.FOR: _FunctionWriter.loop,
    scf.IF: _FunctionWriter.branch,
    scf.WHILE: _FunctionWriter.while_loop,
    scf.SWITCH: _FunctionWriter.switch,
    scf.EXECUTE: _FunctionWriter.transparent,
    scf.FUSION: _FunctionWriter.transparent,
    scf.FUSION_YIELD: _FunctionWriter.nothing,
    scf.YIELD: _FunctionWriter.nothing,
    scf.CONDITION: _FunctionWriter.nothing,
    func.RETURN: _FunctionWriter.end_function,
    func.CALL: _FunctionWriter.call_function,
    system.PRINT: _FunctionWriter.print_number,
    system.TRAP: _FunctionWriter.trap,
    **dict.fromkeys(conv.DEFINITIONS, _FunctionWriter.conv),
    asynchronous.BUILD: _FunctionWriter.build_session,
    asynchronous.MAKE_CONTEXT: _FunctionWriter.make_context,
    asynchronous.GET_SESSION: _FunctionWriter.get_session,
    asynchronous.WAIT: _FunctionWriter.wait_event,
    asynchronous.TEST: _FunctionWriter.test_event,
}
