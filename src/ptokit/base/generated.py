"""Python that is made while we run: its file has a name by which no line of it is a user's."""

from __future__ import annotations

import marshal
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CellType, CodeType, FunctionType, MappingProxyType
from typing import Any
from zlib import crc32

from ptokit.base.cache import cache_folder

MARK = "<ptokit "
PLACES = [f"_{n}" for n in range(255)]  # what stands for names in the lines of a method


def define(source: str, what: str, names: dict[str, Any], space: dict[str, Any]) -> None:
    """Run definitions that see these names, and put what they define into that space."""
    exec(compile(source, f"{MARK}{what}>", "exec", dont_inherit=True), names, space)


def method(
    owner: str,
    module: str,
    name: str,
    parameters: Iterable[str],
    lines: Iterable[str],
    names: Iterable[str] = (),
    known: Mapping[str, Any] = MappingProxyType({}),
) -> FunctionType:
    """A method of a class, which sees the names of a module and those that are known.

    Compiling takes ten times as long as all else: lines in which `PLACES` stand for the names are
    compiled once, for all methods that differ in these, and for the processes that come after this.
    """
    body = "".join(f"\n  {line}" for line in lines)
    inner = f" def {name}({', '.join(parameters)}):{body}\n return {name}"
    code = _code(f"def _make({', '.join(known)}):\n{inner}")
    named: Mapping[Any, str] = dict(zip(PLACES, names, strict=False))
    code = code.replace(
        co_filename=f"{MARK}{owner}>",
        co_qualname=f"{owner}.{name}",
        co_varnames=tuple([named.get(each, each) for each in code.co_varnames]),
        co_names=tuple([named.get(each, each) for each in code.co_names]),
        co_consts=tuple([named.get(each, each) for each in code.co_consts]),
    )
    space = vars(sys.modules[module]) if module in sys.modules else {}
    return FunctionType(code, space, closure=tuple([CellType(known[n]) for n in code.co_freevars]))


def _code(source: str) -> CodeType:
    """The code of the one function that is defined within the one of a source."""
    kept = _kept()
    if source not in kept:
        found = compile(source, f"{MARK}method>", "exec", dont_inherit=True)
        for _ in range(2):
            found = next(each for each in found.co_consts if isinstance(each, CodeType))
        kept[source] = found
        _keep(source, found)
    return kept[source]


# ---- for the next process ------------------------------------------------------------------------
# What was compiled is appended to a file of the cache, which belongs to this version of Python:
# of each entry a checksum and a length, then the source and its code.

_HEAD = struct.Struct("<II")
_MOST = 1 << 20  # bytes that are kept


def _file() -> Path:
    version = f"{sys.implementation.cache_tag}-{MAGIC_NUMBER.hex()}"
    return cache_folder() / "methods" / version


@cache
def _kept() -> dict[str, CodeType]:
    """What others have compiled; a file that is damaged holds nothing, and is made anew."""
    found: dict[str, CodeType] = {}
    try:
        content = memoryview(_file().read_bytes())
    except OSError:
        return found
    while content:
        checksum, length = _HEAD.unpack(bytes(content[: _HEAD.size]).ljust(_HEAD.size, b"\0"))
        entry, content = content[_HEAD.size :][:length], content[_HEAD.size :][length:]
        if not entry or crc32(entry) != checksum:
            with suppress(OSError):
                _file().unlink()
            return {}
        source, code = marshal.loads(entry)
        found[source] = code
    return found


def _keep(source: str, code: CodeType) -> None:
    """A cache that cannot be written is no cache; nothing else depends on it."""
    entry = marshal.dumps((source, code))
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        with open(_file(), "ab", buffering=0) as file:  # in one piece: others append as well
            if file.tell() < _MOST:
                file.write(_HEAD.pack(crc32(entry), len(entry)) + entry)
