"""The names users import: instructions with documentation, and stubs for their editors."""

from __future__ import annotations

import ast
import pydoc
from pathlib import Path

import pytest

import ptokit
from ptokit.frontend import api, comm_api
from ptokit.frontend.instruction import Instruction
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn


@pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)
def test_every_instruction_has_a_name_and_its_documentation(insn: Insn) -> None:
    space, _, name = insn.name.rpartition(".")
    found = getattr(ptokit.comm if space else ptokit, name)
    assert isinstance(found, Instruction)
    assert found.insn is insn
    assert found.__doc__ == insn.doc
    assert insn.doc.splitlines()[0] in pydoc.plain(pydoc.render_doc(found))


@pytest.mark.parametrize("module", [api, comm_api], ids=lambda m: m.__name__)
def test_stubs_declare_what_the_module_has(module: object) -> None:
    path = Path(str(getattr(module, "__file__"))).with_suffix(".pyi")  # noqa: B009
    tree = ast.parse(path.read_text("utf-8"))
    declared = [n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)]  # type: ignore[union-attr]
    names = getattr(module, "__all__")  # noqa: B009
    assert declared == [n for n in names if isinstance(getattr(module, n), Instruction)]
    (listed,) = [
        ast.literal_eval(n.value)
        for n in tree.body
        if isinstance(n, ast.Assign) and "__all__" in ast.unparse(n)
    ]
    assert sorted(listed) == sorted(names)
    documented = [n.value.value for n in tree.body if isinstance(n, ast.Expr)]  # type: ignore[attr-defined]
    assert documented == [getattr(module, name).__doc__ for name in declared]
