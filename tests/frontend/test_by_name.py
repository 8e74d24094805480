"""Operands and template arguments by name, of every form of every instruction, on both paths."""

from __future__ import annotations

import numpy as np
import pytest

from ptokit import *
from ptokit import PtoError
from ptokit.frontend.instruction import _by_name
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.spec import Insn

FORMS = [(insn, form) for insn in INSTRUCTIONS.values() for form in insn.forms]


@pytest.mark.parametrize(("insn", "form"), FORMS, ids=lambda v: str(v)[:40])
def test_names_put_operands_where_they_belong(insn: Insn, form: tuple[str, ...]) -> None:
    values = tuple(object() for _ in form)
    wanted = dict(zip(form, values, strict=True))
    alike = [each for each in insn.forms if set(each) == set(form)]  # TPUSH takes either order
    defaults = tuple(a.default for a in insn.attrs)
    for given in range(len(form) + 1):
        named = dict(reversed([*zip(form[given:], values[given:], strict=True)]))
        if named:
            args, attrs = _by_name(insn, values[:given], defaults, named)
            assert any(dict(zip(each, args, strict=True)) == wanted for each in alike)
            assert attrs == defaults
    if form:
        wrong = {f"{form[-1]}_": values[-1]}
        with pytest.raises(PtoError, match=f"no argument named {form[-1]}_; did you mean"):
            _by_name(insn, values[:-1], defaults, wrong)


Row = Tile[TileType.Vec, float32, 1, 16]
Whole = Tile[TileType.Vec, int32, 1, 16]


@kernel(mode="auto")
def by_name(x, y, *, mode):
    t, u = Row(), Whole()
    TLOAD(src=GlobalTensor(memory=x), dst=t)
    TCVT(u, t, mode=mode)
    TSTORE(GlobalTensor(y), src=u)


@kernel(mode="auto")
def misnamed(x, *, name):
    TADDS(Row(), Row(), **{name: 1.0})


@pytest.mark.parametrize("path", ["eager", "lowered"])
def test_both_paths_take_names_alike(path: str) -> None:
    x, y = np.linspace(-3, 3, 16, dtype=np.float32).reshape(1, 16), np.zeros((1, 16), np.int32)
    for mode, rounded in ((RoundMode.CAST_CEIL, np.ceil), (RoundMode.CAST_FLOOR, np.floor)):
        by_name[1](x, y, mode=mode, path=path)
        assert np.array_equal(y, rounded(x).astype(np.int32))


@pytest.mark.parametrize("path", ["eager", "lowered"])
@pytest.mark.parametrize(("name", "meant"), [("scala", "scalar"), ("banana", "")])
def test_both_paths_refuse_the_same_names(path: str, name: str, meant: str) -> None:
    with pytest.raises(PtoError) as caught:
        misnamed[1](np.zeros((1, 16), np.float32), name=name, path=path)
    (found,) = caught.value.diagnostics
    assert found.code == "TADDS.arguments"
    assert f"no argument named {name}" in found.message
    assert (f"did you mean {meant}?" in found.message) == bool(meant)
    assert found.location is not None
    assert found.location.file == __file__
