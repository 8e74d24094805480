"""Where a rule begins to bite: the last legal and the first illegal value of what it looks at.

A call is a legal sample with some facts changed; `edges` turns one more fact and notes where the
rule's predicate changes its mind. The edges of every rule are kept in `bounds/NAME.txt`, so that a
bound that moves by one shows as a difference:

    PA-0032 a2a3 a5: dst has as many valid rows as src
      f32: dst.valid_row 15- 16+ 17-; dst.valid_row=17: src.valid_row 16- 17+ 18-

reads: of the sample for f32 on these targets, 16 valid rows of dst are legal, 15 and 17 are not.
Of names, the legal ones are listed: `dst.loc = Vec`. `make test` only evaluates what is written
there; the search runs with `--update-golden`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import Any

from ptokit.base.dtypes import ALL, DType
from ptokit.base.enums import CompactMode, Layout, PadValue, TileType
from ptokit.base.tensors import ConvSpec, GlobalSpec
from ptokit.base.tiles import BOX_BYTES, DYNAMIC, LAYOUT_NAMES, TileSpec
from ptokit.isa.facts import Ops, Recorder, TileFacts, Unknown
from ptokit.isa.groups import GroupSpec
from ptokit.isa.samples import Sample, samples
from ptokit.isa.spec import Insn, Rule
from ptokit.isa.targets import TARGETS
from ptokit.isa.verify import unfit_numbers

LAYOUTS = {name: pair for pair, name in LAYOUT_NAMES.items()}
# Which parts of a tile's declaration decide a fact.
DECIDE = {
    "addr": ("address",),
    "rows": ("rows",),
    "cols": ("cols",),
    "nbytes": ("rows", "cols", "dtype"),
    "numel": ("rows", "cols"),
    "row_stride": ("rows", "cols", "layout"),
    "col_stride": ("rows", "cols", "layout"),
    "vr": ("valid_row",),
    "vc": ("valid_col",),
    "valid_row": ("valid_row",),
    "valid_col": ("valid_col",),
    "dtype": ("dtype",),
    "itemsize": ("dtype",),
    "loc": ("loc",),
    "fractal": ("fractal",),
    "pad": ("pad",),
    "compact": ("compact",),
    "buffer_size": ("buffer_size",),
}
SHAPE = ("layout", "rows", "cols")  # what anything else may follow from
GRID = sorted(
    {n + d for k in range(5, 20) for n in (1 << k,) for d in (-1, 0, 1)}
    | {DYNAMIC, *range(18), 24, 40, 48, 49, 96, 192, 384, 8160, 16320, 1 << 21, 1 << 24, 1 << 30}
)
# Where overlaps are looked for, byte by byte, few and small sizes must do.
PLACED = [DYNAMIC, *(n + d for n in (0, 16, 32, 64, 128, 256) for d in (0, 1)), 512, 1024, 4096]
ELEMENT_BY_ELEMENT = {"TSUBVIEW"}  # looks at the address of each element in either mode
PLACES = (
    *("address", "rows", "cols", "valid_row", "valid_col", "loc", "layout", "buffer_size"),
    *("given", "kind", "set", "value"),
)
ADDRESSES = [0, 1, 31, 32, 33, 64, 128, *(1 << k for k in range(10, 19))]
MOST_EDGES = 4  # of one fact; a rule about multiples changes its mind for ever

HERE = "holds"  # the sample itself breaks the rule, and no fact but the mode mends it
SIGNS = {True: "+", False: "-", None: "?"}

Turn = tuple[str, Any]


@dataclass(frozen=True)
class Call:
    """A sample with some facts changed."""

    sample: Sample
    label: str  # of the sample among those of its instruction and target
    mode: str = "auto"
    turns: tuple[Turn, ...] = ()

    def turned(self, knob: str, value: Any) -> Call:
        sample = turn(self.sample, knob, value)
        return replace(self, sample=sample, turns=(*self.turns, (knob, value)))

    def __str__(self) -> str:
        return " ".join([self.label, *(f"{knob}={shown(value)}" for knob, value in self.turns)])


@cache
def calls(insn: Insn, target: str) -> tuple[Call, ...]:
    """The samples of an instruction, named by their element types and a number.

    Each comes in three ways: placed automatically, by hand behind each other ("@apart"), and by
    hand at the same address ("@shared").
    """
    return tuple(_calls(insn, target))


def _calls(insn: Insn, target: str) -> Iterator[Call]:
    counts: dict[str, int] = {}
    for sample in samples(insn, TARGETS[target]):
        kinds = [s.dtype.name for s in sample.operands.values() if isinstance(s, _TYPED)]
        label = ",".join(dict.fromkeys(kinds)) or "plain"
        counts[label] = counts.get(label, 0) + 1
        label += "" if counts[label] == 1 else f"#{counts[label]}"
        yield Call(sample, label)
        yield Call(_placed(sample), f"{label}@apart", "manual")
        yield Call(sample, f"{label}@shared", "manual")


def _placed(sample: Sample) -> Sample:
    """The sample with its tiles behind each other."""
    addresses: dict[str, int] = {}
    free = 0
    for name, spec in sample.operands.items():
        if isinstance(spec, TileSpec | ConvSpec) and name not in sample.same:
            addresses[name] = free
            free += -(-spec.nbytes // 32) * 32
    addresses |= {
        name: addresses[other] for name, other in sample.same.items() if other in addresses
    }
    return replace(sample, addresses=addresses)


_TYPED = TileSpec | GlobalSpec | ConvSpec


# ---- turning one fact --------------------------------------------------------------------------


def turn(sample: Sample, knob: str, value: Any) -> Sample:
    """The sample with one fact changed: `dst.rows`, `src.shape3`, `scalar.value`, an argument."""
    name, _, fact = knob.partition(".")
    if not fact or fact == "set":
        return replace(sample, attrs={**sample.attrs, name: value})
    spec: Any = sample.operands[name]
    if fact == "address":
        return replace(sample, addresses={**sample.addresses, name: value})
    spec = _turned(spec, fact, value)
    return replace(sample, operands={**sample.operands, name: spec})


def _turned(spec: Any, fact: str, value: Any) -> Any:
    if fact in ("value", "given"):
        return value
    if fact == "kind":
        return OTHER_KINDS.get(value, spec)
    if isinstance(spec, TileSpec):
        fields = {f: getattr(spec, f) for f in _TILE_FIELDS}
        if fact == "layout":
            fields["blayout"], fields["slayout"] = LAYOUTS[value]
        else:
            fields[fact] = value
        return TileSpec.of(**fields)
    if isinstance(spec, GroupSpec) and fact == "root":
        return replace(spec, rootIdx=value)
    if isinstance(spec, GroupSpec) and fact == "members":
        return replace(spec, views=spec.views[:value])
    if isinstance(spec, GroupSpec):
        last = _with(spec.views[-1], fact, value)
        return replace(spec, views=(*spec.views[:-1], last))
    return _with(spec, fact, value)


_TILE_FIELDS = [field.name for field in fields_of(TileSpec)]
OTHER_KINDS = {
    "conv": ConvSpec.of(TileType.Mat, ALL[0], 64, Layout.NC1HWC0, (1, 1, 2, 1, 32)),
    "global": GlobalSpec.of(ALL[0], (1, 1, 1, 16, 64), (1024, 1024, 1024, 64, 1)),
}


def _with(spec: Any, fact: str, value: Any) -> Any:
    for field in ("shape", "stride"):
        if fact.startswith(field):
            axis = int(fact.removeprefix(field))
            sizes = getattr(spec, field)
            return replace(spec, **{field: (*sizes[:axis], value, *sizes[axis + 1 :])})
    return replace(spec, **{fact: value})


def settings(call: Call, knob: str) -> list[Any]:
    """The values a fact is tried with: numbers in rising order, or all names."""
    name, _, fact = knob.partition(".")
    is_small = call.mode == "manual" or call.sample.insn.name in ELEMENT_BY_ELEMENT
    numbers = PLACED if is_small else GRID
    if fact == "set":
        return [None, 1]
    if not fact:
        attr = next(a for a in call.sample.insn.attrs if a.name == name)
        left_out = [None] if attr.default is None else []
        if attr.type is bool:
            return [False, True, *left_out]
        if issubclass(attr.type, IntEnum | DType):
            return [*(ALL if issubclass(attr.type, DType) else attr.type), *left_out]
        return [*GRID] if attr.type is int else []
    spec: Any = call.sample.operands[name]
    if fact == "given":
        return [None, 1 if spec is None else spec]
    if fact == "kind":
        others = call.sample.insn.operand(name).kinds
        return ["own", *(kind for kind in OTHER_KINDS if kind in others)]
    if fact == "value":
        integers = [-3, -2, -1, 0, 0.5, *(n for n in GRID if n > 0)]
        return integers if isinstance(spec, int) else [-1.0, 0.0, 0.5, 1.0]
    if fact == "layout":
        return [*LAYOUTS] if isinstance(spec, TileSpec) else [*Layout]
    names: dict[str, list[Any]] = {
        "dtype": [*ALL],
        "loc": [*TileType],
        "fractal": [*sorted(BOX_BYTES)],
        "compact": [*CompactMode],
        "pad": [*PadValue],
        "root": [-1, 0, 1, 2, 3, 4],
        "members": [0, 1, 2, 3],
    }
    return names.get(fact, ADDRESSES if fact == "address" else numbers)


def is_number(knob: str, values: list[Any]) -> bool:
    return all(type(value) in (int, float) for value in values) and not knob.endswith(".fractal")


def knobs(call: Call, rule: Rule) -> list[str]:
    """What could be turned: whatever the predicate looks at here."""
    seen: dict[str, str] = {}
    with suppress(Exception):  # it looked at something before it gave up
        rule.holds(Recorder(call.sample.facts(call.mode), seen))
    sample = call.sample
    attrs = {a.name for a in sample.insn.attrs}
    found = ["mode"] if "mode" in attrs else []  # a name that the recorder hides
    for path in seen:
        name, _, fact = path.partition(".")
        if not fact and name in attrs:
            found.append(name)
        spec = sample.operands.get(name)
        if spec is None or not fact:
            continue
        if isinstance(spec, TileSpec):
            found += [f"{name}.{knob}" for knob in DECIDE.get(fact, SHAPE)]
        elif isinstance(spec, GlobalSpec | ConvSpec | GroupSpec):
            found += _view_knobs(name, fact, spec)
        elif fact == "value":
            found.append(f"{name}.value")
    for operand in sample.insn.operands:
        given = sample.operands.get(operand.name) is not None
        if operand.optional and (given or operand.kinds == ("scalar",)):
            found.append(f"{operand.name}.given")
        if given and set(operand.kinds) & set(OTHER_KINDS) and len(operand.kinds) > 1:
            found.append(f"{operand.name}.kind")
    found += [f"{a.name}.set" for a in sample.insn.attrs if a.type is int and a.default is None]
    if call.mode == "manual":  # where tiles lie is what matters here
        found = [k for k in found if "." not in k or k.rpartition(".")[2] in PLACES]
    return [k for k in dict.fromkeys(found) if k not in dict(call.turns)]


def _view_knobs(name: str, fact: str, spec: GlobalSpec | ConvSpec | GroupSpec) -> Iterator[str]:
    if isinstance(spec, GroupSpec):
        facts = ("members", "root", "dtype", "layout", "shape3", "stride3")
        facts = facts if spec.views else ()
        yield from (f"{name}.{knob}" for knob in facts)
        return
    for field in ("shape", "stride"):
        if field in fact:
            yield from (f"{name}.{field}{axis}" for axis in range(len(getattr(spec, field))))
    if fact in ("addr", "nbytes"):
        yield f"{name}.address"
    if isinstance(spec, ConvSpec) and fact == "loc":
        yield f"{name}.loc"
    if fact == "nbytes":
        yield f"{name}.buffer_size"
    if fact in ("dtype", "itemsize"):
        yield f"{name}.dtype"
    if fact in ("layout", "spec"):
        yield f"{name}.layout"


# ---- the edges ---------------------------------------------------------------------------------


def asked(call: Call, rule: Rule) -> set[str]:
    """The names of everything a predicate asks for."""
    found: set[str] = set()

    class Watch(Recorder):
        def __getattr__(self, name: str) -> Any:
            found.add(name)
            return super().__getattr__(name)

        def _follow(self, value: Any, path: str) -> Any:
            followed = super()._follow(value, path)
            return Watch(value, self._seen, path) if type(followed) is Recorder else followed

    with suppress(Exception):
        rule.holds(Watch(call.sample.facts(call.mode), {}))
    return found


def holds(call: Call, rule: Rule) -> bool | None:
    """Whether the rule holds; None: the predicate cannot say, or makes no sense of it."""
    return _truth(call.sample.insn, rule, call.sample.facts(call.mode))


def _truth(insn: Insn, rule: Rule, ops: Ops) -> bool | None:
    try:
        # No rule is asked about a number that its operand does not take.
        return None if unfit_numbers(insn, ops) else bool(rule.holds(ops))
    except Unknown:
        return None
    except Exception:  # a made-up operand may be nothing the predicate can think of
        return None


def probe(call: Call, rule: Rule, knob: str) -> Callable[[Any], bool | None]:
    """Whether the rule holds with one fact turned to a value."""
    name, _, fact = knob.partition(".")
    spec: Any = call.sample.operands.get(name)
    if not isinstance(spec, TileSpec) or fact in ("address", "given", "kind"):
        return lambda value: holds(call.turned(knob, value), rule)
    ops = call.sample.facts(call.mode)
    address = call.sample.addresses.get(name, 0)
    others = dict(ops)
    same = [other for other, one in call.sample.same.items() if name in (other, one)]

    def turned(value: Any) -> bool | None:
        changed = TileFacts(_turned(spec, fact, value), address=address)
        turned = Ops({**others, name: changed}, ops.attrs, ops.target, ops.mode)
        return _truth(call.sample.insn, rule, turned)

    return turned if not same else lambda value: holds(call.turned(knob, value), rule)


def edges(call: Call, rule: Rule, knob: str) -> str:
    """The values of one fact at which the rule changes its mind; "": it does not."""
    values = settings(call, knob)
    test = probe(call, rule, knob)
    truths = [(value, test(value)) for value in values]
    known = [(value, truth) for value, truth in truths if truth is not None]
    if len({truth for _, truth in known}) < 2:
        return ""
    if not is_number(knob, values):
        return f"{knob} = {' '.join(shown(v) for v, truth in known if truth)}"
    points: dict[Any, bool] = {}
    for (low, before), (high, after) in pairwise(known):
        if before is not after and len(points) < 2 * MOST_EDGES:
            points.update(_narrowed(test, low, high, before))
    signs = [f"{value}{'+' if good else '-'}" for value, good in sorted(points.items())]
    return f"{knob} {' '.join(signs)}"


def _narrowed(
    test: Callable[[Any], bool | None], low: Any, high: Any, before: bool
) -> dict[Any, bool]:
    """Two neighbours between which the rule changes its mind."""
    while isinstance(low, int) and isinstance(high, int) and high - low > 1:
        middle = (low + high) // 2
        if test(middle) is before:
            low = middle
        else:
            high = middle
    return {low: before, high: not before}


# ---- the search, for the record ----------------------------------------------------------------

MOST_PLACED = 8
MOST_TRIED = 24  # calls that are looked at for one rule
MOST_ALIKE = 2  # calls that show other values of facts already noted

Edges = dict[str, list[str]]  # by the call that they were found from
Key = tuple[str, str, tuple[str, ...]]  # id and text of a rule, targets


def search(insn: Insn, rule: Rule, target: str) -> Edges:
    """The edges of a rule; empty: nothing breaks it."""
    found: Edges = {}
    facts: set[str] = set()
    texts: set[str] = set()
    tried: set[str] = set()
    alike = placed = 0
    todo = list(_first(insn, rule, target))
    further = _coarse(insn, target)
    while not found or (todo and len(tried) < MOST_TRIED):
        call = todo.pop(0) if todo else next(further, None)
        if call is None:
            break
        if call.mode == "manual":
            placed += 1
            is_told = placed > MOST_PLACED or not asked(call, rule) & {"mode", "addr"}
            if found and is_told:
                continue  # as in automatic mode
        if str(call) in tried:
            continue
        tried.add(str(call))
        noted = [(knob, edges(call, rule, knob)) for knob in knobs(call, rule)]
        noted = [(knob, text) for knob, text in noted if text]
        if not noted and not call.turns and holds(call, rule) is False:
            noted = [(HERE, f"{HERE} = no")]
        if len(call.turns) < (1 if call.mode == "manual" or found else 2):
            turned = [knob for knob, _ in noted if knob not in facts | {HERE}]
            todo = [broken for knob in turned for broken in _broken(call, rule, knob)] + todo
        is_new = bool({knob for knob, _ in noted} - facts)
        if not call.turns and found and not is_new and call.mode == "auto":
            continue  # another element type, and nothing new
        if is_new or (alike < MOST_ALIKE and {text for _, text in noted} - texts):
            alike += not is_new
            fresh = [text for _, text in noted if text not in texts]
            found[str(call)] = fresh
            facts |= {knob for knob, _ in noted}
            texts |= set(fresh)
    return found


def recorded(insn: Insn) -> dict[Key, Edges]:
    """The edges of every rule, for the targets on which they are the same."""
    found: dict[Key, Edges] = {}
    for name, rule, targets in applicable(insn):
        left = list(targets)
        while left:
            first = min(left, key=lambda t: len(calls(insn, t)))
            noted = search(insn, rule, first)
            same = [t for t in left if t == first or unchanged(insn, rule, t, noted)]
            found[name, rule.text, tuple(same)] = noted
            left = [t for t in left if t not in same]
    return found


def applicable(insn: Insn) -> Iterator[tuple[str, Rule, list[str]]]:
    """The rules of an instruction with a name for each and the devices they hold on."""
    counts: dict[tuple[str, str, str], int] = {}
    for rule in insn.rules:
        targets = [
            name
            for name, target in TARGETS.items()
            if target.is_device
            and name in insn.targets
            and (rule.targets is None or name in rule.targets)
        ]
        if not targets and rule.targets is not None and "cpu" in insn.targets:
            targets = ["cpu"]  # a rule of the permissive profile alone
        for target in targets:
            key = rule.id, rule.text, target
            counts[key] = counts.get(key, 0) + 1
        if targets:
            count = max(counts[rule.id, rule.text, target] for target in targets)
            # Some have two rules of the same words, for different operands.
            yield rule.id if count == 1 else f"{rule.id}#{count}", rule, targets


def unchanged(insn: Insn, rule: Rule, target: str, noted: Edges) -> bool:
    return bool(noted) and not changed(insn, rule, target, noted)


def changed(insn: Insn, rule: Rule, target: str, noted: Edges) -> list[str]:
    """What is no longer as it is written down, in words."""
    found: list[str] = []
    for where, texts in noted.items():
        call = named(insn, target, where)
        if call is None:
            found.append(f"there is no sample {where} on {target}")
            continue
        for text in texts:
            now = again(call, rule, text)
            if now != text:
                found.append(f"{where}: {text} is now {now or 'without an edge'}")
    return found


def _first(insn: Insn, rule: Rule, target: str) -> Iterator[Call]:
    """The samples to begin with: those whose facts differ most come first."""
    every = calls(insn, target)
    fixed = 3 * sum(len(g.allowed.get(target, ())) for g in insn.types) or 3
    yield from every[:3]
    yield from every[fixed:]
    yield from every[3:fixed]


def _coarse(insn: Insn, target: str) -> Iterator[Call]:
    """Calls with one name changed, for rules about data paths that no sample takes."""
    every = [call for call in calls(insn, target) if call.mode == "auto"]
    for call in [*every[:1], *every[-3:]]:
        names = [a.name for a in insn.attrs]
        for operand, spec in call.sample.operands.items():
            if isinstance(spec, _TYPED):
                names += [f"{operand}.layout", f"{operand}.dtype", f"{operand}.kind"]
            if isinstance(spec, TileSpec):
                names.append(f"{operand}.loc")
        for knob in names:
            values = settings(call, knob)
            if not is_number(knob, values):
                yield from (call.turned(knob, value) for value in values)


def _broken(call: Call, rule: Rule, knob: str) -> list[Call]:
    """The call with this fact turned just so far that the rule is broken."""
    values = settings(call, knob)
    test = probe(call, rule, knob)
    broken = [v for v in values if test(v) is False]
    if not broken:
        return []
    if is_number(knob, values):
        now = _now(call, knob)
        broken.sort(key=lambda v: abs(v - now) if isinstance(now, int | float) else v)
    return [call.turned(knob, broken[0])]


def _now(call: Call, knob: str) -> Any:
    name, _, fact = knob.partition(".")
    if not fact:
        return call.sample.attrs.get(name)
    spec = call.sample.operands[name]
    if fact == "address":
        return call.sample.addresses.get(name, 0)
    return getattr(spec, fact, spec if isinstance(spec, int | float) else 0)


# ---- the written form --------------------------------------------------------------------------


def shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, DType | IntEnum):
        return value.name
    return str(value) if isinstance(value, int | float | str) else "given"


def read(call: Call, knob: str, text: str) -> Any:
    """The value that `shown` wrote."""
    named = [value for value in settings(call, knob) if shown(value) == text]
    return named[0] if named else int(text)


def named(insn: Insn, target: str, text: str) -> Call | None:
    """The call that its text describes; None: the target has no such sample."""
    label, *turns = text.split()
    call = next((c for c in calls(insn, target) if c.label == label), None)
    if call is None:
        return None
    for words in turns:
        knob, _, value = words.partition("=")
        call = call.turned(knob, read(call, knob, value))
    return call


def again(call: Call, rule: Rule, text: str) -> str:
    """The same edges, looked at again: only the values that are written down are tried."""
    knob, *words = text.split()
    if knob == HERE:
        return f"{HERE} = {'no' if holds(call, rule) is False else 'yes'}"
    if words[:1] == ["="]:
        return edges(call, rule, knob)
    signs: list[str] = []
    test = probe(call, rule, knob)
    for word in words:
        truth = test(read(call, knob, word[:-1]))
        signs.append(f"{word[:-1]}{SIGNS[truth]}")
    return f"{knob} {' '.join(signs)}"


def broken_by(insn: Insn, target: str, found: Edges, rule: Rule) -> Call | None:
    """A call that breaks the rule, from its edges."""
    for where, texts in found.items():
        call = named(insn, target, where)
        if call is None or holds(call, rule) is False:
            return call
        for text in texts:
            knob, *words = text.split()
            values = (
                settings(call, knob)
                if words[0] == "="
                else [read(call, knob, w[:-1]) for w in words if w.endswith("-")]
            )
            for value in values:
                if holds(call.turned(knob, value), rule) is False:
                    return call.turned(knob, value)
    return None


def written(record: dict[Key, Edges]) -> str:
    """The file of an instruction."""
    lines: list[str] = []
    for (id, text, targets), noted in record.items():
        lines.append(f"{id} [{' '.join(targets)}] {text}")
        lines += [f"  {where}: {'; '.join(texts)}" for where, texts in noted.items()]
    return "\n".join(lines) + "\n"


def parsed(file: str) -> dict[Key, Edges]:
    record: dict[Key, Edges] = {}
    noted: Edges = {}
    for line in file.splitlines():
        if line.startswith("  "):
            where, _, texts = line.strip().partition(": ")
            noted[where] = texts.split("; ")
        else:
            id, _, rest = line.partition(" [")
            targets, _, text = rest.partition("] ")
            noted = record[id, text, tuple(targets.split())] = {}
    return record
