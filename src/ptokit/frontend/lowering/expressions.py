"""What expressions of a kernel give, and where assignments put it: Python over known values,
operations over symbols."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Note, PtoError
from ptokit.frontend.advice import unknown_attribute, unknown_name
from ptokit.frontend.lowering.choice import chosen_tile
from ptokit.frontend.lowering.fifos import PipeSymbol
from ptokit.frontend.lowering.heap import Symbol, is_mutable, reached
from ptokit.frontend.lowering.loops import Loops
from ptokit.frontend.lowering.naming import note, note_global, note_written
from ptokit.frontend.lowering.numbers import Number, compare, inverted, truth
from ptokit.frontend.lowering.symbols import UNNAMED, BufferSymbol, GlobalSymbol, Gone
from ptokit.frontend.lowering.vectors import OnChipSymbol, VectorSymbol
from ptokit.frontend.tensor_types import GlobalTensor
from ptokit.frontend.trees import Opened, is_record, taken_apart
from ptokit.frontend.types import Tile
from ptokit.ir.core import Op
from ptokit.ir.sourcenames import Line
from ptokit.ir.types import I1

# What symbols stand for, and what only runs.
HAVE_CONTENTS = (Tile, GlobalTensor)

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


@dataclass
class Scope:
    """Names of one function being interpreted."""

    names: dict[str, Any]
    outer: dict[str, Any]
    file: str
    first_line: int
    indent: int
    enclosing: Scope | None = None  # of a function that was defined inside another one


_NAMED = (BufferSymbol, GlobalSymbol, Number, OnChipSymbol, PipeSymbol, VectorSymbol)


def _give_name(value: Any, name: str) -> None:
    """What an operation has made takes the name of the first variable it is assigned to."""
    if isinstance(value, list | tuple):
        for number, each in enumerate(cast("Sequence[Any]", value)):
            if isinstance(each, BufferSymbol | VectorSymbol):
                _give_name(each, f"{name}_{number}")
        return
    if isinstance(value, Opened):
        for leaf in taken_apart(value, is_record).leaves:
            _give_name(leaf, name)
    if isinstance(value, _NAMED):
        made = value.value
        if isinstance(made.owner, Op) and made.name in UNNAMED:
            made.name = name


class Expressions(Loops):
    """The part of the interpreter that evaluates and assigns."""

    foreign: list[Any]  # objects from outside that the kernel has named

    if TYPE_CHECKING:

        def unsupported(self, node: ast.AST) -> PtoError: ...
        def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any: ...
        @property
        def line(self) -> Line: ...

    # ---- assignment ------------------------------------------------------------------------

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.scope.names[target.id] = value
            _give_name(value, target.id)
            if self.scope is self.frames[0]:
                note(self.emitter.names, self.line, target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, list(value))
        elif isinstance(target, ast.Subscript):
            self._set_item(self.value(target.value), self.value(target.slice), value)
        elif isinstance(target, ast.Attribute):
            self._set_attribute(self.value(target.value), target, value)
        else:
            raise self.unsupported(target)

    def _unpack(self, targets: list[ast.expr], values: list[Any]) -> None:
        starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if starred is not None and len(values) >= len(targets) - 1:
            behind = len(targets) - starred - 1
            stop = len(values) - behind
            values = [*values[:starred], values[starred:stop], *values[stop:]]
        if len(values) != len(targets):
            counts = f"{len(targets)} names, {len(values)} values"
            raise self.emitter.fail("unpack", f"cannot unpack: {counts}")
        for each, part in zip(targets, values, strict=True):
            self.assign(each.value if isinstance(each, ast.Starred) else each, part)

    def touch(self, held: Any, what: str) -> None:
        """Something is about to be changed: refused where it outlives the kernel."""
        if is_mutable(held) and not isinstance(held, Symbol) and id(held) in reached(self.foreign):
            raise self.emitter.fail(
                "global-state",
                f"{what} changes a {type(held).__name__} that was made outside the kernel",
                "make it in the kernel, or pass arrays to write to",
            )
        self.emitter.heap.touch(held, what, self.emitter.location)

    def _set_item(self, held: Any, index: Any, value: Any) -> None:
        self.touch(held, "the assignment of an element")
        if isinstance(held, Symbol):
            raise self.emitter.fail(
                "assignment",
                f"{held!r} cannot be changed by assigning to its elements",
                "TSTORE, SetValue and store_scalar write memory",
            )
        held[self._key(held, index)] = value

    def _set_attribute(self, held: Any, target: ast.Attribute, value: Any) -> None:
        self.touch(held, f"the assignment of .{target.attr}")
        if isinstance(held, Symbol) or not is_mutable(held):
            raise self.emitter.fail(
                "assignment", f"{held!r} has no attribute that a kernel can assign"
            )
        setattr(held, target.attr, value)

    def _key(self, held: Any, index: Any) -> Any:
        """The index of a list or the key of a dict, which must be known."""
        if isinstance(held, dict) and isinstance(index, Number):
            raise self.emitter.fail(
                "needs-constant",
                "the keys of a dict are known at compile time, but this one is a run-time value",
                "compare it: `if key == 1: ...`",
            )
        return index

    # ---- expressions -----------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        method = getattr(self, f"get_{type(node).__name__}", None)
        if method is None:
            self.at(node)
            raise self.unsupported(node)
        return method(node)

    def get_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def get_Name(self, node: ast.Name) -> Any:
        scope: Scope | None = self.scope
        while scope is not None:
            if node.id in scope.names:
                found = scope.names[node.id]
                if isinstance(found, Gone):
                    self.at(node)
                    raise self._gone(found)
                if scope is self.frames[0]:  # names of helpers say nothing about the kernel
                    note(self.emitter.names, self.line, node.id, found)
                return found
            scope = scope.enclosing
        for names in (self.scope.outer, vars(builtins)):
            if node.id in names:
                found = names[node.id]
                note_global(self.emitter.names, self.line, node.id, found, names)
                if is_mutable(found) and all(found is not each for each in self.foreign):
                    self.foreign.append(found)
                return found
        self.at(node)
        known = [*self.scope.names, *self.scope.outer]
        raise unknown_name(node.id, known, self.emitter.location)

    def _gone(self, found: Gone) -> PtoError:
        if found.why:
            return self.emitter.fail(
                "gone",
                f"what {found.name} is after the {found.what} cannot be told: {found.why}",
                f"give {found.name} a number, tiles of one type, or a tuple of them on every path; "
                "a list or dict stays one, and its elements change",
                [Note(f"the {found.what}", found.location)],
            )
        return self.emitter.fail(
            "gone",
            f"{found.name} is assigned only inside the {found.what}",
            f"assign {found.name} before the {found.what}",
            [Note("assigned here", found.location)],
        )

    def get_Attribute(self, node: ast.Attribute) -> Any:
        return self._attribute(self.value(node.value), node)

    def _attribute(self, subject: Any, node: ast.Attribute) -> Any:
        try:
            return getattr(subject, node.attr)
        except AttributeError as error:
            self.at(node)
            names = (callable(getattr(t, node.attr, None)) for t in HAVE_CONTENTS)
            if isinstance(subject, Symbol) and any(names):
                raise self.emitter.fail(
                    "contents",
                    f".{node.attr} looks at contents, which are known only at run time",
                    'TPRINT shows a tile, GetValue takes an element; path="eager" just runs',
                ) from None
            raise unknown_attribute(error, self.emitter.location) from None

    def get_Subscript(self, node: ast.Subscript) -> Any:
        subject, index = self.value(node.value), self.value(node.slice)
        self.at(node)
        found = self._item(subject, index)
        note_written(self.emitter.names, self.line, node, found)
        return found

    def _item(self, subject: Any, index: Any) -> Any:
        taken = getattr(subject, "lower_item", None)
        if taken:
            return taken(index)
        if isinstance(index, Number) and isinstance(subject, list | tuple):
            return chosen_tile(self.emitter, subject, index)
        return subject[self._key(subject, index)]

    def get_Slice(self, node: ast.Slice) -> slice:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if p is None else self.value(p) for p in parts))

    def get_Tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._elements(node.elts))

    def get_List(self, node: ast.List) -> list[Any]:
        return self._elements(node.elts)

    def _elements(self, nodes: Sequence[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += list(self.value(each.value))
            else:
                found.append(self.value(each))
        return found

    def get_ListComp(self, node: ast.ListComp) -> list[Any]:
        """A list whose length is known: of tiles, addresses, types."""
        saved = dict(self.scope.names)
        found: list[Any] = []
        self._comprehend(node.generators, lambda: found.append(self.value(node.elt)))
        self.scope.names = saved  # its variables are its own
        return found

    def _comprehend(self, loops: Sequence[ast.comprehension], emit: Callable[[], None]) -> None:
        if not loops:
            emit()
            return
        first, *rest = loops
        for each in self.value(first.iter):
            self.assign(first.target, each)
            if all(self._known(test) for test in first.ifs):
                self._comprehend(rest, emit)

    def get_DictComp(self, node: ast.DictComp) -> dict[Any, Any]:
        saved = dict(self.scope.names)
        found: dict[Any, Any] = {}

        def add() -> None:
            found[self._key(found, self.value(node.key))] = self.value(node.value)

        self._comprehend(node.generators, add)
        self.scope.names = saved
        return found

    def get_Dict(self, node: ast.Dict) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(value))
            else:
                found[self._key(found, self.value(key))] = self.value(value)
        return found

    def get_Set(self, node: ast.Set) -> set[Any]:
        return set(self._elements(node.elts))

    def get_NamedExpr(self, node: ast.NamedExpr) -> Any:
        found = self.value(node.value)
        self.assign(node.target, found)
        return found

    def _known(self, node: ast.expr) -> bool:
        found = self.value(node)
        if isinstance(found, Number):
            self.at(node)
            raise self.emitter.fail(
                "comprehension", "the `if` of a comprehension is known at compile time"
            )
        return bool(found)

    def get_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        self.at(node)
        return BINARY[type(node.op)](left, right)

    def get_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        self.at(node)
        if isinstance(node.op, ast.Not):
            if isinstance(operand, Number):
                return inverted(self.emitter, truth(self.emitter, operand))
            return not operand
        if isinstance(node.op, ast.USub):
            return -operand
        return +operand if isinstance(node.op, ast.UAdd) else ~operand

    def get_Compare(self, node: ast.Compare) -> Any:
        return self._compared(node, self.value(node.left), 0)

    def _compared(self, node: ast.Compare, left: Any, at: int) -> Any:
        """The comparisons from one place on: `a < b < c` looks at c only where a < b."""
        right = self.value(node.comparators[at])
        self.at(node)
        if isinstance(node.ops[at], ast.In | ast.NotIn):
            found = self._contains(right, left, isinstance(node.ops[at], ast.In))
        else:
            found = _COMPARE[type(node.ops[at])](left, right)
        if at + 1 == len(node.ops):
            return found
        if isinstance(found, Number):
            return self.chosen(found, lambda: self._compared(node, right, at + 1), lambda: False)
        return self._compared(node, right, at + 1) if found else found

    def _contains(self, values: Any, one: Any, is_wanted: bool) -> Any:
        """`one in values`, compared element by element where they are run-time numbers."""
        symbols = [one, *values] if isinstance(values, list | tuple) else []
        if not any(isinstance(each, Number) for each in symbols):
            return (one in values) == is_wanted
        found: Any = False
        for each in values:
            found = found | compare(self.emitter, "==", one, each)
        if not isinstance(found, Number):
            return found == is_wanted
        return found if is_wanted else inverted(self.emitter, found)

    def get_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._joined(isinstance(node.op, ast.And), node.values)

    def _joined(self, is_and: bool, nodes: Sequence[ast.expr]) -> Any:
        """`and`, `or`: later operands are evaluated only where the first do not decide."""
        first, *rest = nodes
        found = self.value(first)
        if not rest:
            return found
        if not isinstance(found, Number):
            return self._joined(is_and, rest) if bool(found) == is_and else found
        holds = truth(self.emitter, found)
        short = found if found.type != I1 else not is_and

        def go_on() -> Any:
            return self._joined(is_and, rest)

        def decided() -> Any:
            return short

        return self.chosen(holds, *((go_on, decided) if is_and else (decided, go_on)))

    def get_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.value(node.test)
        if not isinstance(condition, Number):
            return self.value(node.body if condition else node.orelse)
        self.at(node)
        holds = truth(self.emitter, condition)
        return self.chosen(holds, lambda: self.value(node.body), lambda: self.value(node.orelse))

    def get_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.value(part)) for part in node.values)

    def get_FormattedValue(self, node: ast.FormattedValue) -> str:
        value = self.value(node.value)
        if isinstance(value, Symbol):
            self.at(node)
            raise self.emitter.fail(
                "text", "a text cannot hold a run-time value", "print(text, value) shows one"
            )
        convert: Callable[[Any], Any] = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}[
            node.conversion
        ]
        spec = self.value(node.format_spec) if node.format_spec else ""
        return format(convert(value), spec)

    def get_Call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args = self._elements(node.args)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                kwargs |= self.value(keyword.value)
            else:
                kwargs[keyword.arg] = self.value(keyword.value)
        self.at(node)
        return self.call(function, args, kwargs)
