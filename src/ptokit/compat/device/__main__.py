"""`python -m ptokit.compat.device NAME ARG...`: what the commands of shell.py start."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from ptokit import compat
from ptokit.base.diagnostics import PtoError
from ptokit.base.entry import hide_frames
from ptokit.base.usercode import compiled
from ptokit.compat.device import libraries, shell
from ptokit.compat.device.libraries import Asked

_WITH_VALUE = ("-o", "--pto-arch", "--pto-level", "--target")
# How instructions become code of registers: here they are instructions.
_OF_REGISTERS = ("--enable-tile-op-expand", "--pto-backend")


def python(words: list[str]) -> None:
    """Run a program as Python does, with the stand-ins in place."""
    compat.install(replace=True)
    shell.put_on_path(replace=True)
    match words:
        case ["-m", name, *rest]:
            sys.argv = [name, *rest]
            sys.path[0] = os.getcwd()
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            sys.path[0] = ""
            exec(compiled(code, "<string>"), {"__name__": "__main__"})
        case [] | ["-", *_]:
            sys.argv = words or [""]
            sys.path[0] = ""
            exec(compiled(sys.stdin.read(), "<stdin>"), {"__name__": "__main__"})
        case [file, *rest] if not file.startswith("-"):
            sys.argv = [file, *rest]
            sys.path[0] = str(Path(file).resolve().parent)
            runpy.run_path(file, run_name="__main__")
        case _:  # a question about Python itself: --version
            os.execv(sys.executable, [sys.executable, *words])


def ptoas(words: list[str]) -> None:
    """The assembler: C++ of a text. Without a file it reads standard input, as it always did."""
    valued = {n + 1 for n, word in enumerate(words) if word in _WITH_VALUE}
    has_file = any(n not in valued and (not w.startswith("-") or w == "-")
                   for n, w in enumerate(words))  # fmt: skip
    order = [] if any("sync" in word for word in words) else ["--sync", "keep"]
    kept = [word for word in words if not word.startswith(_OF_REGISTERS)]
    for at, word in enumerate(kept):
        if word.endswith(".o") and kept[at - 1] == "-o":  # an object, as the newer one makes
            kept[at] = f"{word}.cpp"
            libraries.write_object(Asked([Path(kept[at]).resolve()], output=Path(word)))
    sys.argv = ["ptokit", "emit", *([] if has_file else ["-"]), *kept, *order]
    runpy.run_module("ptokit", run_name="__main__")


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "python": python, "python3": python, "ptoas": ptoas, "bisheng": libraries.make,
}  # fmt: skip


def main() -> None:
    """Run a command; what goes wrong is told without our own frames."""
    name, *words = sys.argv[1:]
    try:
        COMMANDS[name](words)
    except PtoError as error:
        hide_frames(error)
        sys.stdout.flush()
        sys.exit(f"{name}: {str(error).strip()}")


if __name__ == "__main__":
    main()
