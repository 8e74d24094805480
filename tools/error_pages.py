"""The pages in docs/errors: a section per code with a program that raises it and the repaired one.

    ## `code`, `another`

    A sentence.

    ```python          the first block raises the codes, the second is right
    ```mlir            a text: it is checked, and run where a line says `// run(16x64xf32, 3)`;
                       `// target a5` and `// level 3` say how
    ```console         `$ ptokit ...`, or `$ echo '...' | ptokit ...`

A block `python common` at the head of a page belongs to each of its Python programs.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import re
import shlex
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from ptokit.base.diagnostics import PtoError, PtoWarning
from ptokit.frontend.policies import project_policy

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/errors"
_SECTION = re.compile(r"^## (`.*)$", re.M)
_BLOCK = re.compile(r"^```(\w+)( common)?\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Entry:
    """One section: the codes, what they mean, and the two programs."""

    page: str
    codes: tuple[str, ...]
    words: str
    language: str
    wrong: str
    right: str
    common: str

    @property
    def anchor(self) -> str:
        """How a link names the section, as GitHub does."""
        return re.sub(r"[^\w\- ]", "", ", ".join(self.codes).lower()).replace(" ", "-")


def entries() -> Iterator[Entry]:
    """All sections of all pages."""
    for path in sorted(FOLDER.glob("*.md")):
        head, *parts = _SECTION.split(path.read_text("utf-8"))
        common = "".join(body for _, is_common, body in _BLOCK.findall(head) if is_common)
        for title, text in zip(parts[::2], parts[1::2], strict=True):
            codes = tuple(re.findall(r"`([^`]+)`", title))
            blocks = _BLOCK.findall(text)
            if len(blocks) != 2:
                raise ValueError(f"{path.name}: {title} has {len(blocks)} programs, not two")
            (language, _, wrong), (_, _, right) = blocks
            words = " ".join(text.split("```")[0].split())
            yield Entry(path.stem, codes, words, language, wrong, right, common)


def outcome(entry: Entry, program: str) -> list[tuple[str, str]]:
    """The (severity, code) of everything that a program is told."""
    run = {"python": _run_python, "mlir": _run_text, "console": _run_command}[entry.language]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run(entry, program)
    told = [w.message.diagnostic for w in caught if isinstance(w.message, PtoWarning)]
    return found + [(d.severity, d.code) for d in told]


def _run_python(entry: Entry, program: str) -> list[tuple[str, str]]:
    source = entry.common + program
    name = f"docs/errors/{entry.page}.md#{entry.anchor}-{hash(program)}.py"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    names: dict[str, Any] = {"__name__": "example"}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, name, "exec", dont_inherit=True), names)
    except PtoError as error:
        return [(d.severity, d.code) for d in error.diagnostics]
    return []


def _run_text(entry: Entry, program: str) -> list[tuple[str, str]]:
    from ptokit.from_text import loads

    asked = re.search(r"// run\((.*?)\)", program)
    on = re.search(r"// target (\w+)", program)
    at = re.search(r"// level (\d)", program)
    target, level = on[1] if on else None, int(at[1]) if at else 0
    try:
        text = loads(program, f"{entry.page}.pto")
        found = [(d.severity, d.code) for d in text.check(target, level)]
        if asked is not None and not any(severity == "error" for severity, _ in found):
            values = [_value(word) for word in asked[1].split(", ") if word]
            found += [
                (d.severity, d.code) for d in text.entry()[1](*values, target=target).warnings
            ]
        return found
    except PtoError as error:
        return [(d.severity, d.code) for d in error.diagnostics]


def _value(word: str) -> Any:
    """`16x64xf32` is an array of ones, anything else a number."""
    if not re.search(r"x[fi]\d+$", word):
        return float(word) if "." in word else int(word, 0)
    *sizes, kind = word.split("x")
    names = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
    return np.ones(tuple(map(int, sizes)), names[kind])


def _run_command(entry: Entry, program: str) -> list[tuple[str, str]]:
    from importlib import import_module

    from ptokit.cli import COMMANDS
    from ptokit.cli.parser import app

    there = {each.name for each in app.registered_commands}
    for name in COMMANDS.keys() - there:
        app.command(name)(import_module(COMMANDS[name]).command)
    cli, found = CliRunner(), []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for line in program.splitlines():
            first, _, piped = line.removeprefix("$ ").partition(" | ")
            text = " ".join(shlex.split(first)[1:]) if piped else ""
            if " > " in first:  # echo '...' > file
                words = shlex.split(first)
                Path(words[-1]).write_text(words[1].replace("\\n", "\n"), "utf-8")
                continue
            words = [*shlex.split(piped or first)[1:], "--json"]
            done = cli.invoke(app, words, input=text.replace("\\n", "\n"))
            if isinstance(done.exception, PtoError):
                found += [(d.severity, d.code) for d in done.exception.diagnostics]
            elif done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            elif done.stdout.startswith("{"):
                told = json.loads(done.stdout)["diagnostics"]
                found += [(d["severity"], d["code"]) for d in told]
    project_policy.cache_clear()  # the folder is gone
    return found


if __name__ == "__main__":
    import sys

    for each in entries():
        if len(sys.argv) > 1 and not {*each.codes, each.page} & set(sys.argv[1:]):
            continue
        try:
            got = [code for _, code in outcome(each, each.wrong)]
        except Exception as error:
            got = [repr(error)]
        if missing := set(each.codes) - set(got):
            print(f"{each.page} {each.codes}: wrong gives {got}, not {missing}")
        try:
            left = outcome(each, each.right)
        except Exception as error:
            left = [("error", repr(error))]
        if left:
            print(f"{each.page} {each.codes}: right gives {left}")
