"""A line of text for every micro-operation and every combination of its element types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ptokit.base.dtypes import DType, dtype
from ptokit.base.patterns import regex
from ptokit.isa.micro.spec import REGISTER_BYTES, Micro, Slot

Types = Mapping[str, str]
_SPACES = ("l1", "l0a", "l0b", "l0c", "bt", "fb")
_LANES = 64  # of logical vectors
_OPTIONAL = regex(r"\[\?(?:(?!\[\?).)*?\?\]")  # one that holds no other
_PAIRS = {"f4e2m1x2": "!pto.f4E2M1x2", "f4e1m2x2": "!pto.f4E1M2x2"}  # what registers hold


def kinds(record: Micro) -> Iterator[tuple[DType, DType]]:
    """T and U, for every combination that the record lists; f32 where it takes any."""
    for one in record.types or ((dtype("f32"),),):
        yield one[0], one[-1]


def spelled(kind: DType) -> str:
    """An element type as registers and pointers write it."""
    return _PAIRS.get(kind.name, kind.mlir)


def register(kind: DType) -> str:
    return f"!pto.vreg<{REGISTER_BYTES // kind.itemsize}x{spelled(kind)}>"


def mask(size: int) -> str:
    return f"!pto.mask<b{8 * min(size, 4)}>"


def types(record: Micro, T: DType, U: DType, more: Iterable[str] = ()) -> Types:
    """The type of every operand and result, as text; of what may be left out, those of `more`."""
    return {
        slot.name: _type(record, slot, T, U)
        for slot in (*record.operands, *record.results)
        if not slot.is_optional or slot.name in more
    }


def _type(record: Micro, slot: Slot, T: DType, U: DType) -> str:
    named = re.search(r"_b(\d+)$", record.name)
    index = dtype("u32" if T.itemsize >= 4 else "u16")
    size = index.itemsize if any(s.kind == "X" for s in record.operands) else T.itemsize
    # Counts beside lanes have their signed type; a conversion has another one.
    other = U if slot in record.results else dtype(f"i{8 * T.itemsize}")
    width = int(named[1]) // 8 if named else size if slot.kind == "N" else T.itemsize
    found = {
        "V": register(T),
        "W": register(other),
        "X": register(index if record.footprint else dtype(f"u{8 * T.itemsize}")),
        "L": register(T),
        "M": mask(T.itemsize),
        "N": mask(width),
        "B": mask(width if named else 4),
        "S": spelled(T),
        "num": spelled(T),
        "ub": f"!pto.ptr<{spelled(T)}, ub>",
        "gm": f"!pto.ptr<{spelled(T)}>",
        **{each: f"!pto.ptr<{spelled(T)}, {each}>" for each in _SPACES},
        "align": "!pto.align",
        "int": "i16" if "stride" in slot.name or slot.name == "b" else "i32",
    }
    if record.is_logical:
        made = U if slot.kind == "W" and slot in record.results else T
        found |= dict.fromkeys("VWLGHE", vector(_LANES, made))
        found |= {"X": f"!pto.vmi.vreg<{_LANES}xui{8 * max(2, T.itemsize)}>"}
        found |= dict.fromkeys("MN", f"!pto.vmi.mask<{_LANES}xpred>")
        found |= {"P": register(T), "S": signed(T), "ub": f"!pto.ptr<{signed(T)}, ub>"}
    shown = record.example(T, U) if record.example is not None else {}
    return shown.get(slot.name, found.get(slot.kind, slot.kind))


def signed(kind: DType) -> str:
    """An element type as logical vectors write it: integers say that they have a sign."""
    return f"s{kind.mlir}" if kind.is_integer and kind.is_signed else spelled(kind)


def vector(lanes: int, kind: DType) -> str:
    """The type of a logical vector."""
    return f"!pto.vmi.vreg<{lanes}x{signed(kind)}>"


_NAMED = regex(r"(?:%|T\()(\w+(?:\|\w+)*)")


def _shown(part: str, given: Types) -> str:
    """A part that may be left out, or what stands in its place, by what it names first."""
    here, _, otherwise = part.removeprefix("[?").removesuffix("?]").partition("?|")
    named = _NAMED.search(here)
    is_there = named is not None and any(name in given for name in named[1].split("|"))
    return here if is_there else otherwise


def _taken(names: str, given: Types) -> str:
    """Of operands that one place stands for, those that are there."""
    return ", ".join(f"%{name}" for name in names.split("|") if name in given)


def names(slots: Iterable[Slot], given: Types) -> list[str]:
    """The names of operands or results that are there; a list has three."""
    return [
        f"%{slot.name}{n}"
        for slot in slots
        if slot.name in given
        for n in (range(3) if slot.is_list else [""])
    ]


def _types(slots: Iterable[Slot], given: Types) -> str:
    """Their types."""
    return ", ".join(given[s.name] for s in slots for _ in range(3 if s.is_list else 1))


def _first(record: Micro, name: str) -> str:
    word = record.word(name)
    assert word is not None
    return word.choices[0]


def examples(record: Micro, T: DType, U: DType) -> Mapping[str, str]:
    """The words that a sample writes, beside the first choices of those that must be."""
    listed = {w.name: w.example for w in record.words if w.default is None and not w.choices}
    shown = record.example(T, U) if record.example is not None else {}
    return listed | {name: said for name, said in shown.items() if record.word(name)}


def line(
    record: Micro,
    given: Types,
    words: Mapping[str, str] | None = None,
    written: Mapping[str, str] | None = None,
) -> str:
    """The operation with its operands by their names, and the first choice of every word.

    Others are written as `written` has them; one that is only there has nothing behind it.
    """
    needed = [word for word in record.words if word.default is None]
    more = dict(written or {})
    chosen = {w.name: w.choices[0] for w in needed if w.choices and w.name not in more}
    chosen |= words or {}
    text = record.syntax
    while _OPTIONAL.search(text):
        text = _OPTIONAL.sub(lambda m: _shown(m[0], given), text)
    text = re.sub(r"W\((\w+)\)", lambda m: chosen.pop(m[1], "") or _first(record, m[1]), text)
    rest = {n: w for n, w in chosen.items() if f"@{n}" not in text}
    listed = [f'{n} = "{w}"' for n, w in rest.items()]
    text = re.sub(r"@(\w+)", lambda m: more.pop(m[1], m[0]), text)
    listed += [f"{name} = {said}" if said else name for name, said in more.items()]
    keys = f"{{{', '.join(listed)}}}" if listed else ""
    text = re.sub(r" ?\{\}", f" {keys}" if keys else "", text)
    text = re.sub(r"@(\w+)", lambda m: f'"{chosen[m[1]]}"', text)
    text = re.sub(r"%((?:\w+\|)+\w+)\.\.\.", lambda m: _taken(m[1], given), text)
    text = re.sub(r"%(\w+)\.\.\.", lambda m: ", ".join(f"%{m[1]}{n}" for n in range(3)), text)
    text = re.sub(r"T\((\w+)\.\.\.\)", lambda m: ", ".join([given[m[1]]] * 3), text)
    text = re.sub(r"T\((\w+)\)", lambda m: given[m[1]], text)
    front = ", ".join(names(record.results, given))
    if record.is_generic:
        operands, shown = ", ".join(names(record.operands, given)), f" {keys}" if keys else ""
        taken, made = _types(record.operands, given), _types(record.results, given)
        made = made if len(names(record.results, given)) == 1 else f"({made})"
        return f'{front} = "pto.{record.name}"({operands}){shown} : ({taken}) -> {made}'
    behind = f"pto.{record.name} {text.strip()}".strip()
    return f"{front} = {behind}" if front else behind
