"""The page about races and hangs shows what is really printed, and explains every code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_page_is_fresh() -> None:
    races = tool("races_page")
    assert races.PAGE.read_text("utf-8") == races.page(), "run: python tools/races_page.py"


def test_every_code_is_explained() -> None:
    text = (ROOT / "docs" / "guide" / "races-and-hangs.md").read_text("utf-8")
    explained = set(re.findall(r"^\| (E\d+) \|", text, re.M))
    assert explained == {f"E{n}" for n in range(1, 19)}
    for path in (ROOT / "src" / "ptokit" / "machine").glob("*.py"):
        used = set(re.findall(r'"(E\d+)"', path.read_text("utf-8")))
        assert used <= explained, path.name
