"""The program as data: module, functions, blocks, operations and values.

Plain objects compared by identity. An operation names its operands by label ("src0", "shape"), so
optional and variadic operands need no counting; what labels there are is said by the instruction
table or by the operation's record in `dialects`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic
from ptokit.base.location import Location
from ptokit.ir.attributes import Attribute
from ptokit.ir.sourcenames import SourceNames
from ptokit.ir.types import Type
from ptokit.isa.spec import Insn

NOWHERE = Location("<built>", 0)


@dataclass(eq=False, slots=True)
class Value:
    """The result of an operation, or an argument of a block. `name` is a wish, not an identity."""

    name: str
    type: Type
    owner: Op | Block | None = None
    location: Location = NOWHERE

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


@dataclass(eq=False, slots=True)
class Op:
    """One operation. `insn` is set for instructions of the table."""

    name: str  # with its dialect: pto.tadd, arith.addi
    operands: list[Value] = field(default_factory=list[Value])
    labels: tuple[str, ...] = ()  # one per operand
    results: list[Value] = field(default_factory=list[Value])
    result_labels: tuple[str, ...] = ()
    attrs: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    regions: list[Block] = field(default_factory=list["Block"])
    location: Location = NOWHERE
    insn: Insn | None = None

    def operand(self, label: str) -> Value | None:
        """The operand with this label, or None when it was left out."""
        for value, each in zip(self.operands, self.labels, strict=True):
            if each == label:
                return value
        return None

    def group(self, label: str) -> list[Value]:
        """All operands with this label."""
        pairs = zip(self.operands, self.labels, strict=True)
        return [value for value, each in pairs if each == label]

    def bound(self, label: str) -> Value | None:
        """The operand or result with this label: an instruction's `dst` may be either."""
        found = self.operand(label)
        if found is None and label in self.result_labels:
            return self.results[self.result_labels.index(label)]
        return found

    @property
    def result(self) -> Value:
        return self.results[0]

    def __repr__(self) -> str:
        return f"<{self.name} at {self.location}>"


@dataclass(eq=False, slots=True)
class Block:
    """A straight list of operations with arguments; the body of functions, loops and branches."""

    args: list[Value] = field(default_factory=list[Value])
    ops: list[Op] = field(default_factory=list[Op])
    end: int = 0  # the line of the closing brace, for comments in front of it

    def walk(self) -> Iterator[Op]:
        """Every operation, outer before inner, in program order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


@dataclass(eq=False, slots=True)
class Unit:
    """A module inside the program's: who lies in it knows the names there, and what others export.

    Names of definitions are those of the whole program (`ir/linking.py`); an import has the name of
    what it stands for.
    """

    attrs: dict[str, Attribute] = field(default_factory=dict[str, Attribute])


@dataclass(eq=False, slots=True)
class Function:
    """A function; `body` is None for a declaration."""

    name: str
    body: Block | None = field(default_factory=Block)
    results: tuple[Type, ...] = ()
    attrs: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    inputs: tuple[Type, ...] = ()  # parameter types of a declaration
    is_private: bool = False
    location: Location = NOWHERE
    unit: Unit | None = None  # the module inside the program's that it lies in

    @property
    def params(self) -> list[Value]:
        return self.body.args if self.body else []

    @property
    def input_types(self) -> tuple[Type, ...]:
        return tuple(p.type for p in self.body.args) if self.body else self.inputs

    def walk(self) -> Iterator[Op]:
        """Every operation of the body."""
        return self.body.walk() if self.body else iter(())

    def __repr__(self) -> str:
        return f"<func @{self.name}>"


@dataclass(eq=False, slots=True)
class Module:
    """A whole program."""

    functions: list[Function] = field(default_factory=list[Function])
    attrs: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    location: Location = NOWHERE
    remarks: tuple[Diagnostic, ...] = ()  # of whoever made it: what is not in the program any more
    names: SourceNames = field(default_factory=SourceNames)
    # Whether whoever wrote it has called code that may do more than the program says.
    calls_out: bool = False

    def function(self, name: str) -> Function | None:
        """The function of this name: the one with a body, where others import it."""
        found = [f for f in self.functions if f.name == name]
        return next((f for f in found if f.body is not None), found[0] if found else None)

    def walk(self) -> Iterator[Op]:
        """Every operation of every function."""
        for function in self.functions:
            yield from function.walk()


def complaint(
    op: Op, code: str, message: str, got: dict[str, Any] | None = None, fix: str = ""
) -> Diagnostic:
    """A diagnostic at an operation."""
    values = tuple((name, str(value)) for name, value in (got or {}).items())
    return Diagnostic(code, f"{op.name}: {message}", op.location, values, fix)
