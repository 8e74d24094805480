"""A pytest plugin that notes which blocks of the package each test runs.

Every block of a function - its body, the arms of its conditions, the bodies of its loops - reports
itself when it is entered: the modules are compiled with a call at its head. The notes of all
workers go to the folder that PTOKIT_TRACE names.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDERS = (
    *("isa", "machine", "passes", "engines", "emit", "frontend", "ir"),
    *("native", "timing", "repair"),
)
HIT = "_block_entered_"


class _Marked(ast.NodeTransformer):
    """Puts a call at the head of every block."""

    def __init__(self, file: str) -> None:
        self.file = file

    def _call(self, line: int) -> ast.Call:
        place = ast.Constant(f"{self.file}:{line}")
        return ast.Call(ast.Name(HIT, ast.Load()), [place], [])

    def _headed(self, body: list[ast.stmt]) -> list[ast.stmt]:
        first = body[0]
        spoken = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        mark = ast.Expr(self._call(first.lineno))
        return [first, mark, *body[1:]] if spoken else [mark, *body]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.Lambda):
            pair = ast.Tuple([self._call(node.body.lineno), node.body], ast.Load())
            node.body = ast.Subscript(pair, ast.Constant(1), ast.Load())
        elif not isinstance(node, ast.Module | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    setattr(node, field, self._headed(block))
        return node


class _Loader(SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        text = bytes(data).decode() if not isinstance(data, str) else data
        file = str(path).rpartition("/ptokit/")[2]
        tree = ast.fix_missing_locations(_Marked(file).visit(ast.parse(text)))
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> Any:  # never from a cache
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parts = fullname.split(".")
        if parts[0] != "ptokit" or len(parts) < 3 or parts[1] not in FOLDERS:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and type(found.loader) is SourceFileLoader:
            found.loader = _Loader(found.loader.name, found.loader.path)
        return found


hits: set[str] = set()
setattr(builtins, HIT, hits.add)
sys.meta_path.insert(0, _Finder())
notes: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    hits.clear()
    result = yield
    notes.setdefault(item.nodeid, {})["blocks"] = sorted(hits)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        notes.setdefault(report.nodeid, {})["seconds"] = round(report.duration, 3)


def pytest_sessionfinish(session: pytest.Session) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker or not hasattr(session.config, "workerinput"):
        file = Path(os.environ["PTOKIT_TRACE"]) / f"{worker or 'main'}.json"
        file.write_text(json.dumps({k: v for k, v in notes.items() if "blocks" in v}), "utf-8")
