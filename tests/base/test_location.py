"""Places in files under the names that people know them by."""

from __future__ import annotations

import sys
from dataclasses import field
from types import FrameType, ModuleType, SimpleNamespace

import pytest

from ptokit.base.dataclass import dataclass
from ptokit.base.location import Location, is_ours
from ptokit.isa.arrays import Code


@dataclass
class Generated:
    """Its constructor is made when it is called, and asks for the list of its field."""

    parts: list[int] = field(default_factory=lambda: FRAMES.append(sys._getframe(1)) or [])


FRAMES: list[FrameType] = []
CELL = "/tmp/ipykernel_7/1234.py"


def test_a_cell_of_a_notebook_has_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = SimpleNamespace(
        format_code_name=lambda name: ("Cell", "In[3]") if name == CELL else None
    )
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(compile=compiler)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert str(Location(CELL, 6, 5)) == "In[3]:6:5"
    assert Location(CELL, 6).brief == "In[3]:6"
    assert str(Location("k.py", 6, 5)) == "k.py:6:5"


def test_files_outside_of_notebooks_have_their_own_names() -> None:
    assert str(Location("/a/k.py", 6)) == "/a/k.py:6"
    assert Location("/a/k.py", 6, 5).brief == "k.py:6"


def test_code_that_is_generated_is_never_a_users() -> None:
    FRAMES.clear()
    Generated()
    (constructor,) = FRAMES
    assert constructor.f_code.co_name == "__init__"
    assert is_ours(constructor)
    looked = Code("looked", ["see"])
    looked.line("see()")
    looked.function()(lambda: FRAMES.append(sys._getframe(1)))
    assert FRAMES[-1].f_code.co_name == "looked"
    assert is_ours(FRAMES[-1])
    assert not is_ours(sys._getframe())
