"""Reading types: every spelling that files and pages use, into one object each.

Works on the text of one token. A spelling that cannot be understood raises `SpellingError` with
the offset inside the token, so that the parser can put the caret where the mistake is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import TypeGuard, TypeVar

from ptokit.base.dtypes import DType, dtype
from ptokit.base.enums import BLayout, CompactMode, SLayout
from ptokit.base.patterns import regex
from ptokit.base.spelling import meant
from ptokit.base.tensors import ConvSpec
from ptokit.base.tiles import DYNAMIC, TileSpec
from ptokit.ir.micro import is_micro_type
from ptokit.ir.types import (
    BLAYOUTS,
    COMPACTS,
    LAYOUTS,
    LOCATIONS,
    MEMORY_NAMES,
    PADS,
    REGISTER_PAIRS,
    SINGLES_OF,
    SLAYOUTS,
    BufferType,
    ConvTileType,
    ElidedType,
    LocalArrayType,
    LogicalMaskType,
    LogicalType,
    MaskType,
    MultiTileType,
    OpaqueType,
    PtrType,
    RegisterType,
    ScalarType,
    ShapedType,
    StructType,
    TileBufType,
    Type,
    ViewType,
)
from ptokit.isa.micro.layouts import Layout
from ptokit.isa.micro.spec import REGISTER_BYTES

T = TypeVar("T")

_SCALAR = regex(r"index|[su]?i\d{1,3}|b?f\d{1,3}(E\dM\d\w*)?|tf32|hif[48]|none", re.ASCII)
_PART = regex(r"\s*([^,<>]*(?:<(?:[^<>]|<[^<>]*>)*>[^,<>]*)*)")
_DIMS = regex(r"((?:(?:\d+|\?|-1)x)*)((?:!pto\.)?[A-Za-z]\w*)", re.ASCII)
_SPACED = regex(r"(?<=[\d?])\s*x\s+")  # sizes may stand apart: 8 x 64 x f32
_BODY = regex(r"<(.*)>", re.DOTALL)

VIEWS = ("tensor_view", "partition_tensor_view", "memref", "global", "tile_view")
OPAQUE = (
    *("pipe", "async_session", "async_event", "eventid_array", "event", "record_event"),
    *("group", "fmatrix_config", "tpipe", "align", "prefetch_async_context"),
)
CONVS = ("conv_tile", "conv_tile_buf")
NAMES = (
    "ptr",
    "tile",
    "tile_buf",
    "multi_tile_buf",
    "local_array",
    "struct",
    "vreg",
    "mask",
    "vmi.vreg",
    "vmi.mask",
    *CONVS,
    *VIEWS,
    *OPAQUE,
)

_KEYS = ("loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad")
_POSITIONS = {
    10: _KEYS,
    8: tuple(k for k in _KEYS if k[:2] != "v_"),
    4: _KEYS[:4],
    3: _KEYS[1:4],
}


class SpellingError(ValueError):
    """A type or attribute that cannot be understood, with the place inside its text."""

    def __init__(self, message: str, offset: int = 0, length: int = 0, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length
        self.fix = fix


def suggestion(word: str, known: Iterable[str], at_least: float = 0.0) -> str:
    """A did-you-mean clause for a word that is alike enough, or the empty string."""
    return meant(word, known, at_least=at_least, shown=repr)


def is_scalar(word: str) -> bool:
    """Whether a bare word spells a scalar type."""
    return _SCALAR.fullmatch(word) is not None


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """The type that a token spells."""
    if text[0] == "!":
        return _dialect_type(text)
    if "<" in text:
        return _shaped_type(text)
    if text == "dtype":
        return ElidedType(text)
    return _element(text, 0)


def _element(text: str, offset: int) -> ScalarType:
    found = ScalarType(text)
    if found.dtype is not None and found.dtype.mlir[0] == "!":  # which have one spelling
        return ScalarType(found.dtype.mlir)
    if _SCALAR.fullmatch(text) or text in SINGLES_OF or text in REGISTER_PAIRS:
        return found
    try:
        return ScalarType(dtype(text).mlir)
    except ValueError as error:
        raise SpellingError(str(error), offset, len(text)) from None


# The memories that a pointer may name, by today's words and by those of tiles.
_SPACES = {word: word for word in ("ub", "l1", "l0a", "l0b", "l0c", "bt", "fb")} | {
    "vec": "ub",
    "mat": "l1",
    "left": "l0a",
    "right": "l0b",
    "acc": "l0c",
    "bias": "bt",
    "scaling": "fb",
    "gm": "",
}


def _space(word: str, start: int) -> str:
    if word not in _SPACES:
        listed = ", ".join(_SPACES)
        raise SpellingError(
            f"the address space of a pointer must be one of {listed}",
            start,
            len(word),
            suggestion(word, _SPACES),
        )
    return _SPACES[word]


def _stored(element: ScalarType, offset: int) -> ScalarType:
    """An element type that memory holds by itself: pairs of others belong to registers."""
    if element.name in REGISTER_PAIRS:
        raise SpellingError(
            f"{element} is a pair of elements, which micro-instructions work on",
            offset,
            len(element.name),
            f"use the elements: twice as many {REGISTER_PAIRS[element.name]}",
        )
    return element


def _dialect_type(text: str) -> Type:
    name = text[1:].partition("<")[0].strip()
    if is_micro_type(text):
        what = f"!{name} is a type of micro-instructions that ptokit does not have"
        raise SpellingError(what, 0, len(name) + 1, "write this part with tile instructions")
    if not name.startswith("pto."):
        raise SpellingError(
            f"there is no type !{name}", 0, len(name) + 1, suggestion(f"!pto.{name}", _spellings())
        )
    name = name[4:]
    match = _BODY.search(text)
    body = match.group(1) if match else ""
    start = match.start(1) if match else len(text)
    if name in ("tile", "tile_buf"):
        return _tile(name, body, start)
    if name == "multi_tile_buf":
        return _multi_tile(body, start)
    if name in CONVS:
        return _conv_tile(name, body, start)
    if name == "ptr":
        element, *space = _parts(body, start)
        return PtrType(_element(*element), _space(*space[0]) if space else "")
    if name in VIEWS:
        return _view(name, body, start)
    if name == "local_array":
        return _local_array(body, start)
    if name == "struct":
        return _struct(body, start)
    if name == "vreg":
        return _register(body, start)
    if name == "mask":
        return _mask(body, start)
    if name == "vmi.vreg":
        return _logical(body, start)
    if name == "vmi.mask":
        return _logical_mask(body, start)
    if name in OPAQUE:
        return OpaqueType(name, body.strip())
    if not match and _is_element(f"!pto.{name}"):
        return _element(f"!pto.{name}", 0)
    raise SpellingError(
        f"there is no type !pto.{name}", 0, len(name) + 5, suggestion(f"!pto.{name}", _spellings())
    )


def _is_element(text: str) -> bool:
    return text in SINGLES_OF or text in REGISTER_PAIRS or ScalarType(text).dtype is not None


def _local_array(body: str, start: int) -> LocalArrayType:
    shape, element = dims(body.strip(), start + _indent(body))
    if not shape or min(shape) <= 0 or not _is_storable(element):
        raise SpellingError(
            "a local_array has positive sizes and elements that are numbers",
            start,
            len(body),
            "write !pto.local_array<4x8xf32>",
        )
    return LocalArrayType(shape, element)


def _register(body: str, start: int) -> RegisterType:
    shape, element = dims(body.strip(), start + _indent(body))
    made = RegisterType(shape[0] if len(shape) == 1 else 0, element)
    if made.lanes * made.lane_bytes != REGISTER_BYTES:
        raise SpellingError(
            f"a vector register has {REGISTER_BYTES} bytes",
            start,
            len(body),
            f"write !pto.vreg<{REGISTER_BYTES * 8 // (element.bits or 8)}x{element}>",
        )
    return made


def _mask(body: str, start: int) -> MaskType:
    word = body.strip()
    if word not in _MASKS:
        raise SpellingError(
            f"a mask is for lanes of 8, 16 or 32 bits, not {word!r}",
            start,
            len(body),
            "write !pto.mask<b8>, !pto.mask<b16> or !pto.mask<b32>",
        )
    return MaskType(int(word[1:]))


_MASKS = ("b8", "b16", "b32")
_MOST_LANES = 1 << 20  # of a logical vector: more bytes than any memory near a core has


def _logical(body: str, start: int) -> LogicalType:
    first, _, layout = body.partition(",")
    shape, element = dims(first.strip(), start + _indent(body))
    if len(shape) != 1 or not 0 < shape[0] <= _MOST_LANES:
        raise SpellingError(
            f"a logical vector has 1 to {_MOST_LANES} lanes",
            start,
            len(body),
            f"write !pto.vmi.vreg<256x{element}>",
        )
    if element.bits not in (8, 16, 32):
        raise SpellingError(
            f"a lane has 8, 16 or 32 bits, not {element}", start, len(body), "use another element"
        )
    found = _layout(layout, start + len(first) + 1)
    if found is not None and found.kind == "num_groups" and found.factor != shape[0]:
        raise SpellingError(
            "a vector of groups has a lane for each of them",
            start,
            len(body),
            f"write !pto.vmi.vreg<{found.factor}x{element}, ...>",
        )
    return LogicalType(shape[0], element, layout.strip())


def _layout(text: str, start: int) -> Layout | None:
    if not text.strip():
        return None
    try:
        return Layout.parse(text)
    except ValueError as error:
        raise SpellingError(str(error), start, len(text)) from None


def _logical_mask(body: str, start: int) -> LogicalMaskType:
    first, _, layout = body.partition(",")
    found = _LANES.fullmatch(first.strip())
    if found is None or not 0 < int(found[1]) <= _MOST_LANES:
        raise SpellingError(
            f"{first.strip()!r} is not 1 to {_MOST_LANES} lanes with pred, b8, b16 or b32",
            start,
            len(body),
            "write !pto.vmi.mask<256xpred>",
        )
    if _layout(layout, start + len(first) + 1) is not None and found[2] == "pred":
        raise SpellingError(
            "a mask with a layout is that of lanes of some width",
            start,
            len(body),
            f"write !pto.vmi.mask<{found[1]}xb32, ...>",
        )
    return LogicalMaskType(int(found[1]), found[2], layout.strip())


_LANES = regex(r"([1-9]\d*)x(pred|b8|b16|b32)")


def _struct(body: str, start: int) -> StructType:
    fields: list[Type] = []
    for part, offset in _parts(body, start):
        kind = parse_type(part) if part else None
        if not isinstance(kind, StructType) and not _is_storable(kind):
            raise SpellingError(
                f"a field is a number of 8 to 64 bits or a struct, not {part!r}",
                offset,
                len(part),
                "write !pto.struct<f32, !pto.struct<i8, i16>>",
            )
        fields.append(kind)
    return StructType(tuple(fields))


_STORABLE = regex(r"[su]?i(8|16|32|64)|f(16|32|64)|bf16")


def _is_storable(type_: Type | None) -> TypeGuard[ScalarType]:
    return isinstance(type_, ScalarType) and _STORABLE.fullmatch(type_.name) is not None


def _spellings() -> list[str]:
    return [f"!pto.{name}" for name in NAMES]


def _parts(body: str, start: int) -> list[tuple[str, int]]:
    """Split at commas outside brackets; each part with its offset."""
    found: list[tuple[str, int]] = []
    at = 0
    while at <= len(body):
        match = _PART.match(body, at)
        assert match is not None
        found.append((match.group(1).strip(), start + match.start(1)))
        at = match.end() + 1
    return found


def _view(name: str, body: str, start: int) -> Type:
    if body.strip() == "...":
        return ElidedType(f"!pto.{name}<...>")
    first, *rest = _parts(body, start)
    if rest:
        return OpaqueType(name, " ".join(body.split()))
    shape, element = dims(*first)
    kind = "partition_tensor_view" if name == "tile_view" else name
    return ViewType(kind, shape, _stored(element, first[1]))


def dims(text: str, offset: int) -> tuple[tuple[int, ...], ScalarType]:
    """`16x?xf32` as sizes and element type."""
    match = _DIMS.fullmatch(_SPACED.sub("x", text))
    if match is None:
        raise SpellingError(
            f"{text!r} is not a shape with an element type",
            offset,
            len(text),
            "write sizes and element type joined by x: 16x?xf32",
        )
    sizes = tuple(DYNAMIC if n in ("?", "-1") else int(n) for n in match.group(1).split("x")[:-1])
    return sizes, _element(match.group(2), offset + match.start(2))


def _shaped_type(text: str) -> Type:
    kind = text[: text.index("<")]
    body = text[len(kind) + 1 : -1]
    first, *rest = _parts(body, len(kind) + 1)
    shape, element = dims(*first)
    layout = space = ""
    for part, offset in rest:
        if match := re.fullmatch(r"#pto\.address_space<\s*(\w+)\s*>", part):
            space = MEMORY_NAMES.get(match.group(1), match.group(1))
        elif part.startswith(("strided", "affine_map", "#")) or part.isdigit():
            layout = " ".join(part.split())
        else:
            raise SpellingError(f"{part!r} is no layout or memory space", offset, len(part))
    return ShapedType(kind, shape, element, layout, space)


# ---- tiles -------------------------------------------------------------------------------------


def _tile(name: str, body: str, start: int) -> Type:
    if body.strip() == "...":
        return ElidedType(f"!pto.{name}<...>")
    keyed, bare = _keyed(body, start)
    _name_bare_parts(bare, keyed, start)
    spec = _tile_spec(keyed, start)
    element = keyed["dtype"][0]
    in_pairs = element in SINGLES_OF and not spec.is_boxed
    return TileBufType(spec, name == "tile", element.startswith("si"), in_pairs)


_COUNT = regex(r",\s*count\s*=\s*(\d+)\s*$")


def _multi_tile(body: str, start: int) -> MultiTileType:
    """The description of one tile, or its type, and how many of them there are."""
    fix = "write !pto.multi_tile_buf<vec, 16x64xf32, count=2>"
    found = _COUNT.search(body)
    if found is None:
        raise SpellingError("a multi_tile_buf says its count last", start, len(body), fix)
    inner = body[: found.start()].strip()
    if inner.startswith("!pto.tile_buf<"):
        tile = _dialect_type(inner)
    else:
        tile = _tile("tile_buf", inner, start)
    if not isinstance(tile, TileBufType):
        raise SpellingError("a multi_tile_buf is made of tile_bufs", start, len(body), fix)
    return MultiTileType(tile.spec, int(found[1]), tile.elements)


def _keyed(body: str, start: int) -> tuple[dict[str, tuple[str, int]], list[tuple[str, int]]]:
    """Parts with a key by their key, and parts without."""
    keyed: dict[str, tuple[str, int]] = {}
    bare: list[tuple[str, int]] = []
    for part, offset in _parts(body, start):
        key, eq, value = part.partition("=")
        if not eq or part.startswith("#"):
            bare.append((part, offset))
            continue
        key = key.strip()
        if key in keyed:
            raise SpellingError(f"{key} is given twice", offset, len(part))
        keyed[key] = (value.strip(), offset + part.index("=") + 1 + _indent(value))
    return keyed, bare


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _name_bare_parts(
    bare: list[tuple[str, int]], keyed: dict[str, tuple[str, int]], start: int
) -> None:
    """Give parts without a key theirs: the compact and the positional spellings."""
    shaped = next((p for p in bare if re.match(r"[\d?]+\s*x", p[0])), None)
    if shaped is not None:
        (rows, cols), element = _two(dims(*shaped), shaped)
        keyed["rows"], keyed["cols"] = (str(rows), shaped[1]), (str(cols), shaped[1])
        keyed["dtype"] = (element.name, shaped[1])
        bare = [p for p in bare if p is not shaped]
        if (bare and bare[0][0].startswith("#")) or len(bare) > 1:
            raise SpellingError(
                "this spelling of a tile type is obsolete",
                bare[0][1],
                len(bare[0][0]),
                "write !pto.tile_buf<vec, 32x64xf32>",
            )
        keyed.setdefault("loc", bare[0] if bare else ("vec", start))
        return
    if not bare:
        return
    names = _POSITIONS.get(len(bare) + len(keyed))
    if names is None:
        raise SpellingError("a tile type names its parameters", start, 1, "loc=vec, dtype=f32, ...")
    free = [n for n in names if n not in keyed]
    keyed.update(zip(free, bare, strict=False))


def _two(
    found: tuple[tuple[int, ...], ScalarType], part: tuple[str, int]
) -> tuple[tuple[int, int], ScalarType]:
    shape, element = found
    if len(shape) != 2:
        raise SpellingError("a tile has rows and columns", part[1], len(part[0]))
    return (shape[0], shape[1]), element


def _check_keys(
    keyed: dict[str, tuple[str, int]],
    start: int,
    what: str,
    known: tuple[str, ...],
    needed: tuple[str, ...],
) -> None:
    for key, (value, offset) in keyed.items():
        if key not in known:
            at = offset - len(key) - 1
            raise SpellingError(
                f"{what} has no parameter {key}", at, len(key), suggestion(key, known)
            )
        if not value:
            raise SpellingError(f"{key} has no value", offset, 1)
    for key in needed:
        if key not in keyed:
            raise SpellingError(f"{what} needs {key}", start, 1, f"add {key}=...")


def _tile_spec(keyed: dict[str, tuple[str, int]], start: int) -> TileSpec:
    known = (*_KEYS, "compact", "valid")
    _check_keys(keyed, start, "a tile type", known, ("dtype", "rows", "cols"))
    if "valid" in keyed:
        value, offset = keyed.pop("valid")
        both = value.split("x")
        if len(both) != 2:
            raise SpellingError("valid is rows x columns", offset, len(value), "valid=8x?")
        keyed["v_row"], keyed["v_col"] = (both[0], offset), (both[1], offset)
    _name_memory(keyed)
    rows, cols = _number(keyed, "rows"), _number(keyed, "cols")
    sizes = [rows, cols, _number(keyed, "v_row", rows), _number(keyed, "v_col", cols)]
    blayout = _word(keyed, "blayout", BLAYOUTS, "row_major")
    slayout = _word(keyed, "slayout", SLAYOUTS, "none_box")
    element = _tile_element(keyed, sizes, blayout, slayout)
    return TileSpec.of(
        _word(keyed, "loc", LOCATIONS, "vec"),
        element,
        sizes[0],
        sizes[1],
        blayout,
        sizes[2],
        sizes[3],
        slayout,
        512 if keyed.get("fractal", ("None", 0))[0] == "None" else _number(keyed, "fractal"),
        _number_or_word(keyed, "pad", PADS),
        CompactMode(_number_or_word(keyed, "compact", COMPACTS, max(CompactMode))),
    )


def _tile_element(
    keyed: dict[str, tuple[str, int]], sizes: list[int], blayout: BLayout, slayout: SLayout
) -> DType:
    """The elements of a tile of `sizes`, rows and columns, then what is valid of them.

    Where they count pairs, single elements are counted: along the rows as they lie. Boxed tiles do
    so anyway, because products and the scales beside them are sized by them.
    """
    name, offset = keyed["dtype"]
    if slayout == SLayout.NoneBox and name in SINGLES_OF:
        along = slice(int(blayout == BLayout.RowMajor), None, 2)
        sizes[along] = [n if n == DYNAMIC else 2 * n for n in sizes[along]]
    _stored(ScalarType(name), offset)
    return _dtype({"dtype": (SINGLES_OF.get(name, name), offset)})


def _name_memory(keyed: dict[str, tuple[str, int]]) -> None:
    """Older files name the memory instead of the kind of tile."""
    if "loc" in keyed:
        value, offset = keyed["loc"]
        keyed["loc"] = (MEMORY_NAMES.get(value, value), offset)


def _dtype(keyed: dict[str, tuple[str, int]]) -> DType:
    value, offset = keyed["dtype"]
    try:
        return dtype(value)
    except ValueError as error:
        raise SpellingError(str(error), offset, len(value)) from None


_CONV_KEYS = ("loc", "dtype", "size", "layout", "shape")


def _conv_tile(name: str, body: str, start: int) -> Type:
    """`<loc=mat, dtype=f16, size=512, layout=nc1hwc0, shape=1x2x4x4x16>`; size in elements."""
    if body.strip() == "...":
        return ElidedType(f"!pto.{name}<...>")
    keyed, bare = _keyed(body, start)
    if bare:
        raise SpellingError(
            "a convolution tile type names its parameters",
            bare[0][1],
            max(1, len(bare[0][0])),
            "loc=mat, dtype=f16, size=512, layout=nc1hwc0, shape=1x2x4x4x16",
        )
    needed = tuple(key for key in _CONV_KEYS if key != "size")
    _check_keys(keyed, start, "a convolution tile type", _CONV_KEYS, needed)
    _name_memory(keyed)
    value, offset = keyed["shape"]
    if not re.fullmatch(r"([0-9]+|\?)(x([0-9]+|\?))*", value):
        raise SpellingError(
            f"shape is sizes joined by x, not {value!r}", offset, len(value), "shape=1x2x?x?x16"
        )
    shape = tuple(DYNAMIC if n == "?" else int(n) for n in value.split("x"))
    if "size" not in keyed and DYNAMIC in shape:
        raise SpellingError(
            "a convolution tile type with run-time sizes needs size", start, 1, "add size=..."
        )
    spec = ConvSpec.of(
        _word(keyed, "loc", LOCATIONS, ""),
        _dtype(keyed),
        _number(keyed, "size", prod(shape)),
        _word(keyed, "layout", LAYOUTS, ""),
        shape,
    )
    return ConvTileType(spec, name == "conv_tile")


def _number(keyed: dict[str, tuple[str, int]], key: str, default: int = 0) -> int:
    if key not in keyed:
        return default
    value, offset = keyed[key]
    if value == "?" and key.startswith("v_"):
        return DYNAMIC
    if not re.fullmatch(r"-?[0-9]+", value):
        raise SpellingError(f"{key} is a number, not {value!r}", offset, len(value))
    return int(value)


def _word(keyed: dict[str, tuple[str, int]], key: str, known: dict[str, T], default: str) -> T:
    value, offset = keyed.get(key, (default, 0))
    # The pages write RowMajor where files write row_major.
    word = value if value in known else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).lower()
    if word not in known:
        raise SpellingError(
            f"{key} is one of {', '.join(known)}, not {value!r}",
            offset,
            len(value),
            suggestion(value, known),
        )
    return known[word]


def _number_or_word(
    keyed: dict[str, tuple[str, int]], key: str, known: Mapping[str, int], most: int = (1 << 33) - 1
) -> int:
    if key not in keyed:
        return 0
    value, offset = keyed[key]
    if value.lower() in known:
        return int(known[value.lower()])
    if re.fullmatch(r"[0-9]+", value) and int(value) <= most:
        return int(value)
    raise SpellingError(
        f"{key} is a number or one of {', '.join(known)}, not {value!r}",
        offset,
        len(value),
        suggestion(value, known),
    )


def is_local(type_: Type) -> bool:
    """Whether a value of this type lives in on-chip memory, as tiles do."""
    if isinstance(type_, ShapedType):
        return type_.space not in ("", "gm", "zero")
    return isinstance(type_, BufferType)


__all__ = ["NAMES", "SpellingError", "is_local", "is_scalar", "parse_type", "suggestion"]
