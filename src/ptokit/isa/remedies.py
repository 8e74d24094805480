"""What would mend a broken rule, as numbers and names: `tmp.Cols = 64`, `src1.DType = f32`.

Nobody writes these down per rule: the predicate itself is asked. Each fact that the rule looked at
is changed, alone and by as little as possible, until the rule holds; a change counts only when the
operand stays a legal one that fits into its memory and no other rule of the instruction breaks by
it; who knows the whole program says whether the rest of it takes the change too. This runs only
where a rule is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, cast

from ptokit.base.dtypes import ALL
from ptokit.base.enums import CompactMode, Layout
from ptokit.base.tiles import BOX_BYTES, DYNAMIC, LAYOUT_NAMES, TileSpec, Violation
from ptokit.isa.facts import (
    ConvFacts,
    Facts,
    GlobalFacts,
    ObjectFacts,
    Ops,
    ScalarFacts,
    TileFacts,
    Unknown,
    shown,
)
from ptokit.isa.spec import Attr, Insn, Operand, Rule

MOST_SHOWN = 3
_TRIALS = 800  # changes tried per rule: a program may break many
_NEAR = 256  # values on either side that are tried one by one
_FAR = 1 << 20
_TRIALS_ELSEWHERE = 64  # of those, changes tried on the rest of the program
_MOST_HOPELESS = 1 << 14  # searches in vain that are remembered
_FEW = 16  # values of a template argument that was left out
_SIZES = {"rows": "Rows", "cols": "Cols", "valid_row": "ValidRow", "valid_col": "ValidCol"}
_NAMES = {
    "dtype": "DType",
    "loc": "Loc",
    "layout": "Layout",
    "fractal": "SFractalSize",
    "compact": "CompactMode",
}
# What a predicate looks at -> what of the tile's declaration decides it.
_DECIDED_BY: Mapping[str, tuple[str, ...]] = {
    "addr": ("address",),
    "rows": ("rows",),
    "cols": ("cols",),
    "nbytes": ("cols", "rows"),
    "numel": ("cols", "rows"),
    "row_stride": ("cols",),
    "col_stride": ("rows",),
    "vr": ("valid_row",),
    "vc": ("valid_col",),
    "valid_row": ("valid_row",),
    "valid_col": ("valid_col",),
    "dtype": ("dtype",),
    "itemsize": ("dtype",),
    "loc": ("loc",),
    "fractal": ("fractal",),
    "compact": ("compact",),
    "shape": ("shape",),
    "static_shape": ("shape",),
    **dict.fromkeys(("layout", "blayout", "slayout", "is_row_major", "is_boxed"), ("layout",)),
}
# What is easiest to change comes first; the rest is left alone where that helps.
_ORDER = (
    ("address",),
    (*_SIZES, "shape", "value", "attr"),
    ("like",),
    ("layout", "dtype", "fractal", "compact"),
    ("loc",),
)
Mends = Callable[[Ops], bool]
Test = Callable[[Facts], bool]
Elsewhere = Callable[[str, Facts], bool]  # would the rest of the program take this operand?
# Searches in vain are the longest, and a program is verified more than once.
_hopeless: set[tuple[Hashable, ...]] = set()


def remedies(
    insn: Insn, rule: Rule, ops: Ops, seen: Iterable[str], elsewhere: Elsewhere | None = None
) -> str:
    """The changes of one operand or template argument each, joined by "or"; may be empty."""
    case = _case(insn, rule, ops)
    if case in _hopeless:
        return ""
    rules = [r for r in insn.rules if r.binds(ops.target.name)]
    holding = [r for r in rules if r is not rule and not _breaks(r, ops)]
    trials = iter(range(_TRIALS))

    def mends(changed: Ops) -> bool:
        if next(trials, None) is None or _breaks(rule, changed):
            return False
        return not any(_breaks(r, changed) for r in holding)

    wide_trials = iter(range(_TRIALS_ELSEWHERE))

    def taken(name: str, changed: Facts) -> bool:
        if elsewhere is None:
            return True
        return next(wide_trials, None) is not None and elsewhere(name, changed)

    knobs = list(dict.fromkeys(_knobs(insn, seen)))
    outsize = {name for name, operand in ops if operand is not None and not _fits(operand, ops)}
    if outsize:  # whatever else is changed, that one stays wrong
        knobs = [(name, knob) for name, knob in knobs if {name} == outsize]
    if any(knob != "loc" for _, knob in knobs):  # another memory would only dodge the rule
        knobs = [(name, knob) for name, knob in knobs if knob != "loc"]
    if any(knob == "address" for _, knob in knobs):  # tiles that meet are moved apart, not resized
        knobs = [(name, knob) for name, knob in knobs if knob == "address"]
    scratch = {o.name for o in insn.operands if o.role == "tmp"} & {name for name, _ in knobs}
    if scratch:  # nobody changes the data to suit a scratch tile
        knobs = [(name, knob) for name, knob in knobs if name in scratch or knob == "address"]
        knobs += [(name, "like") for name in scratch if (name, "address") not in knobs]
    for kind in _ORDER:
        found: list[str] = []
        for name, knob in knobs:
            if knob in kind and len(found) < MOST_SHOWN:
                found += _turned(insn, ops, name, knob, mends, taken)
        if found:
            return " or ".join(dict.fromkeys(found))
    if case is not None and next(wide_trials, None) == 0:  # nothing of this program was asked
        if len(_hopeless) >= _MOST_HOPELESS:
            _hopeless.clear()
        _hopeless.add(case)
    return ""


def _case(insn: Insn, rule: Rule, ops: Ops) -> tuple[Hashable, ...] | None:
    """What a search depends on: all of the operands, but of addresses only which are the same.

    None where one of them is an object that may change.
    """
    facts = [each for _, each in ops]
    if any(isinstance(each, ObjectFacts) and each.obj.__hash__ is None for each in facts):
        return None
    return (
        *(insn, rule, ops.target, ops.mode),
        *ops.attrs.items(),
        *(replace(each, address=None) if isinstance(each, TileFacts) else each for each in facts),
        *map(facts.index, facts),
    )


def size_remedy(spec: TileSpec, broken: Violation) -> str:
    """The nearest sizes, of those a static rule of the type speaks of, with which it holds."""
    found: list[str] = []
    for field, name in _SIZES.items():
        if name in dict(broken.got):

            def legal(size: int, field: str = field) -> bool:
                changed = replace(spec, **{field: size})
                return all(each.code != broken.code for each in changed.violations())

            size = _nearest(getattr(spec, field), legal)
            found += [] if size is None else [f"{name} = {size}"]
    return " or ".join(found)


def _breaks(rule: Rule, ops: Ops) -> bool:
    try:
        return not rule.holds(ops)
    except Unknown:
        return False
    except Exception:  # a made-up operand may be nothing the predicate can think of
        return True


def _knobs(insn: Insn, seen: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What could be changed, in the order in which the predicate looked at it."""
    attrs = {a.name for a in insn.attrs}
    for path in seen:
        name, _, fact = path.partition(".")
        if not fact and name in attrs:
            yield name, "attr"
        elif fact == "value":
            yield name, "value"
        for knob in _DECIDED_BY.get(fact, ()):
            yield name, knob


def _turned(
    insn: Insn, ops: Ops, name: str, knob: str, mends: Mends, taken: Elsewhere
) -> list[str]:
    """The smallest turn of one knob that mends the rule, in words; none: an empty list."""
    operand = dict(ops).get(name)
    if knob == "attr":
        return _attribute(next(a for a in insn.attrs if a.name == name), ops, mends)
    if knob == "value" and isinstance(operand, ScalarFacts):
        return _value(operand, insn.operand(name), ops, mends)
    if not isinstance(operand, TileFacts | GlobalFacts | ConvFacts):
        return []

    def test(changed: Facts) -> bool:
        after = _with(ops, name, changed, apart=knob == "address")
        typed = knob != "dtype" or not any(group.breaks(after) for group in insn.types)
        return typed and _legal(changed, ops) and mends(after) and taken(name, changed)

    if knob in _NAMES:
        good = [word for word, changed in _variants(operand, knob, ops) if test(changed)]
        return [f"{name}.{_NAMES[knob]} = {'/'.join(good)}"] if good else []
    if knob == "shape" and isinstance(operand, GlobalFacts):
        return _extent(operand, name, test)
    if not isinstance(operand, TileFacts):
        return []
    if knob == "address":
        return _address(operand, ops, name, test)
    return _like(operand, ops, name, test) if knob == "like" else _size(operand, knob, name, test)


def _with(ops: Ops, name: str, operand: Facts, apart: bool = True) -> Ops:
    """The operands with another one; unless it is moved `apart`, a tile that is given twice
    changes in both places."""
    before = ops[name]
    named = dict(ops)
    twice = not apart and isinstance(before, TileFacts) and before.address is not None
    for each in [n for n, o in ops if twice and o == before] or [name]:
        named[each] = operand
    return Ops(named, ops.attrs, ops.target, ops.mode)


def _legal(operand: Facts, ops: Ops) -> bool:
    """Whether an operand may be declared so, and a tile fits into its memory where it lies."""
    if not isinstance(operand, TileFacts | ConvFacts):
        return True
    return _fits(operand, ops) and not any(operand.spec.violations())


def _fits(operand: Facts, ops: Ops) -> bool:
    if not isinstance(operand, TileFacts | ConvFacts) or operand.spec.loc not in ops.target.spaces:
        return not isinstance(operand, TileFacts | ConvFacts)
    end = (operand.address or 0) + operand.spec.nbytes
    return end <= ops.target.spaces[operand.spec.loc].capacity


# ---- numbers -------------------------------------------------------------------------------------


def _nearest(now: int, good: Callable[[int], bool], least: int = 1) -> int | None:
    """The nearest larger number that is good, or else the nearest smaller one."""
    for sign in (1, -1):
        for n in range(1, _NEAR + 1):
            if now + sign * n >= least and good(now + sign * n):
                return now + sign * n
        found = _farther(now, sign, good, least)
        if found is not None:
            return found
    return None


def _farther(now: int, sign: int, good: Callable[[int], bool], least: int) -> int | None:
    """The nearest good number beyond those tried one by one: leap, then halve the distance."""
    bad, leap = now + sign * _NEAR, _NEAR
    while least < now + sign * leap <= _FAR:
        leap *= 2
        reached = max(least, now + sign * leap)
        if good(reached):
            while abs(reached - bad) > 1:
                middle = (reached + bad) // 2
                bad, reached = (bad, middle) if good(middle) else (middle, reached)
            return reached
        bad = reached
    return None


def _value(scalar: ScalarFacts, declared: Operand, ops: Ops, mends: Mends) -> list[str]:
    now, name = scalar.known, declared.name
    if not isinstance(now, int) or isinstance(now, bool) or "pipe" in declared.kinds:
        return []  # that its number is near makes no pipe a better one
    number = _nearest(now, lambda n: mends(_with(ops, name, replace(scalar, known=n))), 0)
    return [] if number is None else [f"{name} = {declared.written(number)}"]


def _size(tile: TileFacts, knob: str, name: str, test: Test) -> list[str]:
    """Another size. What is valid as a whole stays so where it can, or else is padded."""
    rows = knob in ("rows", "valid_row")
    whole, valid = ("rows", "valid_row") if rows else ("cols", "valid_col")
    said, named = f"{name}.{_SIZES[whole]} = ", f"{_SIZES[valid]} = "
    try:
        inside, around = tile.vr if rows else tile.vc, getattr(tile.spec, whole)
    except Unknown:
        return []

    def both(size: int) -> bool:
        return test(_revalid(_resized(tile, whole, size), valid, size))

    if knob == valid:
        size = _nearest(inside, lambda n: test(_revalid(tile, valid, n)))
        if size is not None:
            return [f"{name}.{named}{size}"]
        size = _nearest(inside, both)
        padded = "" if inside == around else f" with {named}{size}"
    else:
        size = _nearest(around, both) if inside == around else None
        padded = ""
        if size is None:
            size = _nearest(around, lambda n: test(_resized(tile, whole, n)))
            padded = f" with {named}{inside}" if inside == around else ""
    return [] if size is None else [f"{said}{size}{padded}"]


def _extent(view: GlobalFacts, name: str, test: Test) -> list[str]:
    """Another size of one dimension of a view, the last ones first."""
    for axis in reversed(range(5)):
        now = view.known_shape[axis]
        now = view.spec.shape[axis] if now is None else now
        if now < 0:
            continue
        size = _nearest(now, lambda n, axis=axis: test(_reshaped(view, axis, n)))
        if size is not None:
            return [f"S{axis} of {name} = {size}"]
    return []


def _reshaped(view: GlobalFacts, axis: int, size: int) -> GlobalFacts:
    known = (*view.known_shape[:axis], size, *view.known_shape[axis + 1 :])
    static = view.spec.shape
    if static[axis] != DYNAMIC:
        static = (*static[:axis], size, *static[axis + 1 :])
    return replace(view, spec=replace(view.spec, shape=static), known_shape=known)


def _resized(tile: TileFacts, knob: str, size: int) -> TileFacts:
    """A tile of another size; a valid region that no longer fits shrinks with it."""
    (row, col), axis = tile.valid, "valid_row" if knob == "rows" else "valid_col"
    spec = replace(tile.spec, **{knob: size, axis: min(getattr(tile.spec, axis), size)})
    now = row if knob == "rows" else col
    shrunk = None if now is None else min(now, size)
    return replace(tile, spec=spec, valid=(shrunk, col) if knob == "rows" else (row, shrunk))


def _revalid(tile: TileFacts, knob: str, size: int) -> TileFacts:
    row, col = tile.valid
    valid = (size, col) if knob == "valid_row" else (row, size)
    if getattr(tile.spec, knob) != DYNAMIC:
        return replace(tile, spec=replace(tile.spec, **{knob: size}), valid=valid)
    most = tile.spec.rows if knob == "valid_row" else tile.spec.cols
    return replace(tile, valid=valid) if size <= most else tile


def _address(tile: TileFacts, ops: Ops, name: str, test: Test) -> list[str]:
    """The nearest later place, else the nearest earlier one: aligned, behind or before others."""
    now = tile.address
    if now is None:
        return []
    step = max(1, ops.target.spaces[tile.spec.loc].alignment)
    tried = {
        now // (step * n) * step * n + step * n * up for n in (1, 2, 4, 8, 16) for up in (0, 1)
    }
    for other, operand in ops:
        if other != name and isinstance(operand, TileFacts | ConvFacts):
            at = operand.address or 0
            ends = (at, at + operand.nbytes, at - tile.spec.nbytes)
            tried |= {end // step * step if end < at else -(-end // step) * step for end in ends}
    for address in sorted(tried, key=lambda a: (a < now, abs(a - now))):
        if address >= 0 and test(replace(tile, address=address)):
            return [f"{name} at {address:#x}"]
    return []


# ---- names ---------------------------------------------------------------------------------------


def _like(tile: TileFacts, ops: Ops, name: str, test: Test) -> list[str]:
    """A scratch tile declared like one of the other tiles."""
    for other, operand in ops:
        if other != name and isinstance(operand, TileFacts):
            spec = replace(operand.spec, loc=tile.spec.loc)
            if test(replace(tile, spec=spec, valid=operand.valid)):
                return [f"{name} declared like {other}, {spec}"]
    return []


def _variants(
    operand: TileFacts | GlobalFacts | ConvFacts, knob: str, ops: Ops
) -> Iterator[tuple[str, Facts]]:
    """The operand with every other element type, memory space or layout."""
    spec: Any = operand.spec
    others: Iterable[tuple[str, dict[str, Any]]] = ()
    if knob == "dtype":
        others = ((kind.name, {knob: kind}) for kind in ALL if kind in ops.target.dtypes)
    elif knob == "loc" and not isinstance(operand, GlobalFacts):
        others = ((loc.name, {knob: loc}) for loc in ops.target.spaces)
        operand = replace(operand, address=None)
    elif knob == "layout" and isinstance(operand, TileFacts):
        pairs = LAYOUT_NAMES.items()
        others = ((word, {"blayout": blayout, "slayout": s}) for (blayout, s), word in pairs)
    elif knob == "fractal":
        others = ((str(size), {knob: size}) for size in BOX_BYTES)
    elif knob in ("compact", "layout"):
        members = CompactMode if knob == "compact" else Layout
        others = ((each.name, {knob: each}) for each in members)
    for word, fields in others:
        if any(getattr(spec, name) != value for name, value in fields.items()):
            yield word, replace(operand, spec=replace(spec, **fields))


def _attribute(attr: Attr, ops: Ops, mends: Mends) -> list[str]:
    now = ops.attrs.get(attr.name)

    def good(value: Any) -> bool:
        return mends(Ops(dict(ops), {**ops.attrs, attr.name: value}, ops.target, ops.mode))

    if attr.choices or issubclass(attr.type, IntEnum) or attr.type is bool:
        values = attr.choices or (
            (False, True) if attr.type is bool else tuple(cast("Any", attr.type))
        )
        fitting = [shown(v) for v in values if v != now and good(v)]
        return [f"{attr.name} = {'/'.join(fitting)}"] if fitting else []
    if attr.type is int and now is None:
        fitting = [str(n) for n in range(_FEW) if good(n)]
        return [f"{attr.name} = {'/'.join(fitting)}"] if 0 < len(fitting) < _FEW else []
    if attr.type is not int or not isinstance(now, int):
        return []
    number = _nearest(now, good, 0)
    return [] if number is None else [f"{attr.name} = {number if number < 4096 else hex(number)}"]
