"""Writes operations: the block in hand, the user's line, and constants that are made once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ptokit.base.diagnostics import Diagnostic, Note, PtoError, fail
from ptokit.base.location import Location
from ptokit.frontend.lowering.heap import Heap
from ptokit.ir.attributes import Attribute, BoolAttr, FloatAttr, IntAttr
from ptokit.ir.core import NOWHERE, Block, Function, Op, Value
from ptokit.ir.dialects import arith
from ptokit.ir.dialects.memory import GET_TILE
from ptokit.ir.sourcenames import SourceNames
from ptokit.ir.types import I1, INDEX, ScalarType, Type
from ptokit.isa.spec import Insn

# Operations that only compute: one serves all who ask for the same, and none is there in vain.
COMPUTED = frozenset(each.name for each in (*arith.DEFINITIONS, GET_TILE))

Labelled = Sequence[tuple[str, Value]]


class Emitter:
    """Appends operations to the innermost open block."""

    def __init__(self, function: Function) -> None:
        assert function.body is not None
        self.function = function
        self.location: Location = NOWHERE
        self.heap = Heap()
        self.names = SourceNames(shows_lines=True)
        self.written = 0  # operations so far
        self.remarks: list[Diagnostic] = []  # about what is left out of the program
        self.calls_out = False  # whether code was called that may do more than answer
        self.watched: list[dict[Any, Any]] = []  # taken back when a region is written anew
        self._blocks: list[Block] = [function.body]
        self._constants: list[dict[tuple[Type, Any], Value]] = [{}]
        # Arithmetic already written, per region: equal expressions are one value, which is how
        # `g[i * 16 : i * 16 + 16]` is seen to have 16 rows.
        self._known: list[dict[tuple[Any, ...], Op]] = [{}]

    @property
    def block(self) -> Block:
        return self._blocks[-1]

    @property
    def depth(self) -> int:
        """How many regions are open; 0 is the body of the function."""
        return len(self._blocks) - 1

    @contextmanager
    def region(self, block: Block) -> Generator[Block, None, None]:
        """Write into a nested block."""
        self._blocks.append(block)
        self._constants.append({})
        self._known.append({})
        try:
            yield block
        finally:
            self._blocks.pop()
            self._constants.pop()
            self._known.pop()

    def emit(
        self,
        name: str,
        operands: Labelled = (),
        results: Sequence[tuple[str, Type]] = (),
        attrs: dict[str, Attribute] | None = None,
        regions: Sequence[Block] = (),
        insn: Insn | None = None,
        hint: str = "",
    ) -> Op:
        """Append an operation at the line in hand."""
        key = (name, *(id(v) for _, v in operands), *(t for _, t in results), repr(attrs))
        is_arithmetic = name in COMPUTED
        if is_arithmetic and operands:
            for known in self._known:
                if key in known:
                    return known[key]
        op = Op(
            name,
            [value for _, value in operands],
            tuple(label for label, _ in operands),
            [Value(hint or "v", type_, None, self.location) for _, type_ in results],
            tuple(label for label, _ in results),
            attrs or {},
            list(regions),
            self.location,
            insn,
        )
        for result in op.results:
            result.owner = op
        self.block.ops.append(op)
        self.written += 1
        if is_arithmetic:
            self._known[-1][key] = op
        return op

    def constant(self, value: float, type_: Type = INDEX) -> Value:
        """The constant, made once per region in which it is used."""
        key = (type_, repr(value))
        for known in self._constants:
            if key in known:
                return known[key]
        attr: Attribute
        if type_ == I1:
            attr = BoolAttr(bool(value))
        elif isinstance(type_, ScalarType) and type_.is_float:
            attr = FloatAttr(float(value), type_)
        else:
            attr = IntAttr(int(value), type_)
        hint = f"c{int(value)}" if type_ == INDEX and value >= 0 else "cst"
        made = self.emit("arith.constant", (), [("result", type_)], {"value": attr}, hint=hint)
        self._constants[-1][key] = made.result
        return made.result

    def block_of(self, op: Op) -> Block | None:
        """The open block in which an operation was written."""
        return next((block for block in self._blocks if op in block.ops), None)

    def constant_before(self, op: Op, value: int, type_: Type) -> Value:
        """A constant that stands before an operation written earlier."""
        block = self.block_of(op)
        assert block is not None, "a tile of a region that has ended has no name any more"
        made = Op("arith.constant", [], (), [Value("addr", type_)], ("result",))
        made.attrs["value"] = IntAttr(value, type_)
        made.location = made.result.location = op.location
        made.result.owner = made
        block.ops.insert(block.ops.index(op), made)
        return made.result

    def fail(self, code: str, message: str, fix: str = "", notes: Sequence[Note] = ()) -> PtoError:
        """An error at the user's line."""
        return fail(f"lower.{code}", message, fix=fix, site=self.location, notes=notes)
