"""The vocabulary of legality rules: those that many instructions share, and ways to group them.

A factory takes operand names and returns a `Rule`. Operands that were left out of a call (optional
ones) make a shared rule vacuously true. Rules that speak about some calls only stand in a group:

    *where(to_boxes, OLD)(
        rule("SA-0220", "boxes have 512 bytes", lambda o: o.dst.fractal == 512),
        rule("SA-0202", "dst has at most 16384 rows", lambda o: o.dst.rows <= 16384),
    ),
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ptokit.base.dataclass import dataclass
from ptokit.base.dtypes import dtype
from ptokit.base.enums import TileType
from ptokit.base.layout import Array, AxisMap
from ptokit.isa.spec import Rule, flat, rule

Predicate = Callable[[Any], bool]
Words = str | Callable[[Any], str]  # what happens otherwise, or what makes the words for it


# ---- groups of rules -----------------------------------------------------------------------------


def when(applies: Predicate, holds: Predicate) -> Predicate:
    """The predicate `holds`, where `applies`; true elsewhere."""
    return lambda o: not applies(o) or holds(o)


def both(*tests: Predicate) -> Predicate:
    """All of the conditions, asked in order."""
    return lambda o: all(test(o) for test in tests)


def where(applies: Predicate, on: str | None = None, prefix: str = "") -> Callable[..., list[Rule]]:
    """Rules that speak only about the operands to which `applies`.

    `on` are the targets of those that name none; `prefix` opens every sentence.
    """

    def narrowed(*rules: Rule | Iterable[Rule]) -> list[Rule]:
        return [
            replace(
                each,
                text=prefix + each.text,
                holds=when(applies, each.holds),
                typed=None if each.typed is None else when(applies, each.typed),
                targets=frozenset(on.split()) if on and each.targets is None else each.targets,
            )
            for each in flat(rules)
        ]

    return narrowed


def must(id: str, on: str | None = None, applies: Predicate | None = None) -> Callable[..., Rule]:
    """A rule as a row: id and targets, then the sentence, the predicate and the advice.

        must("SA-0201", "a2a3 a5")("1 <= Cols <= 4095", lambda o: 1 <= o.src.cols <= 4095)

    With `applies` it speaks only about the operands to which that applies.
    """

    def stated(
        text: str,
        holds: Predicate,
        fix: str | Callable[[Any], str] = "",
        otherwise: Words = "",
        **more: Any,
    ) -> Rule:
        asked = holds if applies is None else when(applies, holds)
        return rule(id, text, asked, on, fix, otherwise, **more)

    return stated


@dataclass(frozen=True)
class Told:
    """What happens otherwise, where the condition holds; where it does not, nobody knows."""

    words: str
    when: Predicate

    def __call__(self, o: Any) -> str:
        return self.words if self.when(o) else ""


def on_devices(words: str, *targets: str) -> Told:
    """What a device does where a rule is broken; the permissive profile knows no such thing.

    With `targets`, only these do.
    """
    return Told(words, lambda o: o.target.is_device and (not targets or o.target.name in targets))


def behind(words: str, fits: Predicate = lambda o: False) -> Told:
    """What a device does that touches more than the tiles, unless it `fits` into them after all.

    Where tiles are placed by hand, the program decides what lies there; where a compiler places
    them nobody knows, and it is an error.
    """
    return Told(words, lambda o: o.target.is_device and (o.mode != "auto" or fits(o)))


# A location that nothing asserts. Where a compiler places the tile nobody knows what lies there.
USED_AS_UB = on_devices("the address is used as one of the unified buffer")


def or_else(outcome: Words, *rules: Rule | Iterable[Rule], voids: bool = False) -> list[Rule]:
    """Rules with what happens where they are broken; `voids`: all that is written is undefined."""
    return [replace(each, otherwise=outcome, voids=voids) for each in flat(rules)]


def under(
    ids: Mapping[str, str], text: str, holds: Predicate, fix: str = "", otherwise: Words = ""
) -> list[Rule]:
    """One rule that targets report under different ids: `{"SA-0268": "a2a3", "SA-0269": "a5"}`."""
    return [rule(id, text, holds, on, fix, otherwise) for id, on in ids.items()]


def in_types(operand: str, listed: str) -> Predicate:
    """Whether the element type is one of those listed."""
    allowed = frozenset(dtype(name) for name in listed.split())
    return lambda o: o[operand].dtype in allowed


# ---- shared rules --------------------------------------------------------------------------------


def _all(names: tuple[str, ...], test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda o: all(o[n] is None or test(o[n]) for n in names)


def _one(names: tuple[str, ...], fact: Callable[[Any], Any]) -> Predicate:
    return lambda o: len({fact(o[n]) for n in names if o[n] is not None}) == 1


def listed(names: tuple[str, ...]) -> str:
    """Join names as a sentence does: a, b and c."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def verb(names: tuple[str, ...], one: str, many: str) -> str:
    return one if len(names) == 1 else many


def same_dtype(*names: str, id: str = "same-dtype", on: str | None = None) -> Rule:
    """All named operands have one element type."""
    return must(id, on)(
        f"{listed(names)} have the same element type",
        _one(names, lambda t: t.dtype),
        "declare the tiles with one element type, or convert with TCVT first",
    )


def same_size(
    *names: str, id: str = "same-element-size", on: str | None = None, otherwise: Words = ""
) -> Rule:
    """All named operands have elements of one width."""
    return must(id, on)(
        f"elements of {listed(names)} have the same size",
        _one(names, lambda t: t.itemsize),
        "use element types of equal width on both sides",
        otherwise,
    )


def row_major(*names: str, id: str = "row-major", on: str | None = None) -> Rule:
    """All named tiles are row-major."""
    return must(id, on)(
        f"{listed(names)} {verb(names, 'is', 'are')} row-major",
        _all(names, lambda t: t.is_row_major),
        made_row_major(*names, how="BLayout.RowMajor"),
    )


def made_row_major(*names: str, how: str) -> Callable[[Any], str]:
    """What to do about tiles that are not row-major: a column lies in memory as a row does."""

    def advice(o: Any) -> str:
        for name in names:
            tile = o[name]
            if tile is not None and tile.layout == "DN" and tile.cols == 1:
                row = f"row is row-major, 1 x {tile.rows}"
                return f"TRESHAPE(row, {name}) first: a column is a row in the same bytes; {row}"
        return f"declare the tile with {how}, or TMOV/TTRANS it first"

    return advice


def unboxed(*names: str, id: str = "unboxed", on: str | None = None) -> Rule:
    """All named tiles have no inner box."""
    return must(id, on)(
        f"{listed(names)} {verb(names, 'has', 'have')} no inner box (SLayout.NoneBox)",
        _all(names, lambda t: not t.is_boxed),
        "declare the tile with SLayout.NoneBox",
    )


def located(where: str, *names: str, id: str = "location", on: str | None = None) -> Rule:
    """All named tiles live in one of the given spaces ("Vec", "Vec Mat")."""
    spaces = tuple(TileType[w] for w in where.split())
    article = "an" if where[0] in "AEIOU" else "a"
    is_ = verb(names, f"is {article}", "are")
    kind = f"{is_} {' or '.join(where.split())} {verb(names, 'tile', 'tiles')}"
    return must(id, on)(
        f"{listed(names)} {kind}",
        _all(names, lambda t: t.loc in spaces),
        "declare the tile with that TileType and bring the data over with TMOV or TEXTRACT",
    )


_ONE_REGION = "give the tiles the same valid region (the template arguments, or SetValidShape)"


def same_valid(
    *names: str, id: str = "same-valid", on: str | None = None, otherwise: Words = ""
) -> Rule:
    """All named tiles have one valid region."""
    text = f"{listed(names)} have the same valid rows and columns"
    return must(id, on)(text, _one(names, lambda t: (t.vr, t.vc)), _ONE_REGION, otherwise)


def decides(name: str, *others: str) -> Told:
    """The valid region of one operand is the size of all, also behind the others."""

    def fits(o: Any) -> bool:
        return all(
            o[n] is None or (o[n].rows >= o[name].vr and o[n].cols >= o[name].vc) for n in others
        )

    return behind(f"the valid region of {name} decides", fits)


def same_valid_shape(
    *names: str, rows: str, cols: str, on: str | None = None, otherwise: Words = ""
) -> list[Rule]:
    """All named tiles have one valid region; rows and columns are reported under their own ids."""
    text = f"{listed(names)} have the same valid"
    return [
        must(cols, on)(f"{text} columns", _one(names, lambda t: t.vc), _ONE_REGION, otherwise),
        must(rows, on)(f"{text} rows", _one(names, lambda t: t.vr), _ONE_REGION, otherwise),
    ]


def static_valid_fits(
    *names: str, rows: str = "SA-0084", cols: str = "SA-0083", on: str | None = None
) -> list[Rule]:
    """Static valid sizes do not exceed the capacity."""
    every = listed(names)
    return [
        must(rows, on)(
            f"ValidRow <= Rows of {every}", _all(names, lambda t: t.valid_row <= t.rows)
        ),
        must(cols, on)(
            f"ValidCol <= Cols of {every}", _all(names, lambda t: t.valid_col <= t.cols)
        ),
    ]


# ---- storage -------------------------------------------------------------------------------------

APART = "use tiles of their own, bound to addresses that do not overlap"


def separate(*names: str, id: str = "separate", on: str | None = None) -> Rule:
    """The first tile shares no byte with the others."""
    first, *others = names
    pairs = tuple((first, other) for other in others)
    text = f"{first} shares no storage with {listed(tuple(others))}"
    return must(id, on)(text, _none_overlap(pairs), APART)


def in_place(*names: str, id: str = "separate", on: str | None = None) -> Rule:
    """The first tile starts where the second does, or shares no byte with it; nor with the rest."""
    first, second, *others = names
    pairs = tuple((first, other) for other in others)
    rest = f", and shares none with {listed(tuple(others))}" if others else ""
    return must(id, on)(
        f"{first} starts where {second} does or shares no storage with it{rest}",
        lambda o: (
            (o[first].addr == o[second].addr or not overlap(o[first], o[second]))
            and _none_overlap(pairs)(o)
        ),
        APART,
    )


def disjoint(*names: str, id: str = "disjoint", on: str | None = None) -> Rule:
    """No two of the tiles share a byte."""
    pairs = tuple(combinations(names, 2))
    return must(id, on)(f"no two of {listed(names)} share storage", _none_overlap(pairs), APART)


def _none_overlap(pairs: tuple[tuple[str, str], ...]) -> Predicate:
    return lambda o: (
        not any(o[a] is not None and o[b] is not None and overlap(o[a], o[b]) for a, b in pairs)
    )


def whole_overlap(
    *names: str, id: str = "partial-overlap", on: str | None = None, behind: bool = False
) -> Rule:
    """The first tile may be one of the others, exactly, but does not overlap any in part.

    `behind`: unless it covers only what rows above, and blocks of a row before, have read.
    """
    first, *others = names
    text = f"{first} is either the same storage as {listed(tuple(others))}, element by element, "
    read = "covers only what was read before, or " if behind else "or "
    return must(id, on)(
        f"{text}{read}does not overlap it",
        lambda o: all(
            o[n] is None
            or _coincide(o[first], o[n])
            or not overlap(o[first], o[n])
            or (behind and _is_read_first(o[n], o[first]))
            for n in others
        ),
        "work in place on one tile, or use tiles bound to addresses that do not overlap",
    )


def _is_read_first(src: Any, dst: Any) -> bool:
    """Whether every element of a source has been read when a result is written over it.

    Rows, and in them blocks of 256 bytes, are taken in ascending order, one way or the other.
    """
    size = dst.itemsize
    if (src.itemsize, src.vr, src.vc) != (size, dst.vr, dst.vc) or (src.addr - dst.addr) % size:
        return False
    if dst.dtype.is_packed or max(src.nbytes, dst.nbytes) > _LARGEST:
        return False
    places = [t.axis_map(t.vr, t.vc).offsets[: t.vr, : t.vc] + t.addr // size for t in (src, dst)]
    _, *found = np.intersect1d(*places, return_indices=True)
    (row, col), (to_row, to_col) = (np.divmod(each, dst.vc) for each in found)
    block = 256 // size
    return bool((row <= to_row).all() and (col // block <= to_col // block).all())


def same_place(a: Any, b: Any) -> bool:
    """Whether two tiles start at the same byte."""
    return a.lease == b.lease and a.addr == b.addr and memory_of(a) == memory_of(b)


def memory_of(tile: Any) -> TileType:
    """The memory in which the address of a tile is used."""
    return tile.loc if tile.home is None else tile.home


def _coincide(a: Any, b: Any) -> bool:
    """Whether the same elements of two tiles have the same addresses."""
    facts = ("lease", "addr", "layout", "row_stride", "col_stride", "itemsize")
    return [getattr(a, fact) for fact in facts] == [getattr(b, fact) for fact in facts]


def overlap(a: Any, b: Any) -> bool:
    """Whether the valid regions of two tiles of one memory have a byte in common."""
    if "scalar" in (a.kind, b.kind):
        return False  # a number in the place of a tile
    if memory_of(a) != memory_of(b) or a.lease != b.lease:
        return False
    if a.addr >= b.addr + b.nbytes or b.addr >= a.addr + a.nbytes:
        return False
    if a.addr == b.addr and min(a.vr, a.vc, b.vr, b.vc) > 0:
        return True  # the first element of every layout lies at the base
    ranges = _solid(a), _solid(b)
    if ranges[0] is not None and ranges[1] is not None:
        return max(ranges[0][0], ranges[1][0]) < min(ranges[0][1], ranges[1][1])
    if max(a.nbytes, b.nbytes) > _LARGEST:
        return True  # no memory holds it, and that is reported
    return np.intersect1d(_touched(a), _touched(b)).size > 0


_LARGEST = 1 << 22  # bytes of a tile whose elements are looked at one by one


def _solid(tile: Any) -> tuple[int, int] | None:
    """The bytes of the valid region, from and up to, when there are none of others in between."""
    found = tile.axis_map(tile.vr, tile.vc).axes(tile.vr, tile.vc)
    if found is None:
        return None
    extents, strides = zip(*found[0], *found[1], strict=True)
    stretches = AxisMap(extents, strides, (), ()).stretches
    if stretches is None or stretches[2] != 1:
        return None
    size = -(-stretches[0] // 2) if tile.dtype.is_packed else stretches[0] * tile.itemsize
    return tile.addr, tile.addr + size


def _touched(tile: Any) -> Array:
    """The address of every byte of the valid region."""
    offsets = tile.axis_map(tile.vr, tile.vc).offsets[: tile.vr, : tile.vc]
    if tile.dtype.is_packed:
        return offsets // 2 + tile.addr
    return offsets[..., None] * tile.itemsize + tile.addr + np.arange(tile.itemsize)
