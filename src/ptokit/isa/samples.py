"""A legal sample of every instruction, for every target and element type, from its record.

Tests run them, the documentation shows them, and the search for violating examples starts from
them. A record says what its operands look like only where the default does not fit, in a short
notation:

* `Vec {T} 16x64`, `Acc f32 32x32 NZ/1024 valid 20x30`: a tile; {T} is the element type in hand;
* `GM {T} 16x64 DN`: a view of global memory; `Group 3 {T} 16x64`: one on each of three ranks;
  `GM {T} 1x4x8x16x16 NC1HWC0 of 1x4x9x16x16`: one that is cut out of a larger array;
* `Conv Mat {T} NC1HWC0 1x2x4x4x{C0}`: a convolution tile; {C0} is the channels in 32 bytes;
* a number for a scalar, `new Name` or `new expression` for a helper object;
* `same dst` for an operand that must be the object already given as `dst`;
* `Vec u32 16x8 = 32` for a tile whose contents matter, such as one of byte offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from math import prod
from typing import Any

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, CompactMode, Layout, PadValue, SLayout, TileType
from ptokit.base.layout import dense_strides
from ptokit.base.tensors import ConvSpec, GlobalSpec, matrix_shape, matrix_stride
from ptokit.base.tiles import DYNAMIC, LAYOUT_NAMES, TileSpec
from ptokit.isa.facts import ConvFacts, Facts, GlobalFacts, ObjectFacts, Ops, ScalarFacts, TileFacts
from ptokit.isa.groups import GroupSpec
from ptokit.isa.spec import Insn, Operand
from ptokit.isa.targets import Target

_LAYOUTS: dict[str, tuple[BLayout, SLayout]] = {name: pair for pair, name in LAYOUT_NAMES.items()}
_DEFAULTS = {"global": "GM {T} 16x64", "conv": "Conv Vec {T} NCHW 1x16x4x8"} | dict.fromkeys(
    ("scalar", "pipe", "event", "number"), "1"
)

Spec = TileSpec | GlobalSpec | ConvSpec | GroupSpec | int | float | str


@dataclass(frozen=True)
class Sample:
    """Operands (None: left out) and template arguments of one legal call."""

    insn: Insn
    target: Target
    operands: dict[str, Spec | None]
    attrs: dict[str, Any]
    same: dict[str, str] = field(default_factory=dict[str, str])  # operands that are one object
    addresses: dict[str, int] = field(default_factory=dict[str, int])  # of tiles that are not at 0
    contents: dict[str, int] = field(default_factory=dict[str, int])  # of tiles where it matters

    def facts(self, mode: str = "auto") -> Ops:
        """What the verifier sees of this call; in auto mode every tile has its own storage."""
        facts = {
            name: _facts(spec, self.addresses.get(name, 0), lease if mode == "auto" else 0)
            for lease, (name, spec) in enumerate(self.operands.items(), 1)
        }
        return Ops(facts, self.attrs, self.target, mode)

    def __str__(self) -> str:
        shown = ", ".join(f"{n}: {s}" for n, s in self.operands.items() if s is not None)
        return f"{self.insn.name}({shown}) on {self.target.name}"


def samples(insn: Insn, target: Target) -> Iterator[Sample]:
    """One sample per combination of element types the target allows, then the further examples."""
    for chosen in _combinations(insn, target):
        yield sample(insn, target, chosen)
    for example in insn.more_examples:
        if target.name in example.get("on", target.name).split():
            yield sample(insn, target, {}, example)


def sample(
    insn: Insn,
    target: Target,
    chosen: dict[str, DType],
    example: Mapping[str, str] | None = None,
) -> Sample:
    """The sample with these element types; operands not named get the first one's."""
    example = insn.example if example is None else example
    first = next(iter(chosen.values()), dtype("f32"))
    form = _shown_form(insn, example)
    operands: dict[str, Spec | None] = {}
    same: dict[str, str] = {}
    contents: dict[str, int] = {}
    for operand in insn.operands:
        if operand.name not in form:
            operands[operand.name] = None
            continue
        text = _text(example, operand, target)
        if text.startswith("same "):
            same[operand.name] = text.removeprefix("same ")
            operands[operand.name] = operands[same[operand.name]]
            continue
        text, _, value = text.partition(" = ")
        if value:
            contents[operand.name] = int(value)
        operands[operand.name] = parse(text, chosen.get(operand.name, first), target)
    attrs = {a.name: _attr(example, a.name, a.type, a.default) for a in insn.attrs}
    return Sample(insn, target, operands, attrs, same, contents=contents)


def _shown_form(insn: Insn, example: Mapping[str, str]) -> tuple[str, ...]:
    """The overload to show: the one the record's example names, otherwise the shortest."""
    named = {name.partition("@")[0] for name in example} - {"on"}
    fitting = [f for f in insn.forms if named <= set(f) | {a.name for a in insn.attrs}]
    return min(fitting or insn.forms, key=len)


def _text(example: Mapping[str, str], operand: Operand, target: Target) -> str:
    per_target = example.get(f"{operand.name}@{target.name}")
    default = _DEFAULTS.get(operand.kinds[0], "Vec {T} 16x64")
    return per_target or example.get(operand.name, default)


def _attr(example: Mapping[str, str], name: str, kind: type, default: Any) -> Any:
    text = example.get(name)
    if text is None:
        return default
    if kind is bool:
        return text == "True"
    if issubclass(kind, DType):
        return dtype(text)
    return kind[text] if hasattr(kind, "__members__") else kind(int(text, 0))  # type: ignore[index]


def _combinations(insn: Insn, target: Target) -> list[dict[str, DType]]:
    """Assignments of element types to operands; one group at a time, the others at their first."""
    groups = [
        (group.of, sorted(group.allowed[target.name], key=str))
        for group in insn.types
        if target.name in group.allowed
    ]
    if not groups:
        return [{}]
    base: dict[str, DType] = {}
    for names, combos in reversed(groups):
        base.update(zip(names, combos[0], strict=True))
    return [
        dict(zip(names, combo, strict=True)) | {n: t for n, t in base.items() if n not in names}
        for names, combos in groups
        for combo in combos
    ]


# ---- the notation ------------------------------------------------------------------------------


def parse(text: str, kind: DType, target: Target) -> Spec:
    """Read one operand of the notation."""
    block = str(32 // kind.itemsize)  # channels in one block of a convolution layout
    words = text.replace("{T}", kind.name).replace("{C0}", block).split()
    head = words[0]
    if head == "new":  # the name of a helper class, or a whole expression
        return text.removeprefix("new ").strip()
    if head == "GM":
        return _parse_global(words[1:])
    if head == "Group":
        return GroupSpec((_parse_global(words[2:]),) * int(words[1]))
    if head == "Conv":
        return _parse_conv(words[1:])
    if head in TileType.__members__:
        return _parse_tile(words, target)
    return float(head) if "." in head or "e" in head.lower()[1:] else int(head, 0)


def _parse_tile(words: list[str], target: Target) -> TileSpec:
    loc = TileType[words[0]]
    rows, cols = _sizes(words[2])
    layout, fractal = alias_layout(loc, target)
    valid: tuple[int, int] = (rows, cols)
    pad, compact = PadValue.Null, CompactMode.Null
    rest = iter(words[3:])
    for word in rest:
        if word == "valid":
            valid_rows, valid_cols = _sizes(next(rest))
            valid = (valid_rows, valid_cols)
        elif word == "pad":
            pad = PadValue[next(rest)]
        elif word == "compact":
            compact = CompactMode[next(rest)]
        else:
            layout, _, size = word.partition("/")
            fractal = int(size) if size else 512
    blayout, slayout = _LAYOUTS[layout]
    return TileSpec.of(
        loc, dtype(words[1]), rows, cols, blayout, *valid, slayout, fractal, pad, compact
    )


def alias_layout(loc: TileType, target: Target) -> tuple[str, int]:
    """Layout and box size a tile of this space has by default on this target."""
    return {
        TileType.Left: (target.left_layout, 512),
        TileType.Right: ("ZN", 512),
        TileType.Acc: ("NZ", 1024),
        TileType.ScaleLeft: ("ZZ", 32),
        TileType.ScaleRight: ("NN", 32),
    }.get(loc, ("ND", 512))


def _parse_global(words: list[str]) -> GlobalSpec:
    kind = dtype(words[0])
    sizes = _sizes(words[1])
    layout = Layout[words[2]] if len(words) > 2 else Layout.ND
    if len(sizes) == 2:
        shape, stride = (of(kind, *sizes, layout) for of in (matrix_shape, matrix_stride))
        return GlobalSpec.of(kind, shape, stride, layout)
    array = _sizes(words[4]) if len(words) > 3 else sizes
    return GlobalSpec.of(kind, sizes, dense_strides(array), layout)


def _parse_conv(words: list[str]) -> ConvSpec:
    shape = _sizes(words[3])
    return ConvSpec.of(TileType[words[0]], dtype(words[1]), prod(shape), Layout[words[2]], shape)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(DYNAMIC if part == "?" else int(part) for part in text.split("x"))


def _facts(spec: Spec | None, address: int, lease: int) -> Facts | None:
    if spec is None:
        return None
    if isinstance(spec, TileSpec):
        return TileFacts(spec, address=address, lease=lease)
    if isinstance(spec, GlobalSpec):
        return GlobalFacts(spec)
    if isinstance(spec, ConvSpec):
        return ConvFacts(spec, address=address, lease=lease)
    if isinstance(spec, str | GroupSpec):
        return ObjectFacts(spec)
    return ScalarFacts(None, spec)
