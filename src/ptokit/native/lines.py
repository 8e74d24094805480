"""Which line of which file an address of compiled code belongs to: the line table of an ELF file.

Only what compilers write for `-g1 -gdwarf-4`; what is not there has no line.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from ptokit.base.dataclass import dataclass
from ptokit.base.namedtuple import NamedTuple


class Row(NamedTuple):
    """From this address on, up to the next one."""

    address: int
    file: str
    line: int  # 0: nothing is known


@dataclass
class LineTable:
    """The lines of a shared library."""

    path: Path
    rows: list[Row] = field(default_factory=list[Row])
    _starts: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        data = self.path.read_bytes()
        sections = sections_of(data)
        if ".debug_line" in sections:
            self.rows = sorted(_rows(sections[".debug_line"].data))
        self._starts = [row.address for row in self.rows]

    def find(self, address: int) -> Row | None:
        """The row that holds an address."""
        at = bisect_right(self._starts, address) - 1
        return self.rows[at] if at >= 0 and self.rows[at].line else None


class Section(NamedTuple):
    """A part of an ELF file."""

    number: int
    data: bytes


def sections_of(data: bytes) -> dict[str, Section]:
    """The sections of an ELF file by name."""
    if data[:6] != b"\x7fELF\x02\x01":  # 64 bits, the lower byte first
        return {}
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, start + n * size) for n in range(count)]
    _, _, _, _, text, length = headers[names]
    table = data[text : text + length]
    found: dict[str, Section] = {}
    for number, (name, _, _, _, offset, length) in enumerate(headers):
        inside = data[offset : offset + length]
        found[table[name : table.index(0, name)].decode()] = Section(number, inside)
    return found


class _Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def string(self) -> str:
        end = self.data.index(0, self.at)
        text, self.at = self.data[self.at : end].decode("utf-8", "replace"), end + 1
        return text


def _rows(data: bytes) -> Iterator[Row]:
    read = _Reader(data)
    while read.at < len(data):
        length = read.number("I")
        end = read.at + length
        if read.number("H") in (2, 3, 4):
            yield from _program(read, end)
        read.at = end


def _program(read: _Reader, end: int) -> Iterator[Row]:
    version_start = read.at
    header = read.number("I")
    code = read.at + header
    read.at = version_start + 4
    least = read.number("B")
    if struct.unpack_from("<H", read.data, version_start - 2)[0] >= 4:
        read.number("B")  # operations of a very long instruction word
    read.number("B")  # whether rows are statements at first
    base, spread, first = read.number("b"), read.number("B"), read.number("B")
    lengths = [read.number("B") for _ in range(first - 1)]
    folders = [""]
    while text := read.string():
        folders.append(text)
    files = [""]
    while text := read.string():
        folder = folders[read.leb()]
        read.leb()  # when it was changed
        read.leb()  # its size
        files.append(text if text.startswith("/") or not folder else f"{folder}/{text}")
    read.at = code
    address, file, line = 0, 1, 1
    while read.at < end:
        op = read.number("B")
        if op >= first:
            op -= first
            address += op // spread * least
            line += base + op % spread
            yield Row(address, _name(files, file), line)
        elif op == 0:
            size = read.leb()
            after = read.at + size
            kind = read.number("B")
            if kind == 1:
                yield Row(address, "", 0)
                address, file, line = 0, 1, 1
            elif kind == 2:
                address = read.number("Q")
            read.at = after
        elif op == 1:
            yield Row(address, _name(files, file), line)
        elif op == 2:
            address += read.leb() * least
        elif op == 3:
            line += read.leb(signed=True)
        elif op == 4:
            file = read.leb()
        elif op == 8:
            address += (255 - first) // spread * least
        elif op == 9:
            address += read.number("H")
        else:
            for _ in range(lengths[op - 1]):
                read.leb()


def _name(files: list[str], number: int) -> str:
    return files[number] if number < len(files) else ""
