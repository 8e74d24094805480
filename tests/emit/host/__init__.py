"""Kernels in C++, compiled for the host over a small stand-in for the instruction set."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

COMPILER = shutil.which("g++") or shutil.which("clang++")
_FLAGS = ("-std=c++17", "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-w")


def compiled(texts: Iterable[str], folder: Path) -> ctypes.CDLL | None:
    """All kernels in one shared library; None without a compiler."""
    if COMPILER is None:
        return None
    (folder / "all.cpp").write_text("\n".join(texts))
    command = [COMPILER, *_FLAGS, f"-I{Path(__file__).parent}", "all.cpp", "-o", "all.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return ctypes.CDLL(str(folder / "all.so"))
