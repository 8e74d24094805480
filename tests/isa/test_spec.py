"""The table against the specification: instructions, element types, assertion ids, origins.

A difference is either mended in the table or stands in one of the lists of `spec_differences.py`,
with its reason; an entry that no longer differs fails the suite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptokit.isa
from ptokit.isa import INSTRUCTIONS
from ptokit.isa.origins import Origin, default_origin
from ptokit.isa.spec import Insn
from tests.isa import specification
from tests.isa.outcomes import ALWAYS, BY_RULES, NOT_MODELLED
from tests.isa.outcomes import FILES as OUTCOME_FILES
from tests.isa.spec_differences import (
    MORE_IDS,
    NOT_INSTRUCTIONS,
    OTHER_TYPES,
    OUTSIDE,
    RULED,
    UNSTATED_IDS,
)
from tests.isa.spec_links import LINKS
from tests.isa.specification import DEVICES, ID, Statement, element_types, entries

STRENGTH = ("static", "runtime", "debug", "doc", "own")
RECORDED = Path(ptokit.isa.__file__).with_name("origins.json")
pytestmark = pytest.mark.skipif(bool(specification.missing()), reason=specification.missing())

every_record = pytest.mark.parametrize("insn", INSTRUCTIONS.values(), ids=str)


def devices(insn: Insn) -> list[str]:
    return [device for device in DEVICES if device in insn.targets]


def statements(insn: Insn, device: str) -> list[Statement]:
    return [s for entry in entries().get(insn.name, []) for s in entry.rules[device]]


# ---- instructions ------------------------------------------------------------------------------


def test_table_and_specification_know_the_same_instructions() -> None:
    assert set(INSTRUCTIONS) - set(entries()) == set(OUTSIDE)
    assert set(entries()) - set(INSTRUCTIONS) == set(NOT_INSTRUCTIONS)


# ---- element types -----------------------------------------------------------------------------

# What the files call the operand whose type counts, where they do not name it.
MAIN = {"", "data", "DEFAULT", "HIGH_PRECISION", "MXFP8", "MXFP4_E2M1"}
PAIRS = {
    "pairs (src -> dst)": ("src0", "dst"),
    "pairs (dst, src)": ("dst", "src"),
    "value_index_pairs": ("dstVal", "dstIdx"),
    "src,dst": ("src", "dst"),
}


def listed(insn: Insn, device: str) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """The combinations the specification lists, by the operands of the record."""
    main = insn.types[0].of
    found: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for entry in entries().get(insn.name, []):
        for called, kinds in element_types(entry, device):
            if called in MAIN:
                names = [main[:1]]
            elif called == "c_a_b":
                names = [main[:3]]
            elif called in PAIRS:
                names = [PAIRS[called]]
            else:
                names = [(name.strip(),) for name in called.split(",")]
            for each in names:
                found.setdefault(each, set()).add(kinds)
    return found


@every_record
def test_element_types(insn: Insn) -> None:
    """Where the specification has a list for operands of a group, the group has that list."""
    differs: set[str] = set()
    for device in devices(insn):
        if any(
            (e.data.get("dtypes") or {}).get(device) == [] for e in entries().get(insn.name, [])
        ):
            differs.add(device)  # it takes no type there
        wanted = listed(insn, device) if insn.types else {}
        for group in insn.types:
            for names, combinations in wanted.items():
                if device in group.allowed and set(names) <= set(group.of):
                    at = [group.of.index(name) for name in names]
                    have = {tuple(combo[i].name for i in at) for combo in group.allowed[device]}
                    differs |= {device} if have != combinations else set()
            said = [s for s in statements(insn, device) if group.ids.get(device) in s.ids]
            for one in [s for s in said if s.dtypes and len(group.of) == 1]:
                have = {(combo[0].name,) for combo in group.allowed[device]}
                differs |= {device} if have != {(kind,) for kind in one.dtypes} else set()
    assert differs == set(OTHER_TYPES.get(insn.name, ("",))[0].split())


@every_record
def test_availability(insn: Insn) -> None:
    """A target that has no such instruction has none in the table, and the other way round."""
    for entry in entries().get(insn.name, []):
        for device, said in (entry.data.get("availability") or {}).items():
            if device in DEVICES and entry.name == insn.name:
                assert (device in insn.targets) == (not said.startswith("no")), device


def test_lists_of_other_types_name_instructions() -> None:
    assert set(OTHER_TYPES) <= set(INSTRUCTIONS)


# ---- assertion ids -----------------------------------------------------------------------------


def ids_of(insn: Insn, device: str) -> set[str]:
    rules = {r.id for r in insn.rules if r.targets is None or device in r.targets}
    other = {o.refused for o in insn.operands}  # an argument of another kind
    # Lists of element types without an id whose outcome is known are weighed like rules.
    other |= {group.ids.get(device, "dtype" if group.otherwise else "") for group in insn.types}
    return rules | other - {""}


def grouped(listed: dict[str, dict[str, str]]) -> dict[str, set[str]]:
    """Instruction -> "id device" of every entry of a list of differences."""
    found: dict[str, set[str]] = {}
    for wheres in listed.values():
        for names, ids in wheres.items():
            for name in names.split():
                for one in ids.split():
                    id, _, where = one.partition("@")
                    devices = where.split(",") if where else DEVICES
                    found.setdefault(name, set()).update(f"{id} {d}" for d in devices)
    return found


@every_record
def test_every_assertion_id_is_stated(insn: Insn) -> None:
    """The specification states every assertion that the table reports, on the same target."""
    more = {
        f"{id} {device}"
        for device in devices(insn)
        for id in ids_of(insn, device)
        if ID.fullmatch(id) and not any(id in s.ids for s in statements(insn, device))
    }
    assert sorted(more) == sorted(grouped(MORE_IDS).get(insn.name, set()))


@every_record
def test_every_stated_assertion_is_reported(insn: Insn) -> None:
    """Of the ids of one statement, the table reports at least one on that target."""
    unstated = {
        f"{min(one.ids)} {device}"
        for device in devices(insn)
        for one in statements(insn, device)
        if one.ids and not one.borrowed and not one.ids & ids_of(insn, device)
    }
    assert sorted(unstated) == sorted(grouped(UNSTATED_IDS).get(insn.name, set()))


# ---- origins -----------------------------------------------------------------------------------


def stated(insn: Insn, id: str, device: str) -> list[Statement]:
    """The statements of the specification that a rule of the table stands for."""
    candidates = statements(insn, device)
    if ID.fullmatch(id):
        return [s for s in candidates if id in s.ids]
    if re.fullmatch(r"[A-Z]+-\w+", id):
        return [s for s in candidates if s.text.startswith(f"{id}:")]
    pattern = LINKS.get(f"{insn.name} {id}", LINKS.get(id, ""))
    return [s for s in candidates if re.search(pattern, s.text)] if pattern else []


def origin_in_specification(insn: Insn, id: str, device: str) -> Origin:
    found = stated(insn, id, device)
    if not found:
        return default_origin(id)
    kind = min((s.origin for s in found), key=STRENGTH.index)
    if id.startswith("PA-") and kind == "static":  # a statement that has both kinds of ids
        kind = "debug"
    return Origin(RULED.get(id, kind), any(s.seed for s in found))


def differing() -> Iterator[tuple[str, str, str, Origin]]:
    """Every origin that does not follow from the id alone."""
    for insn in INSTRUCTIONS.values():
        for device in devices(insn):
            for id in sorted(ids_of(insn, device)):
                origin = origin_in_specification(insn, id, device)
                if origin != default_origin(id):
                    yield insn.name, id, device, origin


def recorded() -> dict[str, dict[str, str | dict[str, str]]]:
    """What `origins.json` ought to hold."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name, id, device, origin in differing():
        found.setdefault(name, {}).setdefault(id, {})[device] = str(origin)
    short: dict[str, dict[str, str | dict[str, str]]] = {}
    for name, rules in sorted(found.items()):
        for id, per_device in rules.items():
            insn = INSTRUCTIONS[name]
            everywhere = [d for d in devices(insn) if id in ids_of(insn, d)]
            same = len(set(per_device.values())) == 1 and len(per_device) == len(everywhere)
            short.setdefault(name, {})[id] = next(iter(per_device.values())) if same else per_device
    return short


def test_origins_are_those_of_the_specification(request: pytest.FixtureRequest) -> None:
    """The file the package ships says what the specification says, rule by rule."""
    expected = recorded()
    if request.config.getoption("--update-golden"):
        lines = [f'"{name}": {json.dumps(rules)}' for name, rules in expected.items()]
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    assert json.loads(RECORDED.read_text("utf-8")) == expected


@every_record
def test_origin_of_every_rule(insn: Insn) -> None:
    for device in devices(insn):
        for rule in insn.rules:
            if rule.targets is None or device in rule.targets:
                assert insn.origin(rule, device) == origin_in_specification(insn, rule.id, device)


def test_every_link_leads_somewhere() -> None:
    """A pattern that finds nothing any more, or a name that no rule has, is stale."""
    used: set[str] = set()
    for insn in INSTRUCTIONS.values():
        for device in devices(insn):
            for id in ids_of(insn, device):
                key = f"{insn.name} {id}" if f"{insn.name} {id}" in LINKS else id
                if key in LINKS and (not LINKS[key] or stated(insn, id, device)):
                    used.add(key)
    assert set(LINKS) == used


# ---- outcomes ----------------------------------------------------------------------------------


def unmodelled() -> dict[str, dict[str, list[str]]]:
    """Rules nothing enforces whose outcome is stated and not in the table: they are errors.

    A rule may say instead that the outcome is unknown, where the specification says so too.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for insn in sorted(INSTRUCTIONS.values(), key=lambda each: each.name):
        for device in devices(insn):
            for rule in insn.rules:
                if rule.otherwise or rule.unknown or not rule.binds(device):
                    continue
                said = stated(insn, rule.id, device)
                known = any(s.otherwise and not s.undefined for s in said)
                if known and insn.origin(rule, device).words:
                    on = found.setdefault(insn.name, {}).setdefault(rule.id, [])
                    on += [] if device in on else [device]
    return found


def test_every_stated_outcome_is_modelled() -> None:
    assert unmodelled() == {}


def is_called_undefined(id: str, device: str) -> bool:
    """Whether the specification says of a rule, wherever it states it alone, that nobody knows."""
    holders = (insn for insn in INSTRUCTIONS.values() if any(r.id == id for r in insn.rules))
    said = [one for insn in holders for one in stated(insn, id, device) if device in devices(insn)]
    return any(one.undefined or re.search("undefined|unspecified", one.otherwise) for one in said)


@every_record
def test_what_is_unknown_is_called_so_and_left_open_by_the_record(insn: Insn) -> None:
    for rule in insn.rules:
        if rule.unknown:
            assert not isinstance(rule.otherwise, str) or not rule.otherwise
            assert any(rule.id in each.where for each in insn.freedom)
            for device in devices(insn):
                assert not rule.binds(device) or is_called_undefined(rule.id, device), rule.id


@every_record
def test_what_is_undefined_has_no_outcome(insn: Insn) -> None:
    """Where the specification says that nobody knows, the table does not say what happens."""
    for device in devices(insn):
        for rule in insn.rules:
            if isinstance(rule.otherwise, str) and rule.otherwise:
                said = stated(insn, rule.id, device)
                applies = rule.targets is None or device in rule.targets
                assert not (applies and said and all(s.undefined for s in said)), rule.id


def unlinked(insn: Insn, device: str) -> list[Statement]:
    """The outcomes stated of rules that no rule of the table is linked to."""
    ids = ids_of(insn, device)
    linked = {s.text for id in ids for s in stated(insn, id, device)}
    listed = [e.rules[device] for e in entries().get(insn.name, []) if e.file in OUTCOME_FILES]
    return [
        s
        for rules in listed
        for s in rules
        if s.otherwise and not s.borrowed and s.text not in linked
    ]


def test_every_stated_outcome_is_accounted_for() -> None:
    """It is told by a rule, done by every call, or listed with the reason why it is neither."""
    known = {**BY_RULES, **ALWAYS, **NOT_MODELLED}
    used: set[str] = set()
    for insn in INSTRUCTIONS.values():
        for device in devices(insn):
            for statement in unlinked(insn, device):
                found = [each for each in known if re.search(each, statement.text)]
                assert len(found) == 1, f"{insn.name} on {device}: {statement.text} {found}"
                used.update(found)
                ids = BY_RULES.get(found[0], "").split()
                told = [r for r in insn.rules if r.id in ids and r.binds(device) and r.otherwise]
                assert told or not ids, f"{insn.name} on {device}: {statement.text}"
    assert used == set(known)
