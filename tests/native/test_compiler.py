"""Which compilers will do: from the oldest that knows C++20 on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptokit.base.diagnostics import UsageError
from ptokit.native.compiler import _OLDEST, compiler


def pretender(folder: Path, kind: str, number: int) -> str:
    """A program that says it is such a compiler, and accepts everything."""
    path = folder / f"{kind}-{number}"
    path.write_text(f"#!/bin/sh\necho '{kind} (a test) {number}.1.0'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("kind", _OLDEST)
def test_the_oldest_version_will_do_and_none_before(kind: str, tmp_path: Path) -> None:
    oldest = _OLDEST[kind]
    for number in (oldest, oldest + 1):
        path = pretender(tmp_path, kind, number)
        assert compiler(path).command == (path,)
    with pytest.raises(UsageError):
        compiler(pretender(tmp_path, kind, oldest - 1))
