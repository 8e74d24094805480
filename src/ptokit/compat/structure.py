"""Operations that hold others: modules, functions, loops and branches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ptokit.base.diagnostics import ProgramError
from ptokit.compat.operations import build
from ptokit.compat.parts import (
    MODULES,
    Attributes,
    Block,
    InsertionPoint,
    Operation,
    Region,
    Value,
    WalkResult,
    current_point,
    here,
    insert,
    plain,
    walk,
)
from ptokit.compat.types import Context, FunctionType, Type
from ptokit.from_text import Program, loads
from ptokit.ir import core
from ptokit.ir.attributes import StringAttr, SymbolAttr
from ptokit.ir.dialects.func import CALL, RETURN
from ptokit.ir.dialects.scf import CONDITION, FOR, IF, WHILE, YIELD
from ptokit.ir.parser import parse
from ptokit.ir.printer import print_module
from ptokit.isa.targets import TARGETS
from ptokit.passes.verify import refused_texts


class MLIRError(ProgramError):
    """What the bindings raise for a program that cannot be."""


class _Body(Block):
    """The top level of a module, or of one inside it: it holds functions, and modules."""

    def __init__(self, module: core.Module, unit: core.Unit | None = None) -> None:
        super().__init__(core.Block())
        self.module, self.unit = module, unit

    @property
    def operations(self) -> list[Any]:
        found: dict[int, Any] = {}  # a module once, by the first of its functions
        for each in self.module.functions:
            if each.unit is self.unit:
                found[id(each)] = FuncOp.over(each)
            elif self.unit is None and each.unit is not None:
                found.setdefault(id(each.unit), InnerModule(self.module, each.unit))
        return list(found.values())


class InnerModule:
    """A module inside that of the program: its functions have names of their own."""

    name = "builtin.module"

    def __init__(self, module: core.Module, unit: core.Unit) -> None:
        self._module, self._unit = module, unit

    @property
    def parent(self) -> Module:
        """The module of the program."""
        return next(each for each in MODULES if each.ours is self._module)

    @staticmethod
    def create(ip: InsertionPoint | None = None) -> InnerModule:
        """One where operations go, which must be a module itself."""
        block = (ip or current_point()).block
        if not isinstance(block, _Body) or block.unit is not None:
            raise ValueError("a module stands inside a function, or a module inside another one")
        return InnerModule(block.module, core.Unit(dict(block.module.attrs)))

    @property
    def operation(self) -> InnerModule:
        return self

    @property
    def attributes(self) -> Attributes:
        return Attributes(self._unit.attrs)

    @property
    def regions(self) -> list[InnerModule]:
        return [self]

    @property
    def blocks(self) -> InnerModule:
        return self

    def append(self) -> _Body:
        return self.body

    def __getitem__(self, number: int) -> _Body:
        return [self.body][number]

    @property
    def body(self) -> _Body:
        return _Body(self._module, self._unit)


class Module:
    """A program that is being built; `str` is its text."""

    def __init__(self, ours: core.Module | None = None, **_: object) -> None:
        self.ours = core.Module(location=here()) if ours is None else ours
        MODULES.append(self)

    @staticmethod
    def create(loc: object = None) -> Module:
        return Module()

    @staticmethod
    def parse(text: str, context: object = None) -> Module:
        try:
            return Module(parse(text, "<parsed>"))
        except ProgramError as error:
            raise MLIRError(error.diagnostics) from None

    @property
    def body(self) -> _Body:
        return _Body(self.ours)

    @property
    def operation(self) -> Module:
        return self

    @property
    def parent(self) -> None:
        return None

    @property
    def context(self) -> Context:
        return Context.current

    @property
    def functions(self) -> list[FuncOp]:
        """All of them, those of modules inside as well."""
        return [FuncOp.over(each) for each in self.ours.functions]

    @property
    def regions(self) -> list[list[_Body]]:
        return [[self.body]]

    @property
    def attributes(self) -> Attributes:
        return Attributes(self.ours.attrs)

    def verify(self) -> bool:
        """Raise what keeps the program from being read, and what its language does not allow.

        Where it does not say which target it is for: on any of them. What a device asks for beyond
        that is judged when it is run, or compiled.
        """
        try:
            program = self.program()
        except ProgramError as error:
            raise MLIRError(error.diagnostics) from None
        devices = [each for each in TARGETS.values() if each.is_device]
        targets = [program.target()] if "pto.target_arch" in self.ours.attrs else devices
        found = [refused_texts(program.executable(each), each) for each in targets]
        if all(found):
            raise MLIRError(found[0])
        return True

    def program(self) -> Program:
        """The program, read from the text: its findings tell the lines of Python."""
        for function in self.ours.functions:
            if function.body is not None:
                end_bodies(function.body)
        return loads(print_module(self.ours, origins=True), str(self.ours.location.file))

    def walk(self, callback: Callable[[Operation], WalkResult], *_: object) -> None:
        """Call a function for every operation of the functions."""
        walk([f.body for f in self.ours.functions if f.body is not None], callback)

    def get_asm(self, *_: object, **__: object) -> str:
        return str(self)

    def print(self, *_: object, file: Any = None, **__: object) -> None:
        print(self, file=file)

    def __str__(self) -> str:
        return print_module(self.ours)


class FuncOp:
    """A function."""

    def __init__(
        self,
        name: str,
        type: Any,
        *,
        visibility: str | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        signature = type if isinstance(type, FunctionType) else FunctionType.get(*type)
        self.ours = core.Function(
            name,
            None,
            tuple(t.ours for t in signature.results),
            inputs=tuple(t.ours for t in signature.inputs),
            is_private=visibility == "private",
            location=here(),
        )
        block = (ip or current_point()).block
        if not isinstance(block, _Body):
            raise ValueError(f"func.func @{name} stands inside a function")
        self.ours.unit = block.unit
        block.module.functions.append(self.ours)

    @staticmethod
    def over(function: core.Function) -> FuncOp:
        """A function that exists."""
        made = FuncOp.__new__(FuncOp)
        made.ours = function
        return made

    def add_entry_block(self, arg_locs: object = None) -> Block:
        block = Block(core.Block())
        for type_ in self.type.inputs:
            block.add_argument(type_)
        self.ours.body = block.ours
        return block

    @property
    def entry_block(self) -> Block:
        if self.ours.body is None:
            raise IndexError(f"func.func @{self.ours.name} has no body")
        return Block(self.ours.body)

    @property
    def body(self) -> FuncOp:
        return self

    @property
    def blocks(self) -> list[Block]:
        return [] if self.ours.body is None else [self.entry_block]

    @property
    def operation(self) -> FuncOp:
        return self

    @property
    def parent(self) -> Module | InnerModule:
        """The module that it stands in."""
        held = (m for m in MODULES if any(f is self.ours for f in m.ours.functions))
        module: Module = next(held)
        return module if self.ours.unit is None else InnerModule(module.ours, self.ours.unit)

    @property
    def attributes(self) -> Attributes:
        return Attributes(self.ours.attrs)

    @property
    def arguments(self) -> list[Value]:
        return self.entry_block.arguments

    @property
    def name(self) -> StringAttr:
        return StringAttr(self.ours.name)

    @property
    def type(self) -> FunctionType:
        inputs = [Type(t) for t in self.ours.input_types]
        return FunctionType.get(inputs, [Type(t) for t in self.ours.results])

    def verify(self) -> bool:
        return True

    @staticmethod
    def from_py_func(
        *inputs: Type, results: Sequence[Type] = (), name: str | None = None
    ) -> Callable[[Callable[..., Any]], FuncOp]:
        """A decorator: the function's body is what the Python function builds."""

        def decorate(function: Callable[..., Any]) -> FuncOp:
            made = FuncOp(name or function.__name__, FunctionType.get(inputs, results))
            with InsertionPoint(made.add_entry_block()):
                more = {"func_op": made} if _wants(function, "func_op") else {}
                returned = function(*made.arguments, **more)
                if not _ends(made.entry_block):
                    values = [] if returned is None else returned
                    build(RETURN.name, [_listed(values)], {})
            return made

        return decorate


def _wants(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


def _ends(block: Block) -> bool:
    return bool(block.ours.ops) and RETURN.matches(block.ours.ops[-1])


def _listed(given: Any) -> list[Any]:
    return list(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else [given]


class CallOp(Operation):
    """`func.call`: of a function, or of results, a name and arguments."""

    def __init__(self, first: Any, second: Any, third: Any = None, **named: Any) -> None:
        if isinstance(first, FuncOp):
            results, callee, args = first.type.results, first.ours.name, second
        else:
            results, callee, args = first, second, third
        symbol = callee if isinstance(callee, SymbolAttr) else SymbolAttr(str(callee))
        made = build(CALL.name, [list(results), list(args or ())], {"callee": symbol})
        super().__init__(made.ours)


# ---- loops and branches --------------------------------------------------------------------------


def _made(name: str, operands: dict[str, list[Value]], results: Sequence[Type]) -> core.Op:
    op = core.Op(
        name,
        [v.ours for values in operands.values() for v in values],
        tuple(label for label, values in operands.items() for _ in values),
        [core.Value(str(n), t.ours, None, here()) for n, t in enumerate(results)],
        ("results",) * len(results),
        location=here(),
    )
    insert(op)
    return op


def _values(given: Any) -> list[Value]:
    found = plain(given)
    return [] if found is None else [plain(each) for each in _listed(found)]


class ForOp(Operation):
    """`scf.for`."""

    def __init__(
        self, lower: Any, upper: Any, step: Any, iter_args: Any = None, **_: object
    ) -> None:
        inits = _values(iter_args)
        bounds = {"lower": _values(lower), "upper": _values(upper), "step": _values(step)}
        op = _made(FOR.name, bounds | {"inits": inits}, [v.type for v in inits])
        super().__init__(op)
        block = self.body_region.append(bounds["lower"][0].type, *(v.type for v in inits))
        block.ours.args[0].name = "i"

    @property
    def body_region(self) -> Region:
        return Region(self.ours)

    @property
    def body(self) -> Block:
        return Block(self.ours.regions[0])

    @property
    def induction_variable(self) -> Value:
        return self.body.arguments[0]

    @property
    def inner_iter_args(self) -> list[Value]:
        return self.body.arguments[1:]


class IfOp(Operation):
    """`scf.if`."""

    def __init__(
        self,
        condition: Any,
        results_: Sequence[Type] | None = None,
        *,
        hasElse: bool = False,
        has_else: bool = False,
        **_: object,
    ) -> None:
        super().__init__(_made(IF.name, {IF.operands[0].label: _values(condition)}, results_ or ()))
        for number in range(1 + (hasElse or has_else)):
            Region(self.ours, number).append()

    @property
    def then_block(self) -> Block:
        return Block(self.ours.regions[0])

    @property
    def else_block(self) -> Block | None:
        return Block(self.ours.regions[1]) if len(self.ours.regions) > 1 else None


class WhileOp(Operation):
    """`scf.while`: its two regions get their blocks from the program."""

    def __init__(self, results_: Sequence[Type], inits: Any, **_: object) -> None:
        super().__init__(_made(WHILE.name, {"inits": _values(inits)}, results_))

    @property
    def before(self) -> Region:
        return Region(self.ours, 0)

    @property
    def after(self) -> Region:
        return Region(self.ours, 1)


def for_(
    start: Any, stop: Any = None, step: Any = None, iter_args: Any = None, **_: object
) -> Iterator[Any]:
    """`for i in scf.for_(lower, upper, step):` builds the body of a loop, once."""
    loop = ForOp(start, stop, step, iter_args)
    with InsertionPoint(loop.body):
        carried = loop.inner_iter_args
        if not carried:
            yield loop.induction_variable
        else:
            yield loop.induction_variable, carried, loop.results


def end_bodies(block: core.Block) -> None:
    """Add the terminators that a program may leave out."""
    for op in block.walk():
        for region in op.regions if op.name in (FOR.name, IF.name, WHILE.name) else ():
            last = region.ops[-1].name if region.ops else ""
            if last not in (YIELD.name, CONDITION.name):
                region.ops.append(core.Op(YIELD.name, location=op.location))
