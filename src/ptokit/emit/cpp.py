"""PTO C++: a module as a self-contained kernel file for the real tool chain.

Values become `const` locals, tiles become `Tile<...>` objects bound with TASSIGN, views become
`GlobalTensor<...>` over pointer arithmetic, and control flow stays control flow. Instructions are
written from the table: their C++ operand order is the record's.
"""

from __future__ import annotations

from collections.abc import Callable

from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.tiles import DYNAMIC
from ptokit.emit.aggregates import Aggregates
from ptokit.emit.asynchronous import Asynchronous
from ptokit.emit.control import ControlFlow
from ptokit.emit.convs import conv_call
from ptokit.emit.expressions import (
    CASTS,
    FUNCTIONS,
    INFIX,
    comparison,
    literal,
    scalar_type,
    value_type,
)
from ptokit.emit.fifos import Fifos
from ptokit.emit.windows import Windows
from ptokit.emit.words import QUERIES, SECTIONS, five
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


def emit_cpp(module: Module, target: Target) -> str:
    """The C++ source of a module."""
    called = {op.attrs["callee"] for op in module.walk() if func.CALL.matches(op)}
    defined = [function for function in module.functions if function.body is not None]
    writers = [_FunctionWriter(function, module, target) for function in defined]
    texts = [writer.text() for writer in writers]
    heads = [f"{w.head};" for w in writers if SymbolAttr(w.function.name) in called]
    return "\n".join([HEADER, *heads, *([""] if heads else []), *texts])


class _FunctionWriter(ControlFlow, Fifos, Asynchronous, Aggregates, Windows):
    head: str = ""

    def text(self) -> str:
        function = self.function
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
        is_kernel = is_entry(function, self.module)
        if is_kernel and self.target.needs_signal_base and lacks_signal_base(self.module):
            base = self._declare(Value("ffts", I64))
            params.insert(0, f"__gm__ uint64_t *{base}")
            self._line(f"set_ffts_base_addr((uint64_t){base});")
        assert function.body is not None
        kind = function.attrs.get("pto.kernel_kind")
        if isinstance(kind, EnumAttr):
            self._guarded(kind.value, function.body)
        else:
            self._block(function.body)
        word = 'extern "C" __global__ AICORE void' if is_kernel else f"AICORE {returned}"
        self.head = f"{word} {function.name}({', '.join(params)})"
        return "\n".join([self.head, "{", *self.aliases(), *self.lines, "}", ""])

    def _parameter(self, param: Value) -> str:
        name = self._declare(param)
        kind = param.type
        if isinstance(kind, ScalarType):
            return f"{scalar_type(kind)} {name}"
        if isinstance(kind, ShapedType) and (kind.space != "gm" or _is_used(param, self.function)):
            raise self._refuse(f"a parameter of type {kind}", self.function)
        if isinstance(kind, PtrType | ShapedType):
            return f"{self._pointer(kind, self.function)} *{name}"
        raise self._refuse(f"a parameter of type {kind}", self.function)

    def _pointer(self, kind: PtrType | ShapedType, where: Op | Function) -> str:
        return f"__gm__ {self._dtype(kind, where).cpp}"

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
        if definition not in _WRITERS:
            raise self._refuse(op.name, op)
        _WRITERS[definition](self, op)

    def query(self, op: Op) -> None:
        definition = definition_of(op)
        assert definition is not None
        self._local(op, QUERIES[definition])

    def section(self, op: Op) -> None:
        self._guarded(core_of(op), op.regions[0])

    def _guarded(self, kind: str, block: Block) -> None:
        """Code of one kind of core. The vector mask may be anything: it is set to all lanes."""
        self.lines.append(f"#if defined({SECTIONS[kind]})")
        if kind == "vector":
            self._line("set_mask_norm();")
            self._line("set_vector_mask(-1, -1);")
        # On A5 entries that are not divided go to vector core 0, and it alone answers.
        is_body = block is self.function.body
        alone = kind == "vector" and is_body and leaves_core_idle(self.function, self.target)
        if alone:
            self._line("if (get_subblockid() == 0) {")
        self._depth += alone
        self._block(block)
        self._depth -= alone
        if alone:
            self._line("}")
        self.lines.append("#endif")

    # ---- arithmetic ------------------------------------------------------------------------

    def arithmetic(self, op: Op) -> None:
        name = op.name.partition(".")[2]
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
        elif isinstance(value, BoolAttr | FloatAttr):
            self._local(op, literal(value))
        else:
            raise self._refuse(f"a constant {value}", op)

    # ---- tiles and views -------------------------------------------------------------------

    def alloc_tile(self, op: Op) -> None:
        assert isinstance(op.result.type, BufferType)
        sizes = [op.operand(label) for label in ("valid_row", "valid_col")]
        name = self._make(op.result, [self._use(v) for v in sizes if v is not None])
        address = op.operand("addr")
        if address is not None:
            self.slots[op.result] = self._hex(address)
            self._line(f"TASSIGN({name}, {self.slots[op.result]});")

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
        name, stride = self._declare(op.result), source.type.stride
        place = self.slots[op.result] = self._unused(f"{name}_address")
        self._line(f"const int64_t {place} = {self.slots[source]} + {self._use(slot)} * {stride};")
        self._line(f"{self._tile_type(source.type.spec)} {name};")
        self._line(f"TASSIGN({name}, {place});")

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
        text = f"{self._use(source)}.data()" if view is None else view.pointer
        self._line(f"auto *{self._declare(op.result)} = {text};")

    def conv(self, op: Op) -> None:
        call = conv_call(op, self._use)
        if op.results:
            self._local(op, call)
        else:
            self._line(f"{call};")

    def addptr(self, op: Op) -> None:
        base, offset = (self._use(v) for v in op.operands)
        assert isinstance(op.result.type, PtrType)
        kind = self._pointer(op.result.type, op)
        self._line(f"{kind} *{self._declare(op.result)} = {base} + {offset};")

    def cast_pointer(self, op: Op) -> None:
        """A pointer as a number, or a number as a pointer."""
        made = op.result.type
        is_pointer = isinstance(made, PtrType)
        kind = f"{self._pointer(made, op)} *" if is_pointer else "int64_t "
        value = self._use(op.operands[0])
        self._line(f"{kind}{self._declare(op.result)} = ({kind.strip()}){value};")

    def make_view(self, op: Op, pointer: str = "") -> None:
        assert isinstance(op.result.type, ViewType)
        element = self._dtype(op.result.type, op)
        given = op.attrs.get("layout")
        layout = Layout[given.value.upper()] if isinstance(given, EnumAttr) else Layout.ND
        self.views[op.result] = GlobalView(
            pointer or self._use(op.operands[0]),
            element,
            [self._use(v) for v in op.group("shape")],
            [self._use(v) for v in op.group("strides")],
            layout,
        )
        if not pointer and _is_used(op.result, self.function):
            self._tensor(op.result, self.views[op.result])

    def view_dim(self, op: Op) -> None:
        view, at = op.operands
        if at not in self.constants:
            raise self._refuse(f"{op.name} of a dimension that is chosen as it runs", op)
        sizes = (
            self.views[view].stride if memory.VIEW_STRIDE.matches(op) else self.views[view].shape
        )
        size = sizes[self.constants[at]]
        if size.isdigit():
            self.constants[op.result] = int(size)
        else:
            self.names[op.result] = size

    def declare_view(self, op: Op) -> None:
        """A view without memory; TALLOC or TPOP points it at a slot."""
        self.make_view(op, "nullptr")
        view = self.views[op.result]
        self._tensor(op.result, view)
        view.pointer = f"{self._use(op.result)}.data()"

    def partition(self, op: Op) -> None:
        whole = self.views[op.operands[0]]
        moves = [
            f"{self._use(o)} * {s}" if s != "1" else self._use(o)
            for o, s in zip(op.group("offsets"), whole.stride, strict=True)
            if self.constants.get(o) != 0
        ]
        if moves and whole.dtype.is_packed:  # pointers move by bytes
            raise self._refuse("a part of a view of 4-bit elements behind its start", op)
        pointer = " + ".join([whole.pointer, *moves])
        sizes = [self._use(v) for v in op.group("sizes")]
        view = GlobalView(pointer, whole.dtype, sizes, whole.stride, whole.layout)
        self.views[op.result] = view
        if _is_used(op.result, self.function):
            self._tensor(op.result, view)

    def _tensor(self, value: Value, view: GlobalView) -> None:
        strides = view.stride
        if set(view.shape[:-1]) <= {"1"} and strides[-1] == "1":
            strides = [view.shape[-1]] * 4 + ["1"]  # one row is flat, whatever it was cut out of
        shape, shape_args = five(view.shape, "1")
        stride, stride_args = five(strides, "1")
        name = self._declare(value)
        kind = (
            f"GlobalTensor<{view.dtype.cpp}, Shape<{shape}>, Stride<{stride}>, "
            f"Layout::{view.layout.name}>"
        )
        more = ""
        if shape_args or stride_args:
            more = f", Shape<{shape}>({shape_args}), Stride<{stride}>({stride_args})"
        self._line(f"{kind} {name}({view.pointer}{more});")

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


def _is_used(value: Value, function: Function) -> bool:
    """Whether an instruction takes the view; one that is only divided further needs no object."""
    return any(op.insn is not None and value in op.operands for op in function.walk())
