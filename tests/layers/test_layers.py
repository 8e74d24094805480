"""The architecture as a test: imports point down, import stays quick."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptokit

ROOT = Path(ptokit.__file__).parent
MODULES = sorted(p for p in ROOT.rglob("*.py"))

LAYERS = [
    ["base"],
    ["isa"],
    ["ir", "machine"],
    ["repair", "timing"],
    ["frontend", "passes", "engines", "emit"],
    ["report", "native"],
    ["kernels", "comm", "micro"],
    ["from_python", "from_text"],
    ["from_cpp"],
    ["folders", "testing"],
    ["names"],  # those that are public
    ["__init__"],
    ["conform"],
    ["cli"],
    ["__main__", "pytest_plugin"],
]
RANK = {name: rank for rank, group in enumerate(LAYERS) for name in group}


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_layers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every import of our own package, inside functions too."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "ptokit":
                names = [f"ptokit.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "ptokit":
                layer = parts[1] if len(parts) > 1 and parts[1] in RANK else "__init__"
                yield node.lineno, layer


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    me = layer_of(path)
    assert me in RANK, f"{path.name}: which layer is {me}?"
    for line, other in imported_layers(ast.parse(path.read_text("utf-8"))):
        allowed = other == me or RANK[other] < RANK[me]
        assert allowed, f"{path.relative_to(ROOT)}:{line}: {me} must not import {other}"


_HEAVY = ("llvmlite", "typer", "rich", "torch", "xdsl", "scipy", "greenlet")


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import ptokit", (*_HEAVY, "numpy", "ptokit.isa")),
        ("from ptokit import *", _HEAVY),
        ("import ptokit.__main__", (*_HEAVY, "numpy", "ptokit.cli")),
    ],
)
def test_import_loads_no_heavy_module(statement: str, heavy: tuple[str, ...]) -> None:
    """What only some commands need loads when it is used."""
    code = f"import sys\n{statement}\nprint([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_public_names_are_importable() -> None:
    missing = [name for name in ptokit.__all__ if not hasattr(ptokit, name)]
    assert not missing
    assert len(set(ptokit.__all__)) == len(ptokit.__all__)


def compared_names(tree: ast.AST) -> Iterator[int]:
    """Lines on which a name of an operation or a target is compared with a text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        texts = [
            each.value
            for side in node.comparators
            for each in (side.elts if isinstance(side, ast.Tuple | ast.Set) else [side])
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        ]
        left = ast.unparse(node.left)
        is_operation = left.endswith(".name") and any(
            text.startswith(("pto.", "scf.", "func.", "arith.", "memref.")) for text in texts
        )
        # A list of devices in a constant is such a text as well; data of a record is not.
        lists = any(
            isinstance(each, ast.Name) and each.id.isupper()
            for side in node.comparators
            for each in ast.walk(side)
        )
        if is_operation or (left.endswith("target.name") and (texts or lists)):
            yield node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_operations_and_targets_are_told_apart_by_their_records(path: Path) -> None:
    """Traits and fields of a record, or a table of records; reading text is what names are for."""
    if path.relative_to(ROOT).as_posix() == "ir/parser.py":
        return
    found = list(compared_names(ast.parse(path.read_text("utf-8"))))
    assert not found, f"{path.name}, lines {found}"
