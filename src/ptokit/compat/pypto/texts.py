"""Functions and programs of PyPTO as text: `pl.parse`, `pl.loads`, `pypto.ir.serialize`.

A function is its source. What is written out of it is that text, which holds what its annotations
and its body say; it is read again where nothing but `pl` is named in it.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import itertools
import linecache
import textwrap
from pathlib import Path
from types import CodeType
from typing import Any

from ptokit.base.diagnostics import usage_error
from ptokit.base.entry import public
from ptokit.base.usercode import compiled
from ptokit.compat.pypto.programs import Compiled, Program

_MARK = b"pypto text of ptokit\n"
_LANGUAGE = "pypto.language"
_numbers = itertools.count(1)


@public
def parse_pypto(code: str, filename: str = "<string>") -> Compiled | Program:
    """The one function, or the one program, of a text; `pl` need not be imported in it."""
    return _read(textwrap.dedent(code), filename)


def _read(text: str, filename: str) -> Compiled | Program:
    # A name of its own: findings show the lines of this text, not those of another one.
    place = filename if Path(filename).is_file() else f"<{filename.strip('<>')} {next(_numbers)}>"
    linecache.cache[place] = len(text), None, text.splitlines(keepends=True), place
    space: dict[str, Any] = {"__name__": place, "pl": importlib.import_module(_LANGUAGE)}
    exec(compiled(text, place), space)
    found = [each for each in space.values() if isinstance(each, Compiled | Program)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found)
    what = f"has several: {names}" if found else "has no @pl.function and no @pl.program"
    raise ValueError(f"{filename} {what}; one is read at a time")


@public
def loads(filepath: str | Path) -> Compiled | Program:
    """The same, of a file."""
    return _read(Path(filepath).read_text("utf-8"), str(filepath))


@public
def serialize(given: Compiled | Program) -> bytes:
    """A function or program as bytes, which hold all that it is."""
    parts = given.functions.values() if isinstance(given, Program) else [given]
    for part in parts:
        names = sorted(_foreign(part))
        if names:
            raise usage_error(
                "pypto.serialize",
                f"{part.name} names what its text does not hold: {', '.join(names)}",
                fix="write the numbers out, and define what it calls in the same program",
                site=part.place,
            )
    return _MARK + given.as_python().encode()


@public
def deserialize(data: bytes) -> Compiled | Program:
    """What was made bytes."""
    if not data.startswith(_MARK):
        raise ValueError("these are no bytes of pypto.ir.serialize: it writes text here")
    return _read(data.removeprefix(_MARK).decode(), "<serialized>")


def _foreign(part: Compiled) -> set[str]:
    """The globals that a function names, but for `pl` and those of Python itself."""
    function = inspect.unwrap(part.function)
    known = {*vars(builtins), "pl"}
    return _named(function.__code__) & {*function.__globals__} - known | {
        *function.__code__.co_freevars
    }


def _named(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*map(_named, inner))
