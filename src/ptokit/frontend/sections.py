"""Sections of a mixed kernel: code for the cube core and code for the vector cores in one body.

    with cube_section():
        ...
    with vector_section():
        ...

A mixed kernel runs once per core of the cluster, and each core skips the sections of the others.
Python cannot skip the body of a `with`, so the function is rewritten once: each section becomes
an `if` on the kind of the core in force. Lines and columns stay, so tracebacks and breakpoints
do too. Outside a mixed kernel a section is plain code: one stream plays every part.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from ptokit.base.dataclass import dataclass
from ptokit.base.entry import public
from ptokit.base.usercode import compiled
from ptokit.frontend.session import current

if TYPE_CHECKING:
    from ptokit.frontend.lowering.statements import KernelLowering


@public
@dataclass(eq=False)
class Section:
    """A part of a kernel that belongs to one kind of core."""

    kind: str
    hides: ClassVar[str] = "the other kind of core skips the section"

    def __enter__(self) -> None:
        """Run the body; see the module's text for how other cores skip it."""

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def lower(self, interpreter: KernelLowering, body: Callable[[], None]) -> None:
        """Write the section as an operation with a region."""
        from ptokit.ir.core import Block  # only lowering needs the IR: `import ptokit` stays quick

        block, core = Block(), current().core
        core.kind, before = self.kind, core.kind
        with interpreter.emitter.region(block):
            body()
        core.kind = before
        interpreter.emitter.emit(f"pto.section.{self.kind}", [], [], {}, [block])


def cube_section() -> Section:
    """Code of the cube core."""
    return Section("cube")


def vector_section() -> Section:
    """Code of the vector cores."""
    return Section("vector")


def on_core(kind: str) -> bool:
    """Whether code of this kind runs on the core in force."""
    return current().core.kind in ("mix", kind)


_KINDS = {"cube_section": "cube", "vector_section": "vector"}


class _Guard(ast.NodeTransformer):
    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        call = node.items[0].context_expr
        kind = (
            _KINDS.get(_name(call.func))
            if isinstance(call, ast.Call) and len(node.items) == 1
            else None
        )
        if kind is None:
            return node
        test = ast.Call(ast.Name("__on_core", ast.Load()), [ast.Constant(kind)], [])
        guard = ast.If(test, node.body, [])
        return ast.fix_missing_locations(ast.copy_location(guard, node))


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def guarded(function: FunctionType) -> Callable[..., Any]:
    """The function with its sections as conditions; unchanged when it has none."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return function
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return function
    definition.decorator_list = []
    _Guard().visit(tree)
    ast.increment_lineno(tree, first - 1)
    closure = inspect.getclosurevars(function).nonlocals
    names: dict[str, Any] = {**function.__globals__, **closure, "__on_core": on_core}
    exec(compiled(tree, function.__code__.co_filename, function), names)
    made: Callable[..., Any] = names[function.__name__]
    made.__kwdefaults__ = function.__kwdefaults__  # type: ignore[attr-defined]
    made.__defaults__ = function.__defaults__  # type: ignore[attr-defined]
    return made
