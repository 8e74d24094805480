"""What the elementwise families share: operand lists, and the rules said once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from ptokit.base.dtypes import i64, u64
from ptokit.base.enums import TileType
from ptokit.isa.devices import A5_FAMILY, DEVICES, on
from ptokit.isa.language import one_region
from ptokit.isa.regions import first_bytes
from ptokit.isa.rules import (
    listed,
    located,
    made_row_major,
    must,
    or_else,
    same_dtype,
    same_place,
    static_valid_fits,
    verb,
    whole_overlap,
)
from ptokit.isa.spec import Attr, Operand, Rule, out, src, tmp

# The element types that a target computes with, those of more than a byte, and those it copies.
NUMBERS = {
    "a2a3": "i16 i32 f16 f32",
    "a5": "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    "kirin": "i8 u8 i16 u16 i32 u32 f16 f32",
}
WIDER_NUMBERS = {target: kinds.removeprefix("i8 u8 ") for target, kinds in NUMBERS.items()}
COPIED = NUMBERS | {"a2a3": "i8 u8 i16 u16 i32 u32 f16 bf16 f32"}


def narrow(kinds: Mapping[str, str]) -> dict[str, str]:
    """These element types without 64-bit integers."""
    return {target: names.replace("i64 u64 ", "") for target, names in kinds.items()}


# What happens where a rule is broken that nothing enforces.
GOVERNED = "the valid region of dst governs: sources are read there, by their own distance of rows"
AS_DST = "the storage of the sources is read as elements of the type of dst"
IN_STEPS_OF_UNKNOWN_ORDER = "the result depends on the order of the vector steps: it is undefined"
ONLY_ADDRESS = "of tmp only the address counts: as many bytes are overwritten as ever"
BY_ROW_STRIDE = "rows are addressed with RowStride, which is 1 for a column-major tile"

BINARY = (out("dst"), src("src0"), src("src1"))
UNARY = (out("dst"), src("src"))


def pointwise(
    *names: str,
    a2a3: str = "layout",
    a5: str = "layout",
    vec: str = "location",
    static: str = "SA-0084 SA-0083",
    valid: str = "PA-0020 PA-0017",
    everywhere: bool = False,
) -> list[Rule]:
    """What every elementwise instruction asks of its tiles.

    The ids are those of the layout check on A2/A3 and on the A5 family, of the memory space, and -
    rows first, then columns - of the static valid sizes and of the equality of the valid regions.
    Layout and space bind the devices; `everywhere` makes them hold on the permissive profile too.
    """
    static_rows, static_cols = static.split()
    valid_rows, valid_cols = valid.split()
    return [
        *or_else(AS_DST, same_dtype(*names)),
        arithmetic(names[0]),
        *or_else(GOVERNED, one_region(*names, rows=valid_rows, cols=valid_cols)),
        *static_valid_fits(*names, rows=static_rows, cols=static_cols),
        *(
            [plain(*names)]
            if everywhere
            else [plain(*names, id=a2a3, on="a2a3"), plain(*names, id=a5, on=A5_FAMILY)]
        ),
        located("Vec", *names, id=vec, on=None if everywhere else DEVICES),
        *in_place_or_apart(*names),
    ]


def in_place_or_apart(*names: str) -> list[Rule]:
    """The first tile is one of the others, exactly, or covers nothing of it that is still read."""
    return or_else(IN_STEPS_OF_UNKNOWN_ORDER, whole_overlap(*names, behind=True), voids=True)


def with_scalar(*, silent: bool = False) -> list[Rule]:
    """What every tile-scalar instruction asks of its two tiles; only A2/A3 checks the layout.

    `silent`: A2/A3 does nothing when the valid regions differ.
    """
    tiles = ("dst", "src")
    idle = lambda o: "nothing is done at all" if silent and on_a2a3(o) else GOVERNED  # noqa: E731
    return [
        *or_else(AS_DST, same_dtype(*tiles)),
        arithmetic("src"),
        *or_else(idle, one_region(*tiles, rows="PA-0020", cols="PA-0017")),
        not_empty("dst", on="a2a3"),
        *static_valid_fits(*tiles),
        *or_else(_by_row_stride, plain(*tiles, on="a2a3")),
        located("Vec", *tiles, id="SA-0231", on=DEVICES),
        *in_place_or_apart(*tiles),
    ]


def _by_row_stride(o: Any) -> str:
    """Rows of dst that overlap are known to come in order, not when dst is read as well."""
    return "" if same_place(o.dst, o.src) and o.dst.vc > 1 else BY_ROW_STRIDE


def arithmetic(name: str) -> Rule:
    """The elements are numbers; nothing computes with the codes of the smallest types."""
    return must("arithmetic")(
        f"elements of {name} are numbers to compute with, not 4-bit or hif8 codes",
        lambda o: not o[name].dtype.stores_codes,
        "convert with TCVT first",
    )  # without an outcome: there is nothing that could be computed


def plain(*names: str, id: str = "layout", on: str | None = None) -> Rule:
    """The tiles are row-major arrays."""
    return must(id, on)(
        f"{listed(names)} {verb(names, 'is', 'are')} row-major, without an inner box",
        lambda o: all(o[n] is None or o[n].layout == "ND" for n in names),
        made_row_major(*names, how="BLayout.RowMajor and SLayout.NoneBox"),
    )


def one_vector_of_i64(name: str = "dst") -> Rule:
    """A5 handles a single vector of 64-bit integers per row."""
    return must("i64-columns", "a5")(
        f"{name} has at most 64 valid columns when its elements are 64-bit integers",
        lambda o: o[name].dtype not in (i64, u64) or o[name].vc <= 64,
        "process the tile in pieces of 64 columns",
        "columns from 64 on are neither read nor written",
    )


_on_a5 = on("a5")


def one_vector(o: Any, name: str = "dst") -> tuple[int, int]:
    """The rows and columns that are gone over where a row is one vector of i64 on A5."""
    tile = o[name]
    is_cut = _on_a5(o) and tile.dtype in (i64, u64)
    return tile.vr, min(tile.vc, 64) if is_cut else tile.vc


def not_empty(name: str, on: str | None = None) -> Rule:
    """The valid region has at least one element."""
    return must("non-empty", on)(
        f"the valid region of {name} is not empty",
        lambda o: o[name].vr > 0 and o[name].vc > 0,
        "skip the instruction when there is nothing to do",
        "nothing happens",
    )


def precision(algorithm: type[IntEnum], *also: type[IntEnum]) -> list[Attr]:
    """The template parameter that asks for the slower, more accurate sequence of A5."""
    note = "HIGH_PRECISION has an effect on A5"
    return [Attr("PrecisionType", algorithm, algorithm(0), note, also=also)]


on_a2a3 = on("a2a3")  # scratch tiles are used there; other targets only ask for the operand


def scratch(needed: Callable[[Any], int], *, used: Any = on_a2a3, **more: Any) -> Operand:
    """A scratch tile: so many bytes from its address on are overwritten where it is used."""
    return tmp(
        view=lambda o: first_bytes(needed(o) if used(o) else 0),
        lost=used,
        memory=TileType.Vec,
        **more,
    )


def scratch_held(name: str, needed: Callable[[Any], int], text: str, targets: str = "a2a3") -> Rule:
    """Scratch bytes, where tiles are placed automatically: by hand only the address counts.

    What then lies past a tile that is too small is lost when the instruction runs.
    """
    return must("tmp-size", targets)(
        f"{name}, where tiles are placed automatically, holds the bytes that are used: {text}",
        lambda o: o[name] is None or o.mode != "auto" or o[name].nbytes >= needed(o),
        "declare a larger tile",
    )
