"""What every part of the emitter writes with: lines, names, types, and the refusal."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ptokit.base.diagnostics import NotSupported, PtoError, fail
from ptokit.base.dtypes import DType
from ptokit.base.enums import Layout
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.emit.expressions import value_type
from ptokit.emit.words import KEYWORDS, pipe_type, tile_type
from ptokit.ir.core import Block, Function, Module, Op, Value
from ptokit.ir.types import BufferType
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.targets import Target


@dataclass
class GlobalView:
    """A view of global memory: pointer expression, sizes and strides as C++ or numbers."""

    pointer: str
    dtype: DType
    shape: list[str]
    stride: list[str]
    layout: Layout


@dataclass
class Writer:
    """The text of one function as it grows, and what is known of its values."""

    function: Function
    module: Module
    target: Target
    lines: list[str] = field(default_factory=list[str])
    names: dict[Value, str] = field(default_factory=dict[Value, str])
    views: dict[Value, GlobalView] = field(default_factory=dict[Value, GlobalView])
    constants: dict[Value, int] = field(default_factory=dict[Value, int])
    slots: dict[Value, str] = field(default_factory=dict[Value, str])  # addresses of tiles
    windows: dict[Value, TileSpec] = field(default_factory=dict[Value, TileSpec])  # what they are
    pipes: dict[Value, PipeSpec] = field(default_factory=dict[Value, PipeSpec])
    tile_types: dict[TileSpec | ConvSpec, str] = field(
        default_factory=dict[TileSpec | ConvSpec, str]
    )
    pipe_types: dict[PipeSpec, str] = field(default_factory=dict[PipeSpec, str])
    _taken: set[str] = field(default_factory=set[str])
    _depth: int = 1

    def aliases(self) -> list[str]:
        """The names of types that the lines use."""
        tiles = [(name, tile_type(spec)) for spec, name in self.tile_types.items()]
        pipes = [(name, pipe_type(spec)) for spec, name in self.pipe_types.items()]
        return [f"    using {name} = {text};" for name, text in tiles + pipes]

    # ---- lines -----------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _local(self, op: Op, expression: str) -> None:
        kind = value_type(op.result.type)
        assert kind is not None
        self._line(f"const {kind} {self._declare(op.result)} = {expression};")

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._op(op)

    def _op(self, op: Op) -> None:
        raise NotImplementedError

    def _refuse(self, what: str, where: Op | Function) -> PtoError:
        return fail(
            "emit-cpp",
            f"PTO C++ cannot be written for {what}",
            site=where.location,
            kind=NotSupported,
        )

    # ---- names -----------------------------------------------------------------------------

    def _declare(self, value: Value) -> str:
        base = re.sub(r"\W", "_", value.name)
        base = base if base.strip("_") else "v"  # names with two underscores are reserved
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

    def _hex(self, value: Value) -> str:
        """An address."""
        known = self.constants.get(value)
        return f"0x{known:x}" if known is not None else self._use(value)

    def _tile_type(self, spec: TileSpec | ConvSpec) -> str:
        return self.tile_types.setdefault(spec, f"Tile{len(self.tile_types)}")

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
        alias, name = self._tile_type(spec), self._declare(value)
        self._line(f"{alias} {name}({', '.join(sizes)});" if sizes else f"{alias} {name};")
        return name

    def _pipe_type(self, spec: PipeSpec) -> str:
        return self.pipe_types.setdefault(spec, f"Pipe{len(self.pipe_types)}")
