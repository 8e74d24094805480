"""The verifier of one instruction: a fold over its record. All violations are found at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, cast

from ptokit.base.diagnostics import Diagnostic, Note
from ptokit.base.location import Location
from ptokit.base.policy import DEFAULT, Policy
from ptokit.isa.facts import Facts, Ops, Recorder, TileFacts, Unknown, shown
from ptokit.isa.origins import Origin, origin_of
from ptokit.isa.regions import end_of
from ptokit.isa.scalars import refusals
from ptokit.isa.spec import Insn, Operand, Rule, Types
from ptokit.isa.targets import Target

if TYPE_CHECKING:
    from ptokit.isa.remedies import Elsewhere

_VALUES = "; here: "  # stands between the words and the values of an advice
Advice = Callable[[Insn, Rule, Ops, Mapping[str, str]], str]


def verify(
    insn: Insn,
    ops: Ops,
    location: Location | None = None,
    *,
    policy: Policy = DEFAULT,
    advise: bool = True,
    elsewhere: Elsewhere | None = None,
) -> list[Diagnostic]:
    """Return a diagnostic for every rule of the target that the operands break.

    Each has the severity that the policy gives it; what is allowed at its line is not left out.
    `advise` looks for values that would mend each; whoever only counts can do without. `elsewhere`
    says whether the rest of the program would take them.
    """
    target = ops.target.name
    if target not in insn.targets:
        return [_unavailable(insn, target, location)]
    found = unfit_numbers(insn, ops, location)
    if found:  # rules count on numbers that are what they are declared as
        return found
    ops = as_addressed(insn, ops)
    for group in insn.types:
        found += _check_types(insn, group, ops, location, policy)
    for rule in insn.rules:
        if rule.binds(target):
            advice = partial(_advice, elsewhere=elsewhere) if advise else _no_advice
            found += _check_rule(insn, rule, ops, location, policy, advice)
    return found


def verify_text(insn: Insn, ops: Ops) -> list[Diagnostic]:
    """Return a diagnostic for every rule of texts that a line breaks.

    The operands are those that are written; each is an error, as the verifier of texts makes it.
    """
    found: list[Diagnostic] = []
    advice = partial(_advice, elsewhere=None)
    for rule in insn.text_rules:
        if rule.binds(ops.target.name):
            found += _check_rule(insn, rule, ops, None, DEFAULT, advice)
    return found


def as_addressed(insn: Insn, ops: Ops) -> Ops:
    """The operands with the memories in which a device uses their addresses."""
    moved: dict[str, Facts | None] = {}
    for index in insn.addressed:
        declared = insn.operands[index]
        tile = ops[declared.name]
        if isinstance(tile, TileFacts) and _is_elsewhere(declared, tile, ops.target):
            moved[declared.name] = replace(tile, home=declared.memory)
    return Ops({**dict(ops), **moved}, ops.attrs, ops.target, ops.mode) if moved else ops


def _is_elsewhere(declared: Operand, tile: TileFacts, target: Target) -> bool:
    """Whether a device uses the address of a tile in another memory than the tile lies in."""
    return declared.memory not in (None, tile.loc) and target.is_device


def unfit_numbers(insn: Insn, ops: Ops, location: Location | None = None) -> list[Diagnostic]:
    """A diagnostic for every operand that is a number it does not take (isa/scalars.py)."""
    return [
        Diagnostic(
            declared.refused or f"{insn.name}.number",
            f"{insn.name}: {declared.name} is {words}",
            location,
            ((declared.name, value),),
            fix,
            ops.target.name,
        )
        for declared, value, words, fix in refusals(insn, ops)
    ]


def code_of(insn: Insn, rule: Rule) -> str:
    """The stable code a rule is reported under: its assertion id, or instruction.name."""
    stable = is_assertion_id(rule.id) or (rule.id[0] == "E" and rule.id[1:].isdigit())
    return rule.id if stable else f"{insn.name}.{rule.id}"


def type_code(insn: Insn, group: Types, target: str) -> str:
    """The stable code under which a target reports element types that are not in its list."""
    id = group.ids.get(target, "dtype")
    return id if is_assertion_id(id) else f"{insn.name}.{id}"


def is_assertion_id(id: str) -> bool:
    return id[:3] in ("SA-", "PA-", "CA-")


def _unavailable(insn: Insn, target: str, location: Location | None) -> Diagnostic:
    have = sorted(insn.targets - {"cpu"})
    return Diagnostic(
        f"{insn.name}.unavailable",
        f"{insn.name} does not exist on {target}",
        location,
        fix=f"it exists on {', '.join(have)}" if have else "no supported device has it",
        target=target,
    )


def _check_types(
    insn: Insn, group: Types, ops: Ops, location: Location | None, policy: Policy
) -> list[Diagnostic]:
    target = ops.target.name
    if group.ids.get(target) == "" or not group.breaks(ops):
        return []
    names = ", ".join(group.of)
    legal = sorted(",".join(t.name for t in combo) for combo in group.allowed[target])
    many = "s" if len(group.of) > 1 else ""
    found = Diagnostic(
        type_code(insn, group, target),
        f"{insn.name}: element type{many} of {names} must be one of {' '.join(legal)}",
        location,
        tuple((f"{name}.dtype", ops[name].dtype.name) for name in group.of),
        "use one of these element types, or convert with TCVT first",
        target,
    )
    origin = origin_of(insn.name, group.ids.get(target, "dtype"), target)
    otherwise = group.otherwise if isinstance(group.otherwise, str) else group.otherwise(ops)
    return [weighed(found, origin, otherwise, policy)]


def _check_rule(
    insn: Insn, rule: Rule, ops: Ops, location: Location | None, policy: Policy, advice: Advice
) -> list[Diagnostic]:
    try:
        if rule.holds(ops):
            return []
    except Unknown:
        return []
    seen: dict[str, str] = {}
    rule.holds(Recorder(ops, seen))
    found = Diagnostic(
        code_of(insn, rule),
        f"{insn.name}: {rule.text}",
        location,
        tuple(_as_written(insn, ops, seen)),
        advice(insn, rule, ops, seen),
        ops.target.name,
    )
    origin = insn.origin(rule, ops.target.name)
    try:
        otherwise = outcome(insn, rule, ops)
    except Unknown:  # how much it matters depends on what only the running program knows
        if policy.severity(origin, is_defined=True) != "error":
            return []
        otherwise = ""  # it is an error whatever happens
    if rule.unknown and not otherwise:
        found = replace(found, notes=(Note(f"otherwise: {rule.unknown}"),))
    return [weighed(found, origin, otherwise, policy)]


def _as_written(insn: Insn, ops: Ops, seen: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What a predicate looked at; numbers that are operands by their names alone."""
    for path, value in seen.items():
        name, _, fact = path.partition(".")
        number = fact == "value" and name in insn.names
        yield (name, insn.operand(name).written(ops[name].value)) if number else (path, value)


def outcome(insn: Insn, rule: Rule, ops: Ops) -> str:
    """What happens where these operands break a rule, in words; empty: nobody knows."""
    said = rule.otherwise if isinstance(rule.otherwise, str) else rule.otherwise(ops)
    if said and ops.mode == "auto" and _leaves_tiles(insn, as_addressed(insn, ops)):
        return ""
    return said


def _leaves_tiles(insn: Insn, ops: Ops) -> bool:
    """Whether more is touched than the tiles: a compiler decides what lies there."""
    for declared in insn.operands:
        tile = ops[declared.name]
        if isinstance(tile, TileFacts):
            try:
                view = declared.view(ops) if callable(declared.view) else declared.view
                leaves = tile.home is not None or end_of(view, tile) > tile.nbytes
            except Unknown:
                raise
            except Exception:  # of operands that break other rules nothing can be said
                return True
            if leaves:
                return True
    return False


def weighed(found: Diagnostic, origin: Origin, otherwise: str, policy: Policy) -> Diagnostic:
    """A finding with its severity; where it is known what then happens, that is told too.

    What nothing enforces can be allowed in any case: the program then means what it says.
    """
    if not otherwise or not origin.words:  # a rule may be enforced here and nowhere else
        return replace(found, is_allowable=bool(origin.words))
    return replace(
        found,
        message=f"{found.message} ({origin.words})",
        severity=policy.severity(origin, is_defined=True),
        notes=(Note(f"otherwise: {otherwise}"),),
        is_allowable=True,
    )


def _no_advice(insn: Insn, rule: Rule, ops: Ops, seen: Mapping[str, str]) -> str:
    return ""


def _advice(
    insn: Insn,
    rule: Rule,
    ops: Ops,
    seen: Mapping[str, str],
    elsewhere: Elsewhere | None,
) -> str:
    """How to mend it: in words, and with the values that would do here."""
    from ptokit.isa.remedies import remedies  # for what breaks a rule

    words = rule.fix
    if not isinstance(words, str):
        try:
            words = words(ops)
        except Unknown:  # it depends on what only the running program knows
            words = ""
    return joined_advice(words or recipe(rule.id), remedies(insn, rule, ops, seen, elsewhere))


def joined_advice(words: str, values: str) -> str:
    """One sentence of the general advice and of the values that would mend the case at hand."""
    return f"{words}{_VALUES}{values}" if words and values else words or values


def offers_values(advice: str) -> bool:
    """Whether advice names values that would mend the case at hand."""
    return _VALUES in advice


@cache
def assertions() -> dict[str, Any]:
    """The catalogue of assertion ids and repair recipes."""
    return cast("dict[str, Any]", json.loads(get_data(__name__, "assertions.json") or b"{}"))


def recipe(id: str) -> str:
    """The repair advice for an assertion id; empty when there is none."""
    entry = assertions()["assertions"].get(id)
    if entry is None:
        return ""
    fixes = entry["fix"]
    if isinstance(fixes, str):
        return fixes
    recipes = assertions()["recipes"]
    return " ".join(f"{recipes[f]} ({f})" for f in fixes[:1])


__all__ = [
    "assertions",
    "code_of",
    "is_assertion_id",
    "joined_advice",
    "offers_values",
    "outcome",
    "recipe",
    "shown",
    "type_code",
    "verify",
    "verify_text",
    "weighed",
]
