"""Words of C++: type names of tiles, template arguments, questions, reserved names."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ptokit.base.dtypes import DType
from ptokit.base.enums import BLayout, CompactMode, PadValue, SLayout
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import TileSpec
from ptokit.emit.convs import conv_type
from ptokit.ir.dialects import system
from ptokit.isa.fifos import PipeSpec

QUERIES = {
    system.BLOCK_IDX: "get_block_idx()",
    system.BLOCK_NUM: "get_block_num()",
    system.SUBBLOCK_IDX: "get_subblockid()",
    system.SUBBLOCK_NUM: "get_subblockdim()",
}
SECTIONS = {"cube": "__DAV_CUBE__", "vector": "__DAV_VEC__"}  # kinds of cores

KEYWORDS = frozenset(  # and the names of PTO that a value of a kernel may collide with
    """
    ConvTile GlobalTensor Layout Shape Stride Tile and auto bool break case catch char class const
    continue default delete do double else enum event_t explicit extern float for friend goto
    half if inline int long mutable namespace new not operator or private protected public
    register return short signed sizeof static struct switch template this throw try typedef
    typename union unsigned using virtual void volatile wchar_t while xor
    """.split()  # noqa: SIM905 - a list of 70 strings is harder to read
)


def five(sizes: list[str], fill: str) -> tuple[str, str]:
    """Five template arguments, -1 where the size is known only at run time, and those sizes."""
    full = [fill] * (5 - len(sizes)) + sizes
    static = [n if n.lstrip("-").isdigit() else "-1" for n in full]
    dynamic = [n for n in full if not n.lstrip("-").isdigit()]
    return ", ".join(static), ", ".join(dynamic)


def template_text(value: Any) -> str:
    """A template argument: a flag, an element type, an enumerator or a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, DType):
        return value.cpp
    if is_dataclass(value) and not isinstance(value, type):
        return _struct(type(value).__name__, value)
    name = getattr(value, "name", None)
    if not name:
        return str(value)
    return f"{getattr(value, 'namespace', '')}{type(value).__name__}::{name.rstrip('_')}"


def tile_type(spec: TileSpec | ConvSpec) -> str:
    """The C++ type of a tile; trailing defaults are left out."""
    if isinstance(spec, ConvSpec):
        return conv_type(spec)
    words = [f"TileType::{spec.loc.name}", spec.dtype.cpp, str(spec.rows), str(spec.cols)]
    more = [
        (f"BLayout::{spec.blayout.name}", spec.blayout == BLayout.RowMajor),
        (str(spec.valid_row), spec.valid_row == spec.rows),
        (str(spec.valid_col), spec.valid_col == spec.cols),
        (f"SLayout::{spec.slayout.name}", spec.slayout == SLayout.NoneBox),
        (str(spec.fractal), spec.fractal == 512),
        (_pad(spec.pad), spec.pad == PadValue.Null),
        (f"CompactMode::{spec.compact.name}", spec.compact == CompactMode.Null),
    ]
    while more and more[-1][1]:
        more.pop()
    return f"Tile<{', '.join([*words, *(text for text, _ in more)])}>"


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
