"""What every part of the emitter writes with: lines, names, types, and the refusal."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.emit.expressions import UNARY, Expr, literal, value_type, whole
from ptokit.emit.launchers import WIDTH, wrapped
from ptokit.emit.lines import Lines
from ptokit.emit.uses import Uses, is_named
from ptokit.emit.words import EXITS, KEYWORDS, camel, pipe_type, tile_type
from ptokit.ir.attributes import FloatAttr
from ptokit.ir.core import NOWHERE, Block, Function, Module, Op, Value
from ptokit.ir.types import F64, BufferType
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import Target


@dataclass
class GlobalView:
    """A view of global memory: what it is a part of, pointer, sizes and strides."""

    root: str
    pointer: Expr
    dtype: DType
    shape: list[Expr]
    stride: list[Expr]
    layout: Layout


@dataclass
class Writer:
    """The text of one function as it grows, and what is known of its values."""

    function: Function
    module: Module
    target: Target
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    views: dict[Value, GlobalView] = field(default_factory=dict[Value, GlobalView])
    constants: dict[Value, int] = field(default_factory=dict[Value, int])
    folded: dict[Value, Expr] = field(default_factory=dict[Value, Expr])  # written where taken
    reals: dict[Value, FloatAttr] = field(default_factory=dict[Value, FloatAttr])
    roots: dict[Value, str] = field(default_factory=dict[Value, str])  # pointers they count from
    slots: dict[Value, Expr] = field(default_factory=dict[Value, Expr])  # addresses of tiles
    windows: dict[Value, TileSpec] = field(default_factory=dict[Value, TileSpec])  # what they are
    pipes: dict[Value, PipeSpec] = field(default_factory=dict[Value, PipeSpec])
    # Constants by their names in the source: their types, and how they are declared.
    numbers: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    types: dict[str, str] = field(default_factory=dict[str, str])  # aliases -> what they stand for
    _aliases: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _plain: dict[str, TileSpec] = field(default_factory=dict[str, TileSpec])  # first of that name
    _kinds: dict[Value, str] = field(default_factory=dict[Value, str])  # aliases of their types
    _taken: set[str] = field(default_factory=set[str])
    _closed: set[str] = field(default_factory=set[str])  # names of scopes that have ended
    _at: Op | Function | None = None

    def __post_init__(self) -> None:
        self.uses = Uses(self.function)
        self.lines = Lines(self.module.names.shows_lines, self.function.location.file)

    def declarations(self) -> list[str]:
        """The numbers and types that the lines use, by name."""
        kinds = dict.fromkeys(kind for kind, _ in self.numbers.values())
        numbers = [
            wrapped(
                f"    constexpr {kind} ", [t for k, t in self.numbers.values() if k == kind], ""
            )
            for kind in kinds
        ]
        types: list[str] = []
        for name, text in self.types.items():
            line = f"    using {name} = {text};"
            types.append(line if len(line) <= WIDTH else line.replace(" = ", " =\n        ", 1))
        return [f"{each};" for each in numbers] + types

    # ---- lines -----------------------------------------------------------------------------

    def _line(self, text: str, *, orders: bool = False, outside: bool = False) -> None:
        where = self._at.location if self._at is not None else NOWHERE
        self.lines.depth -= outside
        self.lines.add(text, where, orders=orders)
        self.lines.depth += outside

    def _computed(self, op: Op, expression: Expr) -> None:
        """A value without an effect: written where it is taken, or kept under a name."""
        if self.uses.is_folded(op):
            self.folded[op.result] = expression
        else:
            self._local(op, expression.text)

    def _local(self, op: Op, expression: str) -> None:
        kind = value_type(op.result.type)
        if self.uses.count(op.result):
            is_count = kind.endswith("_t") and not is_named(op.result)
            name = self._declare(op.result, "n" if is_count else "")
            self._line(f"const {kind} {name} = {expression};")
        else:
            self._line(f"{expression};")

    @contextmanager
    def _scope(self) -> Generator[None, None, None]:
        """Between braces: the names of what is declared there can be taken again behind them."""
        self.lines.depth += 1
        before = set(self._taken)
        yield
        self._closed |= self._taken - before
        self._taken = before | set(self.numbers) | set(self.types)
        self.lines.depth -= 1

    def _block(self, block: Block) -> None:
        for op in block.ops:
            outer, self._at = self._at, op
            if not self.uses.is_dead(op):
                self._op(op)
            self._at = outer

    def _op(self, op: Op) -> None:
        raise NotImplementedError

    def _refuse(self, what: str, where: Op | Function) -> PtoError:
        return fail(
            "emit-cpp",
            f"PTO C++ cannot be written for {what}",
            site=where.location,
            kind=NotSupported,
        )

    # ---- values ----------------------------------------------------------------------------

    def _declare(self, value: Value, base: str = "") -> str:
        base = re.sub(r"\W", "_", base or value.name).removeprefix("_")
        base = base if base.strip("_") else "v"  # names with two underscores are reserved
        base = f"v{base}" if base[0].isdigit() else EXITS.get(base, base)
        self.names[value] = self._unused(base)
        return self.names[value]

    def _unused(self, base: str) -> str:
        name, n = base, 0
        while name in self._taken or name in KEYWORDS:
            n += 1
            name = f"{base}_{n}"
        self._taken.add(name)
        return name

    def _expr(self, value: Value) -> Expr:
        """A value as it is written here."""
        if value in self.reals:
            return self._real(value, self.reals[value])
        if value in self.folded:
            return self.folded[value]
        if value in self.constants:
            return self._number(value, self.constants[value])
        if value not in self.names:
            assert self._at is not None
            raise self._refuse(f"%{value.name}, which {self._name_of(self._at)} takes", self._at)
        return Expr(self.names[value])

    def _name_of(self, op: Op | Function) -> str:
        return op.name

    def _use(self, value: Value) -> str:
        return self._expr(value).text

    def _number(self, value: Value | None, number: int) -> Expr:
        """An integer: by the name it has in the source, where it has one."""
        named = ""
        if value is not None and not self.module.names.shows_lines and is_named(value):
            named = value.name if number not in (0, 1) else ""  # %zero says no more than 0
        elif self._at is not None:
            named = self.module.names.number(self._at.location, number)
        if not named:
            return whole(number)
        kind = value_type(value.type) if value is not None and named == value.name else "int64_t"
        return self._constant(named, kind, str(number))._replace(number=number)

    def _real(self, value: Value, number: FloatAttr) -> Expr:
        """A real number, likewise."""
        known, text = self.module.names, literal(number).text
        named = value.name if not known.shows_lines and is_named(value) else ""
        if not named and self._at is not None:
            named = known.number(self._at.location, number.value)
        if not named:
            return literal(number)
        return self._constant(named, "double" if number.type == F64 else "float", text)

    def _constant(self, name: str, kind: str, text: str) -> Expr:
        """A number of the source under its name; the literal where C++ has another use for it."""
        if not self._is_free(name):
            return Expr(text, UNARY) if text[0] == "-" else Expr(text)
        if name not in self.numbers:
            self._taken.add(name)
            self.numbers[name] = kind, f"{name} = {text}"
        return Expr(name)

    def _is_free(self, name: str) -> bool:
        """Whether a number of the source can have its name here."""
        taken = self._taken | self._closed
        is_taken = name in taken or name in KEYWORDS or not name.isidentifier()
        return name in self.numbers or not is_taken

    def _is_known(self, number: Expr) -> bool:
        """Whether a size is known where it is compiled."""
        return number.number is not None

    def _hex(self, value: Value) -> Expr:
        """An address."""
        known = self.constants.get(value)
        return Expr(f"0x{known:x}", number=known) if known is not None else self._expr(value)

    # ---- types -----------------------------------------------------------------------------

    def _alias(self, name: str, text: str, apart: str = "") -> str:
        """A name for a type; `apart` tells it from another one that has the name already."""
        if (name, text) not in self._aliases:
            made = self._unused(name if name not in self._taken else f"{name}{apart}")
            while made in self._closed:  # it is declared in front of all scopes
                made = self._unused(made)
            self._aliases[name, text] = made
            self.types[made] = text
        return self._aliases[name, text]

    def _tile_type(self, spec: TileSpec | ConvSpec) -> str:
        known = self.module.names
        where = self._at.location if self._at is not None else NOWHERE
        named, words = known.type(where, spec)
        sizes = {n: v for n in words if (v := known.numbers.get(n)) and self._is_free(n)}
        text, shown = tile_type(spec, self.target, words, sizes)
        for name in shown:
            self._constant(name, "int64_t", str(sizes[name]))
        if named or isinstance(spec, ConvSpec):
            return self._alias(named[:1].upper() + named[1:] if named else "Conv", text)
        rows, cols = text.partition(spec.dtype.cpp)[2].strip(", >").split(", ")[:2]
        plain = f"{spec.loc.name}{rows}x{cols}"
        first = self._plain.setdefault(plain, spec)
        is_other = first.dtype != spec.dtype
        return self._alias(plain, text, f"_{spec.dtype.name if is_other else spec.layout}")

    def _type_of(self, value: Value) -> str:
        """The alias of the type that a tile was declared with."""
        return self._kinds.get(value) or self._tile_type(self._spec(value))

    def _pipe_type(self, pipe: Value) -> str:
        return self._alias(camel(pipe.name), pipe_type(self.pipes[pipe]))

    def _spec(self, value: Value) -> TileSpec | ConvSpec:
        """The tile that a handle is; a window steps through memory as its parent does."""
        assert isinstance(value.type, BufferType)
        return self.windows.get(value, value.type.spec)

    def _make(self, value: Value, sizes: list[str] | None = None) -> str:
        """A tile object for a handle, bound to nothing yet; all of it is valid unless `sizes` tell.

        Returns its name.
        """
        spec = self._spec(value)
        if sizes is None and isinstance(spec, TileSpec):
            pairs = ((spec.valid_row, spec.rows), (spec.valid_col, spec.cols))
            sizes = [str(most) for valid, most in pairs if valid == DYNAMIC]
        alias = self._kinds[value] = self._tile_type(spec)
        name = self._declare(value)
        where = self._at.location if self._at is not None else NOWHERE
        self.lines.declare(alias, f"{name}({', '.join(sizes)})" if sizes else name, where)
        return name

    def _bind(self, name: str, address: Expr) -> None:
        self._line(f"TASSIGN({name}, {address.text});")
