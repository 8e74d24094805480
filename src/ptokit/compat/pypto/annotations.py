"""What functions say about themselves: how parameters are annotated, and which are returned."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any


class Annotation:
    """`pl.Tensor[[16, 64], pl.FP32]`: says what a parameter is; the arguments say it here."""

    def __init__(self, name: str, items: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.items = items

    def __getitem__(self, given: Any) -> Annotation:
        return Annotation(self.name, given if isinstance(given, tuple) else (given,))

    def __or__(self, other: object) -> Annotation:
        return self

    __ror__ = __or__

    def __call__(self, *_: object, **__: object) -> Any:
        raise TypeError(f"pl.{self.name} is a type: pl.{self.name}[...] annotates a parameter")

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.items))
        return f"pl.{self.name}[{inner}]" if inner else f"pl.{self.name}"


def returned_parameters(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The parameters whose tensors a function returns, if these are the same on every way.

    A name stands for a parameter where all that is assigned to it is that parameter, or the tensor
    that `pl.store` and `pl.assemble` were given, which they return.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    given: dict[str, list[ast.expr | None]] = {}
    for each in ast.walk(tree):
        if isinstance(each, ast.AnnAssign | ast.Assign | ast.AugAssign | ast.NamedExpr):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            is_plain = len(targets) == 1 and isinstance(targets[0], ast.Name)
            for name in (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                given.setdefault(name.id, []).append(each.value if is_plain else None)
        elif isinstance(each, ast.For):
            for name in (n for n in ast.walk(each.target) if isinstance(n, ast.Name)):
                given.setdefault(name.id, []).append(None)
    parameters = {each.arg for each in tree.args.args}
    ends = [each.value for each in ast.walk(tree) if isinstance(each, ast.Return)]
    if len(ends) != 1 or ends[0] is None:
        return None
    items = ends[0].elts if isinstance(ends[0], ast.Tuple) else [ends[0]]
    found = [_parameter(each, given, parameters, frozenset()) for each in items]
    names = [next(iter(each)) for each in found if len(each) == 1]
    return tuple(names) if len(names) == len(found) and "" not in names else None


def _parameter(
    value: ast.expr | None,
    given: dict[str, list[ast.expr | None]],
    parameters: set[str],
    seen: frozenset[str],
) -> set[str]:
    """The parameters that an expression may be; "" is something else."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        place = {"store": (2, "output_tensor"), "assemble": (0, "target")}.get(value.func.attr)
        if place is None:
            return {""}
        named = [each.value for each in value.keywords if each.arg == place[1]]
        tensor = [*value.args[place[0] : place[0] + 1], *named]
        return _parameter(tensor[0], given, parameters, seen) if tensor else {""}
    if not isinstance(value, ast.Name):
        return {""}
    own = {value.id} if value.id in parameters else set[str]()
    if value.id in seen:  # `out = pl.store(tile, [0, 0], out)`
        return own
    others = given.get(value.id, [])
    if not own and not others:
        return {""}
    return own.union(*(_parameter(e, given, parameters, seen | {value.id}) for e in others))
