"""A function read again from another text of its file, with the values it had around it."""

from __future__ import annotations

import ast
import linecache
from itertools import count
from types import FunctionType
from typing import Any

from ptokit.base.diagnostics import usage_error
from ptokit.base.location import Location
from ptokit.base.usercode import compiled

_numbers = count(1)


def reread(function: FunctionType, text: str) -> FunctionType:
    """The function as a changed text of its file defines it.

    Functions beside it in the file are read again too; nothing else of the file is run. Lines are
    found under the name of the new function's code. Where the text defines no such function the
    call is a usage error.
    """
    file = f"{function.__code__.co_filename} (changed {next(_numbers)})"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    tree = ast.parse(text)
    around: dict[str, Any] = dict(function.__globals__)
    path = function.__qualname__.replace("<locals>.", "").split(".")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and isinstance(around.get(node.name), FunctionType):
            _define(node, (), file, around, function)
    node: Any = tree
    for name in path:  # what is not found is a class around it
        nested = [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef) and n.name == name]
        line = function.__code__.co_firstlineno
        node = min(nested, key=lambda n: abs(n.lineno - line), default=node)
    if node is tree:
        raise usage_error(
            "lower.source",
            f"the source of {function.__name__} cannot be found, so it cannot be rewritten",
            got=[("file", function.__code__.co_filename)],
            fix="define kernels and their helpers in a file, not with exec",
            site=Location(function.__code__.co_filename, 0),
        )
    names = function.__code__.co_freevars
    _define(node, names, file, around, function)
    made = around[node.name]
    if names:
        made = made(*(cell.cell_contents for cell in function.__closure__ or ()))
    made.__kwdefaults__, made.__defaults__ = function.__kwdefaults__, function.__defaults__
    made.__annotations__ = function.__annotations__
    return made


def _define(
    node: ast.FunctionDef,
    free: tuple[str, ...],
    file: str,
    around: dict[str, Any],
    function: FunctionType,
) -> None:
    """Run a definition without its decorators; inside a function where it has free variables."""
    node.decorator_list = []
    body: list[ast.stmt] = [node]
    if free:
        given = [ast.arg(name) for name in free]
        last = ast.Return(ast.Name(node.name, ast.Load()))
        outer = ast.FunctionDef(node.name, ast.arguments([], given, None, [], [], None, []),
                                [node, last], [], lineno=node.lineno)  # fmt: skip
        body = [outer]
    module = ast.fix_missing_locations(ast.Module(body, []))
    exec(compiled(module, file, function), around)
