"""Sources for the tests, compiled once each; without a compiler the tests are skipped."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ptokit import cpp
from ptokit.base.diagnostics import UsageError
from ptokit.native.compiler import compiler

HEAD = """#include <pto/pto-inst.hpp>
using namespace pto;
using G = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
using T = Tile<TileType::Vec, float, 16, 64>;
"""


def has_compiler() -> bool:
    try:
        compiler()
    except UsageError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler at hand")


def compiled(texts: Iterable[str], folder: Path, target: str = "a2a3") -> Any:
    """All kernels of some texts in one source."""
    if not has_compiler():
        pytest.skip("no C++ compiler at hand")
    (folder / f"all_{target}.cpp").write_text("\n".join(texts))
    return cpp(folder / f"all_{target}.cpp", target=target)


def source(folder: Path, text: str, **options: Any) -> Any:
    """The kernels of a text, with the usual first lines (of which there are four)."""
    path = folder / "kernel.cpp"
    path.write_text(HEAD + text)
    return cpp(path, **options)


def line_of(text: str, words: str) -> int:
    """The line of a source, with its first lines, in which some words stand."""
    return (HEAD + text)[: (HEAD + text).index(words)].count("\n") + 1
