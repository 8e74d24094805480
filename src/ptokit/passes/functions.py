"""Rules of whole functions."""

from __future__ import annotations

from collections.abc import Iterator

from ptokit.base.diagnostics import Diagnostic
from ptokit.base.tiles import TileSpec
from ptokit.ir.attributes import Attribute, SymbolAttr
from ptokit.ir.core import Function, Module, Op
from ptokit.ir.dialects.func import CALL
from ptokit.ir.entries import is_entry, is_helper, is_marked
from ptokit.ir.ordering import orders_pipes
from ptokit.ir.types import TileBufType
from ptokit.passes.back_ends import check_back_ends
from ptokit.passes.function_attributes import check_function
from ptokit.passes.structure import complaint


def check_functions(module: Module) -> Iterator[Diagnostic]:
    """Every rule that looks at more than one operation."""
    for function in module.functions:
        yield from _entry(function, module)
        yield from check_function(function)
    yield from _recursion(module)
    yield from check_back_ends(module)


def _entry(function: Function, module: Module) -> Iterator[Diagnostic]:
    if is_marked(function) and function.body is None:
        yield Diagnostic(
            "entry-body",
            f"the kernel @{function.name} has a body: what makes an entry is only valid on "
            "definitions",
            function.location,
            fix="leave the attribute out of the declaration",
        )
    if is_helper(function):
        yield from _helper(function)
    for param in function.params:
        if isinstance(param.type, TileBufType):
            yield from _stated_sizes(function, param.type.spec)
    if is_entry(function, module) and function.results:
        yield Diagnostic(
            "entry-result",
            f"the kernel @{function.name} must return void",
            function.location,
            (("results", ", ".join(map(str, function.results))),),
            "write results into global memory",
        )


_ANYWHERE = ("SA-0065", "SA-0095")  # what holds of a type wherever it is written


def _stated_sizes(function: Function, spec: TileSpec) -> Iterator[Diagnostic]:
    for broken in spec.violations():
        if broken.code in _ANYWHERE:
            text = f"@{function.name}: {broken.rule}"
            values = tuple((name, str(value)) for name, value in broken.got)
            yield Diagnostic(broken.code, text, function.location, values)


def _helper(function: Function) -> Iterator[Diagnostic]:
    """A helper of a front end is a piece of micro-code: one compound operation to its caller."""
    wrong = [(op, "calls") for op in function.walk() if CALL.matches(op)]
    wrong += [(op, "synchronises pipes") for op in function.walk() if orders_pipes(op)]
    for op, what in wrong:
        text = f"tileop helpers must not do it: @{function.name} {what}"
        yield complaint(op, "tileop-helper", text, fix="do it in the caller")
    if function.results:
        text = f"tileop helpers must not return values: @{function.name} does"
        yield Diagnostic("tileop-helper", text, function.location, fix="write into a tile")


def _recursion(module: Module) -> Iterator[Diagnostic]:
    calls: dict[str, list[tuple[str, Op]]] = {
        f.name: [(_symbol(op.attrs["callee"]), op) for op in f.walk() if CALL.matches(op)]
        for f in module.functions
    }

    def reaches(start: str, goal: str, seen: set[str]) -> bool:
        if start in seen:
            return False
        seen.add(start)
        return any(
            to == goal or reaches(to, goal, seen) for to, _ in calls.get(start, ()) if to in calls
        )

    for name, made in calls.items():
        for callee, op in made:
            if callee == name or reaches(callee, name, set()):
                yield complaint(
                    op,
                    "recursion",
                    f"recursive function calls are not allowed: @{callee} leads back to @{name}",
                )


def _symbol(attr: Attribute | None) -> str:
    return attr.name if isinstance(attr, SymbolAttr) else ""
