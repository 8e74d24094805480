"""Places in files under the names that people know them by."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from ptokit.base.location import Location

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
