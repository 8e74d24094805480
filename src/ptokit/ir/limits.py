"""The gate of text: what a program may ask of whoever reads it.

Files come from anywhere. None of these limits is near what people or compilers write; each keeps
one way of exhausting memory, time or the stack from working, and says so with its place. They are
chosen per call, or with the environment variable PTOKIT_LIMITS:

    load("kernel.pto", limits=TextLimits(line=1_000_000))
    PTOKIT_LIMITS=line=1000000,nesting=80 ptokit check kernel.pto
"""

from __future__ import annotations

import codecs
import os
from dataclasses import fields
from operator import sub
from pathlib import Path

from ptokit.base.dataclass import dataclass
from ptokit.base.diagnostics import Diagnostic, ProgramError, PtoError, fail, usage_error
from ptokit.base.entry import public
from ptokit.base.location import Location

VARIABLE = "PTOKIT_LIMITS"
MAGIC = b"PTOBC\0"  # with which bytecode begins
# A level of regions takes eight calls of the parser, and Python's stack holds a thousand; Python
# reads no longer numbers.
_MOST = {"nesting": 100, "digits": 4300}
_BOMS = {
    codecs.BOM_UTF32_LE: "UTF-32",  # begins with the mark of UTF-16
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@public
@dataclass(frozen=True)
class TextLimits:
    """The most that a text may have of each."""

    size: int = 64 << 20  # bytes of a file, characters of a text
    line: int = 100_000  # characters of a line
    digits: int = 1_000  # of a number
    nesting: int = 64  # regions, lists, dictionaries and function types inside each other
    results: int = 1_024  # of one operation
    errors: int = 1_000  # mistakes after which reading stops

    @staticmethod
    def in_force(given: TextLimits | None = None) -> TextLimits:
        """Those given, or those of the environment; raises where one makes no sense."""
        limits = TextLimits.read(os.environ.get(VARIABLE, "")) if given is None else given
        if not isinstance(limits, TextLimits):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise usage_error("text-limits", "limits is a TextLimits", got=[("limits", limits)])
        for each in fields(limits):
            value, most = getattr(limits, each.name), _MOST.get(each.name)
            if type(value) is not int or value < 1 or (most is not None and value > most):
                upto = f" to {most}" if most else ""
                what = f"{each.name} is a whole number from 1{upto}"
                raise usage_error("text-limits", what, got=[(each.name, value)])
        return limits

    @staticmethod
    def read(text: str) -> TextLimits:
        """From "line=1000000,nesting=80"; what is not named keeps its default."""
        names = [each.name for each in fields(TextLimits)]
        found: dict[str, int] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, _, number = (word.strip() for word in part.partition("="))
            if name not in names or not number.isdecimal():
                raise usage_error(
                    "text-limits",
                    f"{VARIABLE} holds limits as name=number, with commas between them",
                    got=[(VARIABLE, part)],
                    fix=f"the names are {', '.join(names)}",
                )
            found[name] = int(number)
        return TextLimits(**found)

    def exceeded(self, name: str, what: str, got: int, place: Location) -> Diagnostic:
        """The complaint that something is more than a limit allows."""
        most = getattr(self, name)
        higher = f"limits=TextLimits({name}={got}) or {VARIABLE}={name}={got}"
        fix = f"if the text is as it should be, raise the limit: {higher}"
        if got > min(_MOST.get(name, got), 100 * most):
            fix = "see where the text comes from: no program needs that"
        return Diagnostic("text-limit", f"{got:,} {what}; the limit is {most:,}", place, fix=fix)


DEFAULT = TextLimits()


def read_source(path: str | Path, limits: TextLimits) -> str:
    """The text of a file; raises an error that says where it cannot be read, and why."""
    try:
        with open(os.fspath(path), "rb") as file:  # a number would be a file that is open already
            data = file.read(limits.size + 1)
            size = max(len(data), os.fstat(file.fileno()).st_size)  # of a pipe nothing is known
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        place = Location(str(path), 0)
        raise usage_error("file", f"cannot read {path}: {reason}", site=place) from None
    return decoded(data, str(path), limits, size)


def first_bytes(path: Path, count: int) -> bytes:
    """How a file begins; nothing where it cannot be read, which whoever reads it all will tell."""
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except OSError:
        return b""


def decoded(data: bytes, name: str, limits: TextLimits, size: int = 0) -> str:
    """UTF-8, with or without the mark some editors put in front; `size` of a file read in part.

    Bytecode becomes the text of its program.
    """
    size = max(size, len(data))
    if size > limits.size:
        what = "bytes of the file"
        raise ProgramError([limits.exceeded("size", what, size, Location(name, 0))])
    if data.startswith(MAGIC):
        from ptokit.ir.bytecode import as_text  # few programs come as such

        return as_text(data, name, limits.size)
    encoding = next((named for mark, named in _BOMS.items() if data.startswith(mark)), None)
    if encoding is not None:
        raise _not_utf8(name, 1, f"it is {encoding}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_utf8(name, line, f"byte 0x{data[error.start]:02x} is not UTF-8 text") from None


def admitted(text: str, name: str, limits: TextLimits) -> str:
    """A text that may be read: no longer than it may be, and of characters that can be printed."""
    if len(text) > limits.size:
        what = "characters of the text"
        raise ProgramError([limits.exceeded("size", what, len(text), Location(name, 0))])
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        found = f"character {error.start - text.rfind(chr(10), 0, error.start)} is half of a pair"
        raise _not_utf8(name, line, found) from None
    return text.removeprefix("\ufeff")


def check_lines(starts: list[int], end: int, name: str, limits: TextLimits) -> None:
    """`starts` are the offsets of the lines of a text, `end` is its length."""
    lengths = list(map(sub, [*starts[1:], end + 1], starts))
    longest = max(lengths) - 1
    if longest > limits.line:
        place = Location(name, lengths.index(longest + 1) + 1, source="")
        raise ProgramError([limits.exceeded("line", "characters of the line", longest, place)])


def _not_utf8(name: str, line: int, what: str) -> PtoError:
    return fail(
        "file",
        f"cannot read {name}: {what}",
        fix="save it as UTF-8",
        site=Location(name, line, source=""),
    )
