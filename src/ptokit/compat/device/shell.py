"""The commands that programs start: `python` with the stand-ins, `ptoas`, `bisheng`.

They are small files in the cache, found by way of PATH: `python` before all others, so that scripts
of a shell and what they start see the stand-ins; the tools of the device behind those that are
installed, unless these are to be replaced.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from ptokit.base.cache import cache_folder

_WRAPPER = """#!/bin/sh
# Written by ptokit: {name} with its stand-ins.
flags=
while :; do case "$1" in -[uBOqsvE]|-OO) flags="$flags $1"; shift;; *) break;; esac; done
exec "{python}" $flags -m ptokit.compat.device {name} "$@"
"""
_TOOL = """#!/bin/sh
# Written by ptokit: {name}, for the simulator.
exec "{python}" -m ptokit.compat.device {name} "$@"
"""
_TOOLS = ("ptoas", "bisheng")


def environment(*, replace: bool = False) -> dict[str, str]:
    """The environment of this process, in which commands find the stand-ins."""
    key = hashlib.sha256(f"{sys.executable}\0{_WRAPPER}{_TOOL}".encode()).hexdigest()[:12]
    folder = cache_folder() / f"commands-{key}"
    pythons = _written(folder / "python", _WRAPPER, ("python", "python3"))
    tools = _written(folder / "tools", _TOOL, _TOOLS)
    known = [p for p in os.environ.get("PATH", os.defpath).split(os.pathsep)
             if p not in (pythons, tools)]  # fmt: skip
    path = [pythons, tools, *known] if replace else [pythons, *known, tools]
    # Where headers are looked for: those of the device come with the compiler here, whatever
    # scripts move in and out of this place.
    (folder / "include" / "pto").mkdir(parents=True, exist_ok=True)
    home = {name: str(folder) for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")}
    return {**home, **os.environ, "PATH": os.pathsep.join(path)}


def _written(folder: Path, text: str, names: tuple[str, ...]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = folder / name
        if not file.exists():
            fresh = file.with_name(f".{name}.{os.getpid()}")
            fresh.write_text(text.format(name=name, python=sys.executable), "utf-8")
            fresh.chmod(0o755)
            fresh.rename(file)
    return str(folder)


def put_on_path(*, replace: bool = False) -> None:
    """Have what this process starts find the stand-ins."""
    os.environ.update(environment(replace=replace))
