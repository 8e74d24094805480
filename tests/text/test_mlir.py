"""An independent MLIR parser reads our generic form."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptokit.ir.parser import parse_file
from ptokit.ir.printer import print_module
from tests.text.table import forms, module_of

xdsl_context = pytest.importorskip("xdsl.context")

HERE = Path(__file__).parent
PROGRAMS = [
    p for p in sorted((HERE / "programs").glob("*.pto")) if not p.stem.startswith("assembly")
]


def read(text: str) -> int:
    """Parse with xDSL, our dialect unregistered; return how many operations it found."""
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.dialects.scf import Scf
    from xdsl.parser import Parser

    context = xdsl_context.Context(allow_unregistered=True)
    for dialect in (Builtin, Func, Arith, Scf):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    return sum(1 for _ in module.walk()) - 1


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_xdsl_reads_programs(path: Path) -> None:
    module = parse_file(path)
    ours = sum(1 for _ in module.walk()) + len(module.functions)
    assert read(print_module(module, generic=True)) == ours


def test_xdsl_reads_every_instruction() -> None:
    seen: set[str] = set()
    for form in forms():
        if form.mnemonic in seen:
            continue
        module = module_of(form)
        if module is not None:
            seen.add(form.mnemonic)
            assert read(print_module(module, generic=True)) == 3
    assert len(seen) > 50
