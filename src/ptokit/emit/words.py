"""Words of C++: type names of tiles, template arguments, questions, reserved names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any

from ptokit.base.dtypes import DType
from ptokit.base.enums import BLayout, CompactMode, PadValue, SLayout
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.emit.convs import conv_type
from ptokit.ir.dialects import system
from ptokit.isa.fifos import PipeSpec
from ptokit.isa.named_tiles import name_of
from ptokit.isa.opcodes import OpCode, op_codes
from ptokit.isa.targets import Target

QUERIES = {
    system.BLOCK_IDX: "get_block_idx()",
    system.BLOCK_NUM: "get_block_num()",
    system.SUBBLOCK_IDX: "get_subblockid()",
    system.SUBBLOCK_NUM: "get_subblockdim()",
}
EXITS = {"break": "stop", "continue": "skip", "return": "done"}  # variables that end a block
SECTIONS = {"cube": "__DAV_CUBE__", "vector": "__DAV_VEC__"}  # kinds of cores

KEYWORDS = frozenset(  # and the names of PTO that a value of a kernel may collide with
    """
    ConvTile DYNAMIC GlobalTensor Layout Shape Stride Tile and auto bool break case catch char class
    const continue default delete do double else enum event_t explicit extern float for friend goto
    half if inline int long mutable namespace new not operator or private protected public
    register return short signed sizeof static struct switch template this throw try typedef
    typename union unsigned using virtual void volatile wchar_t while xor
    """.split()  # noqa: SIM905 - a list of 70 strings is harder to read
)


def camel(name: str) -> str:
    """The name of a type after that of a variable."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", name))


def template_text(value: Any) -> str:
    """A template argument: a flag, an element type, an enumerator or a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DType):
        return value.cpp
    if isinstance(value, OpCode):  # of C++, or of the same pipe: there it stands for no more
        known = op_codes()
        same = (name for name, each in known.items() if each.pipe is value.pipe)
        return f"Op::{value.name if value.name in known else next(same)}"
    if is_dataclass(value) and not isinstance(value, type):
        return _struct(type(value).__name__, value)
    name = getattr(value, "name", None)
    if not name:
        return str(value)
    return f"{getattr(value, 'namespace', '')}{type(value).__name__}::{name.rstrip('_')}"


def tile_type(
    spec: TileSpec | ConvSpec,
    target: Target,
    words: Sequence[str] = (),
    numbers: Mapping[str, float] = MappingProxyType({}),
) -> tuple[str, list[str]]:
    """The C++ type of a tile, and the names of numbers in it; trailing defaults are left out.

    `words` are the arguments it was written with: names of `numbers`, or nothing.
    """
    if isinstance(spec, ConvSpec):
        return conv_type(spec), []
    name = name_of(spec, target)
    sizes = [(str(spec.rows), False), (str(spec.cols), False)]
    valid = [
        (_valid(spec.valid_row), spec.valid_row == spec.rows),
        (_valid(spec.valid_col), spec.valid_col == spec.cols),
    ]
    if name:
        given = [(spec.dtype.cpp, False), *sizes, *valid]
    else:
        given = [
            (f"TileType::{spec.loc.name}", False),
            (spec.dtype.cpp, False),
            *sizes,
            (f"BLayout::{spec.blayout.name}", spec.blayout == BLayout.RowMajor),
            *valid,
            (f"SLayout::{spec.slayout.name}", spec.slayout == SLayout.NoneBox),
            (str(spec.fractal), spec.fractal == 512),
            (_pad(spec.pad), spec.pad == PadValue.Null),
            (f"CompactMode::{spec.compact.name}", spec.compact == CompactMode.Null),
        ]
    while given[-1][1]:
        given.pop()
    shown: list[str] = []
    texts: list[str] = []
    for at, (text, _) in enumerate(given):
        word = words[at] if at < len(words) else ""
        is_it = text == str(numbers.get(word)) and word not in KEYWORDS
        shown += [word] if is_it else []
        texts.append(word if is_it else text)
    return f"{name or 'Tile'}<{', '.join(texts)}>", shown


def _valid(size: int) -> str:
    return "DYNAMIC" if size == DYNAMIC else str(size)


def pipe_type(spec: PipeSpec) -> str:
    """The C++ type of a FIFO."""
    return _struct("TPipe", spec)


def _struct(name: str, value: Any) -> str:
    """A template with the fields of a record as arguments; trailing defaults are left out."""
    given = [getattr(value, f.name) for f in fields(value)]
    while given and given[-1] == fields(value)[len(given) - 1].default:
        given.pop()
    return f"{name}<{', '.join(map(template_text, given))}>"


def _pad(pad: int) -> str:
    if pad <= PadValue.Min:
        return f"PadValue::{PadValue(pad).name}"
    return f"static_cast<PadValue>(0x{pad:x}ULL)"
