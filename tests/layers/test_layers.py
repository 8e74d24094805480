"""The architecture as a test: imports point down, import stays quick."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ptokit
from ptokit.ir.dialects import DEFINITIONS
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.micro import MICRO

ROOT = Path(ptokit.__file__).parent
MODULES = sorted(p for p in ROOT.rglob("*.py"))

LAYERS = [
    ["base"],
    ["pictures", "tasks"],
    ["isa"],
    ["ir", "machine"],
    ["repair", "timing"],
    ["frontend", "passes", "engines", "emit"],
    ["report", "native"],
    ["kernels", "comm", "micro", "vmi"],
    ["from_text"],
    ["from_python"],
    ["from_cpp"],
    ["folders", "testing", "values"],
    ["compat"],
    ["names"],  # those that are public
    ["__init__"],
    ["conform", "editor"],
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


# What a command that only reads a text has no use for, nor one that runs a kernel once.
_RUNNING = (
    "ptokit.kernels",
    "ptokit.engines",
    "ptokit.frontend.lowering",
    "ptokit.machine.machine",
)
_OTHERS = ("ptokit.native", "ptokit.emit", "ptokit.timing", "ptokit.report", "ptokit.folders",
           "ptokit.engines.compiled", "pydantic")  # fmt: skip
_READING = {"ptokit.ir.parser", "ptokit.ir.asmform"}  # of texts
_ELSEWHERE = {"multiprocessing", "socket", "tempfile", "subprocess"}  # of other processes
# What few kernels have, or only those that are wrong.
_RARE = {
    "ptokit.repair.remedies",
    "ptokit.isa.remedies",
    "ptokit.ir.printer",
    "ptokit.machine.entries",
    "ptokit.machine.deadlock",
    "ptokit.machine.vector_unit",
    "ptokit.machine.staging",
    "ptokit.machine.recording",
    "ptokit.frontend.scopes",
    "ptokit.engines.outline",
    "ptokit.passes.canonical",
}
_RUNS = {"greenlet", "ptokit.report"}  # of reports, the record of a verdict
_SMALL = {
    "k.pto": "func.func @f(%x: !pto.ptr<f32>) { return }",
    "k.py": """
from ptokit import *
@kernel(mode="auto")
def f(x: float32[16, 64]):
    a = Tile[TileType.Vec, float32, 16, 64]()
    TLOAD(a, GlobalTensor(x))
    TSTORE(GlobalTensor(x), a)
""",
}


_CHECK = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = ["ptokit", "check", {file!r}]
from ptokit.__main__ import main
main()
"""
# What the process does that runs the file.
_EXAMINE = """
import sys
from pathlib import Path
from ptokit.cli.examining import examine
from ptokit.cli.python_file import Job
from ptokit.cli.verdicts import Rules
job = Job({file!r}, Path({file!r}).read_text(), (), {{}}, Rules(rules=None, allow=()))
print(*examine(job))
print(*sys.modules, file=sys.stderr)
"""


def loaded_by(code: str, path: Path) -> set[str]:
    """The modules that a process has in the end, which does something with a file."""
    path.write_text(_SMALL[path.name])
    command = [sys.executable, "-c", code.format(file=str(path))]
    shown(command)  # the next one finds the index of the tables
    return {*shown(command).split()}


def shown(command: list[str]) -> str:
    out = subprocess.run(command, capture_output=True, text=True)
    assert out.returncode == 0, out.stdout + out.stderr
    assert "error[" not in out.stdout
    return out.stderr


@pytest.mark.parametrize(
    ("name", "code", "heavy"),
    [
        ("k.pto", _CHECK, {*_HEAVY, *_OTHERS, *_RUNNING, "numpy._core", "ml_dtypes._finfo"}),
        ("k.py", _CHECK, {*_HEAVY, *_OTHERS, *_RUNNING, *_ELSEWHERE, "ptokit.isa", "numpy._core"}),
        (
            "k.py",
            _EXAMINE,
            {*_HEAVY, *_OTHERS, *_READING, *_ELSEWHERE, *_RARE, "numpy.ma", "numpy.random"} - _RUNS,
        ),
    ],
    ids=["text", "python", "python, where it runs"],
)
def test_checks_load_what_they_use(name: str, code: str, heavy: set[str], tmp_path: Path) -> None:
    loaded = loaded_by(code, tmp_path / name)
    assert loaded & heavy == set()
    # Of the tables, the modules that define what the file names, and what those are made of.
    homes = {*INSTRUCTIONS.index.homes.values(), *MICRO.index.homes.values()}
    assert len(homes & loaded) < len(homes) / 4, sorted(homes & loaded)


# What takes long at every start, and who has it for less.
_LATER = {
    "dataclasses.dataclass": "ptokit.base.dataclass",
    "typing.NamedTuple": "ptokit.base.namedtuple",
    "collections.namedtuple": "ptokit.base.namedtuple",
}


def made_at_once(tree: ast.Module) -> Iterator[str]:
    """What a module makes when it is imported, though few processes use it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for taken in (f"{node.module}.{alias.name}" for alias in node.names):
                if taken in _LATER:
                    yield f"line {node.lineno}: {_LATER[taken]} has it"
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
                    yield f"line {node.lineno}: ptokit.base.patterns has it"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_what_takes_long_is_made_late(path: Path) -> None:
    """Python compiles functions for every class, and every expression, at every start."""
    if path.name not in ("dataclass.py", "namedtuple.py"):
        assert not [*made_at_once(ast.parse(path.read_text("utf-8")))]


def test_what_is_made_at_once_is_found() -> None:
    for line in (
        "from dataclasses import dataclass",
        "from typing import Any, NamedTuple",
        "A: dict[str, Any] = {'a': re.compile('b')}",
    ):
        assert [*made_at_once(ast.parse(line))], line
    assert not [*made_at_once(ast.parse("def f(x):\n    return re.compile(x)"))]


def test_public_names_are_importable() -> None:
    missing = [name for name in ptokit.__all__ if not hasattr(ptokit, name)]
    assert not missing
    assert len(set(ptokit.__all__)) == len(ptokit.__all__)


# Where texts are read: there, names are what there is to go by.
READERS = {"ir/parser.py", "ir/generic.py", "ir/bytecode.py", "ir/retired.py", "ir/typetext.py",
           "repair/omit.py"}  # fmt: skip
DEFINING = ("isa/", "ir/dialects/", "ir/arithmetic.py")
# Single words of everyday language that are names of operations as well.
EVERYDAY = {"blocks", "call", "return", "yield", "for", "if", "while", "print", "select", "cast",
            "reinterpret_cast"}  # fmt: skip


def names_of_operations() -> frozenset[str]:
    """Of instructions and of all other operations, with the dialect and without."""
    full = {*INSTRUCTIONS, *DEFINITIONS}
    return frozenset(full | {name.partition(".")[2] or name for name in full} - EVERYDAY)


NAMES = names_of_operations()
DIALECTS = tuple({f"{name.partition('.')[0]}." for name in DEFINITIONS})


def texts_in(nodes: Iterable[ast.AST | None]) -> set[str]:
    """The strings among nodes, and in tuples and sets of them."""
    inner = [
        each
        for node in nodes
        for each in (node.elts if isinstance(node, ast.Tuple | ast.Set | ast.List) else [node])
    ]
    return {n.value for n in inner if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def compared_names(tree: ast.AST) -> Iterator[int]:
    """Lines that tell operations or targets apart by a name: comparisons, tables, prefixes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            if texts_in(node.keys) & NAMES:
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.func.attr in ("startswith", "endswith")
            if asked and any(text.startswith(DIALECTS) for text in texts_in(node.args)):
                yield node.lineno
        elif isinstance(node, ast.Compare):
            texts = texts_in([node.left, *node.comparators])
            # A list of devices in a constant is such a text as well; data of a record is not.
            lists = any(
                isinstance(each, ast.Name) and each.id.isupper()
                for side in node.comparators
                for each in ast.walk(side)
            )
            is_target = ast.unparse(node.left).endswith("target.name") and (texts or lists)
            if texts & NAMES or is_target:
                yield node.lineno


def test_what_tells_operations_apart_by_name_is_found() -> None:
    """The scan below has eyes: each of these is a way in which consumers used to branch."""
    for line in (
        'op.name == "arith.addi"',
        'kind in ("divsi", "remsi")',
        'op.name.startswith("cf.")',
        'RULES = {"TPUSH": 1}',
        'insn.name == "TADD"',
        'target.name in ("a5", "a2a3")',
        "target.name in DEVICES",
    ):
        assert list(compared_names(ast.parse(line))) == [1], line
    for line in ('word == "select"', "op.name == other.name", "target.name in self.targets"):
        assert not list(compared_names(ast.parse(line))), line


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_operations_and_targets_are_told_apart_by_their_records(path: Path) -> None:
    """Traits and fields of a record, or a table of records; what defines them has names."""
    file = path.relative_to(ROOT).as_posix()
    if file in READERS or file.startswith(DEFINING):
        return
    found = list(compared_names(ast.parse(path.read_text("utf-8"))))
    assert not found, f"{file}, lines {found}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_of_others_does_not_inherit_our_future_imports(path: Path) -> None:
    calls = (n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id == "compile":
            assert "dont_inherit" in {keyword.arg for keyword in call.keywords}
